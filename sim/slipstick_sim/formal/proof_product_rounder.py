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
        results: list[Signal] = []
        for in_groups in (False, True):
            rounder = ProductRounder(in_groups=in_groups)
            m.submodules[f"rounder_{int(in_groups)}"] = rounder
            m.d.comb += [
                rounder.product.eq(self.product),
                rounder.late_product.eq(late_product),
                rounder.rounding.eq(self.rounding),
            ]
            results += [rounder.rounded, rounder.sticky]
        started = delay(m, Const(1), GROUPED_LATENCY, "started")
        for index, name in enumerate(("rounded", "sticky")):
            early = delay(m, results[index], 1, f"early_{name}")
            with m.If(started):
                m.d.comb += Assert(early == results[index + 2], f"{name} otherwise")
        return m


PROOFS = (
    Proof(
        name="product_rounders_agree",
        component=RoundersAgree,
        depth=GROUPED_LATENCY + 1,
        bounded=True,
    ),
)
