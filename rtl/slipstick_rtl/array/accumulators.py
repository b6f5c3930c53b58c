"""The accumulators: two banks, one filled by the array while the other is emptied."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..config import Configuration
from ..latencies import (
    ACCUMULATOR_READ_LATENCY,
    ACCUMULATOR_UPDATE_LATENCY,
    ACCUMULATOR_WAY,
    BLOCK_COLUMNS,
)
from ..numbers.number_format import number_format
from ..primitives.delay import delay
from ..primitives.fanout import copies_of
from ..primitives.resting import momentary_memory, registered, where

ACCUMULATOR_BITS = 32


def accumulate_layout(depth: int) -> data.StructLayout:
    """Lays out the engine's control of a vector of sums: ``address`` counts vectors from 0 on.

    ``first`` overwrites. With ``pair`` there are two vectors, the even and the odd one of pair
    ``address``, and they overwrite.
    """
    return data.StructLayout(
        {"valid": 1, "first": 1, "pair": 1, "bank": 1, "address": exact_log2(depth)}
    )


def read_layout(depth: int) -> data.StructLayout:
    """Lays out the post engine's read requests to the accumulators."""
    return data.StructLayout({"enable": 1, "bank": 1, "address": exact_log2(depth)})


def part_origin(instruction: Any, depth: int) -> Value:
    """Finds the start of an instruction's bank in its half of the accumulators; combinational."""
    bits, part = exact_log2(depth), instruction.bank[1:]
    quarter = Cat(Const(0, bits - 2), part)
    half = Cat(Const(0, bits - 1), part[0])
    return Mux(instruction.parts[1], quarter, Mux(instruction.parts[0], half, 0))


