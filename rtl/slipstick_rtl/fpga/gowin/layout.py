"""Corrects Gowin layouts between nextpnr and the packer."""

from typing import Any

_WRONG_HEAD = 0x505A
_HEAD = 0x000A
_TABLE_BITS = 32
"""As nextpnr writes numbers down."""


def repair_carries(layout: dict[str, Any]) -> int:
    """Corrects the carries that come from logic, in place; returns how many there were.

    Such a chain begins with a cell of its own, whose carry must be its operand I0. The carry of a
    cell is its carry input where the highest four bits of its table, looked up by operands, are 1,
    and the lowest four bits where they are 0. Those that nextpnr 0.11.1 writes, 0x505A, make it
    I0 or the carry input; that is not connected, so that the sum depends on where the chain lies.
    Later versions write what this puts in its place.
    """
    repaired = 0
    for module in layout["modules"].values():
        for cell in module.get("cells", {}).values():
            parameters = cell.get("parameters", {})
            from_logic = cell["type"] == "ALU" and parameters.get("CIN_NETTYPE") == "LOGIC"
            if from_logic and int(parameters["RAW_ALU_LUT"], 2) == _WRONG_HEAD:
                parameters["RAW_ALU_LUT"] = f"{_HEAD:0{_TABLE_BITS}b}"
                repaired += 1
    return repaired
