"""Computes the golden models' matrix product and requantisation, by number format."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import Rounding
from slipstick_rtl.numbers.lns.array_arithmetic import ArrayArithmetic
from slipstick_rtl.numbers.rounding import clamp, requantize

from .parameters import Parameters

EXACT_LANES = 1024
"""Products of int8 whose float32 sum is exact whatever the order."""

_PIECE_PRODUCTS = 1 << 18
"""Multiplications given to BLAS at a time. OpenBLAS spreads larger products over threads that
wait for each other in loops: twice as fast on an idle machine, ten times as slow on a busy one."""

_PIECE_PIXELS = 32
"""Smallest piece, whatever its products: below it BLAS reads weights more than it multiplies."""


class Arithmetic(Protocol):
    """A number format's part in the golden models."""

    operand: Any
    """NumPy type of the operands of ``multiply``."""

    def multiply(
        self, matrix: np.ndarray, weights: np.ndarray, results: np.ndarray, accumulate: bool
    ) -> None:
        """Writes the matrix product, or adds it modulo 2^32.

        Parameters
        ----------
        matrix : array of operand, (pixels, reduction)
        weights : array of operand, (reduction, columns), C-contiguous
        results : array of int32, pixels x columns of any shape
        accumulate : bool
        """
        ...

    def tile_sums(self, vectors: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Computes the sums of the vectors that enter the array while a tile of weights is at work.

        Parameters
        ----------
        vectors : array of int8, (vectors, P, R)
        weights : array of int8, (R, C)

        Returns
        -------
        array of int32, (vectors, P, C)
        """
        ...

    def finish(
        self, instruction: Mapping[str, int], values: np.ndarray, parameters: Parameters
    ) -> np.ndarray:
        """Results of a post instruction, int8: requantised and clamped.

        Parameters
        ----------
        instruction : mapping
            Its fields.
        values : array of int32, (..., channels)
        parameters : tuple of arrays, (channels,)
        """
        ...


class Int8Arithmetic:
    """Exact integers through the float32 matrix product of BLAS.

    A float32 holds every integer up to 2^24. A product of two int8 is at most 2^14, so sums of up
    to 1024 of them are exact in any order; longer reductions are cut there and added as int32.
    """

    operand = np.float32

    def multiply(
        self, matrix: np.ndarray, weights: np.ndarray, results: np.ndarray, accumulate: bool
    ) -> None:
        """As :class:`Arithmetic` has it."""
        pixels, reduction = matrix.shape
        total = np.empty((pixels, weights.shape[1]), np.float32)
        for first in range(0, max(1, reduction), EXACT_LANES):
            part = slice(first, first + EXACT_LANES)
            factor = weights[part]
            step = max(_PIECE_PIXELS, _PIECE_PRODUCTS // max(1, factor.size))
            for pixel in range(0, pixels, step):
                piece = slice(pixel, pixel + step)
                np.matmul(matrix[piece, part], factor, out=total[piece])
            if first or accumulate:
                results += total.reshape(results.shape).astype(np.int32)
            else:
                results[...] = total.reshape(results.shape)

    def tile_sums(self, vectors: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """As :class:`Arithmetic` has it."""
        return vectors.astype(np.int32) @ weights.astype(np.int32)

    def finish(
        self, instruction: Mapping[str, int], values: np.ndarray, parameters: Parameters
    ) -> np.ndarray:
        """As :class:`Arithmetic` has it."""
        i = instruction
        rounded = requantize(values, *parameters, Rounding(i["rounding"]))
        return clamp(rounded, i["zero_point"], i["minimum"], i["maximum"])


def operand_range(configuration: Configuration) -> tuple[int, int]:
    """The smallest and the largest byte that means something to a configuration's array."""
    return configuration.format.lowest, configuration.format.largest


def arithmetic_of(configuration: Configuration) -> Arithmetic:
    """The arithmetic of a configuration's number format."""
    return _arithmetic(configuration.logarithmic)


@lru_cache
def _arithmetic(logarithmic: ArrayArithmetic | None) -> Arithmetic:
    if logarithmic is None:
        return Int8Arithmetic()
    # its compiler takes half a second to load, which no int8 network needs
    from .logarithms import LogarithmicArithmetic

    return LogarithmicArithmetic(logarithmic)
