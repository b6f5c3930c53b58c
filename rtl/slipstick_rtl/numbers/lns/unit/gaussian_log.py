"""Gaussian logarithms in hardware, out of tables that are filled by running the golden model."""

from collections.abc import Iterable

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ....primitives.delay import delay
from .gaussian_log_model import GaussianLogs, PlainGauss, reach


def read_table(m: Module, contents: Iterable[int], address: Value, name: str) -> Value:
    """Reads a table's word at an address, a cycle later; undefined beyond its end."""
    words = [int(word) for word in contents]
    width = max(1, max(words).bit_length())
    m.submodules[name] = memory = Memory(shape=width, depth=len(words), init=words)
    port = memory.read_port()
    m.d.comb += port.addr.eq(address[: (len(words) - 1).bit_length()])
    return port.data


class Gaussian(wiring.Component):
    """Computes the term that the smaller operand adds to the larger one's logarithm; never stalls.

    Parameters
    ----------
    gauss : GaussianLogs

    Members
    -------
    distance : In
        I + F bits, ulps.
    unlike : In(1)
        Of the operands' signs: G- instead of G+.
    change : Out
        Signed, ulps, ``latency`` cycles later; 0 from ``reach`` on. Of unlike operands at distance
        0 it means nothing.
    """

    distance: Signal
    unlike: Signal
    change: Signal

    latency: int
    """Cycles."""

    def __init__(self, gauss: GaussianLogs) -> None:
        lns = gauss.lns
        largest = max(int(gauss.plus(0)), -int(gauss.minus(1)) if reach(lns) > 1 else 0)
        super().__init__(
            {
                "distance": In(lns.exponent_bits),
                "unlike": In(1),
                "change": Out(signed(largest.bit_length() + 1)),
            }
        )


class PlainGaussian(Gaussian):
    """Two tables, one cycle."""

    latency = 1

    def __init__(self, gauss: PlainGauss) -> None:
        self._gauss = gauss
        super().__init__(gauss)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        plus = read_table(m, self._gauss.plus_table, self.distance, "plus")
        minus = read_table(m, self._gauss.minus_table, self.distance, "minus")
        none_of_plus = delay(m, self.distance >= len(self._gauss.plus_table), 1, "far_plus")
        none_of_minus = delay(m, self.distance >= len(self._gauss.minus_table), 1, "far_minus")
        with m.If(delay(m, self.unlike, 1, "unlike")):
            m.d.comb += self.change.eq(Mux(none_of_minus, 0, -minus))
        with m.Else():
            m.d.comb += self.change.eq(Mux(none_of_plus, 0, plus))
        return m
