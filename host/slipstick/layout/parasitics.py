"""Resistances and capacitances of wires, as qrouter writes them: a tree for each net."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import TargetError

_TOKEN = re.compile(r"[(),]|[^\s(),]+")

LOST = "ERROR"
"""Word that the router writes if it loses its way, in a route with a loop."""

PIN = "PIN"
"""The router's name for the instance of a port."""


@dataclass(frozen=True)
class Branch:
    """A piece of wire and what is at its end.

    Parameters
    ----------
    ohms, picofarads : float
        Of the piece alone.
    ends : tuple of (instance, pin) str pairs
        Pins at its far end; the instance of a port is ``PIN``.
    branches : tuple of Branch
        Pieces that go on from there.
    """

    ohms: float
    picofarads: float
    ends: tuple[tuple[str, str], ...]
    branches: tuple["Branch", ...]

    @property
    def total_picofarads(self) -> float:
        """Adds the capacitance of the piece and of all behind it."""
        return self.picofarads + sum(branch.total_picofarads for branch in self.branches)

    @property
    def all_ends(self) -> Iterator[tuple[str, str]]:
        """Pins at the end of the piece and of all behind it."""
        yield from self.ends
        for branch in self.branches:
            yield from branch.all_ends


@dataclass(frozen=True)
class Wire:
    """A routed net: its driver as (instance, pin), and the wire from there."""

    net: str
    driver: tuple[str, str]
    tree: Branch


def read_wires(text: str) -> list[Wire]:
    """Reads the delay file that qrouter writes, a net per line.

    ``n5 1 INVX1_2/Y 2 ( 2.7 0.0006 NOR2X1_1/A , ( 1.4 0.0005 NOR2X1_2/B ) )``: the net, its driver,
    the number of pins, and the wire from the driver on: ohms, picofarads, then pins and wires.
    Pins that the router has lost are missing in the tree.

    Raises
    ------
    TargetError
        If a line cannot be read: which, and what is wrong with it.
    """
    wires = list[Wire]()
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                wires.append(_wire(line))
            except (ValueError, RecursionError) as error:
                raise TargetError(f"line {number} of the router's delays: {error}") from None
    return wires


def _wire(line: str) -> Wire:
    words = line.split(None, 4)
    if len(words) < 5:
        raise ValueError("a net must have its driver, its number of pins, and its wire")
    reader = _TreeReader(_TOKEN.findall(words[4]))
    return Wire(words[0], _end(words[2]), reader.read())


def _end(word: str) -> tuple[str, str]:
    instance, slash, pin = word.partition("/")
    if not (instance and slash and pin):
        raise ValueError(f"a pin must be INSTANCE/PIN, not {word!r}")
    return instance, pin


class _TreeReader:
    """Reads the tree of one net."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens, self._place = tokens, 0

    def read(self) -> Branch:
        tree = self._branch()
        if self._place != len(self._tokens):
            raise ValueError(f"a wire must end with its tree, not with {self._next()!r}")
        return tree

    def _next(self) -> str:
        if self._place == len(self._tokens):
            raise ValueError("a wire's brackets must be closed")
        self._place += 1
        return self._tokens[self._place - 1]

    def _branch(self) -> Branch:
        if (token := self._next()) != "(":
            raise ValueError(f"a piece of wire must begin with a bracket, not with {token!r}")
        ohms, picofarads = self._number(), self._number()
        ends, branches = list[tuple[str, str]](), list[Branch]()
        while True:
            if self._tokens[self._place : self._place + 1] == ["("]:
                branches.append(self._branch())
            elif (token := self._next()) != LOST:
                ends.append(_end(token))
            token = self._next()
            if token == ")":
                return Branch(ohms, picofarads, tuple(ends), tuple(branches))
            if token != ",":
                raise ValueError(f"pieces of wire must have commas between, not {token!r}")

    def _number(self) -> float:
        token = self._next()
        try:
            value = float(token)
        except ValueError:
            value = -1.0
        if not 0 <= value < 1e9:
            raise ValueError(f"ohms and picofarads must be numbers from 0 on, not {token!r}")
        return value
