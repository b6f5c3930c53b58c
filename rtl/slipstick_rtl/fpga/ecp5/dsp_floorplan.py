"""Assigns the core's multipliers to an ECP5's DSP blocks, and knows where those stand.

The blocks lie in one to three rows across the whole chip, so that the wires between neighbouring
elements decide the clock of an array. Place and route finds no good order for them by itself; here
each column of the array gets places side by side, in the order in which its sums move.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from statistics import fmean
from typing import Any, TypeVar

MULTIPLIER = "MULT18X18D"

_BLOCK_TILES = 9
"""Width of a DSP block, in which four multipliers stand."""

_FIRST_TILE = 4
_SPINE_TILES = 2
"""Further tiles between the blocks on the left and those on the right of the clock's spine."""

_CONTROLS = ("CE0", "RST0", "SIGNEDA", "SIGNEDB", "SOURCEA", "SOURCEB")
"""A multiplier's ports that are constant."""

PLACES_IN_BLOCK = (0, 1, 4, 5)
"""Tile of each of a block's multipliers; also its number in the place's name."""

_ELEMENT = re.compile(
    r"\.(?P<kind>element|pair)_(?P<row>\d+)_(?P<column>\d+)\.multiplier\.product_(?P<pixel>\d+)\."
)
"""An element of a row and column, or the packed multiplier of a row and pair of columns."""

_LANE = re.compile(r"\.lane_(?P<lane>\d+)\.requantizer\..*(?P<part>low_low|high_high|cross)")


@dataclass(frozen=True)
class Blocks:
    """The DSP blocks of a device, and its blocks of four memories, which are as wide.

    Parameters
    ----------
    rows : tuple of int
        Y of each row of them.
    left, right : int
        Blocks of a row on each side of the spine.
    memory_rows : tuple of int
        Y of each row of memories; none if they are left to place and route.
    """

    rows: tuple[int, ...]
    left: int
    right: int
    memory_rows: tuple[int, ...] = ()

    def starts(self) -> list[int]:
        """X of each block's first tile."""
        return [
            _FIRST_TILE + _BLOCK_TILES * k + (_SPINE_TILES if k >= self.left else 0)
            for k in range(self.left + self.right)
        ]

    def places(self, y: int) -> list[str]:
        """nextpnr's names for the multipliers of the row, from left to right."""
        return [f"X{x + z}/Y{y}/MULT18_{z}" for x in self.starts() for z in PLACES_IN_BLOCK]


BLOCKS = {
    "12F": Blocks((13,), 3, 4),
    "25F": Blocks((13,), 3, 4),
    "45F": Blocks((22, 46), 4, 5),
    "85F": Blocks((10, 34, 58), 7, 6, memory_rows=(22, 46, 70, 82)),
}


def blocks_of(device: str) -> Blocks:
    """Looks up the positions of a device's blocks.

    Raises
    ------
    ValueError
        If the device is not known.
    """
    family, _, size = device.partition("-")
    if not family.startswith("LFE5U") or size not in BLOCKS:
        raise ValueError(f"device must be an ECP5 of {', '.join(BLOCKS)}, not {device!r}")
    return BLOCKS[size]


def multiplier_places(device: str) -> list[list[str]]:
    """The places of a device's multipliers, row by row, each from left to right.

    Raises
    ------
    ValueError
        If the device is not known.
    """
    blocks = blocks_of(device)
    return [blocks.places(y) for y in blocks.rows]


Found = TypeVar("Found")

Group = list[str]
"""Multipliers that stand side by side in a row of blocks: a column of the array, or a lane."""


def columns(names: Iterable[str]) -> dict[int, Group]:
    """The array's columns in order, or pairs of them by their first, from first row to last."""
    found: dict[int, list[tuple[int, int, str]]] = {}
    for name in names:
        if match := _ELEMENT.search(name):
            row, column, pixel = (int(match[key]) for key in ("row", "column", "pixel"))
            column *= 2 if match["kind"] == "pair" else 1
            found.setdefault(column, []).append((row, pixel, name))
    return {column: [name for _, _, name in sorted(found[column])] for column in sorted(found)}


def lanes(names: Iterable[str]) -> dict[int, Group]:
    """The post-processor's lanes in order."""
    found: dict[int, list[tuple[str, str]]] = {}
    for name in names:
        if match := _LANE.search(name):
            found.setdefault(int(match["lane"]), []).append((match["part"], name))
    return {lane: [name for _, name in sorted(found[lane])] for lane in sorted(found)}


def names_of(cells: Mapping[str, Any], kind: str) -> list[str]:
    """The cells of that type."""
    return [name for name, cell in cells.items() if cell["type"] == kind]


def give_places(cells: Mapping[str, Any], places: Mapping[str, str]) -> int:
    """Ties each cell to its place; returns how many."""
    for name, place in places.items():
        cells[name].setdefault("attributes", {})["BEL"] = place
    return len(places)


