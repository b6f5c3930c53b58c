"""RSQRT of codes: Newton's method in gemmlowp's fixed point."""

import numpy as np

from .fixed_point import divide_by_power_of_two, multiply, shift_left
from .scaling import multiply_by_quantized_multiplier, quantize_multiplier

_HALF_ROOT = 1518500250
_ITERATIONS = 5
_GUARD_BITS = 20
"""Fraction bits of a root between its two rescalings."""


def inverse_root(value: int) -> tuple[int, int]:
    """1 / sqrt(value) of an integer above 0 as (mantissa, right shift that belongs to it)."""
    if value == 1:
        return (1 << 31) - 1, 0
    shift = 11
    while value >= 1 << 29:
        value, shift = value // 4, shift + 1
    pairs = (31 - value.bit_length()) // 2 - 1
    shift, value = shift - pairs, value << (2 * pairs)
    # 3 integer bits are room enough for the steps
    number = np.array(value >> 1, dtype=np.int64)
    half, three_halves = divide_by_power_of_two(number, 1), (1 << 28) + (1 << 27)
    x = np.array(1 << 28, dtype=np.int64)
    for _ in range(_ITERATIONS):
        cube = shift_left(multiply(multiply(x, x), x), 6)
        x = shift_left(multiply(x, three_halves) - multiply(half, cube), 3)
    root = int(multiply(x, _HALF_ROOT))
    return (root << -shift, 0) if shift < 0 else (root, shift)


def rsqrt(codes: np.ndarray, source: tuple[float, int], target: tuple[float, int]) -> np.ndarray:
    """1 / sqrt of each code as codes of another (scale, zero point); int8.

    Codes below the zero point have no root: the reference stops there, and here they are the
    largest, like zero.
    """
    real = 1.0 / (np.sqrt(source[0]) * target[0])
    multiplier, shift = quantize_multiplier(float(real))
    made = []
    for centred in (codes - source[1]).ravel().tolist():
        if centred <= 0:
            made.append(127)
            continue
        root, places = inverse_root(centred)
        one = np.array(1, dtype=np.int64)
        raised = multiply_by_quantized_multiplier(one, root, _GUARD_BITS - places)
        value = multiply_by_quantized_multiplier(raised, multiplier, shift - _GUARD_BITS)
        made.append(min(127, max(-128, int(value) + target[1])))
    return np.array(made, dtype=np.int8).reshape(codes.shape)
