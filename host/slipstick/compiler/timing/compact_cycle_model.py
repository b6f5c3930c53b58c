"""The cycle model of the compact engine: one instruction after the other."""

from collections.abc import Mapping
from dataclasses import dataclass

from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import WORDS_PER_INSTRUCTION, Opcode

VALUE_DIGITS = 4
"""Digits of a sum in base 256; R of them go through the multipliers a cycle, and then the carry."""

START_CYCLES = 1
"""Cycles from RUN until the first instruction is looked for."""

POLL_CYCLES = 4
"""Cycles to see that a stream's next instruction must wait, or that the stream has ended."""

FETCH_CYCLES = POLL_CYCLES + WORDS_PER_INSTRUCTION + 3
"""Cycles from one instruction's end until the next one's first cycle; and its end itself."""

CHANNEL_CYCLES = 22
"""Cycles of a channel of DRAIN or MAP beyond its results: parameters, and the last result's way."""

TAP_CYCLES = 2
"""Cycles of a MAP's tap: a read, and a look-up in the table."""


@dataclass(frozen=True)
class CompactCycleModel:
    """Durations that follow from the configuration; all in cycles."""

    configuration: Configuration

    def clock(self) -> "CompactClock":
        """The state at the start of a run."""
        return CompactClock(self)

    @property
    def passes(self) -> int:
        """Cycles of a DRAIN's result."""
        return VALUE_DIGITS // self.configuration.rows + 1

    def work(self, fields: Mapping[str, int]) -> int:
        """Cycles of an instruction, its fetching included."""
        opcode = fields["opcode"]
        if opcode == Opcode.TABLE:
            return FETCH_CYCLES
        if opcode == Opcode.CONVOLVE:
            words = 1 if fields["diagonal"] else self.configuration.rows
            vectors = fields["rows"] * fields["groups"]
            return FETCH_CYCLES + fields["reduction_tiles"] * (words + vectors)
        results = fields["rows"] * fields["columns"]
        if opcode == Opcode.DRAIN:
            period, rest = self.passes, 0
        else:
            rest = TAP_CYCLES * fields["taps_y"] * fields["taps_x"]
            period = 1 + rest
        return FETCH_CYCLES + fields["slices"] * (CHANNEL_CYCLES + (results - 1) * period + rest)


class CompactClock:
    """The time that has passed while instructions are issued in order."""

    def __init__(self, model: CompactCycleModel) -> None:
        self._model = model
        self._now = START_CYCLES

    def copy(self) -> "CompactClock":
        """An independent copy."""
        other = CompactClock(self._model)
        other._now = self._now
        return other

    @property
    def end(self) -> int:
        """Returns the cycle at which all issued work has completed, and both streams have ended."""
        return self._now + 2 * POLL_CYCLES

    def issue(
        self, fields: Mapping[str, int], ready: int, repeated: bool = False
    ) -> tuple[int, int]:
        """Issues an instruction; whatever it waits for has completed. Its start and completion."""
        start = max(self._now, ready)
        self._now = start + self._model.work(fields)
        return start, self._now
