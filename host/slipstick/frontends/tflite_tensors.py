"""TFLite tensors as tensors of the graph: types, shapes, contents and quantisation checked."""

import math

import numpy as np

from ..errors import ModelError, UnsupportedError
from ..graph import Quantization, Tensor
from .files import MAXIMUM_ACTIVATION, MAXIMUM_ELEMENTS, quoted
from .tflite_reader import RawTensor

DTYPES = ("int8", "uint8", "int32", "int64", "float32", "bool")
"""The types that a graph's tensors may have."""

SCALES = (1e-30, 1e30)
"""Between these the products and quotients of scales stay within float32."""

_ZERO_POINTS = {"int8": (-128, 127), "uint8": (0, 255)}


def make_tensor(raw: RawTensor, name: str, model: str) -> Tensor:
    """A tensor of the graph.

    Parameters
    ----------
    raw : RawTensor
    name : str
        Its name in the graph.
    model : str
        The file's name, for messages.

    Raises
    ------
    ModelError
        If shape, contents and quantisation do not fit together.
    UnsupportedError
        If it is of a type, or stored in a way, that Slipstick does not read.
    """
    what = f"{model}: tensor {raw.index} {quoted(name)}"
    if raw.oddity:
        raise UnsupportedError(f"{what} must be an ordinary tensor, and is {raw.oddity}")
    if raw.dtype not in DTYPES:
        raise UnsupportedError(f"{what}: type must be one of {DTYPES}, not {raw.dtype}")
    if -1 in raw.shape:
        raise UnsupportedError(f"{what}: shape must be fixed, not {raw.shape}")
    most = MAXIMUM_ACTIVATION if raw.data is None else MAXIMUM_ELEMENTS
    if any(size < 1 for size in raw.shape) or math.prod(raw.shape) > most:
        raise ModelError(
            f"{what}: shape must have sizes of at least 1 and at most {most}"
            f" elements, not {raw.shape}"
        )
    return Tensor(name, raw.shape, raw.dtype, _quantization(raw, what), _contents(raw, what))


def _contents(raw: RawTensor, what: str) -> np.ndarray | None:
    if raw.data is None:
        return None
    dtype = np.dtype(raw.dtype).newbyteorder("<")
    needed = math.prod(raw.shape) * dtype.itemsize
    if len(raw.data) != needed:
        raise ModelError(
            f"{what}: {raw.dtype} of shape {raw.shape} must have {needed} bytes,"
            f" not {len(raw.data)}"
        )
    return raw.data.view(dtype).reshape(raw.shape)


def _quantization(raw: RawTensor, what: str) -> Quantization | None:
    count = len(raw.scales)
    if not count:
        return None
    if len(raw.zero_points) != count:
        raise ModelError(f"{what} must have {count} zero points, not {len(raw.zero_points)}")
    axis = raw.axis if count > 1 else None
    if axis is not None and not 0 <= axis < len(raw.shape):
        raise ModelError(
            f"{what}: quantised axis must be within 0..{len(raw.shape) - 1}, not {axis}"
        )
    if axis is not None and raw.shape[axis] != count:
        raise ModelError(f"{what}: axis {axis} must have {raw.shape[axis]} scales, not {count}")
    wrong = raw.scales[~((raw.scales >= SCALES[0]) & (raw.scales <= SCALES[1]))]
    if len(wrong):
        raise ModelError(f"{what}: scale must be within {SCALES[0]}..{SCALES[1]}, not {wrong[0]}")
    low, high = _ZERO_POINTS.get(raw.dtype, (-(1 << 31), (1 << 31) - 1))
    if raw.zero_points.min() < low or raw.zero_points.max() > high:
        wrong = raw.zero_points[(raw.zero_points < low) | (raw.zero_points > high)]
        raise ModelError(f"{what}: zero point must be within {low}..{high}, not {wrong[0]}")
    return Quantization(raw.scales.astype(np.float64), raw.zero_points.astype(np.int64), axis)
