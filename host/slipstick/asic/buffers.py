"""Buffers for nets of many loads, across the borders of blocks: ABC sees one block's logic only."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .memories import WRAPPERS
from .pdk import FLIP_FLOP, LATCH, Cell, Pdk

MOST_LOADS = 16
"""Pins that a cell may drive: beyond, a tree of buffers is faster."""

_MACRO_CLOCKS = frozenset({"clk0", "clk1"})

Bit = int | str
Design = dict[str, Any]
Pin = tuple[dict[str, Any], str, int]
"""A cell, its port, and the bit of it."""


@dataclass
class _Loads:
    """What a net drives: so many pins, through these; ``clock`` if one of them is a clock's."""

    pins: list[tuple[int, list[Pin]]]
    clock: bool = False

    @property
    def count(self) -> int:
        return sum(weight for weight, _ in self.pins)


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
    """Treats one module after another, and remembers what the ports of each drive."""

    def __init__(self, design: Design, buffer: Cell, pdk: Pdk) -> None:
        self._modules = design["modules"]
        self._buffer = buffer
        self._inputs = {name: frozenset(cell.inputs) for name, cell in pdk.cells.items()}
        self._clocks = {
            name: _clock_pins(cell)
            for name, cell in pdk.cells.items()
            if cell.kind in (FLIP_FLOP, LATCH)
        }
        self._clocks |= dict.fromkeys(WRAPPERS.values(), _MACRO_CLOCKS)
        self._ports = dict[str, Mapping[str, list[tuple[int, bool]]]]()

    def treat(self, name: str) -> int:
        """Puts buffers into a module; returns their number."""
        module = self._modules[name]
        nets = self._nets(module)
        fresh = 1 + max(
            (bit for bits in _all_bits(module) for bit in bits if isinstance(bit, int)), default=1
        )
        cells = dict[str, Any]()
        for net, loads in nets.items():
            while loads.count > MOST_LOADS and not loads.clock:
                loads.pins = list(self._split(net, loads, cells, fresh))
        module["cells"].update(cells)
        self._ports[name] = {
            port: [self._load(nets.get(bit)) for bit in about["bits"]]
            for port, about in module["ports"].items()
            if about["direction"] == "input"
        }
        return len(cells)

    def _load(self, loads: _Loads | None) -> tuple[int, bool]:
        return (0, False) if loads is None else (loads.count, loads.clock)

    def _nets(self, module: Mapping[str, Any]) -> dict[int, _Loads]:
        """What each net of a module drives."""
        nets = dict[int, _Loads]()
        for cell in module["cells"].values():
            for port, bits in cell["connections"].items():
                for k, bit in enumerate(bits):
                    weight, clock = self._weight(cell, port, k)
                    if weight and isinstance(bit, int):
                        loads = nets.setdefault(bit, _Loads([]))
                        loads.pins.append((weight, [(cell, port, k)]))
                        loads.clock |= clock
        return nets

    def _weight(self, cell: Mapping[str, Any], port: str, bit: int) -> tuple[int, bool]:
        """Loads behind a pin, and whether one is a clock's; 0 for outputs."""
        kind = cell["type"]
        if kind in self._ports:
            about = self._ports[kind].get(port)
            return (0, False) if about is None else about[bit]
        if kind in self._inputs:
            return int(port in self._inputs[kind]), port in self._clocks.get(kind, ())
        return int(cell["port_directions"][port] == "input"), port in self._clocks.get(kind, ())

    def _split(
        self, net: int, loads: _Loads, cells: dict[str, Any], fresh: int
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


def _clock_pins(cell: Cell) -> frozenset[str]:
    """The pins that a flip-flop or a latch takes its clock from."""
    functions = (cell.state.get(name) for name in ("clocked_on", "enable"))
    return frozenset(pin for function in functions if function for pin in function.variables)


def _all_bits(module: Mapping[str, Any]) -> Iterator[list[Bit]]:
    for about in (*module["ports"].values(), *module["netnames"].values()):
        yield about["bits"]
    for cell in module["cells"].values():
        yield from cell["connections"].values()
