"""What the front-ends have in common: files of strangers, their sizes, and their names."""

from pathlib import Path

from ..errors import ModelError

MAXIMUM_TABLES = 1 << 14
"""Tensors, operators, buffers at most: a fuzzed length must not cost seconds."""
MAXIMUM_OPERANDS = 1 << 10
MAXIMUM_RANK = 8
MAXIMUM_ELEMENTS = 1 << 28
"""Elements of the largest tensor: 256 MiB of int8."""


def read_file(path: str | Path) -> bytes:
    """A file's bytes.

    Raises
    ------
    ModelError
        If it cannot be read.
    """
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ModelError(f"{path} cannot be read: {reason}") from error


def quoted(name: str) -> str:
    """A tensor's name for a message, cut where it is long."""
    return repr(name if len(name) <= 80 else f"{name[:77]}...")
