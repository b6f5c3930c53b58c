"""A worker process: one board, given to a scheduler until it is told to end."""

import asyncio
import signal
import socket
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import distributed
from slipstick_rtl.config import Configuration

from ..errors import DeviceError, SlipstickError
from .board import Board


def run_worker(
    scheduler: str,
    device: str | None,
    configuration: Configuration | None,
    *,
    wait_seconds: float,
    ready: Callable[[str], object],
) -> None:
    """Runs a worker until SIGINT or SIGTERM, or until the scheduler is gone.

    Parameters
    ----------
    scheduler : str
        Its address.
    device : str or None
        None: the worker takes jobs without boards only.
    configuration : Configuration, optional
        The hardware of the device.
    wait_seconds : float
        How long the scheduler may take to answer.
    ready : callable
        Told the worker's name, when it has joined.

    Raises
    ------
    SlipstickError
        If the device cannot be opened, or the scheduler does not answer or goes away.
    """
    asyncio.run(_run(scheduler, device, configuration, wait_seconds, ready))


async def _run(
    scheduler: str,
    device: str | None,
    configuration: Configuration | None,
    wait_seconds: float,
    ready: Callable[[str], object],
) -> None:
    await _check(scheduler, wait_seconds)
    name = f"{device or 'no board'} #{uuid.uuid4().hex[:6]}"
    worker = distributed.Worker(
        scheduler,
        nthreads=1,
        name=name,
        memory_limit=0,
        dashboard=False,
        plugins=(Board(device, configuration, must_open=True),),
        death_timeout=wait_seconds,
    )
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    try:
        await _start(worker)
        ready(f"{name} of {socket.gethostname()}")
        told = asyncio.ensure_future(ended.wait())
        done, _ = await asyncio.wait(
            (told, asyncio.ensure_future(worker.finished())), return_when=asyncio.FIRST_COMPLETED
        )
        if told not in done:
            raise DeviceError(f"scheduler {scheduler} is gone")
    finally:
        with suppress(Exception):
            # a task that runs is lost, and goes to another worker
            await asyncio.wait_for(worker.close(timeout=1, executor_wait=False), 5)


async def _start(worker: distributed.Worker) -> None:
    """Joins the scheduler; the error of a device is passed on without Dask's around it."""
    try:
        await worker
    except RuntimeError as error:
        cause = error.__cause__
        if isinstance(cause, SlipstickError | OSError | TimeoutError):
            raise DeviceError(str(cause)) from cause
        raise


async def _check(scheduler: str, seconds: float) -> None:
    """DeviceError unless a scheduler answers."""
    try:
        remote = distributed.rpc(scheduler, timeout=seconds)
        try:
            told: Any = await asyncio.wait_for(remote.identity(n_workers=0), seconds)
        finally:
            await remote.close_rpc()
    except (OSError, TimeoutError, ValueError) as error:
        raise DeviceError(
            f"scheduler {scheduler} does not answer within {seconds:g} s"
            f" ({' '.join(str(error).split()) or type(error).__name__}): dask scheduler starts one"
        ) from None
    if told.get("type") != "Scheduler":
        raise DeviceError(f"scheduler {scheduler} is none, but a {told.get('type')}")
