"""An adder that can also pass one of its operands: a look-up table a bit where chips allow."""

from amaranth.hdl import Const, Instance, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .dual_multiplier import is_ice40

_SUM_OR_B = sum(
    1 << k for k in range(16) if (bool(k & 4) if k & 1 else (k >> 1 ^ k >> 2 ^ k >> 3) & 1)
)
"""The table of o over the inputs (load, a, b, carry), from bit 0 up."""


class LoadAdder(wiring.Component):
    """a + b, or b with ``load``; combinational, wraps.

    On iCE40 the table of a carry cell has a free input, which Yosys leaves unused: it would spend
    another table a bit. Elsewhere it is a plain addition and a choice.

    Parameters
    ----------
    width : int

    Members
    -------
    a, b : In(signed(width))
    load : In
    o : Out(signed(width))
    """

    a: Signal
    b: Signal
    load: Signal
    o: Signal

    def __init__(self, *, width: int) -> None:
        self._width = width
        word = signed(width)
        super().__init__({"a": In(word), "b": In(word), "load": In(1), "o": Out(word)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if not is_ice40(platform):
            m.d.comb += self.o.eq(Mux(self.load, self.b, self.a + self.b))
            return m
        carry: Signal | Const = Const(0)
        for k in range(self._width):
            m.submodules[f"sum_{k}"] = Instance(
                "SB_LUT4",
                p_LUT_INIT=Const(_SUM_OR_B, 16),
                i_I0=self.load,
                i_I1=self.a[k],
                i_I2=self.b[k],
                i_I3=carry,
                o_O=self.o[k],
            )
            if k == self._width - 1:
                break
            following = Signal(name=f"carry_{k}")
            m.submodules[f"carry_{k}"] = Instance(
                "SB_CARRY",
                i_I0=self.a[k],
                i_I1=self.b[k],
                i_CI=carry,
                o_CO=following,
            )
            carry = following
        return m
