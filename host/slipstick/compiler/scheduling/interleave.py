"""Interleaves layers: the next ones begin while those before are still at work.

The array and the post-processor are seldom both busy with one layer: a convolution of many input
channels leaves the post-processor idle, a sum of two activations the array. So the tiles of a few
groups take turns, each as early as what it reads is there. The order of the groups one after the
other is a legal one, and stays so if only such instructions change places as touch nothing in
common; the timeline finds the waits for it as for any other order.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from slipstick_rtl.isa import Opcode

from ..timing.cycle_model import Clock, CycleModel
from ..timing.timeline import Instruction, Region, Timeline
from .groups import Group, Tiling

DEEPEST = 3
"""Groups behind the first unfinished one that may begin."""

Unit = tuple[Instruction, ...]
"""CONVOLVEs and the DRAINs of all their sums, between which no bank may be taken; or one other
instruction of the post stream."""


def units(instructions: Iterable[Instruction]) -> list[Unit]:
    """Instructions of a group in their order, cut into units."""
    found: list[Unit] = []
    pending: list[Instruction] = []
    filled: set[int] = set()
    for instruction in instructions:
        pending.append(instruction)
        if instruction.bank is not None:
            (filled.add if instruction.is_matrix else filled.discard)(instruction.bank)
        if not filled:
            found.append(tuple(pending))
            pending = []
    return [*found, tuple(pending)] if pending else found


_PLACES = ("rows", "groups", "origin_y", "origin_x")
"""Fields that say which pixels a CONVOLVE makes."""


def joined(fine: Iterable[Unit]) -> list[Unit]:
    """Units, those of the tiles of channels of the same pixels as one: turns of one instruction."""

    def pixels(unit: Unit) -> object:
        fields = unit[0].fields
        return [fields[name] for name in _PLACES] if unit[0].is_matrix else id(unit)

    return [tuple(itertools.chain(*run)) for _, run in itertools.groupby(fine, pixels)]


@dataclass(frozen=True, eq=False)
class UnitSequence:
    """The units of a group under one tiling.

    Parameters
    ----------
    key : (int, Tiling)
    units : list of Unit
    size : int
        Instructions in them.
    array_work, post_work : list of int
        Cycles that a unit and all behind it take at least; one more for none.
    """

    key: tuple[int, Tiling]
    units: list[Unit]
    size: int
    array_work: list[int]
    post_work: list[int]


@dataclass(frozen=True, slots=True)
class _Touched:
    """Holds what the instructions of a unit touch, and whether one loads or looks up a table."""

    reads: frozenset[Region]
    writes: frozenset[Region]
    loads: bool
    looks: bool

    @classmethod
    def of(cls, unit: Unit) -> "_Touched":
        return cls(
            frozenset(itertools.chain(*(item.reads for item in unit))),
            frozenset(itertools.chain(*(item.writes for item in unit))),
            any(item.fields["opcode"] == Opcode.TABLE for item in unit),
            any(item.fields.get("use_table") for item in unit),
        )

    def may_pass(self, earlier: "_Touched") -> bool:
        """Tells whether its instructions may change places with all those of an earlier unit."""
        if self.loads and (earlier.loads or earlier.looks) or earlier.loads and self.looks:
            return False
        return not (
            _meet(self.reads, earlier.writes)
            or _meet(self.writes, earlier.writes)
            or _meet(self.writes, earlier.reads)
        )


def _meet(some: Iterable[Region], others: Iterable[Region]) -> bool:
    return any(one.meets(other) for one in some for other in others)


def _needed(unit: _Touched, earlier: Sequence[_Touched]) -> int:
    for number in range(len(earlier), 0, -1):
        if not unit.may_pass(earlier[number - 1]):
            return number
    return 0


class UnitSequences:
    """Keeps sequences of units, and what each unit of one needs of others, worked out once.

    Parameters
    ----------
    model : CycleModel
    joins : bool
        Turns stay together, and take one instruction: for where there is little room.
    """

    def __init__(self, model: CycleModel, *, joins: bool) -> None:
        self._model, self._joins = model, joins
        self._touches: dict[Unit, _Touched] = {}
        self._sequences: dict[tuple[int, Tiling], UnitSequence] = {}
        self._needs: dict[tuple[tuple[int, Tiling], tuple[int, Tiling]], list[int]] = {}

    def get(self, group: Group, tiling: Tiling) -> UnitSequence:
        """Returns the unit sequence of a group."""
        key = (group.first, tiling)
        if key not in self._sequences:
            fine = units(group.emit(tiling))
            found = joined(fine) if self._joins else fine
            works = self._model.work_to_the_end([item.fields for item in unit] for unit in found)
            self._sequences[key] = UnitSequence(key, found, sum(map(len, found)), *works)
        return self._sequences[key]

    def needs(self, later: UnitSequence, earlier: UnitSequence) -> list[int]:
        """For each unit of a sequence, how many of an earlier one must come before it."""
        key = (later.key, earlier.key)
        if key not in self._needs:
            touched = [self._touched(unit) for unit in earlier.units]
            self._needs[key] = [_needed(self._touched(unit), touched) for unit in later.units]
        return self._needs[key]

    def _touched(self, unit: Unit) -> "_Touched":
        if unit not in self._touches:
            self._touches[unit] = _Touched.of(unit)
        return self._touches[unit]


class Interleaver:
    """Interleaves the unit sequences of groups, in the groups' order, into a timeline.

    Parameters
    ----------
    timeline : Timeline
        What came before; it grows.
    sequences : UnitSequences
    patience : int
        Cycles that the array may idle to begin with a tile of a later group.

    Members
    -------
    pending : int
        Instructions that were added and are not in the timeline yet.
    """

    def __init__(self, timeline: Timeline, sequences: UnitSequences, patience: int) -> None:
        self.timeline = timeline
        self._sequences, self._patience = sequences, patience
        self._interleaved: list[UnitSequence] = []
        self._needs: list[list[list[int]]] = []
        self._heads: list[int] = []
        self._first = self._array_work = self._post_work = self.pending = 0

    def copy(self) -> "Interleaver":
        """An independent copy."""
        other = Interleaver(self.timeline.copy(), self._sequences, self._patience)
        other._interleaved, other._heads = self._interleaved.copy(), self._heads.copy()
        other._needs, other._first = self._needs.copy(), self._first
        other._array_work, other._post_work = self._array_work, self._post_work
        other.pending = self.pending
        return other

    def add(self, sequence: UnitSequence) -> None:
        """The next group's."""
        before = self._interleaved[-DEEPEST:]
        self._needs.append([self._sequences.needs(sequence, earlier) for earlier in before])
        self._interleaved.append(sequence)
        self._heads.append(0)
        self._array_work += sequence.array_work[0]
        self._post_work += sequence.post_work[0]
        self.pending += sequence.size

    @property
    def keys(self) -> tuple[tuple[int, Tiling], ...]:
        """Those of all sequences that were added."""
        return tuple(sequence.key for sequence in self._interleaved)

    @property
    def least_end(self) -> int:
        """Returns the earliest cycle at which the run can end, with all that was added."""
        clock = self.timeline.clock
        assert isinstance(clock, Clock)
        return clock.end_after(self._array_work, self._post_work)

    def interleave(self, unfinished: int = 0, limit: int | None = None) -> bool:
        """Goes on until that many groups at the end, or fewer, are unfinished.

        Parameters
        ----------
        unfinished : int
        limit : int, optional
            Gives up as soon as the run can be seen to take so many cycles or more.

        Returns
        -------
        bool
            False if it gave up.
        """
        while True:
            while self._first < len(self._interleaved) and self._done(self._first):
                self._first += 1
            if self._first >= len(self._interleaved) - unfinished:
                return True
            if limit is not None and self.least_end >= limit:
                return False
            number = self._next()
            sequence, head = self._interleaved[number], self._heads[number]
            unit = sequence.units[head]
            self.timeline.place(unit)
            self.timeline.interleave(unit)
            self._heads[number] += 1
            self._array_work -= sequence.array_work[head] - sequence.array_work[head + 1]
            self._post_work -= sequence.post_work[head] - sequence.post_work[head + 1]
            self.pending -= len(unit)

    def _done(self, number: int) -> bool:
        return self._heads[number] == len(self._interleaved[number].units)

    def _next(self) -> int:
        """The group whose turn it is: the last one whose unit does not make the array wait."""
        end = min(self._first + 1 + DEEPEST, len(self._interleaved))
        ready = [number for number in range(self._first, end) if self._is_ready(number)]
        for number in reversed(ready):
            if not self._head(number)[0].is_matrix:
                return number
        if len(ready) == 1:
            return ready[0]
        starts = []
        for number in ready:
            unit = self._head(number)
            self.timeline.place(unit)
            starts.append(self.timeline.start(unit[0]))
        latest = min(starts) + self._patience
        return max(number for number, start in zip(ready, starts, strict=True) if start <= latest)

    def _head(self, number: int) -> Unit:
        return self._interleaved[number].units[self._heads[number]]

    def _is_ready(self, number: int) -> bool:
        """Tells whether all that the next unit of a group needs is there."""
        if self._done(number):
            return False
        head, needs = self._heads[number], self._needs[number]
        start = number - len(needs)
        return all(
            [
                self._heads[earlier] >= needs[earlier - start][head]
                for earlier in range(max(self._first, start), number)
            ]
        )
