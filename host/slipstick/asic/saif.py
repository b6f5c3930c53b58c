"""Switching activity: SAIF files, and what they say of a design's signals."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import TargetError

_LINE = re.compile(
    r"""^\s*(?:
    \(INSTANCE\ (?P<instance>\S+)
    | \((?P<net>\S+)\ \(T0\ \d+\)\ \(T1\ (?P<high>\d+)\).*\(TC\ (?P<changes>\d+)\)\)
    | \(DURATION\ (?P<duration>\d+)\)
    | (?P<open>\()NET
    | (?P<close>\))
    )\s*$""",
    re.VERBOSE,
)
_BIT = re.compile(r"^(.*?)(?:\\\[(\d+)\\\])?$")


@dataclass(frozen=True)
class Activity:
    """Activity of one bit of a signal.

    Parameters
    ----------
    changes : float
        In a clock cycle, on the average.
    high : float
        Share of the cycles in which it is 1.
    """

    changes: float
    high: float


@dataclass(frozen=True)
class Recording:
    """Contents of a SAIF file whose unit of time is a clock cycle.

    Parameters
    ----------
    cycles : int
    signals : mapping of Activity by (path, bit)
        The names of the instances and of the signal with points between them, from the design's
        top on, which is not named.
    """

    cycles: int
    signals: Mapping[tuple[str, int], Activity]

    def of(self, path: str, bit: int) -> Activity | None:
        """A signal's bit; None if it was not recorded."""
        return self.signals.get((path, bit))


def read_saif(path: Path, top: str) -> Recording:
    """Reads a file that Verilator wrote.

    Parameters
    ----------
    path : Path
    top : str
        The instance that is the design.

    Raises
    ------
    TargetError
        If the file cannot be read, or is no such file.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TargetError(f"SAIF file {path} cannot be read: {error}") from None
    scopes, cycles = list[str](), 0
    signals = dict[tuple[str, int], Activity]()
    for line in text.splitlines():
        found = _LINE.match(line)
        if found is None:
            continue
        if found["instance"] is not None:
            scopes.append(found["instance"])
        elif found["duration"] is not None:
            cycles = int(found["duration"])
        elif found["open"] is not None:
            scopes.append("")
        elif found["close"] is not None:
            scopes = scopes[:-1]
        elif top in scopes and cycles:
            name = _BIT.match(found["net"])
            assert name is not None
            within = [scope for scope in scopes[scopes.index(top) + 1 :] if scope]
            key = (".".join([*within, name[1]]), int(name[2] or 0))
            signals[key] = Activity(int(found["changes"]) / cycles, int(found["high"]) / cycles)
    if not signals:
        raise TargetError(
            f"SAIF file {path} must hold the activity of {top} in at least one cycle, and it holds"
            f" {cycles} cycles and none of its signals"
        )
    return Recording(cycles, signals)
