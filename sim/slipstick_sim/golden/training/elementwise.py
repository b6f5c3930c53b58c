"""Sums of tensors with unequal exponents, and the gradient of ReLU."""

from collections.abc import Sequence

import numpy as np

from .compiled import mask_errors

LARGEST_DISTANCE = 15
"""Between exponents of tensors that are added: 127 x 2^15 x 2 has 23 bits."""


def aligned_sum(tensors: Sequence[tuple[np.ndarray, int]]) -> tuple[np.ndarray, int]:
    """Adds tensors exactly; in the post-processor by tables of 256 entries, one per tensor.

    A tensor whose exponent is more than ``LARGEST_DISTANCE`` below the largest one counts as 0:
    less than 1/500 of the other's unit.

    Parameters
    ----------
    tensors : sequence of (array of int8, exponent), at least one, at most 64
        Residual branches, or the errors that reach a tensor from several readers.

    Returns
    -------
    sums : array of int32
        To be rounded: to nearest if forward, pseudo-stochastically if errors.
    exponent : int
        The smallest of those that count.
    """
    if not 1 <= len(tensors) <= 64:
        raise ValueError(f"tensors to add must be 1 to 64, not {len(tensors)}")
    largest = max(exponent for _, exponent in tensors)
    counting = [entry for entry in tensors if largest - entry[1] <= LARGEST_DISTANCE]
    smallest = min(exponent for _, exponent in counting)
    total = np.zeros(tensors[0][0].shape, np.int32)
    for codes, exponent in counting:
        total += codes.astype(np.int32) << (exponent - smallest)
    return total, smallest


def relu_gradient(errors: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Errors where the kept activation is above 0, else 0.

    Parameters
    ----------
    errors : array of int32 or int8
        Sums before they are rounded, or codes.
    kept : array of int8
        The activation behind the ReLU, as it was stored.
    """
    masked = np.empty(errors.shape, errors.dtype)
    first, second = (np.ascontiguousarray(array).reshape(-1) for array in (errors, kept))
    mask_errors(first, second, masked.reshape(-1))
    return masked
