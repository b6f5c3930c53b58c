"""TFLite tensors as tensors of the graph: types, shapes, contents and quantisation checked."""

import math

import numpy as np

from ...errors import ModelError, UnsupportedError
from ...graph import Quantization, Tensor
from ..files import MAXIMUM_ACTIVATION, MAXIMUM_ELEMENTS, quoted
from .advice import type_advice
from .reader import RawTensor

DTYPES = ("int8", "uint8", "int32", "int64", "float32", "bool")
"""The types that a graph's tensors may have."""

SCALES = (1e-30, 1e30)
"""Between these the products and quotients of scales stay within float32."""

_ZERO_POINTS = {"int8": (-128, 127), "uint8": (0, 255)}


def make_tensor(raw: RawTensor, name: str, model: str, dtypes: tuple[str, ...] = DTYPES) -> Tensor:
    """A tensor of the graph.

    Parameters
    ----------
    raw : RawTensor
    name : str
        Its name in the graph.
    model : str
        The file's name, for messages.
    dtypes : tuple of str
        The types that it may have.

    Raises
    ------
    ModelError
        If shape, contents and quantisation do not fit together.
    UnsupportedError
        If it is of a type, or stored in a way, that Slipstick does not read.
    """
    what = f"{model}: tensor {raw.index} {quoted(name)}"
    oddity = raw.oddity or ("a variable" if raw.variable else "")
    if oddity:
        raise UnsupportedError(f"{what} must be an ordinary tensor, and is {oddity}")
    if raw.dtype not in dtypes:
        hint = type_advice(raw.dtype)
        raise UnsupportedError(
            f"{what}: type must be one of {dtypes}, not {raw.dtype}" + (f": {hint}" if hint else "")
        )
    if -1 in raw.shape:
        raise UnsupportedError(f"{what}: shape must be fixed, not {raw.shape}")
    # the shape of a single number has no element
    smallest = 0 if raw.dtype in ("int32", "int64") else 1
    most = MAXIMUM_ACTIVATION if raw.data is None else MAXIMUM_ELEMENTS
    if any(size < smallest for size in raw.shape) or math.prod(raw.shape) > most:
        raise ModelError(
            f"{what}: shape must have sizes of at least {smallest} and at most {most}"
            f" elements, not {raw.shape}"
        )
    return Tensor(name, raw.shape, raw.dtype, _quantization(raw, what), _contents(raw, what))


def _contents(raw: RawTensor, what: str) -> np.ndarray | None:
    dtype = np.dtype(raw.dtype).newbyteorder("<")
    needed = math.prod(raw.shape) * dtype.itemsize
    if not needed:
        # a constant without a byte
        return np.zeros(raw.shape, dtype)
    if raw.data is None:
        return None
    if len(raw.data) < needed:
        raise ModelError(
            f"{what}: {raw.dtype} of shape {raw.shape} must have {needed} bytes,"
            f" not {len(raw.data)}"
        )
    return raw.data[:needed].view(dtype).reshape(raw.shape)


def _quantization(raw: RawTensor, what: str) -> Quantization | None:
    count = len(raw.scales)
    if not count:
        return None
    if raw.dtype not in _ZERO_POINTS:
        return _of_plain_numbers(raw)
    zero_points = raw.zero_points
    if len(zero_points) == 1:
        # files save the zero points of weights, which are all 0, but for one
        zero_points = np.repeat(zero_points, count)
    if len(zero_points) != count:
        each = f"{count} zero points, or one for all" if count > 1 else "a zero point"
        raise ModelError(f"{what} must have {each}, not {len(zero_points)}: no runtime reads that")
    # one scale has no axis, whatever the file says
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
    low, high = _ZERO_POINTS[raw.dtype]
    wrong = zero_points[(zero_points < low) | (zero_points > high)]
    if len(wrong):
        raise ModelError(f"{what}: zero point must be within {low}..{high}, not {wrong[0]}")
    return Quantization(raw.scales.astype(np.float64), zero_points.astype(np.int64), axis)


def _of_plain_numbers(raw: RawTensor) -> Quantization | None:
    """The quantisation of a bias; others say nothing, and runtimes read past them.

    tflite-micro's person detection has biases whose scales lie along an axis that they have not.
    """
    scale = raw.scales[0]
    if len(raw.scales) > 1 or not SCALES[0] <= scale <= SCALES[1]:
        return None
    return Quantization(raw.scales.astype(np.float64), np.zeros(1, np.int64))
