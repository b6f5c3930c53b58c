"""The processing element: one weight, P pixels, a product and a sum a cycle each."""

from amaranth.hdl import Const, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..numbers.number_format import NumberFormat
from ..primitives.carry_sum import Operand, carry_sum
from ..primitives.delay import delay
from ..primitives.fanout import copy_of


def element_latency(number_format: NumberFormat) -> int:
    """Cycles from an activation to the sum that holds its product."""
    return number_format.multiplier_latency + number_format.pair_cycles + 1


class ProcessingElement(wiring.Component):
    """Multiplies P activations by its stationary weight and adds the products to the sums passing.

    Activations run to the right, partial sums down. The next weight is captured while the present
    one works; ``swap`` brings it into use from the next cycle's activations on. Nothing here needs
    a reset: what is under way runs out.

    Parameters
    ----------
    number_format : NumberFormat
        Shapes, and the multiplier.
    pixels : int
        P.
    rows_above : int
        Whose products ``partial_sums`` holds; with 0 they are not looked at.

    Members
    -------
    activations, swap : In
        P activations from the left; the next ones are the first to use the captured weight.
    weight, capture : In
        The stored form of a weight, and whether it is this element's. It must be captured before
        the cycle of ``swap``, or the number format's ``swap_cycles`` later, and the next one not.
    partial_sums : In
        P sums of the elements above, ``element_latency - 1`` cycles later than ``activations``.
    activations_out, swap_out : Out
        The same one cycle later, for the neighbour.
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
    partial_sums_out: data.View

    def __init__(self, *, number_format: NumberFormat, pixels: int, rows_above: int) -> None:
        self._format = number_format
        self._pixels, self._rows_above = pixels, rows_above
        operands = data.ArrayLayout(number_format.activation, pixels)
        above = number_format.partial_sum(max(1, rows_above))
        below = number_format.partial_sum(rows_above + 1)
        super().__init__(
            {
                "activations": In(operands),
                "swap": In(1),
                "weight": In(number_format.stored_weight),
                "capture": In(1),
                "partial_sums": In(data.ArrayLayout(above, pixels)),
                "activations_out": Out(operands),
                "swap_out": Out(1),
                "partial_sums_out": Out(data.ArrayLayout(below, pixels)),
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
            multiplier.swap_late.eq(self.swap_out),
            self.swap_out.eq(copy_of(m, platform, self.swap, "swap_copy")),
            self.activations_out.eq(delay(m, self.activations, 1, "activations", reset_less=True)),
        ]
        for pixel in range(self._pixels):
            total = Signal(
                self.partial_sums_out[pixel].shape(), name=f"total_{pixel}", reset_less=True
            )
            product, ones = self._format.addend(multiplier, pixel)
            nothing = Operand(Const(0, 0))
            above = Operand(self.partial_sums[pixel]) if self._rows_above else nothing
            if self._rows_above or ones is not None:
                m.d.sync += total.eq(
                    carry_sum(
                        m, platform, f"sum_{pixel}", above, product, width=len(total), ones=ones
                    )
                )
            else:
                m.d.sync += total.eq(product.number)
            m.d.comb += self.partial_sums_out[pixel].eq(total)
        return m
