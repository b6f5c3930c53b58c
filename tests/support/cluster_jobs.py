"""Functions that worker processes run in tests: they are imported there."""

import os
import signal
import time
from pathlib import Path

from slipstick.errors import TargetError


def read(path: str, others: tuple[str, ...], text: str) -> tuple[str, list[str], str]:
    """Contents of files of the command, and a text that is no file."""
    return Path(path).read_text(), [Path(each).read_text() for each in others], text


def name_of(path: str) -> tuple[str, bool]:
    """A file's name there, and whether it is another copy."""
    return Path(path).name, "slipstick-worker-" in path


def refuse(number: int) -> int:
    """An error that users may meet."""
    raise TargetError(f"target {number} is none")


def die_once(marker: str) -> int:
    """Ends its process with signal 9, the first time."""
    if not Path(marker).exists():
        Path(marker).write_text("died")
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()


def die() -> None:
    """Ends its process with signal 9."""
    os.kill(os.getpid(), signal.SIGKILL)


def rest(seconds: float) -> int:
    """Takes its time."""
    time.sleep(seconds)
    return os.getpid()
