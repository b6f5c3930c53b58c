"""The ``.slip`` file: magic, version, a JSON header, binary blobs, CRC-32; read strictly.

Layout, little endian::

    "SLIP" | version u16 | reserved u16 | header bytes u32 | blob bytes u32 | header | blobs | crc

The header is the program's dataclasses as JSON; bytes and arrays stand in it as places among the
blobs. Decoding follows the dataclasses' own type annotations: a field that is missing, unknown or
of another type is an error, never a guess.
"""

import dataclasses
import functools
import json
import math
import os
import struct
import types
import typing
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import ProgramError
from . import Program
from .steps import DTYPES

MAGIC = b"SLIP"
VERSION = 7
LARGEST_FILE = 1 << 28
_HEADER = struct.Struct("<4sHHII")


class _Blobs:
    """Bytes laid end to end, and the places of each."""

    def __init__(self, data: bytes = b"") -> None:
        self.data = bytearray(data)

    def add(self, data: bytes) -> list[int]:
        place = [len(self.data), len(data)]
        self.data += data
        return place

    def take(self, place: Any, where: str) -> bytes:
        start, length = _convert(tuple[int, int], place, self, where)
        if start < 0 or length < 0 or start + length > len(self.data):
            raise ProgramError(f"{where} must lie within {len(self.data)} blob bytes, not {place}")
        return bytes(self.data[start : start + length])


