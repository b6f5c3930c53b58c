"""Converts tensors between the protocol's forms and arrays: JSON numbers, bytes, strings."""

import math
from collections.abc import Sequence
from itertools import chain

import numpy as np

from .refusals import bad_request

BYTES = "BYTES"
_DATATYPES = {
    "BOOL": "bool",
    "UINT8": "uint8",
    "UINT16": "uint16",
    "UINT32": "uint32",
    "UINT64": "uint64",
    "INT8": "int8",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "FP16": "float16",
    "FP32": "float32",
    "FP64": "float64",
}
_NAMES = {dtype: name for name, dtype in _DATATYPES.items()}
_MOST_AXES = 8
_LARGEST_AXIS = 1 << 31


def datatype_of(dtype: str) -> str:
    """Returns the protocol's name of a NumPy type."""
    return _NAMES[dtype]


def dtype_of(name: str, datatype: str) -> np.dtype:
    """Returns the NumPy type of an input's datatype, little endian.

    Parameters
    ----------
    name : str
        Of the input.
    datatype : str

    Raises
    ------
    RequestError
        If the protocol has no such datatype, or it is one of strings.
    """
    if datatype not in _DATATYPES:
        known = ", ".join(_DATATYPES)
        raise bad_request(f"input {name!r}: datatype must be one of {known}, not {datatype[:40]!r}")
    return np.dtype(_DATATYPES[datatype]).newbyteorder("<")


def checked_shape(name: str, shape: object) -> tuple[int, ...]:
    """Returns an input's shape; RequestError if it is none."""
    sizes = list(shape) if isinstance(shape, Sequence) and not isinstance(shape, str) else None
    good = sizes is not None and all(
        type(size) is int and 0 <= size < _LARGEST_AXIS for size in sizes[: _MOST_AXES + 1]
    )
    if sizes is None or not good or len(sizes) > _MOST_AXES:
        raise bad_request(
            f"input {name!r}: shape must be a list of at most {_MOST_AXES} whole numbers below"
            f" 2^31, not {_brief(shape)}"
        )
    return tuple(sizes)


def from_bytes(name: str, datatype: str, shape: tuple[int, ...], data: bytes) -> np.ndarray:
    """Returns an input that came as bytes; RequestError if they are not as many as it needs."""
    dtype = dtype_of(name, datatype)
    wanted = math.prod(shape) * dtype.itemsize
    if len(data) != wanted:
        raise bad_request(
            f"input {name!r}: {datatype} of shape {list(shape)} must have {wanted} bytes, not"
            f" {len(data)}"
        )
    array = np.frombuffer(data, dtype).reshape(shape)
    return array.astype(dtype.newbyteorder("="), copy=False)


def from_numbers(
    name: str, datatype: str, shape: tuple[int, ...], data: Sequence[object]
) -> np.ndarray:
    """Returns an input that came as numbers.

    Parameters
    ----------
    name, datatype : str
    shape : tuple of int
    data : sequence
        Numbers in the order of the rows, or lists of them nested as the shape is.

    Raises
    ------
    RequestError
        If they are not as many as it needs, or one is no number that the datatype has.
    """
    dtype = dtype_of(name, datatype)
    numbers = _flat(name, shape, data)
    if len(numbers) != math.prod(shape):
        raise bad_request(
            f"input {name!r}: data of shape {list(shape)} must have {math.prod(shape)} numbers,"
            f" not {len(numbers)}"
        )
    allowed = {"b": {bool}, "f": {int, float, bool}}.get(dtype.kind, {int, bool})
    for kind in set(map(type, numbers)) - allowed:
        raise bad_request(f"input {name!r}: data must be numbers of {datatype}, not {_word(kind)}")
    try:
        if dtype.kind in "iu" and numbers:
            _check_range(name, datatype, dtype, numbers)
        with np.errstate(over="ignore"):
            array = np.array(numbers, dtype.newbyteorder("="))
    except OverflowError:
        # a whole number that no float holds
        raise bad_request(f"input {name!r}: data must be numbers that {datatype} has") from None
    return array.reshape(shape)


def _check_range(name: str, datatype: str, dtype: np.dtype, numbers: Sequence[int]) -> None:
    limits = np.iinfo(dtype)
    for extreme in (min(numbers), max(numbers)):
        if not limits.min <= extreme <= limits.max:
            raise bad_request(
                f"input {name!r}: {datatype} must be within {limits.min}..{limits.max}, not"
                f" {_brief(extreme)}"
            )


def _flat(name: str, shape: tuple[int, ...], data: Sequence[object]) -> Sequence:
    """The numbers of lists that are flat, or nested as the shape is."""
    depth = 0
    while data and type(data[0]) is list:
        depth += 1
        sizes = {len(part) if type(part) is list else -1 for part in data}
        if depth >= len(shape) or sizes != {shape[depth]}:
            raise bad_request(
                f"input {name!r}: data must be a flat list, or be nested as its shape {list(shape)}"
            )
        data = list(chain.from_iterable(data))  # type: ignore[arg-type]
    return data


def to_numbers(array: np.ndarray) -> list:
    """Returns the values of an output in the order of its rows, as JSON has them."""
    values = array.reshape(-1).tolist()
    if array.dtype.kind == "S" or array.dtype.kind == "O":
        return [value.decode() for value in values]
    return values


def to_bytes(array: np.ndarray) -> bytes:
    """Returns the bytes of an output; each string has its length, 4 bytes, in front."""
    if array.dtype.kind == "O":
        strings = array.reshape(-1).tolist()
        return b"".join(len(each).to_bytes(4, "little") + each for each in strings)
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def _word(kind: type) -> str:
    words = {str: "text", dict: "an object", list: "a list", float: "fractions", bool: "booleans"}
    return "null" if kind is type(None) else words.get(kind, kind.__name__)


def _brief(value: object) -> str:
    """A value of a message; no client makes a long one."""
    if type(value) is int and abs(value) >= 1 << 64:
        return "a larger one"
    text = repr(value[:10] if isinstance(value, list | str) else value)
    return text if len(text) <= 60 else f"{text[:57]}..."
