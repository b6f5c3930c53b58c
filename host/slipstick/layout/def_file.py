"""A routed block's DEF file: its size, its cells, how long its wires are."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..errors import TargetError

_UNITS = re.compile(r"^UNITS DISTANCE MICRONS (\d+) ;", re.M)
_DIE = re.compile(r"^DIEAREA \( (-?\d+) (-?\d+) \) \( (-?\d+) (-?\d+) \) ;", re.M)
_SECTION = re.compile(r"^(COMPONENTS|NETS|SPECIALNETS) \d+ ;$(.*?)^END \1$", re.M | re.S)
_COMPONENT = re.compile(r"^\s*- (\S+) (\S+) ", re.M)
_NET = re.compile(r"^\s*- (\S+)", re.M)
_ROUTE = re.compile(r"(?:ROUTED|FIXED|NEW) (\w+)([^;\n]*)")
_POINT = re.compile(r"\(\s*(\S+)\s+(\S+)(?:\s+\S+)?\s*\)|(\S+)")


@dataclass(frozen=True)
class Routed:
    """Contents of a block's DEF file.

    Parameters
    ----------
    width_um, height_um : float
        Of the die, micrometres.
    cells : mapping of str by instance
        The cell that each is, fillers among them.
    nets : int
        Supplies not counted.
    wire_um : mapping of float by layer
        Lengths of signal wires along their middle, micrometres.
    vias : int
        Of signal wires.
    """

    width_um: float
    height_um: float
    cells: Mapping[str, str]
    nets: int
    wire_um: Mapping[str, float]
    vias: int

    @property
    def area_um2(self) -> float:
        """Returns the die's area, square micrometres."""
        return self.width_um * self.height_um

    @property
    def wire_length_um(self) -> float:
        """Returns the length of wires in all layers, micrometres."""
        return sum(self.wire_um.values())


def read_def(text: str) -> Routed:
    """Reads a routed DEF file.

    Raises
    ------
    TargetError
        If it has no units, die or sections, or a wire that cannot be read.
    """
    units, die = _UNITS.search(text), _DIE.search(text)
    sections = {match[1]: match[2] for match in _SECTION.finditer(text)}
    if units is None or int(units[1]) == 0 or die is None:
        raise TargetError("a DEF file must have UNITS DISTANCE MICRONS and DIEAREA")
    for name in ("COMPONENTS", "NETS"):
        if name not in sections:
            raise TargetError(f"a DEF file must have the section {name}, from its count to its end")
    scale = 1 / int(units[1])
    left, low, right, high = (int(die[k]) * scale for k in range(1, 5))
    lengths, vias = Counter[str](), 0
    for layer, route in _ROUTE.findall(sections["NETS"]):
        length, more = _measure(layer, route)
        lengths[layer] += length
        vias += more
    return Routed(
        right - left,
        high - low,
        dict(_COMPONENT.findall(sections["COMPONENTS"])),
        len(set(_NET.findall(sections["NETS"]))),
        {layer: length * scale for layer, length in sorted(lengths.items())},
        vias,
    )


def via_places(text: str) -> dict[str, list[tuple[str, int, int]]]:
    """Returns the vias of each net's wires, as (via, x, y) in the file's unit.

    Raises
    ------
    TargetError
        If a wire cannot be read.
    """
    sections = {match[1]: match[2] for match in _SECTION.finditer(text)}
    found = dict[str, list[tuple[str, int, int]]]()
    for part in re.split(r"^- ", sections.get("NETS", ""), flags=re.M)[1:]:
        net = part.split(None, 1)[0]
        for layer, route in _ROUTE.findall(part):
            last: tuple[int, int] | None = None
            for x, y, via in _POINT.findall(route):
                if not via:
                    point = tuple(_coordinates(layer, (x, y), last))
                    last = point[0], point[1]
                elif last is not None and via != "+":
                    found.setdefault(net, []).append((via, *last))
    return found


def _measure(layer: str, route: str) -> tuple[int, int]:
    """A wire's length in the file's unit, and its vias."""
    length, vias = 0, 0
    last: tuple[int, int] | None = None
    for x, y, via in _POINT.findall(route):
        if via:
            vias += via not in ("+",)
            continue
        point = tuple(_coordinates(layer, (x, y), last))
        if last is not None:
            length += abs(point[0] - last[0]) + abs(point[1] - last[1])
        last = point[0], point[1]
    return length, vias


def _coordinates(layer: str, words: tuple[str, str], last: tuple[int, int] | None) -> Iterator[int]:
    """The two coordinates of a point; a star repeats the one before."""
    for k, word in enumerate(words):
        if word == "*" and last is not None:
            yield last[k]
        elif re.fullmatch(r"-?\d+", word):
            yield int(word)
        else:
            raise TargetError(f"a wire of {layer} must have whole numbers or stars, not {word!r}")
