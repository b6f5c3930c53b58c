"""A flat netlist, bit by bit: from Yosys' JSON, to RTLIL."""

import json
import re
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from typing import Any

Bit = int | str
"""A net by its number, or the constant "0" or "1"."""

FLIP_FLOPS = frozenset({"$dff", "$dffe", "$sdff", "$sdffe", "$sdffce"})

_WORD = re.compile(r"[01xz]*")


@dataclass
class Cell:
    """A cell: its type, parameters as text, and each port's bits from the lowest up.

    A black box keeps its name, by which layout tools find it.
    """

    kind: str
    parameters: dict[str, str]
    ports: dict[str, list[Bit]]
    outputs: frozenset[str]
    name: str = ""

    @property
    def source(self) -> str:
        """Tells what drives its outputs: "register", "memory" or "logic"."""
        if self.kind in FLIP_FLOPS:
            return "register"
        return "memory" if self.kind == "$mem_v2" or self.is_black_box else "logic"

    @property
    def is_black_box(self) -> bool:
        """An instance of a module that is defined elsewhere."""
        return not self.kind.startswith("$")

    def number(self, parameter: str) -> int:
        """A parameter as a number."""
        return int(self.parameters[parameter], 2)

    def set_number(self, parameter: str, value: int) -> None:
        """Sets a parameter to a number of 32 bits."""
        self.parameters[parameter] = f"{value:032b}"


@dataclass
class Netlist:
    """A module without submodules.

    Parameters
    ----------
    ports : dict of (direction, bits) by name
        In the order of the module's header; "input" or "output".
    names : dict of bits by name
        What nets are called, ports left out; a net may be none's.
    cells : list of Cell
    """

    ports: dict[str, tuple[str, list[Bit]]]
    names: dict[str, list[Bit]]
    cells: list[Cell]
    _next: int = field(default=0)

    def new_bits(self, count: int) -> list[Bit]:
        """Nets that nothing else uses."""
        if not self._next:
            self._next = 1 + max(
                (bit for bits in self._all_bits() for bit in bits if isinstance(bit, int)),
                default=0,
            )
        self._next += count
        return list(range(self._next - count, self._next))

    def used_bits(self) -> set[Bit]:
        """Nets that a cell or an output port reads."""
        used: set[Bit] = set()
        for direction, bits in self.ports.values():
            if direction == "output":
                used.update(bits)
        for cell in self.cells:
            for port, bits in cell.ports.items():
                if port not in cell.outputs:
                    used.update(bits)
        return used

    def _all_bits(self) -> Iterator[list[Bit]]:
        for _, bits in self.ports.values():
            yield bits
        for cell in self.cells:
            yield from cell.ports.values()


class NetlistError(ValueError):
    """A design that cannot become a netlist of plain Verilog."""


def read_json(text: str, top: str, black_boxes: Container[str] = ()) -> Netlist:
    """The module ``top`` of what Yosys' write_json wrote.

    Parameters
    ----------
    text : str
    top : str
    black_boxes : container of str
        Modules that may be instantiated.

    Raises
    ------
    NetlistError
        If the design has modules besides: it was not flattened, or instantiates foreign cells.
    """
    modules: dict[str, Any] = json.loads(text)["modules"]
    module = modules[top]
    ports = {
        name: (port["direction"], [_plain(bit) for bit in port["bits"]])
        for name, port in module["ports"].items()
    }
    names = {
        name: [_plain(bit) for bit in net["bits"]]
        for name, net in module["netnames"].items()
        if not net["hide_name"] and name not in ports
    }
    cells = []
    for name, cell in module["cells"].items():
        foreign = not cell["type"].startswith("$")
        if foreign and cell["type"] not in black_boxes:
            raise NetlistError(f"a portable design must not hold cells like {cell['type']}")
        cells.append(
            Cell(
                cell["type"],
                {name: str(value) for name, value in cell["parameters"].items()},
                {name: [_plain(bit) for bit in bits] for name, bits in cell["connections"].items()},
                frozenset(name for name, way in cell["port_directions"].items() if way == "output"),
                name if foreign else "",
            )
        )
    return Netlist(ports, names, cells)


def _plain(bit: Bit) -> Bit:
    """Replaces a bit that is x, and so does not matter, by 0."""
    return "0" if bit == "x" else bit


def write_rtlil(netlist: Netlist, top: str) -> str:
    """The netlist as RTLIL, all names identifiers of plain Verilog.

    Every net is declared where a name or a cell's output has it; those that nothing uses are
    called ``unused`` and a number.
    """
    return "".join(_Writer(netlist).lines(top))


