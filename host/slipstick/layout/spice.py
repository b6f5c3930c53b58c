"""The netlist that magic extracts: cells, nets and capacitances, and the same as Verilog."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ..errors import TargetError

_UNITS = {"a": 1e-3, "f": 1.0, "p": 1e3, "n": 1e6}
"""Femtofarads of a unit's letter."""

_CAPACITANCE = re.compile(r"([\d.eE+-]+)([afpn])F?")
_ODD = re.compile(r"\W")


@dataclass(frozen=True)
class Instance:
    """A cell of the layout, with the net of each of its pins."""

    cell: str
    nets: Mapping[str, str]


@dataclass(frozen=True)
class Extracted:
    """Circuit that was found in a layout.

    Parameters
    ----------
    name : str
        The top's.
    ports : tuple of str
        Supplies among them.
    instances : mapping of Instance by name
        Fillers among them.
    capacitances : mapping of float by net
        To all other nets together, femtofarads; those to nets within cells among them.
    """

    name: str
    ports: tuple[str, ...]
    instances: Mapping[str, Instance]
    capacitances: Mapping[str, float]

    @property
    def pins(self) -> dict[tuple[str, str], str]:
        """The net of each pin of each instance."""
        return {
            (name, pin): net
            for name, instance in self.instances.items()
            for pin, net in instance.nets.items()
        }


def read_spice(text: str, name: str) -> Extracted:
    """Reads what ``ext2spice`` wrote with cells as black boxes.

    Raises
    ------
    TargetError
        If there is no subcircuit of this name, or a line in it cannot be read.
    """
    headers = dict[str, list[str]]()
    body = list[list[str]]()
    current = ""
    for number, line in _lines(text):
        # magic says of nets without a gate that they float
        words = line.partition("**")[0].split()
        kind = words[0].lower() if words else ""
        if kind == ".subckt":
            if len(words) < 2:
                raise TargetError(f"line {number} of the SPICE netlist must name its subcircuit")
            current = words[1]
            headers[current] = words[2:]
        elif kind == ".ends":
            current = ""
        elif words and current == name:
            body.append(words)
    if name not in headers:
        raise TargetError(f"the SPICE netlist must have a subcircuit {name!r}")
    instances, capacitances = dict[str, Instance](), Counter[str]()
    for words in body:
        if words[0][0] in "Xx":
            instances[words[0][1:]] = _instance(words, headers)
        elif words[0][0] in "Cc":
            _count(words, capacitances)
        else:
            line = " ".join(words)
            raise TargetError(f"the SPICE netlist must have cells and capacitances, not {line}")
    return Extracted(name, tuple(headers[name]), instances, capacitances)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with those that continue them; comments left out."""
    number, joined = 0, ""
    for k, line in enumerate(text.splitlines(), 1):
        if line.startswith("+"):
            joined += line[1:]
        elif line.strip() and not line.startswith("*"):
            if joined:
                yield number, joined
            number, joined = k, line
    if joined:
        yield number, joined


def _instance(words: list[str], headers: Mapping[str, list[str]]) -> Instance:
    nets, cell = words[1:-1], words[-1]
    if len(words) < 2 or cell not in headers:
        raise TargetError(f"instance {words[0]} must be of a subcircuit before it, not {cell!r}")
    if len(headers[cell]) != len(nets):
        raise TargetError(
            f"instance {words[0]} must have {len(headers[cell])} nets as {cell} has, not"
            f" {len(nets)}"
        )
    return Instance(cell, dict(zip(headers[cell], nets, strict=True)))


def _count(words: list[str], capacitances: Counter[str]) -> None:
    value = _CAPACITANCE.fullmatch(words[3]) if len(words) == 4 else None
    try:
        femtofarads = float(value[1]) * _UNITS[value[2]] if value else None
    except ValueError:
        femtofarads = None
    if femtofarads is None:
        raise TargetError(f"a capacitance must have two nets and a value, not {' '.join(words)}")
    for net in words[1:3]:
        capacitances[net] += femtofarads  # type: ignore[assignment]


def identifier(name: str) -> str:
    """Returns an identifier of Verilog for a net or an instance of the layout."""
    return _ODD.sub("_", name)


def layout_verilog(found: Extracted, inputs: Iterable[str], supplies: Iterable[str]) -> str:
    """Returns the layout as Verilog: its cells without supplies, fillers left out.

    Parameters
    ----------
    found : Extracted
    inputs : iterable of str
        Which ports are inputs: a layout does not say.
    supplies : iterable of str
        Ports, and pins of cells, that the Verilog does without.

    Raises
    ------
    TargetError
        If two names differ in odd characters only.
    """
    left_out, entering = set(supplies), set(inputs)
    ports = [port for port in found.ports if port not in left_out]
    lines, wires = list[str](), dict[str, str]()
    for name, instance in found.instances.items():
        pins = {pin: net for pin, net in instance.nets.items() if pin not in left_out}
        wires.update((net, identifier(net)) for net in pins.values())
        text = ", ".join(f".{pin}({identifier(net)})" for pin, net in pins.items())
        if pins:
            lines.append(f"  {instance.cell} {identifier(name)} ({text});")
    if len(set(wires.values())) != len(wires):
        raise TargetError(f"nets of {found.name} must differ in letters and digits")
    inside = [wires[net] for net in wires if net not in ports]
    declared = [
        *(f"  {'input' if port in entering else 'output'} {identifier(port)};" for port in ports),
        *(f"  wire {net};" for net in inside),
    ]
    header = f"module {found.name} ({', '.join(map(identifier, ports))});"
    return "\n".join([header, *declared, *lines, "endmodule", ""])
