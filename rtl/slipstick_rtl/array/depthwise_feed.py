"""The depthwise feed: input rows of single channels, for the columns whose elements hold taps."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..config import DEPTHWISE_KERNEL, DEPTHWISE_TAPS, Configuration
from ..isa import KEPT_COLUMNS
from ..numbers.number_format import number_format
from ..primitives.delay import delay
from ..primitives.delay_memory import long_delay
from ..primitives.small_memory import SmallMemory
from .segments import row_delay

_TURN = data.StructLayout({"above": 2, "second": 1, "place": range(KEPT_COLUMNS)})
"""Choices for a column, and the place of its kept byte.

For kernel row 0: row 0 or 1 of the bytes that were read, the kept byte, or padding; for the other
kernel rows the second choice.
"""


def tap_rows(configuration: Configuration) -> range:
    """The array's rows that hold the weights of a depthwise kernel, ``ky`` major."""
    if not configuration.takes_depthwise:
        return range(0)
    return range(configuration.packed_rows, configuration.packed_rows + DEPTHWISE_TAPS)


def kernel_place(tap: int) -> tuple[int, bool]:
    """A tap's kernel row, and whether it is the last of it."""
    ky, kx = divmod(tap, DEPTHWISE_KERNEL)
    return ky, kx == DEPTHWISE_KERNEL - 1


def feed_cycles(configuration: Configuration, row: int) -> set[int]:
    """Cycles by which the feed wants a row's activations late, for columns one after another."""
    c = configuration
    # of a vector it takes two bytes of each channel
    if not c.takes_depthwise or row >= 2 * c.columns:
        return set()
    if row < c.columns:
        return {row}
    upper = _first_late(c) + 1 + row - c.columns
    return {upper, upper + 1}


def _first_late(configuration: Configuration) -> int:
    """Cycles from a vector until column 0 may choose: a register takes what is chosen from the
    vector and the two before it."""
    return row_delay(configuration, tap_rows(configuration)[DEPTHWISE_KERNEL - 1]) - 2