def _express(value: Any, blobs: _Blobs) -> Any:
    """A program's part as JSON."""
    if isinstance(value, bytes):
        return blobs.add(value)
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value).astype(value.dtype.newbyteorder("<"))
        return {
            "dtype": value.dtype.name,
            "shape": list(value.shape),
            "blob": blobs.add(array.tobytes()),
        }
    if dataclasses.is_dataclass(value):
        fields = {
            field.name: _express(getattr(value, field.name), blobs)
            for field in dataclasses.fields(value)
        }
        return {"kind": type(value).__name__, **fields}
    if isinstance(value, Mapping):
        return {str(key): _express(item, blobs) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_express(item, blobs) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _plain(value: Any, where: str) -> Any:
    """An attribute's value: lists become tuples again."""
    if isinstance(value, list):
        return tuple(_plain(item, where) for item in value)
    if isinstance(value, dict):
        return {key: _plain(item, where) for key, item in value.items()}
    return value


def _array(value: Any, blobs: _Blobs, where: str) -> np.ndarray:
    if not isinstance(value, dict) or set(value) != {"dtype", "shape", "blob"}:
        raise ProgramError(f"{where} must be an array of dtype, shape and blob")
    dtype = _convert(str, value["dtype"], blobs, where)
    shape = _convert(tuple[int, ...], value["shape"], blobs, where)
    data = blobs.take(value["blob"], where)
    if dtype not in DTYPES or len(shape) > 8 or any(size < 0 for size in shape):
        raise ProgramError(f"{where} must be an array of a known type, not {dtype} {shape}")
    kind = np.dtype(dtype)
    if math.prod(shape) * kind.itemsize != len(data):
        raise ProgramError(f"{where} must have the bytes of {dtype} {shape}, not {len(data)}")
    return np.frombuffer(data, kind.newbyteorder("<")).astype(kind).reshape(shape)


def _dataclass(kind: type, value: Any, blobs: _Blobs, where: str) -> Any:
    if not isinstance(value, dict) or value.get("kind") != kind.__name__:
        raise ProgramError(f"{where} must be a {kind.__name__}")
    hints = _hints(kind)
    if value.keys() != hints.keys() | {"kind"}:
        odd = sorted(map(str, value.keys() ^ (hints.keys() | {"kind"})))
        raise ProgramError(f"{where} must have exactly the fields of {kind.__name__}, not {odd}")
    fields = {
        name: _convert(hint, value[name], blobs, f"{where}.{name}") for name, hint in hints.items()
    }
    return kind(**fields)


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    """The annotations of a dataclass's fields; looking them up takes longer than reading them."""
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _union(members: tuple[Any, ...], value: Any, blobs: _Blobs, where: str) -> Any:
    if value is None and type(None) in members:
        return None
    named = value.get("kind") if isinstance(value, dict) else None
    members = tuple(member for member in members if member is not type(None))
    chosen = [member for member in members if getattr(member, "__name__", "") == named]
    if len(members) != 1 and not chosen:
        known = [member.__name__ for member in members]
        raise ProgramError(f"{where} must be one of {known}, not {named!r}")
    return _convert((chosen or members)[0], value, blobs, where)


def _sequence(members: tuple[Any, ...], value: Any, blobs: _Blobs, where: str) -> Any:
    if not isinstance(value, list):
        raise ProgramError(f"{where} must be a list, not {type(value).__name__}")
    if members[-1] is Ellipsis:
        members = (members[0],) * len(value)
    if len(members) != len(value):
        raise ProgramError(f"{where} must have {len(members)} items, not {len(value)}")
    pairs = enumerate(zip(members, value, strict=True))
    return tuple(_convert(kind, item, blobs, f"{where}[{i}]") for i, (kind, item) in pairs)


def _convert(kind: Any, value: Any, blobs: _Blobs, where: str) -> Any:
    """JSON as a value of the annotated type, or ProgramError."""
    origin, members = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return _plain(value, where)
    if kind is np.ndarray:
        return _array(value, blobs, where)
    if kind is bytes:
        return blobs.take(value, where)
    if origin in (types.UnionType, typing.Union):
        return _union(members, value, blobs, where)
    if origin is tuple:
        return _sequence(members, value, blobs, where)
    if origin is Mapping:
        if not isinstance(value, dict):
            raise ProgramError(f"{where} must be a mapping, not {type(value).__name__}")
        item = members[1]
        return {
            key: _convert(item, entry, blobs, f"{where}[{key!r}]") for key, entry in value.items()
        }
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _dataclass(kind, value, blobs, where)
    if kind is float and type(value) is int and abs(value) < 1 << 53:
        return float(value)
    if kind not in (int, float, str, bool) or type(value) is not kind:
        name = getattr(kind, "__name__", str(kind))
        raise ProgramError(f"{where} must be {name}, not {value!r:.40}")
    return value


def encode(program: Program) -> bytes:
    """The program as the bytes of a ``.slip`` file."""
    blobs = _Blobs()
    header = json.dumps(_express(program, blobs), separators=(",", ":"), allow_nan=False).encode()
    body = (
        _HEADER.pack(MAGIC, VERSION, 0, len(header), len(blobs.data)) + header + bytes(blobs.data)
    )
    return body + struct.pack("<I", zlib.crc32(body))


def read_file(path: str | os.PathLike[str]) -> bytes:
    """A program file's bytes; ProgramError if it cannot be read or is absurdly large."""
    _check_path(path)
    try:
        size = os.stat(path).st_size
        if size > LARGEST_FILE:
            raise ProgramError(f"{path}: a program must be under {LARGEST_FILE} bytes, not {size}")
        with open(path, "rb") as file:
            return file.read()
    except (OSError, ValueError) as error:
        raise ProgramError(f"{path!s}: cannot be read: {_reason(error)}") from None


def write_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Writes a program file's bytes; ProgramError if the place does not take them."""
    _check_path(path)
    try:
        with open(path, "wb") as file:
            file.write(data)
    except (OSError, ValueError) as error:
        raise ProgramError(f"{path!s}: cannot be written: {_reason(error)}") from None


def _check_path(path: object) -> None:
    # a number would be taken for an open file's, and that closed
    if not isinstance(path, str | os.PathLike):
        raise ProgramError(f"a program file must be a path, not {type(path).__name__}")


def _reason(error: OSError | ValueError) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is no number")


def decode(data: bytes, *, trusted: bool = False) -> Program:
    """The program that ``encode`` wrote.

    Parameters
    ----------
    data : bytes
    trusted : bool
        This process's user wrote it, and a checksum says so: whether its steps can be run is not
        checked.

    Raises
    ------
    ProgramError
        If the bytes are not a whole, consistent program of this version.
    """
    if data[:4] != MAGIC:
        raise ProgramError(f"a program file must start with {MAGIC!r}, not {data[:4]!r}")
    if len(data) < _HEADER.size + 4:
        shortest = _HEADER.size + 4
        raise ProgramError(f"a program file must have at least {shortest} bytes, not {len(data)}")
    _, version, reserved, header_bytes, blob_bytes = _HEADER.unpack_from(data)
    if version != VERSION or reserved:
        raise ProgramError(
            f"a program file must be of version {VERSION}, not {version}: compile its network anew"
        )
    expected = _HEADER.size + header_bytes + blob_bytes + 4
    if len(data) != expected:
        odd = "truncated" if len(data) < expected else "something follows it"
        raise ProgramError(f"a program file of {expected} bytes is {len(data)} long: {odd}")
    stored, computed = struct.unpack("<I", data[-4:])[0], zlib.crc32(data[:-4])
    if stored != computed:
        raise ProgramError(
            f"a program file's CRC-32 is {computed:08x}, not {stored:08x}: corrupted"
        )
    start = _HEADER.size
    try:
        header = json.loads(
            data[start : start + header_bytes].decode(), parse_constant=_refuse_constant
        )
    except (ValueError, RecursionError) as error:
        raise ProgramError(f"a program file's header must be JSON: {error}") from None
    program = _convert(Program, header, _Blobs(data[start + header_bytes : -4]), "program")
    if not trusted:
        # it brings the host's kernels with it
        from .checks import check_program

        check_program(program)
    return program
