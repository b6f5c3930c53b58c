"""A mapped design as OpenSTA reads it: plain cells and nets, with names that need no escapes."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .clock_gating import CLOCK, ENABLE, NAME, clocks_before
from .macro_liberty import macro_cell
from .macros import cell_macro
from .pdk import Cell

_ODD = re.compile(r"\W")

Bit = int | str
Module = Mapping[str, Any]


@dataclass(frozen=True)
class TimingNetlist:
    """A netlist and what its names stand for.

    Parameters
    ----------
    verilog : str
        Of modules with the names that the mapping gave them. Instances have numbers, ``u17``;
        blocks and macros are ``b17``, flip-flops ``r17``.
    registers : mapping by module of mapping of (name, bit) by instance
        What each flip-flop holds.
    blocks : mapping by module of mapping of (name, module) by instance
        Blocks and macros within; a macro's module is its cell.
    """

    verilog: str
    registers: Mapping[str, Mapping[str, tuple[str, int]]]
    blocks: Mapping[str, Mapping[str, tuple[str, str]]]


def timing_netlist(
    design: Mapping[str, Any],
    modules: Sequence[str],
    flip_flops: Mapping[str, str],
    watch: Cell | None = None,
) -> TimingNetlist:
    """Writes the modules of a mapped design.

    Parameters
    ----------
    design : mapping
        What Yosys' ``write_json`` wrote, parsed.
    modules : sequence of str
        Those to write: blocks, not the library's cells.
    flip_flops : mapping of str by cell
        The library's, with the pin that holds the state.
    watch : Cell, optional
        A flip-flop of the library that takes the place of each clock gate and takes its enable: the
        enable must be there as early before the clock's edge. Behind the gate the clock arrives as
        before it.
    """
    texts = list[str]()
    registers = dict[str, Mapping[str, tuple[str, int]]]()
    blocks = dict[str, Mapping[str, tuple[str, str]]]()
    for name in modules:
        writer = _Writer(name, design["modules"], frozenset(modules), flip_flops, watch)
        texts.append(writer.text())
        registers[name], blocks[name] = writer.registers, writer.blocks
    return TimingNetlist("\n".join(texts), registers, blocks)


class _Writer:
    """Writes one module."""

    def __init__(
        self,
        name: str,
        modules: Mapping[str, Module],
        kept: frozenset[str],
        flip_flops: Mapping[str, str],
        watch: Cell | None,
    ) -> None:
        self._name, self._module = name, modules[name]
        self._watch = watch
        self._clocks = clocks_before(modules[name])
        self._modules, self._kept, self._flip_flops = modules, kept, flip_flops
        self._nets = dict[int, str]()
        self.registers = dict[str, tuple[str, int]]()
        self.blocks = dict[str, tuple[str, str]]()

    def text(self) -> str:
        ports, assigns = list[str](), list[str]()
        named = self._module["ports"].items()
        for place, (name, port) in enumerate(named):
            identifier = port_name(place, name)
            ports.append(f"  {port['direction']} {_range(port['bits'])}{identifier};\n")
            assigns += self._name_port(identifier, port)
        header = ", ".join(port_name(place, name) for place, (name, _) in enumerate(named))
        cells = "".join(self._cells())
        wires = "".join(f"  wire {net};\n" for net in self._nets.values() if net.startswith("n"))
        body = "".join([*ports, wires, *assigns, cells])
        return f"module {self._name} ({header});\n{body}endmodule\n"

    def _name_port(self, identifier: str, port: Mapping[str, Any]) -> Iterator[str]:
        """Names a port's nets; yields what an output shares with another port."""
        bits = port["bits"]
        for k, bit in enumerate(bits):
            here = f"{identifier}[{k}]" if len(bits) > 1 else identifier
            if isinstance(bit, int) and bit not in self._nets:
                self._nets[bit] = here
            elif port["direction"] == "output":
                yield f"  assign {here} = {self._net(bit)};\n"

    def _net(self, bit: Bit) -> str:
        if isinstance(bit, str):
            return "1'b1" if bit == "1" else "1'b0"
        net = self._clocks.get(bit, bit)
        return self._nets.setdefault(net, f"n{net}")

    def _cells(self) -> Iterator[str]:
        held = self._held()
        for number, (name, cell) in enumerate(self._module["cells"].items()):
            kind, pins = cell["type"], cell["connections"]
            if kind in self._flip_flops:
                instance = f"r{number}"
                self.registers[instance] = held.get(pins[self._flip_flops[kind]][0], (name, 0))
            elif kind == NAME:
                assert self._watch is not None
                kind, (clock,) = self._watch.name, self._watch.clock_pins
                instance = f"r{number}"
                pins = {str(self._watch.data_pin): pins[ENABLE], clock: pins[CLOCK]}
                self.registers[instance] = ("clock gate", number)
            elif kind in self._kept:
                instance = f"b{number}"
                self.blocks[instance] = (name, kind)
                places = {port: k for k, port in enumerate(self._modules[kind]["ports"])}
                pins = {port_name(places[port], port): bits for port, bits in pins.items()}
            elif (macro := cell_macro(cell, name)) is not None:
                instance, kind = f"b{number}", macro_cell(macro)
                self.blocks[instance] = (name, kind)
            else:
                instance = f"u{number}"
            yield f"  {kind} {instance} ({', '.join(map(self._pin, pins, pins.values()))});\n"

    def _pin(self, pin: str, bits: Sequence[Bit]) -> str:
        nets = [self._net(bit) for bit in reversed(bits)]
        return f".{pin}({nets[0]})" if len(nets) == 1 else f".{pin}({{{', '.join(nets)}}})"

    def _held(self) -> dict[int, tuple[str, int]]:
        """Name and bit of nets; of several names the one that stands first and is no alias."""
        held = dict[int, tuple[str, int]]()
        for name, net in self._module["netnames"].items():
            if not net["hide_name"]:
                for k, bit in enumerate(net["bits"]):
                    if isinstance(bit, int):
                        held.setdefault(bit, (name, k))
        return held


def port_name(place: int, name: str) -> str:
    """Returns the name of a block's port in the netlist."""
    return f"p{place}_{_ODD.sub('_', name)}"


def _range(bits: Sequence[Bit]) -> str:
    return f"[{len(bits) - 1}:0] " if len(bits) > 1 else ""