def plan(names: Iterable[str], device: str) -> dict[str, str]:
    """The place of each multiplier of a core.

    Columns of the array fill the rows of blocks in order, whole columns each; the lanes of the
    post-processor come into what is left, from the last row on. A column's multipliers stand side
    by side, as all of them take their weights from the same wires; so what goes from a column to
    the next goes as far for all rows. Every other row of blocks is filled from right to left: the
    column that follows a row's last one stands below it. Lanes are right of all columns, in the
    order of the columns whose sums they take.

    Parameters
    ----------
    names : iterable of str
        Of all multipliers of the flattened design; others than the core's are left out.
    device : str

    Returns
    -------
    dict
        From name to place; empty if they do not all fit in that way.

    Raises
    ------
    ValueError
        If the device is not known.
    """
    names = list(names)
    rows = multiplier_places(device)
    all_columns, all_lanes = columns(names), lanes(names)
    free = [len(row) for row in rows]
    columns_of: list[dict[int, Group]] = [{} for _ in rows]
    lanes_of: list[dict[int, Group]] = [{} for _ in rows]
    for groups, taken, order in (
        (all_columns, columns_of, range(len(rows))),
        (all_lanes, lanes_of, range(len(rows))[::-1]),
    ):
        for number, group in groups.items():
            row = next((k for k in order if free[k] >= len(group)), None)
            if row is None:
                return {}
            # a later column never goes back to a row before
            order = order[order.index(row) :]
            free[row] -= len(group)
            taken[row][number] = group
    for number in range(1, len(rows), 2):
        columns_of[number] = dict(reversed(columns_of[number].items()))
    abreast = _abreast(columns_of, len(all_lanes))
    places: dict[str, str] = {}
    for number, row in enumerate(rows):
        # lanes at the right end of each row: they have much in common
        last = [lanes_of[number][lane] for lane in abreast if lane in lanes_of[number]]
        members = [name for group in [*columns_of[number].values(), *last] for name in group]
        for index, name in enumerate(members):
            places[name] = row[index * len(row) // len(members)]
    return places


def _abreast(columns_of: Sequence[Mapping[int, Group]], count: int) -> list[int]:
    """The lanes, from left to right as the columns stand whose sums they take."""
    at = {
        number: (index + 0.5) / len(row) for row in columns_of for index, number in enumerate(row)
    }
    if not at:
        return list(range(count))
    last = max(at)
    return sorted(
        range(count),
        key=lambda lane: fmean(of_number(at, k) for k in range(lane, max(last, lane) + 1, count)),
    )


def of_number(found: Mapping[int, Found], number: int) -> Found:
    """Finds that of the number, or of the last one before it: pairs of columns have one number."""
    return found[max((known for known in found if known <= number), default=min(found))]


def place_multipliers(netlist: dict[str, Any], device: str) -> int:
    """Gives the core's multipliers in a netlist their places, in place; returns how many.

    Parameters
    ----------
    netlist : dict
        As Yosys writes it for nextpnr, flattened.
    device : str
        Such as ``LFE5U-85F``.
    """
    placed = 0
    for module in netlist["modules"].values():
        cells = module.get("cells", {})
        places = plan(names_of(cells, MULTIPLIER), device)
        placed += give_places(cells, places)
        named = module.setdefault("netnames", {}).values()
        used = (bit for net in named for bit in net["bits"] if isinstance(bit, int))
        nets = count(1 + max(used, default=1))
        blocks = _by_block({place: cells[name] for name, place in places.items()})
        for block, members in blocks.items():
            _share_controls(members)
            _drive_constants(module, block, members.values(), nets)
    return placed


def _by_block(placed: Mapping[str, Any]) -> dict[tuple[int, str], dict[int, Any]]:
    """Cells by block, its first tile and its row, and by their tile within the block."""
    blocks: dict[tuple[int, str], dict[int, Any]] = {}
    for place, cell in placed.items():
        x, y, kind = place.split("/")
        tile = int(kind.rpartition("_")[2])
        blocks.setdefault((int(x[1:]) - tile, y), {})[tile] = cell
    return blocks


def _share_controls(members: Mapping[int, Any]) -> None:
    """Leaves to one multiplier of a block what is the same wire for its neighbours.

    A block has one wire for reset 0, and one for clock enable 0 of each half. Place and route takes
    them for one a multiplier, and cannot bring the same constant to one wire by several ways.
    """
    wired: set[str] = set()
    for tile, cell in sorted(members.items()):
        for port, shared in (("RST0", "RST0"), ("CE0", f"CE0 {tile // 4}")):
            if shared in wired:
                cell["connections"].pop(port, None)
            wired.add(shared)


def _drive_constants(
    module: dict[str, Any], block: tuple[int, str], members: Iterable[Any], nets: Iterator[int]
) -> None:
    """A look-up table beside the block for each constant at its control ports.

    Place and route brings constants from one place of the chip to all others, by wires that the
    ports of these blocks have few of.
    """
    names = module["netnames"]
    for value in "01":
        ends = [
            (cell["connections"], port)
            for cell in members
            for port in _CONTROLS
            if cell["connections"].get(port) == [value]
        ]
        if not ends:
            continue
        net = next(nets)
        name = f"constant_{value}_X{block[0]}_{block[1]}"
        names[name] = {"hide_name": 0, "bits": [net], "attributes": {}}
        module["cells"][name] = {
            "hide_name": 0,
            "type": "LUT4",
            "parameters": {"INIT": value * 16},
            "attributes": {},
            "port_directions": {**dict.fromkeys("ABCD", "input"), "Z": "output"},
            "connections": {**{port: ["0"] for port in "ABCD"}, "Z": [net]},
        }
        for connections, port in ends:
            connections[port] = [net]
