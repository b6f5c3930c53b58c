"""Counts what nets drive: pins of cells, also of those in blocks within or around."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .macros import WRAPPERS
from .pdk import CLOCK_GATE, FLIP_FLOP, LATCH, Pdk

_MACRO_CLOCKS = frozenset({"clk0", "clk1"})

Bit = int | str
Design = Mapping[str, Any]
Pin = tuple[dict[str, Any], str, int]
"""A cell, its port, and the bit of it."""

PortBit = tuple[str, int]


@dataclass
class Loads:
    """Pins that a net drives within a module.

    So many pins are driven through each entry's list; ``clock`` is true if one is a clock's.

    Parameters
    ----------
    pins : list of (count, list of Pin)
    clock : bool
    """

    pins: list[tuple[int, list[Pin]]]
    clock: bool = False

    @property
    def count(self) -> int:
        """Pins of the library's cells and of macros."""
        return sum(weight for weight, _ in self.pins)


class LoadCounter:
    """Counts the loads of a design's nets, module by module from the innermost on.

    Parameters
    ----------
    design : Design
        As Yosys' ``write_json`` writes it.
    pdk : Pdk
    """

    def __init__(self, design: Design, pdk: Pdk) -> None:
        self._modules = design["modules"]
        self._inputs = {name: frozenset(cell.inputs) for name, cell in pdk.cells.items()}
        self._clocks = {
            name: frozenset(cell.clock_pins)
            for name, cell in pdk.cells.items()
            if cell.kind in (FLIP_FLOP, LATCH, CLOCK_GATE)
        }
        self._clocks |= dict.fromkeys(WRAPPERS.values(), _MACRO_CLOCKS)
        self._ports = dict[str, Mapping[str, list[tuple[int, bool]]]]()

    def nets(self, name: str) -> dict[int, Loads]:
        """Finds the loads of each net of a module; its blocks must have been remembered."""
        nets = dict[int, Loads]()
        for cell in self._modules[name]["cells"].values():
            for port, bits in cell["connections"].items():
                for k, bit in enumerate(bits):
                    weight, clock = self._weight(cell, port, k)
                    if weight and isinstance(bit, int):
                        loads = nets.setdefault(bit, Loads([]))
                        loads.pins.append((weight, [(cell, port, k)]))
                        loads.clock |= clock
        return nets

    def remember(self, name: str, nets: Mapping[int, Loads]) -> None:
        """Keeps what the ports of a module drive, for those around it."""
        self._ports[name] = {
            port: [_summary(nets.get(bit)) for bit in about["bits"]]
            for port, about in self._modules[name]["ports"].items()
            if about["direction"] == "input"
        }

    def _weight(self, cell: Mapping[str, Any], port: str, bit: int) -> tuple[int, bool]:
        """Loads behind a pin, and whether one is a clock's; 0 for outputs."""
        kind = cell["type"]
        if kind in self._ports:
            about = self._ports[kind].get(port)
            return (0, False) if about is None else about[bit]
        if kind in self._inputs:
            return int(port in self._inputs[kind]), port in self._clocks.get(kind, ())
        return int(cell["port_directions"][port] == "input"), port in self._clocks.get(kind, ())


def _summary(loads: Loads | None) -> tuple[int, bool]:
    return (0, False) if loads is None else (loads.count, loads.clock)


def first_free_net(module: Mapping[str, Any]) -> int:
    """A number above those of all nets of a module."""
    bits = (bit for group in _all_bits(module) for bit in group if isinstance(bit, int))
    return 1 + max(bits, default=1)


def _all_bits(module: Mapping[str, Any]) -> Iterator[list[Bit]]:
    for about in (*module["ports"].values(), *module["netnames"].values()):
        yield about["bits"]
    for cell in module["cells"].values():
        yield from cell["connections"].values()


def outer_loads(
    design: Design, modules: Iterable[str], top: str, nets: Mapping[str, Mapping[int, Loads]]
) -> dict[str, dict[PortBit, float]]:
    """Counts the loads of each module's outputs outside of it, on the average of its instances.

    Parameters
    ----------
    design : Design
    modules : iterable of str
        Blocks before the ones that hold them.
    top : str
    nets : mapping
        Of each module, as ``LoadCounter.nets`` has it.
    """
    found = dict[str, dict[PortBit, float]]()
    totals: dict[str, defaultdict[PortBit, float]] = defaultdict(lambda: defaultdict(float))
    instances = defaultdict[str, int](int, {top: 1})
    known = list(modules)
    for name in reversed(known):
        count = max(1, instances[name])
        found[name] = {port: total / count for port, total in totals[name].items()}
        module = design["modules"][name]
        outer = _outputs(module, found[name])
        for cell in module["cells"].values():
            kind = cell["type"]
            if kind not in known:
                continue
            instances[kind] += instances[name]
            for port, bits in cell["connections"].items():
                if design["modules"][kind]["ports"][port]["direction"] == "output":
                    for k, bit in enumerate(bits):
                        inside = nets[name].get(bit)
                        here = (0 if inside is None else inside.count) + outer.get(bit, 0.0)
                        totals[kind][port, k] += instances[name] * here
    return found


def _outputs(module: Mapping[str, Any], loads: Mapping[PortBit, float]) -> defaultdict[Bit, float]:
    """Loads outside of a module, by its nets."""
    found = defaultdict[Bit, float](float)
    for port, k, bit in output_bits(module):
        found[bit] += loads.get((port, k), 0.0)
    return found


def output_bits(module: Mapping[str, Any]) -> Iterator[tuple[str, int, Bit]]:
    """Port, place and net of each bit that leaves a module."""
    for port, about in module["ports"].items():
        if about["direction"] == "output":
            for k, bit in enumerate(about["bits"]):
                yield port, k, bit
