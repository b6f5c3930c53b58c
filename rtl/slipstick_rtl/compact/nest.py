"""The compact engine's loops: one nest of counters and addresses for CONVOLVE, DRAIN and MAP."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2, exact_log2

from ..config import Configuration
from ..postprocess.addresses import AddressGenerator
from .instruction import matrix_layout, post_layout


class Turns(wiring.Component):
    """Counts the turns of a loop.

    Parameters
    ----------
    width : int
    unit_bits : int
        With ``scaled`` a turn counts for 2^unit_bits.

    Members
    -------
    count : In
        How many; at least one.
    scaled : In
    restart, advance : In
        To the first turn; to the next, or from the last to the first.
    last : Out
        From a register: much hangs on it.
    """

    count: Signal
    scaled: Signal
    restart: Signal
    advance: Signal
    last: Signal

    def __init__(self, *, width: int, unit_bits: int = 0) -> None:
        self._unit_bits = unit_bits
        strobes = dict.fromkeys(("scaled", "restart", "advance"), In(1))
        super().__init__({"count": In(width), **strobes, "last": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # the number of the turn after this one, from 2 up
        ahead = Signal(len(self.count) + 1, init=2)
        once: Value = self.count == 1
        reached: Value = ahead == self.count
        if self._unit_bits:
            unit = 1 << self._unit_bits
            once = Mux(self.scaled, self.count <= unit, once)
            reached = Mux(self.scaled, ahead << self._unit_bits, ahead) >= self.count
        with m.If(self.restart | (self.advance & self.last)):
            m.d.sync += [ahead.eq(2), self.last.eq(once)]
        with m.Elif(self.advance):
            m.d.sync += [ahead.eq(ahead + 1), self.last.eq(reached)]
        return m


class CompactNest(wiring.Component):
    """Five loops and the address that follows them; their order is the instruction's.

    CONVOLVE, outermost first: (ky, kx, channels by R) as reduction tiles, rows, columns. DRAIN and
    MAP: channels, rows, columns, and for MAP taps_y, taps_x: a channel's parameters are fetched
    once.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    matrix, post : In
        Fields of the instruction.
    convolving, draining : In
        It is CONVOLVE; it is DRAIN. Constant from ``load`` on.
    load : In
        Go to the first step.
    step : In
        Go to the next one.
    address : Out
        Of the window's tile, or of the tap.
    place : Out
        Of the pixel, in the accumulators.
    channel : Out
        Of a DRAIN, from 0 up.
    tap_row_end, tap_end : Out
        The step is the last of taps_x; and of taps_y.
    row_end, rows_end : Out
        The step ends a row of pixels; and the last row.
    kernel_end, kernel_row_end : Out
        The step ends a CONVOLVE's tap; and its row of taps.
    end : Out
        The step is the last.
    """

    matrix: data.View
    post: data.View
    convolving: Signal
    draining: Signal
    load: Signal
    step: Signal
    address: Signal
    place: Signal
    channel: Signal
    tap_row_end: Signal
    tap_end: Signal
    row_end: Signal
    rows_end: Signal
    kernel_end: Signal
    kernel_row_end: Signal
    end: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = configuration
        self._address_bits = ceil_log2(configuration.activation_bytes)
        ends = ("tap_row_end", "tap_end", "row_end", "rows_end", "kernel_end", "kernel_row_end")
        inputs = dict.fromkeys(("convolving", "draining", "load", "step"), In(1))
        super().__init__(
            {
                "matrix": In(matrix_layout(configuration)),
                "post": In(post_layout(configuration)),
                **inputs,
                "address": Out(self._address_bits),
                "place": Out(exact_log2(configuration.accumulator_depth)),
                "channel": Out(exact_log2(configuration.columns)),
                **dict.fromkeys((*ends, "end"), Out(1)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.columns = columns = Turns(width=12)
        m.submodules.rows = rows = Turns(width=12)
        m.submodules.inner = inner = Turns(
            width=self._address_bits, unit_bits=exact_log2(self._configuration.rows)
        )
        m.submodules.taps = taps = Turns(width=8)
        m.submodules.outer = outer = Turns(width=len(self.matrix.reduction_tiles))
        convolving, step = self.convolving, self.step
        pixel_end = convolving | self.tap_end
        m.d.comb += [
            columns.count.eq(self.matrix.groups),
            rows.count.eq(self.matrix.rows),
            inner.count.eq(Mux(convolving, self.matrix.channels, self.post.taps_x)),
            inner.scaled.eq(convolving),
            taps.count.eq(Mux(convolving, self.matrix.kernel_x, self.post.taps_y)),
            outer.count.eq(Mux(convolving, self.matrix.reduction_tiles, self.post.slices)),
            self.tap_row_end.eq(inner.last | self.draining),
            self.tap_end.eq(self.tap_row_end & (taps.last | self.draining)),
            self.row_end.eq(columns.last & pixel_end),
            self.rows_end.eq(self.row_end & rows.last),
            self.kernel_end.eq(self.rows_end & inner.last),
            self.kernel_row_end.eq(self.kernel_end & taps.last),
            self.end.eq(self.rows_end & outer.last),
            columns.advance.eq(step & pixel_end),
            rows.advance.eq(step & self.row_end),
            outer.advance.eq(step & self.rows_end),
            inner.advance.eq(step & (~convolving | self.rows_end)),
            taps.advance.eq(step & Mux(convolving, self.kernel_end, self.tap_row_end)),
            *(turns.restart.eq(self.load) for turns in (columns, rows, inner, taps, outer)),
        ]
        with m.If(self.load):
            m.d.sync += self.channel.eq(0)
        with m.Elif(step & self.rows_end):
            m.d.sync += self.channel.eq(self.channel + 1)
        with m.If(self.load | (step & self.rows_end)):
            m.d.sync += self.place.eq(0)
        with m.Elif(step & pixel_end):
            m.d.sync += self.place.eq(self.place + 1)
        self._follow(m)
        return m

    def _follow(self, m: Module) -> None:
        """The address: of each level the step, and when the levels inside it have ended."""
        m.submodules.source = source = AddressGenerator(width=self._address_bits, levels=5)
        matrix, post, convolving = self.matrix, self.post, self.convolving
        lanes = self._configuration.rows
        m.d.comb += [
            source.load.eq(self.load),
            source.origin.eq(matrix.origin),
            source.advance.eq(self.step),
            source.ends.eq(
                Mux(
                    convolving,
                    Cat(self.row_end, self.rows_end, self.kernel_end, self.kernel_row_end),
                    Cat(self.tap_row_end, self.tap_end, self.row_end, self.rows_end),
                )
            ),
            # CONVOLVE: column, row, tile of channels, kernel_x, kernel_y; MAP: tap_x, tap_y,
            # column, row, channel; fields of one line share a register
            source.steps[0].eq(matrix.column_step),
            source.steps[1].eq(matrix.row_step),
            source.steps[2].eq(Mux(convolving, lanes, post.source_column_step)),
            source.steps[3].eq(matrix.tap_step_x),
            source.steps[4].eq(Mux(convolving, matrix.tap_step_y, 1)),
            self.address.eq(source.address),
        ]
