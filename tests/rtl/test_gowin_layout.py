"""Carries from logic are corrected between nextpnr and the packer, and nothing else is."""

from typing import Any

import pytest
from slipstick_rtl.fpga.gowin.layout import repair_carries


def _alu(table: int, **parameters: str) -> dict[str, Any]:
    return {"type": "ALU", "parameters": {"RAW_ALU_LUT": f"{table:032b}", **parameters}}


def _layout(**cells: dict[str, Any]) -> dict[str, Any]:
    return {"modules": {"top": {"cells": cells}, "empty": {}}}


def carry(table: int, operand: int, below: int) -> int:
    """The carry of a cell with that table, operand I0 and carry input; I1 and I3 are low."""
    return below if table >> 12 + operand & 1 else table >> operand & 1


@pytest.mark.parametrize("operand", [0, 1])
@pytest.mark.parametrize("below", [0, 1])
def test_a_carry_from_logic_is_its_operand(operand: int, below: int) -> None:
    layout = _layout(head=_alu(0x505A, CIN_NETTYPE="LOGIC"))
    assert repair_carries(layout) == 1
    table = int(layout["modules"]["top"]["cells"]["head"]["parameters"]["RAW_ALU_LUT"], 2)
    assert carry(table, operand, below) == operand
    assert repair_carries(layout) == 0
    # as it was: a carry out of nowhere
    assert carry(0x505A, 0, 1) == 1


@pytest.mark.parametrize(
    "cell",
    [
        _alu(0x505A),  # an operand and 1
        _alu(0xC0C0, CIN_NETTYPE="LOGIC"),
        _alu(0x000A, CIN_NETTYPE="LOGIC"),  # of a later nextpnr
        {"type": "ALU", "parameters": {"ALU_MODE": "C2L"}},
        {"type": "LUT4", "parameters": {"INIT": "0" * 16}},
        {"type": "GND"},
    ],
)
def test_other_cells_are_left_alone(cell: dict[str, Any]) -> None:
    before = repr(cell)
    assert repair_carries(_layout(cell=cell)) == 0
    assert repr(cell) == before
