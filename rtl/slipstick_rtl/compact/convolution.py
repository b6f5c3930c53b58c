"""Makes a CONVOLVE's memory requests: each tile's weights, then its windows, one a cycle."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..config import Configuration
from .coordinates import Coordinate
from .instruction import matrix_layout


class Convolution(wiring.Component):
    """Walks the tiles of a CONVOLVE beside the nest, which it steps.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    fields : In
    start : In
        Strobe, in a cycle in which the nest is loaded.
    row_end, rows_end, kernel_end, kernel_row_end, end : In
        The nest's.
    stall : In
        The memory is not free in this cycle: no window is read.
    step : Out
        A window is read at the nest's address, and the nest goes on.
    inside : Out
        It lies within the input.
    first : Out
        Its sums overwrite: it belongs to the first tile, without ``accumulate``.
    reading_weights : Out
        Word ``weight_word`` of the weights is read.
    weight_word : Out
    load : Out(R)
        The rows of the array that it is for.
    finished : Out
        Strobe, with the last step.
    """

    fields: data.View
    start: Signal
    row_end: Signal
    rows_end: Signal
    kernel_end: Signal
    kernel_row_end: Signal
    end: Signal
    stall: Signal
    step: Signal
    inside: Signal
    first: Signal
    reading_weights: Signal
    weight_word: Signal
    load: Signal
    finished: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._rows = configuration.rows
        ends = ("row_end", "rows_end", "kernel_end", "kernel_row_end", "end")
        outputs = ("step", "inside", "first", "reading_weights", "finished")
        super().__init__(
            {
                "fields": In(matrix_layout(configuration)),
                **dict.fromkeys(("start", "stall", *ends), In(1)),
                **dict.fromkeys(outputs, Out(1)),
                "weight_word": Out(ceil_log2(configuration.weight_words)),
                "load": Out(self._rows),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        row = Signal(self._rows, init=1)  # one hot
        with m.FSM():
            with m.State("rest"), m.If(self.start):
                m.d.sync += [
                    self.weight_word.eq(self.fields.weight_address),
                    self.first.eq(~self.fields.accumulate),
                    row.eq(1),
                ]
                m.next = "weights"
            with m.State("weights"):
                m.d.comb += [
                    self.reading_weights.eq(1),
                    self.load.eq(row | self.fields.diagonal.replicate(self._rows)),
                ]
                m.d.sync += [
                    self.weight_word.eq(self.weight_word + 1),
                    row.eq(row.rotate_left(1)),
                ]
                with m.If(row[-1] | self.fields.diagonal):
                    m.d.sync += row.eq(1)
                    m.next = "windows"
            with m.State("windows"):
                m.d.comb += [self.step.eq(~self.stall), self.finished.eq(self.step & self.end)]
                with m.If(self.step & self.rows_end):
                    m.d.sync += self.first.eq(0)
                    m.next = "weights"
                    with m.If(self.end):
                        m.next = "rest"
        self._follow(m)
        return m

    def _follow(self, m: Module) -> None:
        m.submodules.y, m.submodules.x = y, x = Coordinate(), Coordinate()
        fields, step = self.fields, self.step
        m.d.comb += [
            y.origin.eq(fields.origin_y),
            y.stride.eq(fields.stride_y),
            y.dilation.eq(fields.dilation_y),
            y.size.eq(fields.height),
            y.restart.eq(self.start),
            y.next_tap.eq(step & self.kernel_row_end),
            y.rewind.eq(step & self.rows_end),
            y.advance.eq(step & self.row_end),
            x.origin.eq(fields.origin_x),
            x.stride.eq(fields.stride_x),
            x.dilation.eq(fields.dilation_x),
            x.size.eq(fields.width),
            x.restart.eq(self.start | step & self.kernel_row_end),
            x.next_tap.eq(step & self.kernel_end),
            x.rewind.eq(step & self.row_end),
            x.advance.eq(step),
            self.inside.eq(y.inside & x.inside),
        ]
