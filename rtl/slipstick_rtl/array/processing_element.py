"""The processing element: one weight, P pixels, a product and a sum a cycle each."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..numbers.int8 import Int8
from ..primitives.delay import delay


def element_latency(number_format: Int8) -> int:
    """Cycles from an activation to the sum that holds its product."""
    return number_format.multiplier_latency + 1


class ProcessingElement(wiring.Component):
    """Multiplies P activations by its stationary weight and adds the products to the sums passing.

    Activations run to the right, partial sums and weights down. The next weight is captured from
    the stream of weights passing by while the present one works; ``swap`` brings it into use from
    the next cycle's activations on. Nothing here needs a reset: what is under way runs out.

    Parameters
    ----------
    number_format : Int8
        Shapes, and the multiplier.
    pixels : int
        P.
    rows : int
        R, for the width of the sums.

    Members
    -------
    activations, swap : In
        P activations from the left; the next ones are the first to use the captured weight.
    weight, capture : In
        The stored form of the weight passing from above, and whether it is this element's; not
        before the cycle after ``swap``.
    partial_sums : In
        P sums of the elements above, ``element_latency - 1`` cycles later than ``activations``.
    activations_out, swap_out, weight_out, capture_out : Out
        The same one cycle later, for the neighbours.
    partial_sums_out : Out
        ``element_latency`` cycles later than ``activations``.
    """

    activations: data.View
    swap: Signal
    weight: Signal
    capture: Signal
    partial_sums: data.View
    activations_out: data.View
    swap_out: Signal
    weight_out: Signal
    capture_out: Signal
    partial_sums_out: data.View

    def __init__(self, *, number_format: Int8, pixels: int, rows: int) -> None:
        self._format = number_format
        self._pixels = pixels
        operands = data.ArrayLayout(number_format.operand, pixels)
        sums = data.ArrayLayout(number_format.partial_sum(rows), pixels)
        super().__init__(
            {
                "activations": In(operands),
                "swap": In(1),
                "weight": In(number_format.stored_weight),
                "capture": In(1),
                "partial_sums": In(sums),
                "activations_out": Out(operands),
                "swap_out": Out(1),
                "weight_out": Out(number_format.stored_weight),
                "capture_out": Out(1),
                "partial_sums_out": Out(sums),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.multiplier = multiplier = self._format.multiplier(pixels=self._pixels)
        captured = Signal(self._format.stored_weight, reset_less=True)
        with m.If(self.capture):
            m.d.sync += captured.eq(self.weight)
        m.d.comb += [
            multiplier.activations.eq(self.activations),
            multiplier.weight.eq(captured),
            multiplier.swap.eq(self.swap),
        ]
        passing = (
            (self.activations_out, self.activations),
            (self.swap_out, self.swap),
            (self.weight_out, self.weight),
            (self.capture_out, self.capture),
        )
        for k, (out, value) in enumerate(passing):
            m.d.comb += out.eq(delay(m, value, 1, f"passing_{k}", reset_less=True))
        for pixel in range(self._pixels):
            total = Signal(self.partial_sums[pixel].shape(), name=f"total_{pixel}", reset_less=True)
            m.d.sync += total.eq(self.partial_sums[pixel] + multiplier.products[pixel])
            m.d.comb += self.partial_sums_out[pixel].eq(total)
        return m