class _Writer:
    def __init__(self, netlist: Netlist) -> None:
        self._netlist = netlist
        self._places: dict[Bit, tuple[str, int]] = {}  # the wire of a net, and where in it
        self._widths: dict[str, int] = {}
        self._declarations: list[str] = []
        self._taken: set[str] = set()
        self._unused = self._cells = 0

    def lines(self, top: str) -> Iterator[str]:
        used = self._netlist.used_bits()
        yield f"attribute \\top 1\nmodule \\{top}\n"
        connections = self._declare_ports()
        self._declare_names(used)
        self._declare_rest(used)
        cells = [line for cell in self._netlist.cells for line in self._cell(cell)]
        yield from self._declarations
        yield from cells
        yield from connections
        yield "end\n"

    def _declare_ports(self) -> list[str]:
        """Ports are wires; an output that is something else's wire too is connected to it."""
        connections = []
        ports = self._netlist.ports.items()
        for index, (name, (direction, bits)) in enumerate(ports, 1):
            self._taken.add(name)
            self._declarations.append(f"  wire width {len(bits)} {direction} {index} \\{name}\n")
            self._widths[f"\\{name}"] = len(bits)
        for way in ("input", "output"):
            for name, (direction, bits) in ports:
                if direction == way:
                    for place, bit in enumerate(bits):
                        if isinstance(bit, str) or bit in self._places:
                            connections.append((f"\\{name} [{place}]", bit))
                        else:
                            self._places[bit] = f"\\{name}", place
        return [f"  connect {target} {self._signal([bit])}\n" for target, bit in connections]

    def _declare_names(self, used: set[Bit]) -> None:
        """Wires of the nets that have names, cut to what is used of them.

        No wire has bits of registers, of memories, and of logic side by side: logic that depends on
        its own wire would look like a loop to tools that see wires as a whole.
        """
        sources = {
            bit: cell.source
            for cell in self._netlist.cells
            for port in cell.outputs
            for bit in cell.ports[port]
        }
        for name, bits in self._netlist.names.items():
            run: list[Bit] = []
            first = 0
            for place, bit in enumerate([*bits, "0"]):
                wanted = (
                    isinstance(bit, int)
                    and bit in used
                    and bit in sources
                    and bit not in self._places
                    and bit not in run
                )
                if run and not (wanted and sources[bit] == sources[run[0]]):
                    self._declare(f"{name}_{first}" if first else name, run)
                    run = []
                if wanted:
                    first = first if run else place
                    run.append(bit)

    def _declare_rest(self, used: set[Bit]) -> None:
        """Wires of the outputs of cells that have no name."""
        for cell in self._netlist.cells:
            for port in sorted(cell.outputs):
                run: list[Bit] = []
                for bit in [*cell.ports[port], "0"]:
                    if isinstance(bit, int) and bit in used and bit not in self._places:
                        run.append(bit)
                    elif run:
                        self._declare("net", run)
                        run = []

    def _plain_name(self, name: str) -> str:
        """An identifier of plain Verilog that is not taken, and is now."""
        plain = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_")
        plain = plain if plain[:1].isalpha() else f"net_{plain}"
        candidate, number = plain, 0
        while candidate in self._taken or (name == "net" and not number):
            number += 1
            candidate = f"{plain}_{len(self._taken) if name == 'net' else number}"
        self._taken.add(candidate)
        return candidate

    def _declare(self, name: str, bits: list[Bit]) -> None:
        candidate = self._plain_name(name)
        self._declarations.append(f"  wire width {len(bits)} \\{candidate}\n")
        self._widths[f"\\{candidate}"] = len(bits)
        for place, bit in enumerate(bits):
            self._places[bit] = f"\\{candidate}", place

    def _cell(self, cell: Cell) -> Iterator[str]:
        ports = {}
        for port, bits in cell.ports.items():
            if port in cell.outputs:
                for count, bit in self._runs_of_unused(bits):
                    self._unused += 1
                    self._declare(f"unused_{self._unused}", bits[bit : bit + count])
            ports[port] = self._signal(bits)
        self._cells += 1
        name = f"\\{self._plain_name(cell.name)}" if cell.is_black_box else f"$c{self._cells}"
        kind = f"\\{cell.kind}" if cell.is_black_box else cell.kind
        yield f"  cell {kind} {name}\n"
        for name, value in cell.parameters.items():
            yield f"    parameter \\{name} {self._constant(cell, name, value)}\n"
        for port, signal in ports.items():
            yield f"    connect \\{port} {signal}\n"
        yield "  end\n"

    def _runs_of_unused(self, bits: list[Bit]) -> list[tuple[int, int]]:
        """(count, first place) of the bits that have no wire yet."""
        runs, count = [], 0
        for place, bit in enumerate([*bits, "0"]):
            if isinstance(bit, int) and bit not in self._places:
                count += 1
            elif count:
                runs.append((count, place - count))
                count = 0
        return runs

    def _constant(self, cell: Cell, name: str, value: str) -> str:
        if name == "MEMID":
            plain = re.sub(r"[^A-Za-z0-9_]+", "_", value).strip("_")
            while plain in self._taken:
                plain += "_"
            self._taken.add(plain)
            return f'"\\\\{plain}"'
        if _WORD.fullmatch(value):
            # a reader extends an x: memories whose contents do not matter are large
            return f"{len(value)}'{value if value.strip('x') else value[:1]}"
        return f'"{value}"'

    def _signal(self, bits: list[Bit]) -> str:
        """A list of bits, from the lowest up, as RTLIL writes it."""
        parts: list[str] = []
        place = 0
        while place < len(bits):
            end = place + 1
            bit = bits[place]
            if isinstance(bit, str):
                while end < len(bits) and isinstance(bits[end], str):
                    end += 1
                text = "".join(str(part) for part in reversed(bits[place:end]))
                parts.append(f"{end - place}'{text}")
            else:
                wire, first = self._places[bit]
                while end < len(bits) and self._places.get(bits[end]) == (
                    wire,
                    first + end - place,
                ):
                    end += 1
                last = first + end - place - 1
                whole = first == 0 and last == self._widths[wire] - 1
                span = f" [{last}:{first}]" if last > first else f" [{first}]"
                parts.append(wire if whole else wire + span)
            place = end
        return parts[0] if len(parts) == 1 else "{ " + " ".join(reversed(parts)) + " }"
