"""Random integers for instructions, both ends included."""

from collections.abc import Callable

import numpy as np

Draw = Callable[[int, int], int]
"""A random integer of low..high."""


def drawing(generator: np.random.Generator) -> Draw:
    """Draws from a generator."""

    def draw(low: int, high: int) -> int:
        return int(generator.integers(low, high + 1))

    return draw
