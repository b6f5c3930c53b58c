"""Area by block: what the cells of each take, and its memories by their model."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .mapping import Mapping
from .memory_model import memory_cost

_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class BlockArea:
    """A block, or all alike of it; blocks within have entries of their own.

    Parameters
    ----------
    name : str
        The path below the top, with ``*`` for numbers: ``matrix.array.element_*_*``.
    count : int
        How many there are.
    cells, flip_flops : int
    cell_area, memory_area : float
        Square micrometres.
    memory_bits : int
        In macros.
    """

    name: str
    count: int = 0
    cells: int = 0
    flip_flops: int = 0
    cell_area: float = 0.0
    memory_area: float = 0.0
    memory_bits: int = 0

    @property
    def area(self) -> float:
        """Adds the areas of cells and memories."""
        return self.cell_area + self.memory_area

    def figures(self) -> dict[str, Any]:
        """As reports have it."""
        return {
            "block": self.name,
            "count": self.count,
            "cells": self.cells,
            "flip_flops": self.flip_flops,
            "cell_area_um2": round(self.cell_area, 1),
            "memory_bits": self.memory_bits,
            "memory_area_um2": round(self.memory_area, 1),
        }


def block_areas(mapping: Mapping) -> list[BlockArea]:
    """The blocks of a design, the largest first; their sum is the whole.

    Raises
    ------
    TargetError
        If there are memories, and the PDK has no feature size to model them with.
    """
    found = dict[str, BlockArea]()
    families = dict[str, str]()
    for path, family, module in walk_blocks(mapping):
        families[path] = family
        block, entry = mapping.blocks[module], found.get(family, BlockArea(family))
        found[family] = replace(
            entry,
            count=entry.count + 1,
            cells=entry.cells + sum(block.cells.values()),
            flip_flops=entry.flip_flops
            + sum(block.cells.get(name, 0) for name in mapping.pdk.flip_flops),
            cell_area=entry.cell_area + block.area,
        )
    for macro in mapping.macros:
        family = families[_around(macro.path, families)]
        entry, cost = found[family], memory_cost(macro, mapping.pdk)
        found[family] = replace(
            entry,
            memory_area=entry.memory_area + cost.area,
            memory_bits=entry.memory_bits + macro.size,
        )
    return sorted(found.values(), key=lambda entry: -entry.area)


def family_of(names: Sequence[str]) -> dict[str, str]:
    """Names the family of each sibling: those whose names differ in numbers only share one."""
    stems = {name: _NUMBER.sub("*", name) for name in names}
    counts = Counter(stems.values())
    return {name: stem if counts[stem] > 1 else name for name, stem in stems.items()}


def walk_blocks(mapping: Mapping) -> Iterator[tuple[str, str, str]]:
    """Path, family and module of every block; the top has "" for path and family."""
    yield from _walk(mapping, mapping.top, "", "")


def _walk(mapping: Mapping, module: str, path: str, family: str) -> Iterator[tuple[str, str, str]]:
    yield path, family, module
    within = mapping.blocks[module].blocks
    families = family_of(list(within))
    for instance, kind in within.items():
        yield from _walk(mapping, kind, _join(path, instance), _join(family, families[instance]))


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _around(path: str, blocks: dict[str, str]) -> str:
    """The innermost block that holds a path."""
    while path and path not in blocks:
        path = path.rpartition(".")[0]
    return path
