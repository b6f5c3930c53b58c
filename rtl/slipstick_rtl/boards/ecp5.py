"""What synthesis for ECP5 needs beyond Yosys' defaults."""

from dataclasses import dataclass
from typing import Any

FREE_COLLISIONS = "setparam -set COLLISION_X_MASK 1'1 t:$memrd_v2 *.unbuffered/t:$memrd_v2 %d"
"""Yosys command, after the RTLIL is read: no reader minds what a word is while it is written.

Amaranth asks for the old word, which ECP5's block RAM does not give from port to port: Yosys would
add a bypass to every memory, and could not merge a write port and a read port of one address. No
block uses such a word: two writers never meet, and readers come later (``tests/rtl`` holds the
core to its model with new words as well as old ones). Each memory here has one write port. Queues
between clock domains are left out (``unbuffered`` within Amaranth's): there Yosys allows none.
"""


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


def synthesis_script(*, rtlil: str, verilog: str, netlist: str, top: str) -> str:
    """The Yosys commands from a design's RTLIL to its Verilog and its netlist for nextpnr.

    Parameters
    ----------
    rtlil, verilog, netlist : str
        File names; the first is read, the others are written.
    top : str
    """
    return "\n".join(
        (
            f"read_rtlil {rtlil}",
            "design -save elaborated",
            "proc -nomux -norom",
            "memory_collect",
            f"write_verilog -norename {verilog}",
            "design -load elaborated",
            FREE_COLLISIONS,
            f"synth_ecp5 -abc9 -top {top} -json {netlist}",
            "",
        )
    )


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
