"""Changes ECP5 netlists between Yosys and nextpnr."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Chip:
    """A platform without a board: what is elaborated for it may use the device's own blocks.

    Hand it, or an amaranth-boards platform, to ``rtlil.convert`` as ``platform``.

    Parameters
    ----------
    device : str
        Such as ``LFE5U-85F``.
    """

    device: str


def release_carries(netlist: dict[str, Any]) -> int:
    """Disconnects the unused carry outputs of a netlist, in place; returns how many there were.

    Yosys' abc9 leaves them connected to wires without a reader, and nextpnr then spends two look-up
    tables on bringing each of them out of its carry chain.
    """
    released = 0
    for module in netlist["modules"].values():
        cells = module.get("cells", {}).values()
        read = {bit for port in module["ports"].values() for bit in port["bits"]}
        for cell in cells:
            directions = cell["port_directions"]
            for port, bits in cell["connections"].items():
                if directions[port] != "output":
                    read.update(bits)
        for cell in cells:
            carry = cell["connections"].get("COUT")
            if cell["type"] == "CCU2C" and carry not in (None, ["x"]) and carry[0] not in read:
                cell["connections"]["COUT"] = ["x"]
                released += 1
    return released


_PLAIN_REGISTER = {"CEMUX": "1", "CLKMUX": "CLK"}
"""Parameters of a register that takes its input in every cycle."""

_SINGLE_WIDTHS = range(1, 19)
"""Widths of a block RAM's port that has its outputs for itself."""

_DOUBLE_WIDTH = 36
"""Width of a block RAM that is written by port A and read by port B, at the outputs of both."""


def absorb_output_registers(netlist: dict[str, Any]) -> int:
    """Moves registers behind block RAMs into them, in place; returns how many there were.

    A block RAM's own output register answers 5 ns sooner after the clock than its memory, and
    Yosys does not use it. A port is changed if it is always enabled and never reset, and every
    output of it that is used goes to a register of the same clock, without enable and reset, and
    to nothing else.
    """
    absorbed = 0
    for module in netlist["modules"].values():
        cells = module.get("cells", {})
        readers = _readers(module)
        for cell in list(cells.values()):
            if cell["type"] != "DP16KD":
                continue
            widths = {_number(cell["parameters"].get(f"DATA_WIDTH_{port}", "0")) for port in "AB"}
            double = widths == {_DOUBLE_WIDTH}
            for side, outputs in (("B", "AB"),) if double else (("A", "A"), ("B", "B")):
                registers = _registers_behind(cell, side, outputs, cells, readers)
                for port, name in registers.items():
                    cell["connections"][port] = cells.pop(name)["connections"]["Q"]
                if registers:
                    for port in outputs:
                        cell["parameters"][f"REGMODE_{port}"] = "OUTREG"
                    if double:
                        # Yosys ties the enable of port A's register, which then is in use, to 0
                        cell["connections"].pop("OCEA", None)
                absorbed += len(registers)
    return absorbed


def _readers(module: dict[str, Any]) -> dict[Any, list[tuple[str | None, str]]]:
    """Cell and port of every reader of each bit; the module's own outputs without a cell."""
    readers: dict[Any, list[tuple[str | None, str]]] = {}
    for name, port in module["ports"].items():
        for bit in port["bits"]:
            readers.setdefault(bit, []).append((None, name))
    for name, cell in module.get("cells", {}).items():
        for port, bits in cell["connections"].items():
            if cell["port_directions"][port] != "output":
                for bit in bits:
                    readers.setdefault(bit, []).append((name, port))
    return readers


def _registers_behind(
    memory: dict[str, Any],
    side: str,
    outputs: str,
    cells: dict[str, Any],
    readers: dict[Any, list[tuple[str | None, str]]],
) -> dict[str, str]:
    """The register of each output that is read through port A or B; empty if the block cannot take
    all of them."""
    ports, parameters = memory["connections"], memory.get("parameters", {})
    widths = [_number(parameters.get(f"DATA_WIDTH_{port}", "0")) for port in "AB"]
    modes = {parameters.get(f"REGMODE_{port}", "NOREG") for port in outputs}
    suits = widths == [_DOUBLE_WIDTH] * 2 if len(outputs) == 2 else max(widths) in _SINGLE_WIDTHS
    constants = {f"CE{side}": ["1"], f"OCE{side}": ["1"], f"RST{side}": ["0"]}
    if (
        modes != {"NOREG"}
        or not suits
        or any(ports.get(port) != value for port, value in constants.items())
    ):
        return {}
    names = {f"DO{output}" for output in outputs}
    registers: dict[str, str] = {}
    for port, bits in ports.items():
        if port[:-1].rstrip("0123456789") not in names or not bits or bits[0] not in readers:
            continue
        (name, end), *others = readers[bits[0]]
        if name is None or others or not _is_plain_register(cells[name], end, ports[f"CLK{side}"]):
            return {}
        registers[port] = name
    return registers


def _number(parameter: str | int) -> int:
    """Yosys writes numbers as binary digits."""
    return int(parameter, 2) if isinstance(parameter, str) else parameter


def _is_plain_register(cell: dict[str, Any], end: str, clock: list[Any]) -> bool:
    """Tells whether a reader is a register of the clock that does nothing but delay its input."""
    parameters = {name: str(value).strip() for name, value in cell.get("parameters", {}).items()}
    return (
        cell["type"] == "TRELLIS_FF"
        and end == "DI"
        and cell["connections"]["CLK"] == clock
        and cell["connections"].get("LSR", ["0"]) == ["0"]
        and all(parameters.get(name) == value for name, value in _PLAIN_REGISTER.items())
    )
