"""Scales of logarithmic codes, chosen by the error that they make."""

import numpy as np
from slipstick_rtl.numbers.lns.array_arithmetic import ArrayArithmetic

from .kernels.log_codes import decode, encode, magnitudes

COARSE = np.exp2(-np.arange(-1, 20) / 4)
"""Factors of the scale at which the largest number has the largest code: to 5 octaves less."""
FINE = np.exp2(np.arange(-3, 4) / 16)
"""Factors of the best of those."""

LARGEST_SUM = (1 << 31) - (1 << 24)
"""Of a layer's products, so that a bias has room beside them in 32 bits."""


def best_scales(
    numbers: np.ndarray,
    arithmetic: ArrayArithmetic,
    importance: np.ndarray | None = None,
    least: np.ndarray | None = None,
) -> np.ndarray:
    """The scale of each row that makes the least squared error, float32.

    Parameters
    ----------
    numbers : array, (rows, numbers)
    arithmetic : ArrayArithmetic
    importance : array, (numbers,), optional
        Factors of the squared errors.
    least : array, (rows,), optional
        The smallest scales that are allowed.

    Returns
    -------
    array of float32, (rows,)
        1 for rows of zeros.
    """
    top = np.abs(numbers).max(axis=1)
    base = np.where(top > 0, top / magnitudes(arithmetic)[-1], 1.0)
    for factors in (COARSE, FINE):
        base = _best(numbers, base, factors, arithmetic, importance, least)
    return base.astype(np.float32)


def _best(
    numbers: np.ndarray,
    base: np.ndarray,
    factors: np.ndarray,
    arithmetic: ArrayArithmetic,
    importance: np.ndarray | None,
    least: np.ndarray | None,
) -> np.ndarray:
    best, error = base, np.full(len(numbers), np.inf)
    for factor in factors:
        scale = base * factor
        if least is not None:
            scale = np.maximum(scale, least)
        found = squared_error(numbers, scale[:, None], arithmetic, importance)
        best = np.where(found < error, scale, best)
        error = np.minimum(found, error)
    return best


def squared_error(
    numbers: np.ndarray,
    scale: np.ndarray,
    arithmetic: ArrayArithmetic,
    importance: np.ndarray | None = None,
) -> np.ndarray:
    """The sum of each row's squared errors."""
    wrong = decode(encode(numbers, scale, arithmetic), scale, arithmetic) - numbers
    squares = wrong * wrong if importance is None else wrong * wrong * importance
    return squares.sum(axis=1)
