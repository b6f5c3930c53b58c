"""Sums in carry chains: what they make is benched; here, what their netlists need."""

from typing import Any

import pytest
from slipstick_rtl.primitives.carry_sum import release_starts


def _netlist(carry: list[Any] | None, table: str, c: str = "1") -> dict[str, Any]:
    connections: dict[str, list[Any]] = {"A0": [2], "B0": ["1"], "C0": [c], "D0": ["1"]}
    if carry is not None:
        connections["CIN"] = carry
    cell = {"type": "CCU2C", "parameters": {"INIT0": table}, "connections": connections}
    return {"modules": {"top": {"cells": {"chain": cell, "other": {"type": "LUT4"}}}}}


@pytest.mark.parametrize(
    ("carry", "table", "c", "released"),
    [
        (["0"], f"{8:016b}", "1", 1),
        (["1"], f"{0:016b}", "1", 1),
        ([7], f"{8:016b}", "1", 0),
        (["0"], f"{0x1008:016b}", "1", 0),
        (["0"], f"{8:016b}", "0", 0),
        (None, f"{8:016b}", "1", 0),
    ],
)
def test_a_chain_that_starts_itself_needs_no_carry(
    carry: list[Any] | None, table: str, c: str, released: int
) -> None:
    netlist = _netlist(carry, table, c)
    assert release_starts(netlist) == released
    connections = netlist["modules"]["top"]["cells"]["chain"]["connections"]
    assert connections.get("CIN") == (["x"] if released else carry)
