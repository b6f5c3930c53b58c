"""Defines what the compiler asks of a board to divide a network: its hardware and its time."""

from typing import Protocol

from slipstick_rtl.config import Configuration

from ...program import Program


class BoardModel(Protocol):
    """A board and the wire to it."""

    @property
    def name(self) -> str:
        """For people: the target."""
        ...

    @property
    def configuration(self) -> Configuration:
        """Its hardware."""
        ...

    @property
    def loads_per_image(self) -> float:
        """Counts how often a streamed layer's weights cross the wire per image of a long batch."""
        ...

    def seconds(self, program: Program) -> float:
        """Predicted time per image of a long batch: the slower one of core and wire."""
        ...

    def transfer_seconds(self, up: int, down: int) -> float:
        """Time that bytes of one image take on the wire while others are computed."""
        ...

    def exchange_seconds(self, up: int, down: int) -> float:
        """Time to read bytes from the board, and then to write bytes to it, one after the other."""
        ...
