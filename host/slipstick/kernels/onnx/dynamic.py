"""Codes whose scales are operands: of each picture its own, or several along an axis."""

import numpy as np


def _ends(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The smallest and the largest number of each picture, 0 among them."""
    flat = x.reshape(len(x), -1)
    zero = np.float32(0)
    return np.minimum(flat.min(axis=1), zero), np.maximum(flat.max(axis=1), zero)


def scale(x: np.ndarray) -> np.ndarray:
    """DynamicQuantizeLinear's scale of each picture: 255 steps from its smallest number to its
    largest; 1 if all are 0."""
    low, high = _ends(x)
    return np.where(high == low, np.float32(1), (high - low) / np.float32(255))


def zero_point(x: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Its zero point, of uint8 codes, 128 less; int8."""
    low, _ = _ends(x)
    return (np.clip(np.rint(-low / scales), 0, 255) - 128).astype(np.int8)


def quantize_by(x: np.ndarray, scales: np.ndarray, zero_points: np.ndarray) -> np.ndarray:
    """Real numbers as int8 codes; ties to even.

    Parameters
    ----------
    x : array of float32
    scales, zero_points : arrays
        That broadcast with it, but for axes that lack behind the batch's.
    """
    quotient = np.rint(x / _spread(scales, x.ndim)).astype(np.float64)
    codes = np.nan_to_num(quotient, nan=0.0, posinf=1e9, neginf=-1e9)
    return np.clip(codes + _spread(zero_points, x.ndim), -128, 127).astype(np.int8)


def dequantize_by(codes: np.ndarray, scales: np.ndarray, zero_points: np.ndarray) -> np.ndarray:
    """The real numbers of int8 codes; parameters are as for ``quantize_by``."""
    centred = codes.astype(np.int32) - _spread(zero_points, codes.ndim).astype(np.int32)
    return centred.astype(np.float32) * _spread(scales, codes.ndim).astype(np.float32)


def _spread(values: np.ndarray, rank: int) -> np.ndarray:
    return values.reshape(*values.shape, *(1,) * (rank - values.ndim))
