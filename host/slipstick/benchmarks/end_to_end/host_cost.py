"""Measures what the host itself costs: batches through devices that only answer."""

import threading
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
_FEEDS = 16


def host_cost(
    program: Program, images: int = IMAGES, devices: int = 1, over: str = TCP
) -> dict[str, Any]:
    """Images per second of this process's time, and of the clock on the wall.

    Parameters
    ----------
    program : Program
    images : int
        All together.
    devices : int
        Each has a session and a thread of its own.
    over : str
        ``TCP`` or ``UDP``.
    """
    feeds = random_batch(program, images // devices, _FEEDS)
    with ExitStack() as stack:
        sessions = [stack.enter_context(_session(program, over)) for _ in range(devices)]
        for session in sessions:
            # describes regions, and warms up
            session.run_batch(None, random_batch(program, _FEEDS))
        threads = [
            threading.Thread(target=session.run_batch, args=(None, feeds)) for session in sessions
        ]
        busy, start = time.process_time(), time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        busy, wall = time.process_time() - busy, time.perf_counter() - start
    done = images // devices * devices
    return {
        "network": program.name,
        "shape": program.hardware.shape,
        "over": over,
        "devices": devices,
        "images": done,
        "images_per_core_second": done / busy,
        "images_per_second": done / wall,
    }


@contextmanager
def _session(program: Program, over: str) -> Iterator[InferenceSession]:
    with _NULL[over](program.hardware) as transport:
        device = LinkDevice(transport, configuration=program.hardware)
        with InferenceSession(program, device) as session:
            yield session
        device.close()


_NULL: dict[str, Callable[[Configuration], AbstractContextManager[Transport]]] = {
    TCP: null_device,
    UDP: null_board,
}
