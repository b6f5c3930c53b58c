"""Number formats that a network is trained for: those of a logarithmic array, and one of 4 bits."""

from dataclasses import dataclass
from functools import cached_property

from slipstick_rtl.numbers.lns.array_arithmetic import ArrayArithmetic
from slipstick_rtl.numbers.lns.formats import Lns

from ...errors import InputError
from ...quantize import FINE_FRACTION_BITS


@dataclass(frozen=True)
class LimitedLns(Lns):
    """A format whose codes end early.

    Its codes mean what the format's mean, so an array of the format computes with them.
    The first 7 codes of 1+3+1 and their negatives are all of 1+2+1, which no array has.

    Parameters
    ----------
    limit : int
        The largest ordered code.
    """

    limit: int = 1

    @property
    def largest_code(self) -> int:
        """The ordered code of the largest value."""
        return self.limit


@dataclass(frozen=True)
class AwareFormat:
    """A format that weights and activations are rounded to.

    Parameters
    ----------
    name : str
        As options have it.
    lns : Lns
        Of the array that runs the trained network.
    """

    name: str
    lns: Lns

    @cached_property
    def arithmetic(self) -> ArrayArithmetic:
        """The array's, with the format's largest code."""
        return ArrayArithmetic(self.lns)

    @property
    def is_limited(self) -> bool:
        """Tells whether the array has codes that the format has not."""
        return isinstance(self.lns, LimitedLns)

    @property
    def bits(self) -> int:
        """Counts the bits of a code, its sign included."""
        return 1 + self.lns.largest_code.bit_length()

    @property
    def is_doubled(self) -> bool:
        """Tells whether an input number becomes two codes, as the quantiser does by default."""
        return self.lns.fraction_bits < FINE_FRACTION_BITS

    @property
    def target(self) -> str:
        """A simulated target that runs the trained network."""
        return f"sim-{self.lns.name}"


NAMED = {
    "lns4": LimitedLns(3, 1, 7),
    "lns5": Lns(2, 2),
    "lns6": Lns(3, 2),
    "lns7": Lns(3, 3),
    "lns8": Lns(3, 4),
}
"""By the names that targets have; ``lns4`` is 1+2+1 on an array of 1+3+1."""


def find_format(name: str) -> AwareFormat:
    """The format of a name: ``lns4`` to ``lns8``, or ``lns1+I+F`` of an array.

    Raises
    ------
    InputError
        If no array has it.
    """
    try:
        found = AwareFormat(name, NAMED[name] if name in NAMED else Lns.parse(name))
        # it refuses what no array has
        _ = found.arithmetic
    except ValueError as error:
        raise InputError(
            f"a format to train for must be one of {', '.join(NAMED)}, or lns1+I+F of 5 to 8 bits"
            f" and I to 4, not {name!r} ({error})"
        ) from None
    return found
