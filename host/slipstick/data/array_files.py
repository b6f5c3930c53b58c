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

from ..errors import InputError

NPY_MAGIC = b"\x93NUMPY"
ZIP_MAGIC = b"PK"
GZIP_MAGIC = b"\x1f\x8b"
IDX_MAGIC = b"\0\0"

LARGEST_ARRAY = 1 << 31
"""Bytes of an array that its file holds as they are."""
LARGEST_UNPACKED = 1 << 28
"""Bytes of arrays that are packed: a few kilobytes may stand for any number of zeros."""
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
    start, dtype, shape, fortran = _beginning(data, name)
    held, needed = len(data) - start, _bytes_of(shape, dtype, name, LARGEST_ARRAY)
    if held != needed:
        raise InputError(
            f"{name}: {dtype} of shape {shape} must be {needed} bytes, the file holds {held}"
        )
    values = np.frombuffer(data, dtype, offset=start).reshape(shape, order="F" if fortran else "C")
    return values.astype(dtype.newbyteorder("="))


def _beginning(data: bytes, name: str) -> tuple[int, np.dtype, tuple[int, ...], bool]:
    """Reads a .npy file's header from its first bytes: start of the numbers, type, shape, order."""
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
    return start + length, *_header(data[start : start + length], name)


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


def _bytes_of(shape: tuple[int, ...], dtype: np.dtype, name: str, limit: int) -> int:
    size = math.prod(shape) * dtype.itemsize
    if size > limit:
        packed = " unpacked; a .npy file may hold more" if limit == LARGEST_UNPACKED else ""
        raise InputError(f"{name}: an array must be at most {limit} bytes, not {size}{packed}")
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
    arrays: dict[str, np.ndarray] = {}
    total = 0
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [m for m in archive.infolist() if m.filename.endswith(".npy")]
            named = [m for m in members if m.filename.removesuffix(".npy") in wanted]
            for member in named or members:
                what = f"{name}: {member.filename}"
                array = _unpacked(archive, member, what)
                total += array.nbytes
                if total > LARGEST_UNPACKED:
                    raise InputError(
                        f"{name} must hold at most {LARGEST_UNPACKED} bytes unpacked: {total} so"
                        f" far, with {member.filename}; a .npy file may hold more"
                    )
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


def _unpacked(archive: zipfile.ZipFile, member: zipfile.ZipInfo, what: str) -> np.ndarray:
    """One array of a .npz file, unpacked only where its header says that it is not too large."""
    with archive.open(member) as file:
        head = file.read(_LONGEST_HEADER + 12)
        start, dtype, shape, fortran = _beginning(head, what)
        needed = _bytes_of(shape, dtype, what, LARGEST_UNPACKED)
        # one more than there must be, whatever the stream unpacks to
        contents = head[start:] + file.read(max(needed + 1 - len(head[start:]), 0))
    if len(contents) != needed:
        held = f"more than {needed}" if len(contents) > needed else f"{len(contents)}"
        raise InputError(f"{what}: {dtype} of shape {shape} must be {needed} bytes, not {held}")
    values = np.frombuffer(contents, dtype).reshape(shape, order="F" if fortran else "C")
    return values.astype(dtype.newbyteorder("="), copy=False)


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
        limit = LARGEST_ARRAY if source is None else LARGEST_UNPACKED
        needed = _bytes_of(shape, dtype, name, limit)
        contents = file.read(needed + 1)
    except (gzip.BadGzipFile, zlib.error, EOFError, OSError) as error:
        raise InputError(f"{name} must be a whole gzip file: {error}") from None
    if len(contents) != needed:
        held = f"more than {needed}" if len(contents) > needed else f"{len(contents)}"
        raise InputError(f"{name}: an idx array of {shape} must be {needed} bytes, not {held}")
    return np.frombuffer(contents, dtype).reshape(shape).astype(dtype.newbyteorder("="), copy=False)
