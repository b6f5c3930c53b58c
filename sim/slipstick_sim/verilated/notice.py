"""Tells people that a simulation is being compiled, and how long that takes."""

import contextlib
import sys
import time
from collections.abc import Iterator

from slipstick_rtl.config import Configuration

_BASE_SECONDS = 20
_MACS_PER_SECOND = 4
"""Within a half of two builds on two cores: 62 s for 256 multipliers, 185 s for 512."""


def expected_seconds(configuration: Configuration) -> int:
    """Returns about how many seconds a core's compilation takes, in tens, if two cores are free."""
    return 10 * round((_BASE_SECONDS + configuration.macs_per_cycle / _MACS_PER_SECOND) / 10)


@contextlib.contextmanager
def compiling(configuration: Configuration, label: str = "") -> Iterator[None]:
    """Prints a line on the standard error before the body, and one with its time afterwards.

    Parameters
    ----------
    configuration : Configuration
        Hardware that the body compiles.
    label : str
        Name of the hardware; by default the array's shape.
    """
    name = label or configuration.shape
    seconds = expected_seconds(configuration)
    _tell(f"compiling the simulation of {name}, about {seconds} s if two cores are free ...")
    start = time.monotonic()
    yield
    _tell(f"compiled the simulation of {name} in {time.monotonic() - start:.0f} s")


def _tell(text: str) -> None:
    print(f"slipstick: {text}", file=sys.stderr, flush=True)
