"""Measures what the host itself costs: batches through devices that only answer."""

import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from slipstick_rtl.config import Configuration

from ...devices.link import LinkDevice
from ...devices.link.transport import Transport
from ...program import Program
from ...runtime.feeds import random_batch
from ...session import InferenceSession
from .null_device import null_board, null_device

TCP, UDP = "tcp", "udp"
"""A stream that loses nothing, as USB's or a serial driver's; and the datagrams of Ethernet."""

IMAGES = 20_000
ROUNDS = 10
_FEEDS = 16


def host_cost(
    program: Program, images: int = IMAGES, devices: int = 1, over: str = TCP
) -> dict[str, Any]:
    """Images per second of this process's time, and of the clock on the wall.

    This process has one processor, and the null devices have the others, as boards take nothing of
    the host's. The images go in ``ROUNDS`` batches. Other programs and virtual machines only slow a
    batch down: the fastest one says what the host costs, the median what was got at that time.

    Parameters
    ----------
    program : Program
    images : int
        All together.
    devices : int
        Several are a pool.
    over : str
        ``TCP`` or ``UDP``.
    """
    count = images // ROUNDS
    feeds = random_batch(program, count, _FEEDS)
    of_process, of_clock = list[float](), list[float]()
    own, others = _processors()
    with ExitStack() as stack:
        with _running_on(others):
            opened = [stack.enter_context(null_link(program, over)) for _ in range(devices)]
        device = opened[0] if devices == 1 else opened
        stack.enter_context(_running_on(own))
        session = stack.enter_context(InferenceSession(program, device))
        # describes regions, measures rates, and warms up
        session.run_batch(None, random_batch(program, _FEEDS * devices))
        for _ in range(ROUNDS):
            busy, start = time.process_time(), time.perf_counter()
            session.run_batch(None, feeds)
            of_process.append(count / (time.process_time() - busy))
            of_clock.append(count / (time.perf_counter() - start))
    return {
        "network": program.name,
        "shape": program.hardware.shape,
        "over": over,
        "devices": devices,
        "images": count * ROUNDS,
        "rounds": ROUNDS,
        "images_per_core_second": statistics.median(of_process),
        "images_per_core_second_best": max(of_process),
        "images_per_second": statistics.median(of_clock),
    }


def _processors() -> tuple[set[int], set[int]]:
    """One processor, and the others, or the same one if there are none; empty sets where the system
    cannot tell."""
    if sys.platform != "linux":
        return set(), set()
    every = os.sched_getaffinity(0)
    own = {min(every)}
    return own, every - own or own


@contextmanager
def _running_on(processors: set[int]) -> Iterator[None]:
    """Threads and processes that are begun in the body stay on these processors, if there are any
    named."""
    if sys.platform != "linux" or not processors:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, processors)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def null_link(program: Program, over: str) -> Iterator[LinkDevice]:
    """A null device in a process of its own, opened."""
    with _NULL[over](program.hardware) as transport:
        device = LinkDevice(transport, configuration=program.hardware)
        yield device
        device.close()


_NULL: dict[str, Callable[[Configuration], AbstractContextManager[Transport]]] = {
    TCP: null_device,
    UDP: null_board,
}
