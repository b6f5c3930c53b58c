"""Random sums of gradients and masters: corners of rounding and of saturation often."""

import random

from ...golden import training
from ...golden.training.rounding import LARGEST_SHIFT

_LARGEST_SUM, _LARGEST_MASTER = training.LARGEST_SUM, training.LARGEST_MASTER
_SUMS = (0, 1, -1, _LARGEST_SUM, -_LARGEST_SUM)
_MASTERS = (0, 1, -1, _LARGEST_MASTER, -_LARGEST_MASTER, (1 << 15) - 1, -(1 << 15))


def random_sum(draw: random.Random, shift: int) -> int:
    """Draws a sum of 32 bits, but not -2^31; ``shift`` is that of the UPDATE."""
    kind, shift = draw.randrange(5), min(shift, LARGEST_SHIFT)
    if kind == 0:
        return draw.choice(_SUMS)
    if kind == 1:
        return draw.randrange(-_LARGEST_SUM, _LARGEST_SUM + 1)
    if kind == 2:
        return draw.choice((1, -1)) << draw.randrange(31)
    # steps of a few units, or near the largest; of the dropped bits both halves may be the same
    step = draw.randrange(5) if kind == 3 else _LARGEST_MASTER + draw.randrange(-2, 3)
    half = draw.randrange(1 << shift // 2)
    dropped = draw.choice((0, 1 << shift >> 1, half << shift // 2 | half, (1 << shift) - 1))
    return draw.choice((1, -1)) * min(_LARGEST_SUM, (step << shift) + dropped)


def random_master(draw: random.Random) -> int:
    """Draws a master weight of 16 bits; seldom more than ``LARGEST_MASTER``."""
    small = draw.randrange(-300, 300)
    any_one = draw.randrange(-_LARGEST_MASTER, _LARGEST_MASTER + 1)
    return draw.choice((draw.choice(_MASTERS), small, any_one))
