"""The multipliers of a packed pair: two columns' products of one activation, in three parts."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..numbers import packing
from ..primitives.carry_sum import Operand, carry_sum
from ..primitives.delay import delay
from ..primitives.multiplier18 import Multiplier18


def pair_sums(rows: int) -> data.StructLayout:
    """The sums of so many rows, in their three parts; ``floor`` comes a cycle after the others."""
    return data.StructLayout(
        {
            "low": packing.low_sum(rows),
            "high": packing.high_sum(rows),
            "floor": packing.floor_sum(rows),
        }
    )


class PairMultiplier(wiring.Component):
    """P packed products, in their three parts (:mod:`..numbers.packing`).

    Parameters
    ----------
    pixels : int
        P.

    Members
    -------
    activations : In
        [P].
    late : In
        [P] the activations of a cycle ago.
    active : In
        The weights of these activations.
    products : Out
        [P] ``low`` and ``high`` three cycles later, ``floor`` four.
    """

    activations: data.View
    late: data.View
    active: data.View
    products: data.View

    def __init__(self, *, pixels: int) -> None:
        self._pixels = pixels
        operands = data.ArrayLayout(packing.ACTIVATION, pixels)
        super().__init__(
            {
                "activations": In(operands),
                "late": In(operands),
                "active": In(packing.STORED),
                "products": Out(data.ArrayLayout(pair_sums(1), pixels)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        active = self.active
        # beside the activations of a cycle ago
        residue = delay(m, active.residue, 1, "residue", reset_less=True)
        low_sign = delay(m, active.low[7], 1, "low_sign", reset_less=True)
        low_edge = delay(m, active.edge, 1, "low_edge", reset_less=True)
        for p in range(self._pixels):
            m.submodules[f"product_{p}"] = product = Multiplier18(a=signed(8), b=signed(18))
            m.d.comb += [
                product.a.eq(self.activations[p].value),
                product.b.eq(packing.operand(active)),
            ]
            x, product_bits = self.late[p], Value.cast(product.p)
            low, high = product_bits[: packing.LOW_BITS], product_bits[packing.LOW_BITS :]
            signs = packing.floor_signs(x.value[7], x.edge, low_sign, low_edge)
            negative, upper = (
                delay(m, bit, 3, f"{name}_{p}", reset_less=True)
                for name, bit in zip(("negative", "upper"), signs, strict=True)
            )
            truncated = self._truncated(m, platform, p, Value.cast(x.value), residue)
            floor = Signal(packing.RESIDUE_BITS, name=f"floor_{p}", reset_less=True)
            m.d.sync += floor.eq(
                carry_sum(
                    m,
                    platform,
                    f"difference_{p}",
                    Operand(high[: packing.RESIDUE_BITS]),
                    Operand(truncated, flip=Const(1, 1)),
                    width=packing.RESIDUE_BITS,
                    ones=(Const(1, 1), Const(1, 1)),
                )
            )
            m.d.comb += [
                self.products[p].low.eq(low),
                self.products[p].high.eq(high[: packing.HIGH_BITS].as_signed()),
                self.products[p].floor.eq(Cat(floor, upper, negative).as_signed()),
            ]
        return m

    def _truncated(self, m: Module, platform: object, p: int, x: Value, w: Any) -> Signal:
        """x w modulo 32, two cycles later."""
        first = Signal(5, name=f"first_{p}", reset_less=True)
        second = Signal(3, name=f"second_{p}", reset_less=True)
        result = Signal(5, name=f"truncated_{p}", reset_less=True)
        rows = (Operand(x[1:5], mask=w[0]), Operand(x[:4], mask=w[1]))
        carry = x[0] & w[3] & x[1] & w[2]
        m.d.sync += [
            first.eq(Cat(x[0] & w[0], carry_sum(m, platform, f"first_sum_{p}", *rows, width=4))),
            second.eq(
                Cat(
                    x[0] & w[2],
                    (x[1] & w[2]) ^ (x[0] & w[3]),
                    (x[2] & w[2]) ^ (x[1] & w[3]) ^ (x[0] & w[4]) ^ carry,
                )
            ),
            result.eq(
                Cat(
                    first[:2],
                    carry_sum(
                        m,
                        platform,
                        f"truncated_sum_{p}",
                        Operand(first[2:]),
                        Operand(second),
                        width=3,
                    ),
                )
            ),
        ]
        return result
