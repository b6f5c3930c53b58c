"""Loops of training that numba compiles: windows of images, masks, rounding."""

from typing import Any

import numpy as np
from numba import njit

from .rounding import FRACTION_BITS


@njit(cache=True, nogil=True)
def gather(padded: Any, result: Any, stride_y: int, stride_x: int, channels: int) -> None:
    """Copies windows.

    Parameters
    ----------
    padded : array of int8 or float32, (batch, height, width x channels)
    result : array of float32, (batch, rows, columns, kernel height, kernel width x channels)
    """
    batch, rows, columns, kernel, row_bytes = result.shape
    for image in range(batch):
        for row in range(rows):
            for column in range(columns):
                first = column * stride_x * channels
                for tap in range(kernel):
                    source = padded[image, row * stride_y + tap, first : first + row_bytes]
                    target = result[image, row, column, tap]
                    for place in range(row_bytes):
                        target[place] = source[place]


@njit(cache=True, nogil=True)
def scatter(windows: Any, padded: Any, stride_y: int, stride_x: int, channels: int) -> None:
    """Adds windows to where they are from: the transpose of ``gather``.

    Parameters
    ----------
    windows : array of float, (batch, rows, columns, kernel height, kernel width x channels)
    padded : array of float, (batch, height, width x channels)
    """
    batch, rows, columns, kernel, row_bytes = windows.shape
    for image in range(batch):
        for row in range(rows):
            for column in range(columns):
                first = column * stride_x * channels
                for tap in range(kernel):
                    target = padded[image, row * stride_y + tap, first : first + row_bytes]
                    source = windows[image, row, column, tap]
                    for place in range(row_bytes):
                        target[place] += source[place]


@njit(cache=True, nogil=True)
def round_forward(sums: Any, shift: int, lowest: int, codes: Any) -> None:
    """``rounding.round_half_even``, cut to lowest..127; flat arrays of int32 and int8."""
    half_less_one = np.int32((1 << shift >> 1) - 1) if shift else np.int32(0)
    low, high, by = np.int32(lowest), np.int32(127), np.int32(shift)
    mask = np.int32((1 << shift) - 1)
    odd = np.int32(1 if shift else 0)
    for place in range(sums.size):
        quotient = sums[place] >> by
        # what is dropped, and one more where the quotient is odd, passes half: no sum of 33 bits
        dropped = (sums[place] & mask) + (quotient & odd)
        code = quotient + np.int32(dropped > half_less_one + odd)
        code = code if code > low else low
        codes[place] = code if code < high else high


@njit(cache=True, nogil=True)
def round_errors(sums: Any, shift: int, codes: Any) -> None:
    """``rounding.round_pseudo_stochastic``, cut to -127..127; flat arrays of int32 and int8."""
    width = min(FRACTION_BITS, (shift + 1) // 2)
    upper, below = np.int32(shift - width), shift - 2 * width
    # one bit short: a 0 comes behind
    right, left = np.int32(max(0, below)), np.int32(max(0, -below))
    mask, by, high = np.int32((1 << width) - 1), np.int32(shift), np.int32(127)
    for place in range(sums.size):
        value = sums[place]
        magnitude = value if value >= 0 else np.int32(-value)
        fraction = (magnitude >> upper) & mask
        chance = (magnitude >> right << left) & mask
        code = (magnitude >> by) + np.int32(fraction > chance)
        code = code if code < high else high
        codes[place] = code if value >= 0 else -code


@njit(cache=True, nogil=True)
def mask_errors(errors: Any, kept: Any, masked: Any) -> None:
    """Errors where ``kept`` is above 0, else 0; flat arrays."""
    for place in range(errors.size):
        masked[place] = errors[place] if kept[place] > 0 else 0


@njit(cache=True, nogil=True)
def extremes(sums: Any) -> Any:
    """The smallest and the largest of a flat array of int32, and of 0."""
    lowest, highest = np.int32(0), np.int32(0)
    for place in range(sums.size):
        value = sums[place]
        lowest = value if value < lowest else lowest
        highest = value if value > highest else highest
    return lowest, highest


@njit(cache=True, nogil=True)
def add_table_products(by_lane: Any, weights: Any, products: Any, total: Any) -> None:
    """Adds products of bytes from a table; pixels are innermost: rows of the table stay near.

    Parameters
    ----------
    by_lane : array of uint8, (lanes, pixels)
    weights : array of uint8, (lanes, columns)
    products : array of int32, (256, 256)
    total : array of int64, (columns, pixels)
    """
    lanes, partial = by_lane.shape[0], np.zeros(total.shape[1], np.int32)
    for column in range(weights.shape[1]):
        sums = total[column]
        for first in range(0, lanes, 1024):
            # so many products of 20 bits and a sign are below 2^31
            partial[:] = 0
            end = min(first + 1024, lanes)
            # four lanes at once: a sum is read and written a quarter as often
            whole = end - (end - first) % 4
            for a in range(first, whole, 4):
                b, c, d = a + 1, a + 2, a + 3
                of_a, of_b = products[weights[a, column]], products[weights[b, column]]
                of_c, of_d = products[weights[c, column]], products[weights[d, column]]
                in_a, in_b, in_c, in_d = by_lane[a], by_lane[b], by_lane[c], by_lane[d]
                for pixel in range(partial.size):
                    two = of_a[in_a[pixel]] + of_b[in_b[pixel]]
                    partial[pixel] += two + (of_c[in_c[pixel]] + of_d[in_d[pixel]])
            for lane in range(whole, end):
                row, bytes_of_lane = products[weights[lane, column]], by_lane[lane]
                for pixel in range(partial.size):
                    partial[pixel] += row[bytes_of_lane[pixel]]
            for pixel in range(partial.size):
                sums[pixel] += partial[pixel]
