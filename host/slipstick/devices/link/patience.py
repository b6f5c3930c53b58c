"""Bounds how long a host waits for a device, and how far it sends ahead."""

from dataclasses import dataclass

from slipstick_rtl.config import Configuration
from slipstick_rtl.link.protocol import DEFAULT_TIMEOUT_CYCLES, WAIT_TIMEOUTS

WINDOW_BYTES = 1 << 16
"""Enough for the fastest wire, and little enough to be sent again after a failure."""
ANSWER_WINDOW_BYTES = 1 << 13
"""Bytes of answers that any computer's driver holds for a program that does not look."""


@dataclass(frozen=True, kw_only=True)
class Patience:
    """Limits of an exchange: times, retries and bytes.

    Parameters
    ----------
    timeout_seconds : float
        For an answer, from the last one or from sending again. Waiting requests have
        ``wait_seconds`` more, and bytes the time that they take on the wire.
    retries : int
        Failures in a row, without progress between, that are put up with.
    silence_seconds : float
        Pause that makes the device forget half a frame: longer than its timeout.
    wait_seconds : float
        The longest that the device holds a waiting request before it answers BUSY.
    run_seconds : float
        How long a run may take, whatever is expected of it.
    window_bytes : int
        Bytes of requests that are sent ahead of their answers, at least one request.
    receive_bytes : int or None
        Bytes that the device takes while it is busy with a request, if its wire cannot hold a
        sender back; None: it can.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """

    timeout_seconds: float = 1.0
    retries: int = 8
    silence_seconds: float = 0.1
    wait_seconds: float = 1.0
    run_seconds: float = 60.0
    window_bytes: int = WINDOW_BYTES
    receive_bytes: int | None = None

    def __post_init__(self) -> None:
        for name in ("timeout_seconds", "run_seconds"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, not {getattr(self, name)}")
        for name in ("retries", "silence_seconds", "wait_seconds"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must be at least 0, not {getattr(self, name)}")
        if not self.window_bytes >= 1:
            raise ValueError(f"window_bytes must be at least 1, not {self.window_bytes}")
        if self.receive_bytes is not None and self.receive_bytes < 0:
            raise ValueError(f"receive_bytes must be at least 0, not {self.receive_bytes}")


def wait_seconds(configuration: Configuration) -> float:
    """Returns the seconds that a board holds a waiting request, and a little more."""
    return 0.1 + 1.1 * WAIT_TIMEOUTS * DEFAULT_TIMEOUT_CYCLES / configuration.clock_hz