class DepthwiseFeed(wiring.Component):
    """For each kernel row ky the stream of the input row it meets, skewed for each column.

    In depthwise CONVOLVEs a vector is two bytes of each of C channels: of stream column m first
    those of a block's input rows 0 and 1, then those of 2 and 3, at the same time as output rows 0
    and 1 pass through the array. So kernel row ky meets input rows ky and ky + 1 in turn::

        vector   0          1          2          3
        bytes    X0[0] X1   X2[0] X3   X0[1] X1   X2[1] X3
        ky = 0   X0[0]      X1[0]      X0[1]      X1[1]
        ky = 1   X1[0]      X2[0]      X1[1]      X2[1]
        ky = 2   X2[0]      X3[0]      X2[1]      X3[1]

    With ``kept_rows`` a block has five input rows, of which the first is the last one of the block
    before: that one was kept, a byte for each stream column and channel. Rows 0 and 1 of the output
    meet input rows ky and ky + 2::

        vector   0          1          2          3
        bytes    X1[0] X2   X3[0] X4   X1[1] X2   X3[1] X4
        ky = 0   kept[0]    X2[0]      kept[1]    X2[1]
        ky = 1   X1[0]      X3[0]      X1[1]      X3[1]
        ky = 2   X2[0]      X4[0]      X2[1]      X4[1]

    An element of kernel column kx needs what kx + 1 met two vectors before, and a row further up
    that is a cycle later: its operand is the one of the element below it, a cycle ago. So the feed
    gives each kernel row's last element its operands only.

    Parameters
    ----------
    configuration : Configuration
        One that ``takes_depthwise``.

    Members
    -------
    lower, upper, upper_late : In
        [C] bytes of a vector: of channel j those of row j, and of row C + j, as late as
        ``feed_cycles`` says.
    half : In
        With the vector: the block's input rows are 2 and 3, or 3 and 4.
    block : In(2)
        With the vector: a block begins; it is a tile's first, whose kept row is -128.
    kept_rows : In
        With the vector.
    operands : Out
        [3][C] bytes, in the cycle in which row ``packed_rows + 3 ky + 2``, column j takes the
        vector's operand.
    """

    lower: data.View
    upper: data.View
    upper_late: data.View
    half: Signal
    block: Signal
    kept_rows: Signal
    operands: data.View

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = c = configuration
        self._format = number_format(c)
        channels = data.ArrayLayout(self._format.activation, c.columns)
        super().__init__(
            {
                "lower": In(channels),
                "upper": In(channels),
                "upper_late": In(channels),
                "half": In(1),
                "block": In(2),
                "kept_rows": In(1),
                "operands": Out(data.ArrayLayout(channels, DEPTHWISE_KERNEL)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        c = self._configuration
        columns = range(c.columns)
        rows = tap_rows(c)[DEPTHWISE_KERNEL - 1 :: DEPTHWISE_KERNEL]
        late = _first_late(c)
        lower = _delay_all(m, [Value.cast(self.lower[j]) for j in columns], late, "lower")
        turn = self._turn(m, late)
        padding = self._format.encode(Const(c.kept_padding, 8))
        chosen: list[list[Value]] = [[] for _ in rows]
        for j in columns:
            upper_1, upper_2 = Value.cast(self.upper[j]), Value.cast(self.upper_late[j])
            lower_1 = delay(m, lower[j], 1, f"lower_late_{j}", reset_less=True)
            m.submodules[f"kept_{j}"] = kept = SmallMemory(width=len(lower_1), depth=KEPT_COLUMNS)
            m.d.comb += [
                # the lower half of a column comes last: its second row it is that stays
                kept.write_enable.eq(1),
                kept.write_address.eq(turn.place),
                kept.i.eq(upper_1),
                kept.address.eq(turn.place),
            ]
            read = Mux(turn.above[0], upper_2, lower_1)
            stored = Mux(turn.above[0], padding, kept.o)
            choices = (
                Mux(turn.above[1], stored, read),
                Mux(turn.second, lower_1, upper_1),
                Mux(turn.second, upper_1, lower[j]),
            )
            for ky, value in enumerate(choices):
                choice = Signal(len(lower_1), name=f"choice_{ky}_{j}")
                m.d.comb += choice.eq(value)
                chosen[ky].append(choice)
            turn = delay(m, turn, 1, f"turn_{j}", reset_less=True)
        for ky, row in enumerate(rows):
            cycles = 1 + row_delay(c, row) - row_delay(c, rows[0])
            # on their way to the columns from registers, which are sooner than a ring
            operands = Cat(*_delay_all(m, chosen[ky], cycles - 1, f"operand_{ky}"))
            m.d.comb += Value.cast(self.operands[ky]).eq(
                delay(m, operands, 1, f"given_{ky}", reset_less=True)
            )
        return m

    def _turn(self, m: Module, late: int) -> data.View:
        """Returns column 0's choices, a cycle later than ``late``, and its kept byte's place."""
        given = Cat(self.half, self.block, self.kept_rows)
        half, begins, first_block, kept_rows = long_delay(m, given, late, "turn_way")
        turn, was_half = Signal(_TURN, reset_less=True), Signal(reset_less=True)
        m.d.sync += [
            was_half.eq(half),
            turn.above.eq(Cat(half | (kept_rows & first_block), kept_rows & ~half)),
            turn.second.eq(half | kept_rows),
            turn.place.eq(Mux(begins, 0, turn.place + was_half)),
        ]
        return turn


def _delay_all(m: Module, values: list[Value], cycles: int, name: str) -> list[Value]:
    """All of them so many cycles late."""
    width, late = len(values[0]), long_delay(m, Cat(*values), cycles, name)
    return [late.word_select(j, width) for j in range(len(values))]
