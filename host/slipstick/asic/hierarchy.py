"""The modules of a design in RTLIL: equal ones merged, blocks marked that mapping keeps apart."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..errors import TargetError

KEEP = "attribute \\keep_hierarchy 1\n"

_MODULE = re.compile(r"^(?:attribute [^\n]*\n)*module (\S+)\n(.*?)^end$\n?", re.M | re.S)
_INITIAL_VALUE = re.compile(r"^ *attribute \\init [^\n]*\n", re.M)
_CELL = re.compile(r"^  cell (\\\S+) (\S+)\n((?:    [^\n]*\n)*)  end\n", re.M)
_CONNECTION = re.compile(r"^    connect (\S+) ([^\n]*)\n", re.M)
_PORT = re.compile(r"^(  wire [^\n]*?\b(?:input|output|inout)) (\d+) ([^\n]*?)(\\\S+)\n+", re.M)
_NAMELESS = re.compile(r"\\port\$\d+\$\d+")
"""Amaranth's name for the port of a nameless signal: the number is another in every design."""
_WORD = re.compile(r"\\\S+")
_NUMBER = re.compile(r"\d+")
_ODD = re.compile(r"[^0-9A-Za-z_]+")


@dataclass(frozen=True)
class Module:
    """A module of a design whose equal modules are merged.

    Parameters
    ----------
    name : str
        As netlists have it: letters, digits and underscores.
    path : str
        Of the first instance, as the gateware names it: ``slipstick.matrix.array.element_1_0``.
    body : str
        RTLIL between header and end; cells have the merged modules' names.
    cells : tuple of (instance, module) str pairs
        Of modules of the design, in the order of the text.
    """

    name: str
    path: str
    body: str
    cells: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Hierarchy:
    """A design whose equal modules are merged.

    Amaranth writes a module for each instance; mapping the elements of an array once takes a
    sixtieth of the time, and all have the same gates.

    Parameters
    ----------
    top : str
        A name of ``modules``.
    modules : mapping of Module by name
        Submodules before the modules that hold them.
    """

    top: str
    modules: Mapping[str, Module]

    def blocks(self, depth: int) -> frozenset[str]:
        """The modules that mapping keeps apart; all others are dissolved in those around them.

        These are the top, modules at most ``depth`` levels below it, and those whose instances are
        numbered, as an array's elements are.
        """
        kept, levels = {self.top}, {self.top: 0}
        for name in reversed(list(self.modules)):
            cells = self.modules[name].cells
            siblings = Counter(_NUMBER.sub("", instance) for instance, _ in cells)
            for instance, child in cells:
                levels[child] = min(levels.get(child, depth + 1), levels[name] + 1)
                if levels[child] <= depth or siblings[_NUMBER.sub("", instance)] > 1:
                    kept.add(child)
        return frozenset(kept)

    def rtlil(self, kept: frozenset[str] | None = None) -> str:
        """The whole design as text; ``kept`` modules carry Yosys' mark for it."""
        return "\n".join(self._text(module, kept or frozenset()) for module in self)

    def _text(self, module: Module, kept: frozenset[str]) -> str:
        top = "attribute \\top 1\n" if module.name == self.top else ""
        keep = KEEP if module.name in kept else ""
        return f"{top}{keep}module \\{module.name}\n{module.body}end\n"

    def __iter__(self) -> Iterator[Module]:
        return iter(self.modules.values())


def merge(rtlil: str, top: str, *, initial_values: bool = False) -> Hierarchy:
    """Reads a design and merges its equal modules.

    Parameters
    ----------
    rtlil : str
        As Amaranth's back-end writes it.
    top : str
        Name of the top module.
    initial_values : bool
        Registers keep theirs, for simulation; no cell of an ASIC has any. The contents of memories
        stay in any case.

    Raises
    ------
    TargetError
        If there is no such module.
    """
    text = rtlil if initial_values else _INITIAL_VALUE.sub("", rtlil)
    texts = {match[1]: match[2] for match in _MODULE.finditer(text)}
    if f"\\{top}" not in texts:
        raise TargetError(f"the design must have a module {top!r}, not only {_some(texts)}")
    return _Merger(texts).merge(top)


def _some(texts: Mapping[str, str]) -> str:
    return ", ".join(name.lstrip("\\") for name in list(texts)[:5]) or "none"


class _Merger:
    """Walks a design from the leaves up."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._ports = {name: _port_names(text) for name, text in texts.items()}
        self._merged: dict[str, str] = {}
        self._known: dict[str, str] = {}
        self._modules: dict[str, Module] = {}

    def merge(self, top: str) -> Hierarchy:
        name = self._visit(f"\\{top}")
        return Hierarchy(name, self._modules)

    def _visit(self, identifier: str) -> str:
        """The merged module of one of the design's, made if it is the first of its kind."""
        if identifier in self._merged:
            return self._merged[identifier]
        body, cells = self._rewrite(identifier)
        name = self._known.get(body)
        if name is None:
            name = self._new_name(identifier)
            self._known[body] = name
            self._modules[name] = Module(name, identifier[1:], body, cells)
        self._merged[identifier] = name
        return name

    def _new_name(self, identifier: str) -> str:
        plain = name = _ODD.sub("_", identifier[1:]).strip("_") or "module"
        number = 2
        while name in self._modules:
            name, number = f"{plain}_{number}", number + 1
        return name

    def _rewrite(self, identifier: str) -> tuple[str, tuple[tuple[str, str], ...]]:
        """A body with the names of merged modules and ports, and the cells of such modules."""
        own, text = self._ports[identifier], self._texts[identifier]
        pieces, cells, position = [], list[tuple[str, str]](), 0
        for cell in _CELL.finditer(text):
            kind, instance, connections = cell.groups()
            if kind not in self._texts:
                continue
            module, ports = self._visit(kind), self._ports[kind]
            cells.append((instance.lstrip("\\"), module))
            lines = (
                f"    connect {ports[port]} {_renamed(signal, own)}\n"
                for port, signal in _CONNECTION.findall(connections)
            )
            pieces.append(_renamed(text[position : cell.start()], own))
            pieces.append(f"  cell \\{module} {instance}\n{''.join(sorted(lines))}  end\n")
            position = cell.end()
        pieces.append(_renamed(text[position:], own))
        return _ports_first("".join(pieces)), tuple(cells)


def _port_names(text: str) -> dict[str, str]:
    """The names of a module's ports; those without one get a number."""
    names, nameless = {}, 0
    for port in _PORT.finditer(text):
        names[port[4]] = port[4]
        if _NAMELESS.fullmatch(port[4]):
            names[port[4]] = f"\\port_{nameless}"
            nameless += 1
    return names


def _ports_first(body: str) -> str:
    """A body that begins with its ports, by their names: Amaranth's order is that of their use in
    the whole design."""
    ports = sorted(_PORT.finditer(body), key=lambda port: port[4])
    lines = (f"{port[1]} {place} {port[3]} {port[4]}\n" for place, port in enumerate(ports))
    return "".join(lines) + _PORT.sub("", body)


def _renamed(text: str, names: Mapping[str, str]) -> str:
    return _WORD.sub(lambda word: names.get(word[0], word[0]), text)
