"""Reads files of strangers for all front-ends, and checks sizes and names."""

from pathlib import Path
from typing import NoReturn

from ..errors import ModelError, UnsupportedError

MAXIMUM_TABLES = 1 << 14
"""Tensors, operators, buffers at most: a fuzzed length must not cost seconds."""
MAXIMUM_OPERANDS = 1 << 10
MAXIMUM_RANK = 8
MAXIMUM_ELEMENTS = 1 << 28
"""Elements of the largest constant: 256 MiB of int8."""
MAXIMUM_ACTIVATION = 1 << 25
"""Elements of the largest tensor that is computed, padded or not: a few bytes may declare any size,
and kernels take tens of bytes an element."""
MAXIMUM_FOLDED = 1 << 28
"""Bytes that constants may make of each other, beside eight times what the file holds."""


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


class Labelled:
    """Part of a file that errors are about, by its label."""

    label: str

    def refuse(self, rule: str) -> NoReturn:
        """Raises UnsupportedError; ``rule`` says what must be, and what is instead."""
        raise UnsupportedError(f"{self.label}: {rule}")

    def reject(self, rule: str) -> NoReturn:
        """Raises ModelError; ``rule`` says what must be, and what is instead."""
        raise ModelError(f"{self.label}: {rule}")
