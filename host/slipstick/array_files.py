"""Arrays in files: .npy, .npz and idx, read strictly; nothing in a file is trusted or executed."""

import ast
import gzip
import io
import math
import struct
import warnings
import zipfile
import zlib
from collections.abc import Collection

import numpy as np

from .errors import InputError

NPY_MAGIC = b"\x93NUMPY"
ZIP_MAGIC = b"PK"
GZIP_MAGIC = b"\x1f\x8b"
IDX_MAGIC = b"\0\0"

LARGEST_ARRAY = 1 << 31
"""Bytes of an array after decompression."""
_LONGEST_HEADER = 10_000
_MOST_AXES = 8
_IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_npy(data: bytes, name: str) -> np.ndarray:
    """The array of a .npy file.

    Parameters
    ----------
    data : bytes
    name : str
        The file's, for messages.

    Raises
    ------
    InputError
        If it is no .npy file, truncated, too large, or holds anything but numbers: pickled
        objects are refused.
    """
    if data[:6] != NPY_MAGIC or len(data) < 10:
        raise InputError(f"{name} must start as a .npy file, not with {data[:6]!r}")
    major = data[6]
    length_format = {1: "<H", 2: "<I", 3: "<I"}.get(major)
    if length_format is None:
        raise InputError(f"{name}: the .npy version must be 1 to 3, not {major}")
    start = 8 + struct.calcsize(length_format)
    if len(data) < start:
        raise InputError(f"{name} ends within its header")
    (length,) = struct.unpack(length_format, data[8:start])
    if length > _LONGEST_HEADER or start + length > len(data):
        raise InputError(f"{name}: a header of {length} bytes must fit in the file and 10000 bytes")
    dtype, shape, fortran = _header(data[start : start + length], name)
    held, needed = len(data) - start - length, _bytes_of(shape, dtype, name)
    if held != needed:
        raise InputError(
            f"{name}: {dtype} of shape {shape} must be {needed} bytes, the file holds {held}"
        )
    values = np.frombuffer(data, dtype, offset=start + length)
    return values.reshape(shape, order="F" if fortran else "C").astype(dtype.newbyteorder("="))


def _header(text: bytes, name: str) -> tuple[np.dtype, tuple[int, ...], bool]:
    try:
        with warnings.catch_warnings():
            # whatever a damaged header makes Python's parser say
            warnings.simplefilter("ignore")
            fields = ast.literal_eval(text.decode("utf-8").strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        fields = None
    if not isinstance(fields, dict) or set(fields) != {"descr", "fortran_order", "shape"}:
        raise InputError(f"{name}: the .npy header must hold descr, fortran_order and shape")
    shape, fortran = fields["shape"], fields["fortran_order"]
    sizes_good = isinstance(shape, tuple) and len(shape) <= _MOST_AXES
    if not sizes_good or not all(type(size) is int and size >= 0 for size in shape):
        raise InputError(f"{name}: a shape must be up to {_MOST_AXES} sizes, not {shape!r}")
    if not isinstance(fortran, bool):
        raise InputError(f"{name}: fortran_order must be True or False, not {fortran!r}")
    return _dtype(fields["descr"], name), shape, fortran


def _dtype(descr: object, name: str) -> np.dtype:
    dtype = None
    if isinstance(descr, str):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                dtype = np.dtype(descr)
        except (TypeError, ValueError, SyntaxError):
            dtype = None
    if dtype is not None and dtype.hasobject:
        raise InputError(f"{name} must hold numbers; pickled objects are refused")
    if dtype is None or dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise InputError(f"{name} must hold numbers of up to 64 bits, not {descr!r}")
    return dtype


def _bytes_of(shape: tuple[int, ...], dtype: np.dtype, name: str) -> int:
    size = math.prod(shape) * dtype.itemsize
    if size > LARGEST_ARRAY:
        raise InputError(f"{name}: an array must be at most {LARGEST_ARRAY} bytes, not {size}")
    return size


def read_npz(data: bytes, name: str, wanted: Collection[str] = ()) -> dict[str, np.ndarray]:
    """Arrays of a .npz file by name.

    Parameters
    ----------
    data : bytes
    name : str
        The file's, for messages.
    wanted : collection of str
        If the file holds any of these, the others, whatever they are, are not read.

    Raises
    ------
    InputError
        If it is no whole .npz file, or an array in it is refused; see ``read_npy``.
    """
    arrays = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [m for m in archive.infolist() if m.filename.endswith(".npy")]
            named = [m for m in members if m.filename.removesuffix(".npy") in wanted]
            for member in named or members:
                if member.file_size > LARGEST_ARRAY:
                    raise InputError(
                        f"{name}: {member.filename} must be at most {LARGEST_ARRAY} bytes,"
                        f" not {member.file_size}"
                    )
                # never more than the directory promised, whatever the stream unpacks to
                with archive.open(member) as file:
                    contents = file.read(member.file_size + 1)
                array = read_npy(contents, f"{name}: {member.filename}")
                arrays[member.filename.removesuffix(".npy")] = array
    except (
        zipfile.BadZipFile,
        zlib.error,
        struct.error,
        NotImplementedError,
        RuntimeError,
        EOFError,
        OSError,
        ValueError,
        OverflowError,
    ) as error:
        reason = str(error) or type(error).__name__
        raise InputError(f"{name} must be a whole .npz file: {reason}") from None
    return arrays


def read_idx(data: bytes, name: str) -> np.ndarray:
    """The array of an idx file (MNIST's format), gzipped or not.

    Raises
    ------
    InputError
        If it is no idx file, truncated, too long or too large.
    """
    try:
        source = gzip.GzipFile(fileobj=io.BytesIO(data)) if data[:2] == GZIP_MAGIC else None
        file = source or io.BytesIO(data)
        start = file.read(4)
        if len(start) < 4 or start[:2] != IDX_MAGIC or start[2] not in _IDX_TYPES:
            raise InputError(
                f"{name}: an idx file must start with 00 00, type, axes; not {start!r}"
            )
        axes = start[3]
        if not 1 <= axes <= _MOST_AXES:
            raise InputError(f"{name}: an idx array must have 1 to {_MOST_AXES} axes, not {axes}")
        sizes = file.read(4 * axes)
        if len(sizes) < 4 * axes:
            raise InputError(f"{name} ends within its header")
        shape = struct.unpack(f">{axes}I", sizes)
        dtype = np.dtype(_IDX_TYPES[start[2]])
        needed = _bytes_of(shape, dtype, name)
        contents = file.read(needed + 1)
    except (gzip.BadGzipFile, zlib.error, EOFError, OSError) as error:
        raise InputError(f"{name} must be a whole gzip file: {error}") from None
    if len(contents) != needed:
        held = f"more than {needed}" if len(contents) > needed else f"{len(contents)}"
        raise InputError(f"{name}: an idx array of {shape} must be {needed} bytes, not {held}")
    return np.frombuffer(contents, dtype).reshape(shape).astype(dtype.newbyteorder("="))
