"""Golden model of a logarithmic array: a look-up of every product, compiled."""

from collections.abc import Mapping

import numpy as np
from numba import njit
from slipstick_rtl.isa import OFFSET_BITS
from slipstick_rtl.numbers.lns.array_arithmetic import ArrayArithmetic
from slipstick_rtl.numbers.rounding import clamp

from .parameters import Parameters


class LogarithmicArithmetic:
    """Products from a table of all pairs of bytes, sums modulo 2^32.

    Parameters
    ----------
    arithmetic : ArrayArithmetic
    """

    operand = np.int8

    def __init__(self, arithmetic: ArrayArithmetic) -> None:
        self._arithmetic = arithmetic
        self._products = np.ascontiguousarray(arithmetic.products)

    def multiply(
        self, matrix: np.ndarray, weights: np.ndarray, results: np.ndarray, accumulate: bool
    ) -> None:
        """As :class:`.arithmetic.Arithmetic` has it."""
        total = np.zeros((len(matrix), weights.shape[1]), np.int32)
        _add_products(matrix.view(np.uint8), weights.view(np.uint8), self._products, total)
        if accumulate:
            results += total.reshape(results.shape)
        else:
            results[...] = total.reshape(results.shape)

    def tile_sums(self, vectors: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """As :class:`.arithmetic.Arithmetic` has it, by the formula instead of the table."""
        products = self._arithmetic.multiply(vectors[..., None], weights)
        return products.sum(axis=-2, dtype=np.int32)

    def finish(
        self, instruction: Mapping[str, int], values: np.ndarray, parameters: Parameters
    ) -> np.ndarray:
        """As :class:`.arithmetic.Arithmetic` has it: ordered codes."""
        bias, multiplier, _ = parameters
        if instruction.get("coded"):
            codes = np.add(values, bias, dtype=np.int32, casting="unsafe")
        else:
            codes = self._arithmetic.requantize(values, bias, _offset(multiplier))
        return clamp(codes, 0, instruction["minimum"], instruction["maximum"])


def _offset(multiplier: np.ndarray) -> np.ndarray:
    """The signed number in the low bits of a channel's multiplier."""
    half = 1 << (OFFSET_BITS - 1)
    return ((multiplier & (2 * half - 1)) ^ half) - half


@njit(cache=True, nogil=True)
def _add_products(
    matrix: np.ndarray, weights: np.ndarray, products: np.ndarray, total: np.ndarray
) -> None:
    """Adds to ``total`` (pixels, columns) the products of bytes that the table holds."""
    for pixel in range(matrix.shape[0]):
        sums = total[pixel]
        for lane in range(matrix.shape[1]):
            activation = matrix[pixel, lane]
            # half of what follows a ReLU is zero
            if activation:
                row, lane_weights = products[activation], weights[lane]
                for column in range(sums.size):
                    sums[column] += row[lane_weights[column]]
