"""Finds what silicon does not forgive: latches, loops of logic, registers without a start value."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import TargetError

if TYPE_CHECKING:
    from slipstick_sim.netlist.portable.netlist import Bit, Cell, Netlist

_SCRIPT = """
read_rtlil design.il
hierarchy -top {top}
proc
flatten
opt_clean
select -assert-none t:$dlatch t:$adlatch t:$dlatchsr t:$sr
check -assert
select -assert-none t:$adff t:$adffe t:$aldff t:$aldffe t:$dffsr t:$dffsre
memory_collect
opt_dff -simple-dffe
opt_clean
write_json design.json
"""

RESET = "rst"
_ANY_OF = ("$or", "$logic_or", "$reduce_or", "$reduce_bool")
_WITH_RESET = ("$sdff", "$sdffe", "$sdffce")


@dataclass(frozen=True)
class Structure:
    """The registers of a design that has neither latch nor loop nor asynchronous reset.

    Parameters
    ----------
    with_reset, without_reset : tuple of (name, bits)
        Registers by their names in the gateware. Those without are marked so there
        (``reset_less``): operands on their way, which something with a reset says to be valid.
    memory_bits : int
        Of memories, which nothing resets.
    """

    with_reset: tuple[tuple[str, int], ...]
    without_reset: tuple[tuple[str, int], ...]
    memory_bits: int

    @property
    def bits(self) -> tuple[int, int]:
        """Flip-flops with a reset, and without."""
        with_reset = sum(bits for _, bits in self.with_reset)
        return with_reset, sum(bits for _, bits in self.without_reset)


def check_structure(rtlil: str, top: str) -> Structure:
    """Looks for what must not be, and lists the registers.

    Raises
    ------
    TargetError
        If there is a latch, a loop of logic, a net with two drivers or none, or an asynchronous
        reset; or Yosys is missing or fails.
    """
    from slipstick_sim.netlist.portable.netlist import read_json
    from slipstick_sim.toolchain import ToolError, run_full_yosys, without_zeros

    with tempfile.TemporaryDirectory(prefix="slipstick.") as name:
        folder = Path(name)
        (folder / "design.il").write_text(without_zeros(rtlil), "utf-8")
        try:
            run_full_yosys(_SCRIPT.format(top=top), cwd=folder)
        except ToolError as error:
            raise TargetError(f"{top} is not sound for silicon: {error}") from None
        netlist = read_json((folder / "design.json").read_text("utf-8"), top)
    ports = {name: bits for name, (_, bits) in netlist.ports.items()}
    names = {bit: name for name, bits in {**netlist.names, **ports}.items() for bit in bits}
    resettable = {id(cell) for cell in cells_with_reset(netlist)}
    registers = [
        (id(cell) in resettable, names.get(cell.ports["Q"][0], "a register"), len(cell.ports["Q"]))
        for cell in netlist.cells
        if cell.source == "register"
    ]
    memories = [cell for cell in netlist.cells if cell.kind == "$mem_v2"]
    return Structure(
        tuple(sorted((name, bits) for has_reset, name, bits in registers if has_reset)),
        tuple(sorted((name, bits) for has_reset, name, bits in registers if not has_reset)),
        sum(cell.number("SIZE") * cell.number("WIDTH") for cell in memories),
    )


def cells_with_reset(netlist: "Netlist") -> list["Cell"]:
    """The registers that the port ``rst`` sets, with or without something else that does so too.

    Yosys finds a reset wherever something sets a register to a constant.
    """
    (reset,) = netlist.ports[RESET][1]
    resets: set[Bit] = {reset}
    seen = 0
    choices = [cell for cell in netlist.cells if cell.kind in _ANY_OF]
    while len(resets) > seen:
        seen = len(resets)
        for cell in choices:
            operands = [cell.ports[port] for port in ("A", "B") if port in cell.ports]
            if cell.kind == "$or":
                pairs = zip(*operands, cell.ports["Y"], strict=False)
                resets |= {bits[-1] for bits in pairs if resets.intersection(bits[:-1])}
            elif any(resets.intersection(bits) for bits in operands):
                resets.add(cell.ports["Y"][0])
    return [
        cell
        for cell in netlist.cells
        if cell.kind in _WITH_RESET and cell.ports["SRST"][0] in resets
    ]


def control_registers(netlist: "Netlist") -> list["Cell"]:
    """Lists the registers with a reset that are flags, or whose next value follows from their own.

    Those are the states and counters that would stay unknown for ever. Others with a reset may hold
    unknown operands, as those without do, until there are known ones.
    """
    sources = {
        bit: cell for cell in netlist.cells for port in cell.outputs for bit in cell.ports[port]
    }
    return [
        cell
        for cell in cells_with_reset(netlist)
        if len(cell.ports["Q"]) == 1 or _follows_from_itself(cell, sources)
    ]


def _follows_from_itself(register: "Cell", sources: Mapping["Bit", "Cell"]) -> bool:
    """Tells whether a register's output reaches its own data through logic."""
    own, seen = set(register.ports["Q"]), set[int | str]()
    todo = list(register.ports["D"])
    while todo:
        bit = todo.pop()
        if bit in own:
            return True
        cell = sources.get(bit)
        if bit in seen or cell is None or cell.source != "logic":
            continue
        seen.add(bit)
        todo += [it for port, bits in cell.ports.items() if port not in cell.outputs for it in bits]
    return False
