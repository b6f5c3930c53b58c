"""Assigns the core's block RAMs to an ECP5's places.

A large core takes nearly all of them, and place and route, left to itself, ends far from the short
ways: the weight memory's words then cross the chip. What a block RAM answers to stands where the
floorplan of the multipliers put it, so each gets the nearest place that is free.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from ...latencies import BLOCK_COLUMNS
from .dsp_floorplan import (
    MULTIPLIER,
    PLACES_IN_BLOCK,
    Blocks,
    Group,
    blocks_of,
    columns,
    give_places,
    lanes,
    names_of,
    of_number,
    plan,
)

MEMORY = "DP16KD"

_STEP = 2
"""Tiles from one of a block's four memories to the next."""

_BELOW = 12
"""Tiles from a row of DSP blocks down to the next row of memories."""

_WEIGHTS = re.compile(
    r"\.weights\.block_(?P<chain>\d+)_(?P<column>\d+)\.memory_\d+\.\d+\.(?P<byte>\d+)$"
)
_ACCUMULATORS = re.compile(r"\.accumulators\.column_(?P<column>\d+)\.")
_TABLE = re.compile(r"\.lanes\.table_(?P<table>\d+)\.")
_ACTIVATIONS = re.compile(r"\.activations\.bank_(?P<bank>\d+)\.")

_Point = tuple[float, float]


@dataclass(frozen=True)
class _Wish:
    """A memory, and where it would stand best; those of lower rank choose first."""

    rank: tuple[int, ...]
    name: str
    at: _Point


def memory_places(device: str) -> dict[str, tuple[int, int]]:
    """The places of a device's block RAMs, as nextpnr calls them, with X and Y.

    Empty for a device whose rows of them are not listed.

    Raises
    ------
    ValueError
        If the device is not known.
    """
    blocks = blocks_of(device)
    return {
        f"X{start + _STEP * k}/Y{y}/EBR{k}": (start + _STEP * k, y)
        for y in blocks.memory_rows
        for start in blocks.starts()
        for k in range(len(PLACES_IN_BLOCK))
    }


def plan_memories(
    names: Iterable[str], multipliers: Mapping[str, str], device: str
) -> dict[str, str]:
    """The place of each block RAM of a design.

    Weights stand below their column of the array, a chain after the other; accumulators below the
    lane that takes their sums, tables below theirs; the link's queues and the instructions, then
    the activations, fill the last row from its left end, where the array's first column is.
    Without multipliers, columns and lanes are taken to stand abreast over the whole chip.

    Parameters
    ----------
    names : iterable of str
        Of all block RAMs of the flattened design.
    multipliers : mapping
        The place of each multiplier of the core, as ``floorplan.plan`` gives it.
    device : str

    Returns
    -------
    dict
        From name to place; empty if they do not fit, or nothing is known to stand near to.

    Raises
    ------
    ValueError
        If the device is not known.
    """
    free, blocks = memory_places(device), blocks_of(device)
    columns_at, lanes_at = (_middles(find(multipliers), multipliers) for find in (columns, lanes))
    names = list(names)
    columns_at = columns_at or _abreast(_ACCUMULATORS, names, blocks, blocks.rows[0])
    lanes_at = lanes_at or _abreast(_TABLE, names, blocks, blocks.rows[-1])
    if len(names) > len(free) or not columns_at or not lanes_at:
        return {}
    wishes = sorted(
        (_wish(name, columns_at, lanes_at, blocks) for name in names),
        key=lambda wish: (wish.rank, wish.name),
    )
    places: dict[str, str] = {}
    for wish in wishes:
        x, y = wish.at
        nearest = min(free, key=lambda place: abs(free[place][0] - x) + abs(free[place][1] - y))
        places[wish.name] = nearest
        del free[nearest]
    return places


def place_memories(netlist: dict[str, Any], device: str) -> int:
    """Gives the block RAMs in a netlist their places, in place; returns how many.

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
        multipliers = plan(names_of(cells, MULTIPLIER), device)
        placed += give_places(cells, plan_memories(names_of(cells, MEMORY), multipliers, device))
    return placed


def _wish(
    name: str, columns_at: Mapping[int, _Point], lanes_at: Mapping[int, _Point], blocks: Blocks
) -> _Wish:
    if match := _WEIGHTS.search(name):
        chain, column, byte = (int(match[key]) for key in ("chain", "column", "byte"))
        column += min(byte, BLOCK_COLUMNS - 1)
        return _Wish((0, chain, column), name, _below(of_number(columns_at, column)))
    if match := _ACCUMULATORS.search(name):
        column = int(match["column"])
        return _Wish((1, column), name, _below(of_number(lanes_at, column % len(lanes_at))))
    if match := _TABLE.search(name):
        table = int(match["table"])
        return _Wish((2, table), name, _below(of_number(lanes_at, table)))
    corner = (0, blocks.memory_rows[-1])
    if match := _ACTIVATIONS.search(name):
        return _Wish((4, int(match["bank"])), name, corner)
    return _Wish((3,), name, corner)


def _abreast(
    part: re.Pattern[str], names: Sequence[str], blocks: Blocks, y: int
) -> dict[int, _Point]:
    """Evenly over the chip, each of the numbers that the names of a part have."""
    numbers = sorted({int(match[1]) for name in names if (match := part.search(name))})
    starts = blocks.starts()
    step = (starts[-1] - starts[0]) / max(1, len(numbers))
    return {number: (starts[0] + (k + 0.5) * step, y) for k, number in enumerate(numbers)}


def _below(point: _Point) -> _Point:
    return point[0], point[1] + _BELOW


def _middles(groups: Mapping[int, Group], multipliers: Mapping[str, str]) -> dict[int, _Point]:
    """The middle of each group's multipliers."""
    found: dict[int, _Point] = {}
    for number, group in groups.items():
        places = [multipliers[name].split("/") for name in group]
        found[number] = (
            fmean(int(x[1:]) for x, _, _ in places),
            fmean(int(y[1:]) for _, y, _ in places),
        )
    return found
