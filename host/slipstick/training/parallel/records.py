"""The order in which stale gradients were applied, as a small file."""

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import InputError

MOST_STALE = 255

_MAGIC = b"SLIPORD1"
_HEADER = struct.Struct("<8sBI")
"""Magic, the bound, entries."""
_ENTRY = struct.Struct("<IB")
_CHECKSUM = struct.Struct("<I")


@dataclass(frozen=True)
class Applied:
    """A gradient that was applied.

    Parameters
    ----------
    batch : int
        Number of the batch that it is of.
    age : int
        Versions that the parameters had moved on since it was begun.
    """

    batch: int
    age: int


@dataclass(frozen=True)
class Record:
    """Gradients in the order in which they were applied.

    Parameters
    ----------
    bound : int
        Most versions that a gradient may be old.
    entries : sequence of Applied

    Raises
    ------
    InputError
        If an entry is older than the bound or than the training, or a batch is not there or there
        twice.
    """

    bound: int
    entries: Sequence[Applied]

    def __post_init__(self) -> None:
        if not 0 <= self.bound <= MOST_STALE:
            raise InputError(f"gradients must be 0 to {MOST_STALE} steps old, not {self.bound}")
        for number, entry in enumerate(self.entries):
            if not 0 <= entry.age <= min(self.bound, number):
                raise InputError(
                    f"record: gradient {number} must be at most {min(self.bound, number)} steps"
                    f" old, not {entry.age}"
                )
        if sorted(entry.batch for entry in self.entries) != list(range(len(self.entries))):
            raise InputError("record: each batch must be there once, from 0 on")

    def encode(self) -> bytes:
        """5 bytes per gradient, and 17."""
        parts = [_HEADER.pack(_MAGIC, self.bound, len(self.entries))]
        parts.extend(_ENTRY.pack(entry.batch, entry.age) for entry in self.entries)
        whole = b"".join(parts)
        return whole + _CHECKSUM.pack(zlib.crc32(whole))

    def write(self, path: Path) -> None:
        """Writes the file."""
        path.write_bytes(self.encode())


def decode_record(data: bytes) -> Record:
    """The record of bytes; InputError if they are none."""
    if len(data) < _HEADER.size + _CHECKSUM.size:
        raise InputError(f"a record must have at least 17 bytes, not {len(data)}")
    magic, bound, count = _HEADER.unpack_from(data)
    if magic != _MAGIC:
        raise InputError(f"a record must begin with {_MAGIC!r}, not {magic!r}")
    wanted = _HEADER.size + _ENTRY.size * count + _CHECKSUM.size
    if len(data) != wanted:
        raise InputError(f"a record of {count} gradients must have {wanted} bytes, not {len(data)}")
    if zlib.crc32(data[: -_CHECKSUM.size]) != _CHECKSUM.unpack(data[-_CHECKSUM.size :])[0]:
        raise InputError("the record is damaged: its checksum is another one")
    entries = _ENTRY.iter_unpack(data[_HEADER.size : -_CHECKSUM.size])
    return Record(bound, tuple(Applied(batch, age) for batch, age in entries))


def read_record(path: Path) -> Record:
    """The record of a file; InputError if it is none or cannot be read."""
    try:
        return decode_record(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
