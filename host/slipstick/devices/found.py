"""Devices that finders have found: their places on this machine, and who has them."""

from dataclasses import dataclass

from ..targets import TARGETS


@dataclass(frozen=True, kw_only=True)
class FoundDevice:
    """A place at which there is, or may be, a board.

    Parameters
    ----------
    place : str
        After the colon of ``--device``.
    description : str
        What the place says of itself; empty: nothing.
    fingerprint : str
        Of the board's hardware; empty: only opening it tells.
    owner : str
        Address and port of the host that has the board; empty: none has it, or only opening it
        tells.
    """

    place: str
    description: str = ""
    fingerprint: str = ""
    owner: str = ""

    def __str__(self) -> str:
        used = f"in use by {self.owner}" if self.owner else ""
        told = ", ".join(filter(None, (self.fingerprint, self.description, used)))
        return f"{self.place} ({told})" if told else self.place


def targets_of(fingerprint: str) -> list[str]:
    """Returns the names of the targets that are this hardware."""
    return [
        target.name
        for target in TARGETS.values()
        if target.configuration.fingerprint == fingerprint
    ]
