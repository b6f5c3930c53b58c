"""Linear sums of formats that are too wide for a core: elements to be measured, no array."""

from dataclasses import dataclass

from ..numbers.lns.antilogarithms import LARGEST_INTEGER_BITS, check_bits
from ..numbers.lns.array_arithmetic import ArrayArithmetic

LARGEST_FRACTION_BITS = 6
"""Up to here a bit of the table of antilogarithms takes four look-up tables."""


@dataclass(frozen=True)
class WideArithmetic(ArrayArithmetic):
    """The arithmetic of an element whose codes are longer than a byte.

    Raises
    ------
    ValueError
        If the format has more than 4 integer bits, as the linear sums have 32, or more than 6
        fraction bits.
    """

    def __post_init__(self) -> None:
        check_bits(
            self.lns,
            "an element with linear sums",
            integer=LARGEST_INTEGER_BITS,
            fraction=LARGEST_FRACTION_BITS,
        )
