"""Constants of ONNX files as arrays: types, sizes and places checked before anything is read."""

import math
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ...errors import ModelError, UnsupportedError
from ..files import MAXIMUM_ELEMENTS, MAXIMUM_RANK, quoted

DTYPES = (
    "float32",
    "float64",
    "float16",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "int64",
    "bool",
)
"""The types of constants that are read."""

_FIELDS = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data", "string_data")


def text(value: str | bytes) -> str:
    """A string of a protobuf, which comes as bytes where it is no UTF-8."""
    return value if isinstance(value, str) else value.decode("utf-8", "replace")


def read_tensor(tensor: onnx.TensorProto, what: str, folder: Path | None) -> np.ndarray:
    """A constant's contents.

    Parameters
    ----------
    tensor : TensorProto
    what : str
        What to call it in messages.
    folder : Path or None
        Where its file lies; None: it cannot be kept outside of it.

    Raises
    ------
    ModelError
        If shape and contents do not fit together, or its file is not there.
    UnsupportedError
        If it is of a type that Slipstick does not read.
    """
    shape = tuple(tensor.dims)
    if len(shape) > MAXIMUM_RANK or min(shape, default=0) < 0:
        raise ModelError(f"{what}: shape must have at most {MAXIMUM_RANK} sizes, not {shape}")
    count = math.prod(shape)
    if count > MAXIMUM_ELEMENTS:
        raise ModelError(f"{what} must have at most {MAXIMUM_ELEMENTS} elements, not {shape}")
    try:
        dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    except (KeyError, TypeError, ValueError):
        raise ModelError(f"{what}: type must be a known one, not {tensor.data_type}") from None
    if dtype.name not in DTYPES:
        kind = onnx.TensorProto.DataType.Name(tensor.data_type)
        raise UnsupportedError(f"{what}: type must be one of {DTYPES}, not {kind}")
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        return _outside(tensor, dtype, count, what, folder).reshape(shape)
    held = len(tensor.raw_data)
    if tensor.HasField("raw_data"):
        if held != count * dtype.itemsize:
            raise ModelError(
                f"{what}: {dtype.name} of shape {shape} must have {count * dtype.itemsize} bytes,"
                f" not {held}"
            )
    elif max(len(getattr(tensor, field)) for field in _FIELDS) != count:
        raise ModelError(f"{what} of shape {shape} must have {count} elements")
    try:
        return np.ascontiguousarray(numpy_helper.to_array(tensor)).reshape(shape)
    except (ValueError, TypeError, OverflowError) as error:
        raise ModelError(f"{what} cannot be read: {error}") from None


def _outside(
    tensor: onnx.TensorProto, dtype: np.dtype, count: int, what: str, folder: Path | None
) -> np.ndarray:
    """Reads a constant that lies in a file beside the model's."""
    entries = {text(item.key): text(item.value) for item in tensor.external_data}
    location = entries.get("location", "")
    if folder is None:
        raise ModelError(f"{what} is kept in {quoted(location)}, and the model came without files")
    path = Path(folder, location).resolve()
    if not location or not path.is_relative_to(folder.resolve()):
        raise ModelError(f"{what} must be kept in the model's folder, not in {quoted(location)}")
    try:
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", -1))
    except ValueError:
        raise ModelError(f"{what}: offset and length must be whole numbers") from None
    needed = count * dtype.itemsize
    if offset < 0 or length not in (-1, needed):
        raise ModelError(f"{what} must have {needed} bytes from 0 on or later, not {length}")
    try:
        size = path.stat().st_size
        if not path.is_file() or size < offset + needed:
            raise ModelError(
                f"{what}: {quoted(location)} must be a file of {offset + needed} bytes, not {size}"
            )
        return np.fromfile(path, dtype.newbyteorder("<"), count, offset=offset).astype(dtype)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ModelError(f"{what}: {quoted(location)} cannot be read: {reason}") from None
