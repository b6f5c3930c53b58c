"""Scales of logarithmic codes, chosen by the error that they make."""

import numpy as np
from slipstick_rtl.numbers.lns.array_arithmetic import ArrayArithmetic

from ..kernels.lns.codes import decode, encode, magnitudes

COARSE = np.exp2(-np.arange(-1, 20) / 4)
"""Factors of the scale at which the largest number has the largest code: to 5 octaves less."""
FINE = np.exp2(np.arange(-3, 4) / 16)
"""Factors of the best of those."""

LARGEST_SUM = (1 << 31) - (1 << 24)
"""Largest sum of a layer's products and its bias, with room for what a bias may be corrected by."""

MOST_HALVINGS = 64
"""Most halvings of weights whose sums, or bias, pass 32 bits."""


def best_scales(
    numbers: np.ndarray,
    arithmetic: ArrayArithmetic,
) -> np.ndarray:
    """The scale of each row that makes the least squared error, float32.

    Parameters
    ----------
    numbers : array, (rows, numbers)
    arithmetic : ArrayArithmetic

    Returns
    -------
    array of float32, (rows,)
        1 for rows of zeros.
    """
    top = np.abs(numbers).max(axis=1)
    base = np.where(top > 0, top / magnitudes(arithmetic)[-1], 1.0)
    for factors in (COARSE, FINE):
        base = _best(numbers, base, factors, arithmetic)
    return np.where(top > 0, base, 1.0).astype(np.float32)


def _best(
    numbers: np.ndarray,
    base: np.ndarray,
    factors: np.ndarray,
    arithmetic: ArrayArithmetic,
) -> np.ndarray:
    best, error = base, np.full(len(numbers), np.inf)
    for factor in factors:
        scale = base * factor
        found = squared_error(numbers, scale[:, None], arithmetic)
        best = np.where(found < error, scale, best)
        error = np.minimum(found, error)
    return best


def squared_error(
    numbers: np.ndarray,
    scale: np.ndarray,
    arithmetic: ArrayArithmetic,
) -> np.ndarray:
    """The sum of each row's squared errors."""
    wrong = decode(encode(numbers, scale, arithmetic), scale, arithmetic) - numbers
    return (wrong * wrong).sum(axis=1)


def fitting_scales(
    weights: np.ndarray,
    source: float,
    bias: np.ndarray | None,
    arithmetic: ArrayArithmetic,
    copies: int = 1,
) -> np.ndarray:
    """The best scales of weights, (outputs, lanes), whose sums stay within 32 bits; float32.

    Parameters
    ----------
    weights : array, (outputs, lanes)
    source : float
        The input's scale.
    bias : array, (outputs,), or None
        Real numbers.
    arithmetic : ArrayArithmetic
    copies : int
        How often a sum meets each weight.
    """
    scale = best_scales(weights, arithmetic)
    if bias is not None:
        # without weights it means nothing, but that a bias should have some digits
        own = np.abs(bias) / (source * arithmetic.unit * (1 << 20))
        idle = ~weights.any(axis=1) & (own > 0)
        scale = np.where(idle, own, scale).astype(np.float32)
    for _ in range(MOST_HALVINGS):
        codes = encode(weights, scale[:, None].astype(np.float64), arithmetic)
        products = arithmetic.multiply(codes, arithmetic.lns.largest_code)
        worst = copies * np.abs(products).sum(axis=1, dtype=np.int64).astype(np.float64)
        if bias is not None:
            worst += np.abs(bias) / (scale * source * arithmetic.unit)
        if (worst < LARGEST_SUM).all():
            break
        # as large a scale again halves codes' numbers, and what a bias counts
        scale = np.where(worst < LARGEST_SUM, scale, scale * np.float32(2))
    return scale