class AccumulatorColumn(wiring.Component):
    """Both banks of one column: adds P sums a cycle to the words that the control names.

    With one pixel even and odd vectors lie in two memories, each with half of either bank. So two
    vectors can be written in one cycle, and the array, which goes from vector to vector, leaves
    each memory free for a read in every other cycle. With more pixels, of which a word is read more
    than once, each bank is a memory.

    Parameters
    ----------
    pixels, depth : int
        P, words a bank.
    sums : data.ArrayLayout
        The column's partial sums.
    silicon : int
        1: memories are read and registers written only where somebody asks; and ``control`` of
        some cycles ago is given, as columns further on have it.

    Members
    -------
    control : In
        Of the sums that come ACCUMULATOR_UPDATE_LATENCY cycles later. One address must not return
        within four cycles.
    updating, landing : In
        With ``silicon``: the same, ACCUMULATOR_UPDATE_LATENCY cycles ago, and one more.
    partial_sums, even_sums : In
        Of the vector; with ``pair`` of the odd one, and of the even one.
    read : In
        Honoured in cycles in which ``control`` names a vector of the other memory, or overwrites,
        or is not valid.
    read_data : Out
        ACCUMULATOR_UPDATE_LATENCY cycles later.
    """

    control: data.View
    updating: data.View
    landing: data.View
    partial_sums: data.View
    even_sums: data.View
    read: data.View
    read_data: data.View

    def __init__(
        self, *, pixels: int, depth: int, sums: data.ArrayLayout, silicon: int = 0
    ) -> None:
        self._depth, self._silicon = depth, silicon
        self._words = data.ArrayLayout(ACCUMULATOR_BITS, pixels)
        control = accumulate_layout(depth)
        super().__init__(
            {
                "control": In(control),
                **({"updating": In(control), "landing": In(control)} if silicon else {}),
                "partial_sums": In(sums),
                "even_sums": In(sums),
                "read": In(read_layout(depth)),
                "read_data": Out(self._words),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        words = self._words
        if self._silicon:
            control, landing = self.updating, self.landing
        else:
            control = delay(m, self.control, ACCUMULATOR_UPDATE_LATENCY, "control")
            landing = delay(m, control, 1, "landing")
        total, even = Signal(words, reset_less=True), Signal(words, reset_less=True)
        written = (Mux(landing.pair, Value.cast(even), Value.cast(total)), Value.cast(total))
        held = [self._memory(m, number, landing, written[number]) for number in range(2)]

        def chosen(number: Value, name: str) -> data.View:
            word = Signal(words, name=name)
            m.d.comb += Value.cast(word).eq(Mux(number, held[1], held[0]))
            return word

        stored = chosen(self._number(control), "stored")
        read = delay(m, self._number(self.read), ACCUMULATOR_UPDATE_LATENCY, "read_number")
        m.d.comb += self.read_data.eq(chosen(read, "found"))
        for pixel in range(words.length):
            base = Mux(control.first, 0, stored[pixel])
            with where(m, control.valid if self._silicon else None):
                m.d.sync += total[pixel].eq(base + self.partial_sums[pixel])
            with where(m, control.valid & control.pair if self._silicon else None):
                m.d.sync += even[pixel].eq(self.even_sums[pixel])
        return m

    def _number(self, access: Any) -> Value:
        """Returns the number of the memory, 0 or 1, that holds a vector."""
        return access.bank if self._words.length > 1 else access.address[0]

    def _place(self, access: Any) -> Value:
        """Returns a vector's address in its memory."""
        if self._words.length > 1:
            return access.address
        return Cat(access.address[1:], access.bank)

    def _memory(self, m: Module, number: int, landing: data.View, written: Value) -> Value:
        """One of them; what is read comes ACCUMULATOR_UPDATE_LATENCY later."""
        name = f"memory_{number}"
        m.submodules[name] = memory = momentary_memory(
            self._words.size, self._depth, silicon=self._silicon
        )
        reader, writer = memory.read_port(), memory.write_port()
        updated = self.control
        # what overwrites needs no read
        mine = updated.valid & ~updated.first & (self._number(updated) == number)
        pair = Cat(landing.address[:-1], landing.bank)
        held = Signal(self._words.size, name=f"held_{name}", reset_less=True)
        wanted: Any = 1
        landed: Value | None = None
        if self._silicon:
            wanted = mine | (self.read.enable & (self._number(self.read) == number))
            landed = delay(m, wanted, 1, f"wanted_{number}")
        m.d.comb += [
            reader.addr.eq(Mux(mine, self._place(updated), self._place(self.read))),
            reader.en.eq(wanted),
            writer.addr.eq(Mux(landing.pair, pair, self._place(landing))),
            writer.data.eq(written),
            writer.en.eq(landing.valid & (landing.pair | (self._number(landing) == number))),
        ]
        with where(m, landed):
            m.d.sync += held.eq(reader.data)
        return held


def accumulators_latency(configuration: Configuration) -> int:
    """Cycles from column 0's control until the last column's sums can be read."""
    return ACCUMULATOR_UPDATE_LATENCY + 2 - ACCUMULATOR_WAY + configuration.columns - 1


class Accumulators(wiring.Component):
    """C columns of accumulators, skewed as the array's sums are.

    With one pixel a read meets no update if the one's vector is even where the other's is odd. As
    a column is a cycle behind its neighbour, odd columns are read a cycle later.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    control : In
        Of column 0, ACCUMULATOR_UPDATE_LATENCY cycles before its sums; column j is j cycles later.
    partial_sums, even_sums : In
        [P][C].
    read : In
        ``ACCUMULATOR_WAY`` before a cycle in which column 0's ``control``, unless it overwrites,
        does not name a vector of the same memory.
    read_data : Out
        P * C words of 32 bits, pixel-major, ACCUMULATOR_READ_LATENCY cycles after ``read``.
    """

    control: data.View
    partial_sums: data.View
    even_sums: data.View
    read: data.View
    read_data: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = c = configuration
        total = number_format(c).partial_sum(c.rows)
        self._column_sums = data.ArrayLayout(total, c.pixels)
        grid = data.ArrayLayout(data.ArrayLayout(total, c.columns), c.pixels)
        super().__init__(
            {
                "control": In(accumulate_layout(c.accumulator_depth)),
                "partial_sums": In(grid),
                "even_sums": In(grid),
                "read": In(read_layout(c.accumulator_depth)),
                "read_data": Out(c.pixels * c.columns * ACCUMULATOR_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        c = self._configuration
        controls = [self.control]

        def go_on() -> None:
            """Passes it on from a column to its neighbour."""
            controls.append(delay(m, controls[-1], 1, f"control_{len(controls) - 1}"))

        arriving = None
        if c.silicon:
            # a column takes those of cycles ago from behind its neighbours' registers
            for _ in range(ACCUMULATOR_UPDATE_LATENCY + 1):
                go_on()
            cycles = ACCUMULATOR_WAY + ACCUMULATOR_UPDATE_LATENCY
            arriving = delay(m, self.read.enable, cycles, "arriving", reset_less=True)
        reads = [self._near(m, platform, first) for first in range(0, c.columns, BLOCK_COLUMNS)]
        for j in range(c.columns):
            m.submodules[f"column_{j}"] = column = AccumulatorColumn(
                pixels=c.pixels,
                depth=c.accumulator_depth,
                sums=self._column_sums,
                silicon=c.silicon,
            )
            m.d.comb += [
                column.control.eq(controls[j]),
                column.read.eq(reads[j // BLOCK_COLUMNS][j % 2]),
            ]
            late = ACCUMULATOR_READ_LATENCY - ACCUMULATOR_WAY - ACCUMULATOR_UPDATE_LATENCY - j % 2
            for p in range(c.pixels):
                word = self.read_data.word_select(p * c.columns + j, ACCUMULATOR_BITS)
                found = column.read_data[p]
                if late:
                    # in silicon what has been read stays until more comes
                    found = registered(m, found, arriving, f"found_{j}_{p}_0")
                m.d.comb += [
                    column.partial_sums[p].eq(self.partial_sums[p][j]),
                    column.even_sums[p].eq(self.even_sums[p][j]),
                    word.eq(found),
                ]
            if c.silicon:
                m.d.comb += [
                    column.updating.eq(controls[j + ACCUMULATOR_UPDATE_LATENCY]),
                    column.landing.eq(controls[j + ACCUMULATOR_UPDATE_LATENCY + 1]),
                ]
            go_on()
        return m

    def _near(self, m: Module, platform: object, first: int) -> tuple[Value, Value]:
        """The read for even columns from ``first`` on, in registers of their own, and for odd ones.

        The columns are all over the chip.
        """
        even = copies_of(m, platform, Value.cast(self.read), f"read_{first}")
        return even, delay(m, even, 1, f"odd_read_{first}", reset_less=True)
