"""Adds two logarithmic numbers."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ....primitives.delay import delay
from ....primitives.delay_memory import long_delay
from ..formats import Lns
from .arithmetic import LnsArithmetic
from .gaussian_log import PlainGaussian
from .gaussian_log_interpolated import InterpolatedGaussian
from .gaussian_log_interpolated_model import InterpolatedGauss
from .gaussian_log_model import PlainGauss
from .words import Parts, finish


class LogAdder(wiring.Component):
    """a + b, one sum a cycle, never stalling: ``LnsArithmetic.add`` bit for bit.

    Parameters
    ----------
    lns : Lns
        Of at most 14 fraction bits.

    Members
    -------
    a, b : In
        Words.
    o : Out
        Their sum's word, ``latency`` cycles later.

    Raises
    ------
    ValueError
        If the format has more fraction bits.
    """

    a: Signal
    b: Signal
    o: Signal

    def __init__(self, lns: Lns) -> None:
        self._lns = lns
        self._gaussian = _gaussian(lns)
        super().__init__({"a": In(lns.bits), "b": In(lns.bits), "o": Out(lns.bits)})

    @property
    def latency(self) -> int:
        """Cycles: the order of the operands, the Gaussian logarithm, the sum, its clamp."""
        return self._gaussian.latency + 3

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.gaussian = gaussian = self._gaussian
        a, b = Parts.of(self.a), Parts.of(self.b)
        first_larger = a.magnitude >= b.magnitude
        larger = Signal(self._lns.exponent_bits, reset_less=True)
        negative, alone, nothing = (
            Signal(name=name, reset_less=True) for name in ("negative", "alone", "nothing")
        )
        unlike = a.negative ^ b.negative
        distance = Mux(first_larger, a.magnitude - b.magnitude, b.magnitude - a.magnitude)
        m.d.sync += [
            larger.eq(Mux(first_larger, a.magnitude, b.magnitude)),
            negative.eq(Mux(first_larger, a.negative, b.negative)),
            alone.eq(~(a.magnitude.any() & b.magnitude.any())),
            nothing.eq((unlike | ~a.magnitude.any()) & (a.magnitude == b.magnitude)),
            gaussian.distance.eq(distance),
            gaussian.unlike.eq(unlike),
        ]
        beside = long_delay(m, Cat(larger, negative, alone, nothing), gaussian.latency, "beside")
        change = Mux(beside[-2], 0, gaussian.change)
        changed = beside[: self._lns.exponent_bits] + change
        total = Signal(changed.shape(), reset_less=True)
        m.d.sync += total.eq(changed)
        sign = delay(m, beside[-3], 1, "sign", reset_less=True)
        zero = delay(m, beside[-1], 1, "zero", reset_less=True)
        m.d.comb += self.o.eq(finish(m, self._lns, total, sign, zero, "sum"))
        return m


def _gaussian(lns: Lns) -> PlainGaussian | InterpolatedGaussian:
    gauss = LnsArithmetic(lns).gauss
    if isinstance(gauss, PlainGauss):
        return PlainGaussian(gauss)
    assert isinstance(gauss, InterpolatedGauss)
    return InterpolatedGaussian(gauss)
