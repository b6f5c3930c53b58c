"""The names of emulated boards: ``emulated:TARGET@WIRE/SLOWER``."""

import re
from dataclasses import dataclass

from ..errors import DeviceError

_NAME = re.compile(r"(?P<target>[^@/]*)(?:@(?P<wire>[^/]+))?(?:/(?P<slower>[0-9]+(?:\.[0-9]+)?))?")
MOST_SLOWER = 1e6


@dataclass(frozen=True)
class EmulatedPlace:
    """Parts of a device's name behind ``emulated:``.

    Parameters
    ----------
    target : str
        Empty: the program's hardware.
    wire : str
        As ``bench --wire`` has it; empty: the core alone.
    slower : float
        All takes so many times as long: many boards on one computer are not bound by its CPU.
    """

    target: str
    wire: str
    slower: float


def emulated_place(place: str) -> EmulatedPlace:
    """Reads ``TARGET[@WIRE][/SLOWER]``; DeviceError if it is none."""
    match = _NAME.fullmatch(place)
    slower = float(match["slower"] or 1) if match else 0.0
    if match is None or not 0 < slower <= MOST_SLOWER:
        raise DeviceError(
            f"device 'emulated:{place}' must be emulated:TARGET@WIRE/SLOWER, SLOWER a number above"
            f" 0 and up to {MOST_SLOWER:g}"
        )
    return EmulatedPlace(match["target"], match["wire"] or "", slower)
