"""The linear int8 number format: what a processing element multiplies and adds."""

from typing import Any

from amaranth.hdl import Shape, signed
from amaranth.utils import ceil_log2


class Int8:
    """Signed 8-bit codes, exact products, exact sums.

    The array asks its number format for shapes, product and sum, and never branches on its kind;
    another format offers the same members.
    """

    operand = signed(8)
    """Shape of activations and weights as they lie in memory."""

    product_latency = 0
    """Registers inside ``product``: cycles from the operands to the product."""

    def partial_sum(self, rows: int) -> Shape:
        """Shape that holds the exact sum of ``rows`` products, of magnitude 2^14 at most each."""
        return signed(16 + ceil_log2(rows))

    def product(self, activation: Any, weight: Any) -> Any:
        """The product of one activation and one weight, combinational."""
        return activation * weight


def number_format(name: str) -> Int8:
    """The number format that a configuration names."""
    formats = {"int8": Int8}
    return formats[name]()
