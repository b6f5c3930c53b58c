"""Gates to be placed: a mapped design without hierarchy, its names as every tool takes them."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..asic.pdk import Pdk
from ..errors import TargetError

CLOCK = "clk"
"""The port of every block's clock."""

CONSTANTS = {"0": "1'b0", "1": "1'b1", "x": "1'b0"}
"""An output that never changes has one of these in place of a net, and no pin in the layout."""

UNUSED = ""
"""In place of the net of an input that no gate takes: it has no pin either. A pin without a wire is
smaller than the rules of a process allow."""

_ODD = re.compile(r"\W")

Bit = int | str


@dataclass(frozen=True)
class Gate:
    """A standard cell with the net of each of its pins."""

    cell: str
    pins: Mapping[str, str]


@dataclass(frozen=True)
class Port:
    """A port of the block: its direction, and the net of each bit, the lowest first."""

    direction: str
    nets: tuple[str, ...]


def has_pin(net: str) -> bool:
    """Returns whether a port's bit is in the layout."""
    return net != UNUSED and net not in CONSTANTS.values()


@dataclass
class GateNetlist:
    """A flat netlist.

    Parameters
    ----------
    name : str
        The top's.
    ports : mapping of Port by name
        As the gateware has them. A port of several bits has a net per bit: ``sum_3``.
    gates : list of Gate
        The tools name a gate by its cell and its number among those, from 1: ``INVX1_7``.
    """

    name: str
    ports: Mapping[str, Port]
    gates: list[Gate] = field(default_factory=list)

    @property
    def cells(self) -> Counter[str]:
        """Counts each of the library's cells."""
        return Counter(gate.cell for gate in self.gates)

    @property
    def nets(self) -> set[str]:
        """Names of all nets that a gate or a port has."""
        inside = {net for gate in self.gates for net in gate.pins.values()}
        return inside.union(self.bits("input"), self.bits("output"))

    def bits(self, direction: str) -> list[str]:
        """Nets of all ports of a direction; bits without a pin are left out."""
        ports = [port for port in self.ports.values() if port.direction == direction]
        return [net for port in ports for net in port.nets if has_pin(net)]

    def instances(self) -> Iterator[tuple[str, Gate]]:
        """Every gate with its name."""
        count = Counter[str]()
        for gate in self.gates:
            count[gate.cell] += 1
            yield f"{gate.cell}_{count[gate.cell]}", gate

    def blif(self) -> str:
        """Returns the netlist as qflow's scripts read it."""
        lines = [
            f".model {self.name}",
            f".inputs {' '.join(self.bits('input'))}",
            f".outputs {' '.join(self.bits('output'))}",
            *(f".gate {gate.cell} {_assignments(gate)}" for gate in self.gates),
            ".end",
        ]
        return "\n".join(lines) + "\n"


def _assignments(gate: Gate) -> str:
    return " ".join(f"{pin}={net}" for pin, net in gate.pins.items())


def read_gates(module: Mapping[str, Any], name: str, pdk: Pdk, buffer: str) -> GateNetlist:
    """Reads a flat module; gates whose outputs nothing takes are left out.

    Parameters
    ----------
    module : mapping
        As Yosys' ``write_json`` has it.
    name : str
        Of the netlist's top.
    pdk : Pdk
        Whose cells the module consists of.
    buffer : str
        The cell between an output and a net that another port has already.

    Raises
    ------
    TargetError
        If a cell is not the library's, or a pin is constant: the libraries have no cell that ties
        a net to a supply.
    """
    return _Reader(module, name, pdk, buffer).read()


class _Reader:
    """Names the nets of one module."""

    def __init__(self, module: Mapping[str, Any], name: str, pdk: Pdk, buffer: str) -> None:
        self._module, self._name, self._pdk = module, name, pdk
        self._buffer = pdk.cells[buffer]
        self._nets = dict[int, str]()
        self._extra = list[Gate]()

    def read(self) -> GateNetlist:
        ports = dict(self._ports())
        gates = [self._gate(name, cell) for name, cell in self._module["cells"].items()]
        found = GateNetlist(self._name, ports, [*gates, *self._extra])
        _remove_unused(found, self._pdk)
        taken = {net for gate in found.gates for net in gate.pins.values()}
        found.ports = {name: _without_unused(port, taken) for name, port in ports.items()}
        return found

    def _ports(self) -> Iterator[tuple[str, Port]]:
        taken = set[str]()
        # inputs first: an output of the same net gets the buffer
        ports = sorted(
            self._module["ports"].items(), key=lambda item: item[1]["direction"] != "input"
        )
        for name, port in ports:
            plain = _ODD.sub("_", name)
            wide = len(port["bits"]) > 1
            nets = tuple(f"{plain}_{k}" if wide else plain for k in range(len(port["bits"])))
            if len(taken | set(nets)) != len(taken) + len(nets):
                raise TargetError(f"ports of {self._name} must differ in letters: {name}")
            taken |= set(nets)
            named = map(self._name_port, port["bits"], nets)
            yield name, Port(port["direction"], tuple(named))

    def _name_port(self, bit: Bit, net: str) -> str:
        """Gives a port's bit its net, or the constant that it is."""
        if isinstance(bit, str):
            return CONSTANTS[bit]
        if self._nets.setdefault(bit, net) != net:
            (pin,), (output,) = self._buffer.inputs, self._buffer.outputs
            self._extra.append(Gate(self._buffer.name, {pin: self._nets[bit], output: net}))
        return net

    def _gate(self, name: str, cell: Mapping[str, Any]) -> Gate:
        kind = cell["type"]
        if kind not in self._pdk.cells:
            raise TargetError(f"{self._name} must consist of the library's cells, not {kind!r}")
        return Gate(
            kind, {pin: self._net(bits[0], name) for pin, bits in cell["connections"].items()}
        )

    def _net(self, bit: Bit, place: str) -> str:
        if isinstance(bit, str):
            raise TargetError(
                f"{self._name} must have no constant at a pin, and {place} has {bit!r}: the"
                " library has no cell that ties a net to a supply"
            )
        return self._nets.setdefault(bit, f"n{bit}")


def _without_unused(port: Port, taken: set[str]) -> Port:
    """An input whose bits that no gate takes are ``UNUSED``; outputs as they are."""
    if port.direction != "input":
        return port
    return Port(port.direction, tuple(net if net in taken else UNUSED for net in port.nets))


def _remove_unused(netlist: GateNetlist, pdk: Pdk) -> None:
    """Takes out gates that drive nothing, until every gate drives something."""
    while True:
        used = set(netlist.bits("output"))
        for gate in netlist.gates:
            used.update(gate.pins[pin] for pin in pdk.cells[gate.cell].inputs if pin in gate.pins)
        kept = [
            gate
            for gate in netlist.gates
            if any(gate.pins.get(pin) in used for pin in pdk.cells[gate.cell].outputs)
        ]
        if len(kept) == len(netlist.gates):
            return
        netlist.gates = kept
