"""The linear int8 number format: what a processing element multiplies and adds."""

from typing import Any

from amaranth.hdl import Mux, Shape, Value, signed
from amaranth.utils import ceil_log2


class Int8:
    """Signed 8-bit codes, exact products, exact sums.

    The array asks its number format for shapes, product and sum, and never branches on its kind;
    another format offers the same members.

    Parameters
    ----------
    multiplier : str
        "plain": ``*``, which FPGA tools map to DSP blocks. "lut": additions of shifted operands,
        which they cannot, for chips whose DSP blocks are needed elsewhere.
    """

    operand = signed(8)
    """Shape of activations and weights as they lie in memory."""

    def __init__(self, *, multiplier: str = "plain") -> None:
        products = {"plain": _plain_product, "lut": _added_product}
        if multiplier not in products:
            raise ValueError(f"multiplier must be one of {tuple(products)}, not {multiplier!r}")
        self._product = products[multiplier]

    @property
    def product_latency(self) -> int:
        """Registers inside ``product``: cycles from the operands to the product."""
        return 0

    def partial_sum(self, rows: int) -> Shape:
        """Shape that holds the exact sum of ``rows`` products, of magnitude 2^14 at most each."""
        return signed(16 + ceil_log2(rows))

    def product(self, activation: Any, weight: Any) -> Value:
        """The product of one activation and one weight, combinational."""
        return self._product(activation, weight)


def _plain_product(activation: Any, weight: Any) -> Value:
    return activation * weight


def _added_product(activation: Any, weight: Any) -> Value:
    """Four sums of two partial products each, then two, then one; the sign bit's is subtracted."""

    def partial(bit: int) -> Value:
        return Mux(weight[bit], activation, 0)

    pairs = [partial(bit) + (partial(bit + 1) << 1) for bit in (0, 2, 4)]
    pairs.append(partial(6) - (partial(7) << 1))
    low = pairs[0] + (pairs[1] << 2)
    high = pairs[2] + (pairs[3] << 2)
    return (low + (high << 4))[:16].as_signed()


def number_format(name: str, multiplier: str = "plain") -> Int8:
    """The number format that a configuration names, with its multiplier's back-end."""
    formats = {"int8": Int8}
    return formats[name](multiplier=multiplier)
