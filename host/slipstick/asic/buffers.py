"""Buffers for nets of many loads, across the borders of blocks: ABC sees one block's logic only."""

from collections.abc import Iterable, Iterator
from typing import Any

from .loads import LoadCounter, Loads, Pin, first_free_net
from .pdk import Cell, Pdk

MOST_LOADS = 16
"""Pins that a cell may drive: beyond, a tree of buffers is faster."""

Design = dict[str, Any]


def find_buffer(pdk: Pdk) -> Cell | None:
    """The library's buffer: of those at most half as large again as the smallest, the largest."""
    buffers = [cell for cell in pdk.cells.values() if _is_buffer(cell)]
    smallest = min((cell.area for cell in buffers), default=0.0)
    fitting = [cell for cell in buffers if cell.area <= 1.5 * smallest]
    return max(fitting, key=lambda cell: cell.area, default=None)


def _is_buffer(cell: Cell) -> bool:
    functions = list(cell.outputs.values())
    return (
        not cell.state
        and not cell.three_state
        and len(cell.inputs) == 1
        and len(functions) == 1
        and functions[0].table == (False, True)
    )


def insert_buffers(design: Design, modules: Iterable[str], pdk: Pdk) -> int:
    """Splits the loads of nets that have more than ``MOST_LOADS``; clocks stay as they are.

    Loads are pins of the library's cells, also of those in blocks within.

    Parameters
    ----------
    design : Design
        As Yosys' ``write_json`` writes it; changed in place.
    modules : iterable of str
        Those of the design, blocks before the ones that hold them.
    pdk : Pdk

    Returns
    -------
    int
        How many buffers the modules have got; 0 if the library has none.
    """
    buffer = find_buffer(pdk)
    if buffer is None:
        return 0
    inserter = _Inserter(design, buffer, pdk)
    return sum(map(inserter.treat, modules))


class _Inserter:
    """Treats one module after another, from the innermost on."""

    def __init__(self, design: Design, buffer: Cell, pdk: Pdk) -> None:
        self._modules = design["modules"]
        self._counter = LoadCounter(design, pdk)
        self._buffer = buffer

    def treat(self, name: str) -> int:
        """Puts buffers into a module; returns their number."""
        module, nets = self._modules[name], self._counter.nets(name)
        fresh = first_free_net(module)
        cells = dict[str, Any]()
        for net, loads in nets.items():
            while loads.count > MOST_LOADS and not loads.clock:
                loads.pins = list(self._split(net, loads, cells, fresh))
        module["cells"].update(cells)
        self._counter.remember(name, nets)
        return len(cells)

    def _split(
        self, net: int, loads: Loads, cells: dict[str, Any], fresh: int
    ) -> Iterator[tuple[int, list[Pin]]]:
        """Gives each group of a net's loads a buffer; the buffers are the net's loads then."""
        for group in _groups(loads.pins):
            number = fresh + len(cells)
            for cell, port, bit in group:
                cell["connections"][port][bit] = number
            (pin,), (output,) = self._buffer.inputs, self._buffer.outputs
            cell = {
                "hide_name": 1,
                "type": self._buffer.name,
                "parameters": {},
                "attributes": {},
                "port_directions": {pin: "input", output: "output"},
                "connections": {pin: [net], output: [number]},
            }
            cells[f"$buffer${number}"] = cell
            yield 1, [(cell, pin, 0)]


def _groups(pins: Iterable[tuple[int, list[Pin]]]) -> Iterator[list[Pin]]:
    """Pins in groups of as many loads as a buffer may have."""
    group, total = list[Pin](), 0
    for weight, inside in pins:
        if group and total + weight > MOST_LOADS:
            yield group
            group, total = [], 0
        group, total = group + inside, total + weight
    yield group
