"""The rounder that looks at groups of bits first equals the one that does not, a cycle later."""

from amaranth.hdl import Assert, Const, Module, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In
from slipstick_rtl.isa import Rounding
from slipstick_rtl.postprocess.multiplier import PRODUCT_BITS
from slipstick_rtl.postprocess.product_rounder import GROUPED_LATENCY, ProductRounder
from slipstick_rtl.primitives.delay import delay

from .registry import Proof


class RoundersAgree(wiring.Component):
    """Both, with the same products and roundings; of the grouped one there are other proofs."""

    product: Signal
    rounding: Signal

    def __init__(self) -> None:
        super().__init__({"product": In(signed(PRODUCT_BITS)), "rounding": In(Rounding)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        late_product = delay(m, self.product, 1, "late_product")
        m.submodules.plain = plain = ProductRounder(in_groups=False)
        m.submodules.grouped = grouped = ProductRounder(in_groups=True)
        for rounder in (plain, grouped):
            m.d.comb += [
                rounder.product.eq(self.product),
                rounder.late_product.eq(late_product),
                rounder.rounding.eq(self.rounding),
            ]
        started = delay(m, Const(1), GROUPED_LATENCY, "started")
        for name in ("rounded", "sticky"):
            early = delay(m, getattr(plain, name), 1, f"early_{name}")
            with m.If(started):
                m.d.comb += Assert(early == getattr(grouped, name), f"{name} otherwise")
        return m


PROOFS = (
    Proof(
        name="product_rounders_agree",
        component=RoundersAgree,
        depth=GROUPED_LATENCY + 1,
        bounded=True,
    ),
)
