"""Finishes the sums of a layer as the post-processor does: bias, ReLU, the largest, rounding."""

import numpy as np

from .compiled import extremes, round_errors, round_forward
from .rounding import LARGEST_CODE, LARGEST_SUM, check_shift, exact_sum, largest_magnitude


def add_bias(sums: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Adds each channel's bias.

    Parameters
    ----------
    sums : array of int32, (..., channels)
        Changed in place if no sum can pass 32 bits.
    bias : array of int32, (channels,)
        In units of the sums.

    Returns
    -------
    array of int32

    Raises
    ------
    OverflowError
        If a sum passes 32 bits.
    """
    if largest_error(sums) + largest_magnitude(bias) <= LARGEST_SUM:
        sums += bias
        return sums
    return exact_sum(sums.astype(np.int64) + bias, "a sum with its bias")


def largest_forward(sums: np.ndarray, relu: bool = False) -> int:
    """The largest of a layer's sums, as it chooses the shift.

    Behind a ReLU negative sums do not count. Otherwise a negative sum counts as its complement, one
    less than its magnitude: -2^k has as many bits as 2^k - 1.
    """
    lowest, highest = _extremes(sums)
    return highest if relu else max(highest, -lowest - 1)


def largest_error(sums: np.ndarray) -> int:
    """The largest magnitude of sums that become errors."""
    lowest, highest = _extremes(sums)
    return max(highest, -lowest)


def _extremes(sums: np.ndarray) -> tuple[int, int]:
    lowest, highest = extremes(np.ascontiguousarray(sums, np.int32).reshape(-1))
    return int(lowest), int(highest)


def finish_forward(sums: np.ndarray, shift: int, relu: bool = False) -> np.ndarray:
    """Codes of a layer's sums: ``round_half_even``, -127..127, or 0..127 behind a ReLU.

    Parameters
    ----------
    sums : array of int32
    shift : int, 0..31
    relu : bool

    Returns
    -------
    array of int8
    """
    check_shift(shift)
    flat, codes = _flat(sums)
    round_forward(flat, shift, 0 if relu else -LARGEST_CODE, codes)
    return codes.reshape(sums.shape)


def finish_errors(sums: np.ndarray, shift: int) -> np.ndarray:
    """Codes of errors: ``round_pseudo_stochastic``, saturated.

    Parameters
    ----------
    sums : array of int32
        Masked already where they pass a ReLU.
    shift : int, 0..31

    Returns
    -------
    array of int8
    """
    check_shift(shift)
    flat, codes = _flat(sums)
    round_errors(flat, shift, codes)
    return codes.reshape(sums.shape)


def _flat(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sums in one dimension, and a place for their codes."""
    flat = np.ascontiguousarray(sums, np.int32).reshape(-1)
    return flat, np.empty(flat.shape, np.int8)
