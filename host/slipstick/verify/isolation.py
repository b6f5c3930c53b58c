"""Runs a function in a process of its own: what crashes there crashes nothing else."""

import contextlib
import os
import pickle
import select
import signal
import time
from collections.abc import Callable
from typing import Any

SECONDS = 5.0


def run_apart(function: Callable[[], Any], seconds: float = SECONDS) -> Any:
    """Runs a function; returns its result, None if it raises, crashes or takes too long."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        _answer(function, writing)
    os.close(writing)
    parts: list[bytes] = []
    deadline = time.monotonic() + seconds
    try:
        while (left := deadline - time.monotonic()) > 0:
            if select.select([reading], [], [], left)[0]:
                part = os.read(reading, 1 << 16)
                if not part:
                    break
                parts.append(part)
        else:
            os.kill(child, signal.SIGKILL)
    finally:
        os.close(reading)
        _, status = os.waitpid(child, 0)
    return pickle.loads(b"".join(parts)) if status == 0 and parts else None


def _answer(function: Callable[[], Any], writing: int) -> None:
    """In the child: writes the result, and ends without whatever Python does at its end."""
    status = 1
    with contextlib.suppress(BaseException):
        # a runtime may tell its reasons on the standard error
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        data = pickle.dumps(function())
        while data:
            data = data[os.write(writing, data) :]
        status = 0
    os._exit(status)
