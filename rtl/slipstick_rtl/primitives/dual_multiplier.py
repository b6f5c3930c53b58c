"""Two 8 x 8-bit products of one DSP block, with operand registers, where the chip has such."""

from typing import Any

from amaranth.hdl import ClockSignal, Const, Instance, Module, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

_HALF = 8


def is_ice40(platform: Any) -> bool:
    """Tells whether ``platform`` is a platform whose ``device`` is a Lattice iCE40."""
    return str(getattr(platform, "device", "")).startswith("iCE40")


class DualMultiplier(wiring.Component):
    """a[k] x b[k] for k = 0, 1, signed, exact; the ``b`` are kept until they are loaded anew.

    On iCE40 it is one SB_MAC16 with both operand registers on, ``b``'s with its hold; Yosys would
    put a single product into a block. On other chips it is two ``*`` behind the same registers.

    Members
    -------
    a : In(16)
        Two signed bytes, taken every cycle.
    b : In(16)
        Two signed bytes, taken with ``load``.
    load : In
    p : Out(32)
        Two signed products of 16 bits, in the cycle after their operands.
    """

    a: Signal
    b: Signal
    load: Signal
    p: Signal

    def __init__(self) -> None:
        super().__init__({"a": In(16), "b": In(16), "load": In(1), "p": Out(32)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if is_ice40(platform):
            self._instantiate(m)
            return m
        a, b = Signal(16, reset_less=True), Signal(16, reset_less=True)
        m.d.sync += a.eq(self.a)
        with m.If(self.load):
            m.d.sync += b.eq(self.b)
        for k in range(2):
            product = Signal(signed(16), name=f"product_{k}")
            left, right = (x.word_select(k, _HALF).as_signed() for x in (a, b))
            m.d.comb += [product.eq(left * right), self.p.word_select(k, 16).eq(product)]
        return m

    def _instantiate(self, m: Module) -> None:
        zeros = dict.fromkeys(
            ("CHOLD", "DHOLD", "IRSTTOP", "IRSTBOT", "ORSTTOP", "ORSTBOT", "OLOADTOP", "OLOADBOT")
            + ("ADDSUBTOP", "ADDSUBBOT", "OHOLDTOP", "OHOLDBOT", "CI", "ACCUMCI", "SIGNEXTIN"),
            Const(0),
        )
        m.submodules.block = Instance(
            "SB_MAC16",
            p_MODE_8x8=Const(1, 1),  # without it the lower bytes are unsigned
            p_A_REG=Const(1, 1),
            p_B_REG=Const(1, 1),
            p_TOPOUTPUT_SELECT=Const(2, 2),  # the 8 x 8-bit product
            p_BOTOUTPUT_SELECT=Const(2, 2),
            p_A_SIGNED=Const(1, 1),
            p_B_SIGNED=Const(1, 1),
            i_CLK=ClockSignal(),
            i_CE=Const(1),
            i_A=self.a,
            i_B=self.b,
            i_C=Const(0, 16),
            i_D=Const(0, 16),
            i_AHOLD=Const(0),
            i_BHOLD=~self.load,
            o_O=self.p,
            **{f"i_{name}": value for name, value in zeros.items()},
        )
