"""ONNX operators that pick numbers by their places, or mix neighbours."""

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...errors import InputError


def gather(x: np.ndarray, indices: np.ndarray, axis: int) -> np.ndarray:
    """The elements of an axis at some places, in the order and shape of those.

    Raises
    ------
    InputError
        If a place is beyond the axis.
    """
    size = x.shape[axis]
    beyond = (indices < -size) | (indices >= size)
    if beyond.any():
        raise InputError(
            f"places in an axis of {size} must be within {-size}..{size - 1}, not"
            f" {indices[beyond].ravel()[0]}"
        )
    return np.take(x, indices, axis=axis)


def expand(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """x, repeated along axes of one and new ones behind the batch to an image's shape."""
    ranked = x.reshape(len(x), *(1,) * (len(shape) - x.ndim), *x.shape[1:])
    return np.broadcast_to(ranked, (len(x), *shape[1:])).copy()


def arg_extreme(x: np.ndarray, attributes: Mapping[str, Any], *, largest: bool) -> np.ndarray:
    """The place of the largest or smallest number along an axis: of equal ones the first, or,
    with ``last``, the last."""
    axis = attributes["axis"]
    find = np.argmax if largest else np.argmin
    if attributes.get("last"):
        return np.asarray(x.shape[axis] - 1 - find(np.flip(x, axis), axis=axis))
    return np.asarray(find(x, axis=axis))


def pixel_shuffle(x: np.ndarray, block: int) -> np.ndarray:
    """N x H x W x (C, block, block) as N x (H, block) x (W, block) x C."""
    count, height, width, channels = x.shape
    split = x.reshape(count, height, width, channels // block**2, block, block)
    shape = (count, height * block, width * block, channels // block**2)
    return split.transpose(0, 1, 4, 2, 5, 3).reshape(shape)


def pixel_unshuffle(x: np.ndarray, block: int) -> np.ndarray:
    """The inverse of ``pixel_shuffle``."""
    count, height, width, channels = x.shape
    split = x.reshape(count, height // block, block, width // block, block, channels)
    shape = (count, height // block, width // block, channels * block**2)
    return split.transpose(0, 1, 3, 5, 2, 4).reshape(shape)


def resize(x: np.ndarray, *operands: np.ndarray | Mapping[str, Any]) -> np.ndarray:
    """Each element is a weighted sum of the input's.

    Parameters
    ----------
    x : array of float32
    operands
        For each of ``axes`` the places and the weights, (taps, outputs) each, then the attributes.
        Where all weights of an axis are 0 the result is the attribute ``outside``.
    """
    attributes = operands[-1]
    assert isinstance(attributes, Mapping)
    constants = [np.asarray(operand) for operand in operands[:-1]]
    taps = list(zip(attributes["axes"], constants[::2], constants[1::2], strict=True))
    total: np.ndarray | None = None
    for choice in itertools.product(*(range(len(places)) for _, places, _ in taps)):
        value, factor = x, np.float32(1)
        # runtimes multiply the weights of the innermost axis first
        for tap, (axis, places, weights) in zip(choice, taps, strict=True):
            value = np.take(value, places[tap], axis=axis)
            shape = [1] * x.ndim
            shape[axis] = -1
            factor = weights[tap].reshape(shape) * factor
        value = factor * value
        total = value if total is None else total + value
    assert total is not None
    for axis, _, weights in taps:
        beyond = np.flatnonzero(~weights.any(axis=0))
        if beyond.size:
            total[(slice(None),) * axis + (beyond,)] = attributes["outside"]
    return total
