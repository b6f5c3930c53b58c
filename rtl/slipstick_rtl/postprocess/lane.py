"""One lane of the post engine: taps or an accumulator in, a result out."""

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..layouts import POST_INSTRUCTION
from ..primitives.delay import delay
from .multiplier import FACTOR_BITS, VALUE_BITS
from .requantizer import Requantizer
from .rounding_shifter import SHIFT_BITS
from .table import TABLE_WRITE, Table


class PostLane(wiring.Component):
    """Table, combination of the taps, requantisation; one tap or accumulator a cycle.

    Members
    -------
    instruction : In(POST_INSTRUCTION)
        Constant while data are under way.
    table_write : In(TABLE_WRITE)
    byte : In(signed(8))
        A tap of MAP.
    odd : In(1)
        It looks in the table's second half.
    accumulator : In(signed(32))
        What DRAIN takes instead, ``accumulator_delay`` cycles later.
    draining : In(1)
        Constant while data are under way.
    valid, first : In(1)
        There is a tap, and it begins a result; ``combine_delay`` cycles after the tap.
    bias : In(signed(32))
        ``value_delay`` cycles after the result's last tap.
    multiplier : In(31)
        ``Requantizer.multiplier_delay`` cycles after the bias.
    shift : In(6)
        ``Requantizer.shift_delay`` cycles after the bias.
    result : Out(signed(8))
        ``latency`` cycles after the result's last tap.
    """

    instruction: data.View
    table_write: data.View
    byte: Signal
    odd: Signal
    accumulator: Signal
    draining: Signal
    valid: Signal
    first: Signal
    bias: Signal
    multiplier: Signal
    shift: Signal
    result: Signal

    accumulator_delay = Table.latency
    combine_delay = accumulator_delay + 1
    value_delay = combine_delay + 1
    latency = value_delay + Requantizer.latency

    def __init__(self) -> None:
        super().__init__(
            {
                "instruction": In(POST_INSTRUCTION),
                "table_write": In(TABLE_WRITE),
                "byte": In(signed(8)),
                "odd": In(1),
                "accumulator": In(signed(VALUE_BITS)),
                "draining": In(1),
                "valid": In(1),
                "first": In(1),
                "bias": In(signed(VALUE_BITS)),
                "multiplier": In(FACTOR_BITS),
                "shift": In(SHIFT_BITS),
                "result": Out(signed(8)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.table = table = Table()
        m.submodules.requantizer = requantizer = Requantizer()
        instruction = self.instruction
        plain = delay(m, self.byte, Table.latency, "byte", reset_less=True)
        tap = Signal(signed(VALUE_BITS), reset_less=True)
        value = Signal(signed(VALUE_BITS), reset_less=True)
        # a plain subtraction: its sign is quicker than Yosys' comparison
        difference = Signal(signed(VALUE_BITS + 1))
        maximum = instruction.take_maximum
        replaced = self.first | maximum
        kept = maximum & ~self.first & ~difference[-1]
        m.d.comb += [
            difference.eq(value - tap),
            table.write.eq(self.table_write),
            table.byte.eq(self.byte),
            table.odd.eq(self.odd),
            requantizer.value.eq(value),
            requantizer.bias.eq(self.bias),
            requantizer.multiplier.eq(self.multiplier),
            requantizer.shift.eq(self.shift),
            requantizer.rounding.eq(instruction.rounding),
            requantizer.zero_point.eq(instruction.zero_point),
            requantizer.minimum.eq(instruction.minimum),
            requantizer.maximum.eq(instruction.maximum),
            self.result.eq(requantizer.result),
        ]
        looked_up = Mux(instruction.use_table, table.entry, plain)
        m.d.sync += tap.eq(Mux(self.draining, self.accumulator, looked_up))
        with m.If(self.valid & ~kept):
            m.d.sync += value.eq(Mux(replaced, tap, value + tap))
        return m
