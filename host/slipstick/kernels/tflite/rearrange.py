"""Operators that move codes and change none: concatenation, slices, transposition, borders."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...graph import Quantization, Tensor
from .scaling import CODES, scalar


def concatenate(arrays: Sequence[np.ndarray], tensors: Sequence[Tensor], axis: int) -> np.ndarray:
    """Arrays laid behind one another along an axis.

    Parameters
    ----------
    arrays : sequence of arrays
        Equal but for their sizes along the axis.
    tensors : sequence of Tensor
        Theirs, and last the output's; an array of another quantisation than the output's is
        rescaled as TensorFlow Lite does it, in float32.
    axis : int
    """
    *sources, output = tensors
    parts = [
        rescale_float(array, source.quantization, output)
        for array, source in zip(arrays, sources, strict=True)
    ]
    return np.concatenate(parts, axis=axis)


def rescale_float(x: np.ndarray, source: Quantization | None, output: Tensor) -> np.ndarray:
    """Codes of one quantisation as codes of the output's, with CONCATENATION's float32 factor.

    The reference does so with uint8 codes only, which are 128 higher here.
    """
    if source is None or output.quantization is None:
        return x
    (scale, zero_point), (output_scale, output_zero_point) = map(
        scalar, (source, output.quantization)
    )
    if (scale, zero_point) == (output_scale, output_zero_point):
        return x
    factor = np.float32(scale) * (np.float32(1) / np.float32(output_scale))
    bias = np.float32(-(zero_point + 128)) * factor
    value = (x.astype(np.float32) + np.float32(128)) * factor + bias
    codes = np.copysign(np.floor(np.abs(value) + np.float32(0.5)), value) + output_zero_point
    return np.clip(codes, *CODES[output.dtype]).astype(x.dtype)


def pack(arrays: Sequence[np.ndarray], axis: int) -> np.ndarray:
    """Arrays of one shape side by side along a new axis."""
    return np.stack(arrays, axis=axis)


def take_slice(x: np.ndarray, attributes: Mapping[str, Any]) -> np.ndarray:
    """Every ``steps``-th element from ``starts`` on, ``sizes`` of them; backwards if negative."""
    parts = [slice(None)]
    spans = zip(*(attributes[key][1:] for key in ("starts", "steps", "sizes")), strict=True)
    for start, step, size in spans:
        end = start + step * size
        parts.append(slice(start, end if end >= 0 else None, step))
    return x[tuple(parts)].reshape(len(x), *attributes["shape"][1:])


def transpose(x: np.ndarray, permutation: Sequence[int]) -> np.ndarray:
    """Axis i of the result is axis ``permutation[i]`` of x."""
    return np.ascontiguousarray(x.transpose(permutation))


def pad(x: np.ndarray, padding: tuple[tuple[int, int], ...], value: int) -> np.ndarray:
    """x with (before, after) codes of a value along each axis."""
    return np.pad(x, padding, constant_values=value)


def mirror_pad(x: np.ndarray, padding: tuple[tuple[int, int], ...], mode: str) -> np.ndarray:
    """x with its own reflection around it; ``symmetric`` repeats the border, ``reflect`` not."""
    return np.pad(x, padding, mode="symmetric" if mode == "symmetric" else "reflect")


def space_to_depth(x: np.ndarray, block: int) -> np.ndarray:
    """Blocks of pixels become pixels of block x block times the channels."""
    count, height, width, channels = x.shape
    split = x.reshape(count, height // block, block, width // block, block, channels)
    shape = (count, height // block, width // block, block * block * channels)
    return split.transpose(0, 1, 3, 2, 4, 5).reshape(shape)


def depth_to_space(x: np.ndarray, block: int) -> np.ndarray:
    """The inverse of ``space_to_depth``."""
    count, height, width, channels = x.shape
    split = x.reshape(count, height, width, block, block, channels // block**2)
    shape = (count, height * block, width * block, channels // block**2)
    return split.transpose(0, 1, 3, 2, 4, 5).reshape(shape)
