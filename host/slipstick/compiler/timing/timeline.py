"""Instructions with what they touch, and the waits that keep the two streams apart."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from slipstick_rtl.isa import MATRIX_FIELDS, POST_FIELDS, Opcode, accumulator_place, pack

from ...program.steps import Placement
from .compact_cycle_model import CompactCycleModel
from .cycle_model import CycleModel
from .loop_rolling import Constants, Repeated, constants, merge

_HOPE = 8
"""Instructions from one question to the next whether a trial is hopeless."""

_CELLS = 8
"""Parts of the accumulators, of equal size, of which every bank is made."""


@dataclass(frozen=True, slots=True)
class Region:
    """Rows and channels of a tensor in activation memory, each (first, behind the last)."""

    place: Placement
    rows: tuple[int, int]
    channels: tuple[int, int]
    # worked out once: a search asks for millions of pairs whether they meet
    _layout: tuple[int, int, int] = field(init=False, repr=False, compare=False)
    _bytes: tuple[int, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        place = self.place
        layout = place.address, place.row_pitch, place.pixel_pitch
        first, behind = (place.address + row * place.row_pitch for row in self.rows)
        object.__setattr__(self, "_layout", layout)
        object.__setattr__(self, "_bytes", (first, behind))

    def meets(self, other: "Region") -> bool:
        """Tells whether both may share a byte; tensors laid out alike are told apart by channel."""
        if self._layout == other._layout:
            return (
                self.rows[0] < other.rows[1]
                and other.rows[0] < self.rows[1]
                and self.channels[0] < other.channels[1]
                and other.channels[0] < self.channels[1]
            )
        return self._bytes[0] < other._bytes[1] and other._bytes[0] < self._bytes[1]


@dataclass(frozen=True, slots=True, eq=False)
class Instruction:
    """One instruction before its wait is known.

    Parameters
    ----------
    operation : int
        Index of the operation that it belongs to.
    fields : mapping
        Without ``wait`` and ``bank``.
    reads, writes : tuple of Region
    bank : int or None
        How many tiles of its group come before the one whose accumulators it writes (CONVOLVE) or
        reads (DRAIN): they take the banks, as many as its ``parts`` say, in turns.

    Members
    -------
    is_matrix : bool
        Of the matrix stream.
    same : Constants
    """

    operation: int
    fields: Mapping[str, int]
    reads: tuple[Region, ...] = ()
    writes: tuple[Region, ...] = ()
    bank: int | None = None
    is_matrix: bool = field(init=False, repr=False)
    same: Constants = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_matrix", self.fields["opcode"] == Opcode.CONVOLVE)
        object.__setattr__(self, "same", constants(self.fields))


@dataclass(frozen=True, slots=True, eq=False)
class Issued:
    """An instruction in its stream.

    ``accumulators`` are those of its bank: the half, the first word, the one behind the last.
    """

    instruction: Instruction
    bank: int | None
    accumulators: tuple[int, int, int] | None
    wait: int
    start: int
    completion: int

    def values(self) -> dict[str, int]:
        """All its fields."""
        return _values(self.instruction, self.bank, self.wait)


def _values(instruction: Instruction, bank: int | None, wait: int) -> dict[str, int]:
    return {**instruction.fields, "wait": wait, "bank": bank or 0}


def packed(stream: Iterable[Repeated], moved: Mapping[str, int]) -> bytes:
    """The bytes of a stream in instruction memory, its HALT included.

    Parameters
    ----------
    stream : iterable of Repeated
    moved : mapping of int by field
        What is added to the addresses.
    """
    code = bytearray()
    for repeated in stream:
        values = repeated.values()
        fields = MATRIX_FIELDS if values["opcode"] == Opcode.CONVOLVE else POST_FIELDS
        for name in moved.keys() & values.keys():
            values[name] += moved[name]
        code += pack(fields, values)
    return bytes(code) + pack(POST_FIELDS, {"opcode": Opcode.HALT})


def _cells(bank: int, parts: int) -> tuple[int, ...]:
    half, first, words = accumulator_place(bank, parts, _CELLS // 2)
    begin = half * _CELLS // 2 + first
    return tuple(range(begin, begin + words))


_CELLS_OF = [[_cells(bank, parts) for bank in range(2 << parts)] for parts in range(3)]
"""By parts and bank, the eighths of the accumulators that the bank is made of."""


def _share(one: tuple[int, int, int] | None, other: tuple[int, int, int] | None) -> bool:
    """Tells whether two spans of accumulators, (half, first, behind the last), share one."""
    if one is None or other is None or one[0] != other[0]:
        return False
    return one[1] < other[2] and other[1] < one[2]


def collide(later: Instruction, earlier: Instruction) -> bool:
    """Tells whether two instructions touch the same byte of activations and one writes it."""
    for write in earlier.writes:
        if any(write.meets(access) for access in (*later.reads, *later.writes)):
            return True
    return any(write.meets(read) for write in later.writes for read in earlier.reads)


class Collisions(dict[tuple[Instruction, Instruction], bool]):
    """Caches whether a later instruction and an earlier one collide, each pair looked at once."""

    def __missing__(self, pair: tuple[Instruction, Instruction]) -> bool:
        found = self[pair] = collide(*pair)
        return found


class Timeline:
    """Both streams of one run as they are emitted, with waits and predicted completions.

    Within a stream instructions are executed in order, and what the post stream writes has landed
    before its next instruction starts. Between the streams an instruction waits for the last one of
    the other stream, emitted before it, that it conflicts with: reads what that writes, or writes
    what that reads or writes, in activation memory or an accumulator bank. As only earlier
    emitted instructions are waited for, the emission order is itself a legal execution and no
    program can deadlock.
    """

    def __init__(self, model: CycleModel | CompactCycleModel) -> None:
        self.model = model
        self.collisions = Collisions()
        self.clock = model.clock()
        self.matrix: list[Issued] = []
        self.post: list[Issued] = []
        self._floors = [0, 0]
        self._tiles = 0
        self.repeats = model.configuration.traits.overlaps_streams
        self._last: list[Repeated | None] = [None, None]
        self._stored = 0
        self._drained = [0] * _CELLS

    def copy(self) -> "Timeline":
        """An independent copy, to try instructions on."""
        other = Timeline(self.model)
        other.collisions = self.collisions
        other.clock = self.clock.copy()
        other.matrix, other.post = self.matrix.copy(), self.post.copy()
        other._floors, other._tiles = self._floors.copy(), self._tiles
        other._last, other._stored = self._last.copy(), self._stored
        other._drained = self._drained.copy()
        return other

    def __len__(self) -> int:
        """Instructions in memory, runs of turns as one, HALTs included."""
        return self._stored + 2

    @property
    def streams(self) -> tuple[list[Issued], ...]:
        """The instructions of each stream, in the order of ``isa.STREAMS``."""
        return self.matrix, self.post

    def merged(self) -> tuple[list[Repeated], list[Repeated]]:
        """Both streams as they lie in memory, matrix and post."""
        matrix, post = (self._merged(stream) for stream in self.streams)
        return matrix, post

    def _merged(self, stream: Sequence[Issued]) -> list[Repeated]:
        values = (issued.values() for issued in stream)
        return merge(values) if self.repeats else list(map(Repeated, values))

    @property
    def end(self) -> int:
        """Predicted cycle at which everything emitted so far has completed."""
        return self.clock.end

    def extend(
        self,
        instructions: Sequence[Instruction],
        *,
        late: bool = False,
        skipped: int = 0,
        hopeless: Callable[["Timeline", int], bool] | None = None,
    ) -> bool:
        """Appends a group's instructions, their banks following on those before but for some.

        Parameters
        ----------
        instructions : sequence of Instruction
        late : bool
            The first CONVOLVE of several that may become turns of one waits for all that is emitted
            before it: then the others wait as turns do.
        skipped : int
            Banks.
        hopeless : callable, optional
            Asked now and then, with how many were appended, whether to give up.

        Returns
        -------
        bool
            False if it gave up: then the timeline is of no use.
        """
        self._tiles += skipped
        for number, instruction in enumerate(instructions):
            if hopeless is not None and not number % _HOPE and hopeless(self, number):
                return False
            self._append(instruction, late)
        banks = (item.bank for item in instructions if item.bank is not None)
        self._tiles += 1 + max(banks, default=-1)
        return True

    def place(self, unit: Sequence[Instruction]) -> None:
        """Chooses the banks of a few instructions that come next: those that were drained first."""
        first = next((item for item in unit if item.bank is not None), None)
        if first is None:
            return
        # up to which instruction of the post stream each bank is taken
        taken = [
            max([self._drained[cell] for cell in cells])
            for cells in _CELLS_OF[first.fields["parts"]]
        ]
        following = ((self._tiles + step) % len(taken) for step in range(len(taken)))
        assert first.bank is not None
        self._tiles = min(following, key=taken.__getitem__) - first.bank

    def start(self, instruction: Instruction) -> int:
        """Returns the cycle at which a CONVOLVE that is placed would start if it came next."""
        _, accumulators = self._bank(instruction)
        wait = self._wait(instruction, accumulators)
        ready = self.post[wait - 1].completion if wait else 0
        return self.clock.copy().issue(instruction.fields, ready)[0]

    def interleave(self, unit: Sequence[Instruction]) -> None:
        """Appends a few instructions that are placed."""
        for instruction in unit:
            self._append(instruction, False)
        banks = [item.bank for item in unit if item.bank is not None]
        if banks:
            self._tiles += 1 + max(banks)

    def _wait(self, instruction: Instruction, accumulators: tuple[int, int, int] | None) -> int:
        """For how many instructions of the other stream it must wait."""
        matrix, collisions = instruction.is_matrix, self.collisions
        others, wait = self.post if matrix else self.matrix, self._floors[matrix]
        for index in range(len(others) - 1, wait - 1, -1):
            other = others[index]
            # they touch the same thing and one writes it
            if (
                _share(accumulators, other.accumulators)
                or collisions[instruction, other.instruction]
            ):
                return index + 1
        return wait

    def _append(self, instruction: Instruction, late: bool) -> None:
        matrix = instruction.is_matrix
        own, others = (self.matrix, self.post) if matrix else (self.post, self.matrix)
        bank, accumulators = self._bank(instruction)
        wait = self._wait(instruction, accumulators)
        repeated = self._repeats(instruction, bank, wait)
        if late and matrix and not repeated:
            wait = len(others)
            repeated = self._repeats(instruction, bank, wait)
        if not repeated:
            values = _values(instruction, bank, wait)
            self._last[matrix] = Repeated(values, same=instruction.same)
            self._stored += 1
        # an instruction waits for all that the ones before it have waited for
        self._floors[matrix] = wait
        ready = others[wait - 1].completion if wait else 0
        start, completion = self.clock.issue(instruction.fields, ready, repeated)
        own.append(Issued(instruction, bank, accumulators, wait, start, completion))
        if bank is not None and not matrix and self.repeats:
            for cell in _CELLS_OF[instruction.fields["parts"]][bank]:
                self._drained[cell] = len(own)

    def _bank(self, instruction: Instruction) -> tuple[int | None, tuple[int, int, int] | None]:
        """The bank of an instruction's accumulators, and where they lie."""
        if instruction.bank is None:
            return None, None
        configuration, parts = self.model.configuration, instruction.fields["parts"]
        banks = configuration.accumulator_banks << parts
        bank = (self._tiles + instruction.bank) % banks
        half, first, words = accumulator_place(bank, parts, configuration.accumulator_depth)
        return bank, (half, first, first + words)

    def _repeats(self, instruction: Instruction, bank: int | None, wait: int) -> bool:
        """Makes it a turn of the instruction before it in its stream if possible; tells whether."""
        last = self._last[instruction.is_matrix]
        if last is None or not self.repeats:
            return False
        longer = last.with_turn(instruction.fields, wait, bank or 0, instruction.same)
        if longer is None:
            return False
        self._last[instruction.is_matrix] = longer
        return True
