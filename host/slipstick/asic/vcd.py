"""Reads waveforms (VCD): switching activity of Amaranth's simulator, and declarations of any."""

import re
from collections import defaultdict
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import TargetError
from .saif import Activity, Recording

CLOCK = "clk"

_UNNAMED = re.compile(rb"^(\$var \S+ \d+ \S+ )(\$)", re.M)
"""Signals without a name are called ``$signal``, which the reader takes as escaped names only."""


class Variable(NamedTuple):
    """Tells what a VCD file calls a signal.

    Parameters
    ----------
    scopes : tuple of str
        From the outermost.
    name : str
    bits : int
    code : str
        In the lines that tell of changes; several variables may share one.
    """

    scopes: tuple[str, ...]
    name: str
    bits: int
    code: str


def declarations(file: Iterator[str]) -> Iterator[Variable]:
    """Reads the head of a VCD file, and leaves the file at its first change.

    For files of hundreds of megabytes, which the reader of ``read_vcd`` would take an hour for.
    """
    scopes = list[str]()
    for line in file:
        words = line.split()
        if words[:1] == ["$scope"]:
            scopes.append(words[2])
        elif words[:1] == ["$upscope"]:
            scopes.pop()
        elif words[:1] == ["$var"]:
            yield Variable(tuple(scopes), words[4], int(words[2]), words[3])
        elif words[:1] == ["$enddefinitions"]:
            return


def read_vcd(path: Path, top: str) -> Recording:
    """Counts changes of each bit, and the share of time it is 1.

    What a signal becomes within one instant counts once.

    Parameters
    ----------
    path : Path
    top : str
        The scopes from the outermost to that of the design, with points between them; it has a
        clock named ``CLOCK``.

    Raises
    ------
    TargetError
        If the file cannot be read, or has no cycle of the clock.
    """
    # comes with Amaranth
    from vcd.reader import TokenKind, VCDParseError, tokenize

    counter, scopes = _Counter(), list[str]()
    try:
        text = _UNNAMED.sub(rb"\1\\\2", path.read_bytes())
        for token in tokenize(BytesIO(text)):
            if token.kind is TokenKind.SCOPE:
                scopes.append(token.scope.ident)
            elif token.kind is TokenKind.UPSCOPE:
                scopes.pop()
            elif token.kind is TokenKind.VAR:
                name = ".".join([*scopes, token.var.reference.removeprefix("\\")])
                if name.startswith(f"{top}."):
                    counter.declare(name[len(top) + 1 :], token.var.id_code, token.var.size)
            elif token.kind is TokenKind.CHANGE_TIME:
                counter.go_on(token.time_change)
            elif token.kind in (TokenKind.CHANGE_SCALAR, TokenKind.CHANGE_VECTOR):
                change: Any = token.data
                counter.change(change.id_code, change.value)
    except (OSError, VCDParseError) as error:
        raise TargetError(f"VCD file {path} cannot be read: {error}") from None
    recording = counter.recording()
    if recording is None:
        raise TargetError(f"VCD file {path} must hold a cycle of {top}.{CLOCK}")
    return recording


class _Counter:
    """Adds up what variables do from one instant to the next."""

    def __init__(self) -> None:
        self._names = defaultdict[str, list[str]](list)
        self._sizes = dict[str, int]()
        self._values = dict[str, int]()
        self._pending = dict[str, int]()
        self._since = dict[str, int]()
        self._changes = defaultdict[tuple[str, int], int](int)
        self._high = defaultdict[tuple[str, int], int](int)
        self._now = 0

    def declare(self, name: str, code: str, size: int) -> None:
        """A variable; several may share a code."""
        self._names[code].append(name)
        self._sizes[code] = size

    def change(self, code: str, value: int | str) -> None:
        """A new value; what is unknown of it counts as 0."""
        if code in self._sizes:
            known = value if isinstance(value, int) else int("".join(map(_known, value)), 2)
            self._pending[code] = known

    def go_on(self, time: int) -> None:
        """Goes to another instant."""
        for code, value in self._pending.items():
            before = self._values.get(code)
            if before != value:
                self._add_time(code)
                for bit in _bits((before if before is not None else value) ^ value):
                    self._changes[code, bit] += 1
                self._values[code] = value
        self._pending.clear()
        self._now = time

    def _add_time(self, code: str) -> None:
        """Adds the time for which it had its value."""
        for bit in _bits(self._values.get(code, 0)):
            self._high[code, bit] += self._now - self._since.get(code, 0)
        self._since[code] = self._now

    def recording(self) -> Recording | None:
        """All of it; None without a cycle of the clock."""
        self.go_on(self._now)
        for code in self._values:
            self._add_time(code)
        clock = next((code for code, names in self._names.items() if CLOCK in names), None)
        cycles = 0 if clock is None else self._changes[clock, 0] // 2
        if not cycles:
            return None
        signals = {
            (name, bit): Activity(
                self._changes[code, bit] / cycles, self._high[code, bit] / self._now
            )
            for code, names in self._names.items()
            for bit in range(self._sizes[code])
            for name in names
        }
        return Recording(cycles, signals)


def _known(digit: str) -> str:
    return "1" if digit == "1" else "0"


def _bits(value: int) -> list[int]:
    """The places of its ones."""
    return [place for place in range(value.bit_length()) if value >> place & 1]
