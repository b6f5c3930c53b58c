"""Registers behind block RAMs go into them, where that changes nothing; small memories stay."""

import re
from collections import Counter
from typing import Any

import pytest
from slipstick_rtl.fpga.ecp5.netlist import absorb_output_registers
from slipstick_sim.benches import bench_small_memory
from slipstick_sim.benches.drivers.on_chip import DEVICE, ECP5
from slipstick_sim.netlist import ecp5_netlist
from slipstick_sim.toolchain import convert_to_rtlil

CLOCK = 2


def _register(**changes: Any) -> dict[str, Any]:
    ports = {"CLK": [CLOCK], "LSR": ["0"], "DI": [10], "Q": [20], **changes.pop("connections", {})}
    directions = dict.fromkeys(ports, "input") | {"Q": "output"}
    parameters = {"CEMUX": "1 ", "CLKMUX": "CLK", **changes}
    return {
        "type": "TRELLIS_FF",
        "parameters": parameters,
        "port_directions": directions,
        "connections": ports,
    }


def _memory(**changes: Any) -> dict[str, Any]:
    ports = {
        "CLKB": [CLOCK],
        "CEB": ["1"],
        "OCEB": ["1"],
        "RSTB": ["0"],
        "DOB0": [10],
        "DOB1": [11],
    }
    ports |= changes.pop("connections", {})
    directions = {port: "output" if port.startswith("DO") else "input" for port in ports}
    width = f"{2:032b}"
    parameters = {"REGMODE_B": "NOREG", "DATA_WIDTH_A": width, "DATA_WIDTH_B": width}
    return {
        "type": "DP16KD",
        "parameters": parameters | changes,
        "port_directions": directions,
        "connections": ports,
    }


def _netlist(memory: dict[str, Any], register: dict[str, Any]) -> dict[str, Any]:
    ports = {"q": {"direction": "output", "bits": [20]}}
    return {"modules": {"top": {"ports": ports, "cells": {"memory": memory, "register": register}}}}


def test_a_register_is_absorbed() -> None:
    memory = _memory()
    netlist = _netlist(memory, _register())
    assert absorb_output_registers(netlist) == 1
    assert set(netlist["modules"]["top"]["cells"]) == {"memory"}
    assert memory["parameters"]["REGMODE_B"] == "OUTREG"
    assert memory["connections"]["DOB0"] == [20]


def test_a_register_behind_the_port_that_writes_as_well() -> None:
    memory = _memory(
        connections={
            **{"CLKA": [CLOCK], "CEA": ["1"], "OCEA": ["1"], "RSTA": ["0"], "WEA": [7]},
            **{"DOA3": [10], "DOB0": [12]},
        },
        DATA_WIDTH_A=f"{4:032b}",
    )
    assert absorb_output_registers(_netlist(memory, _register())) == 1
    assert memory["parameters"]["REGMODE_A"] == "OUTREG"
    assert memory["parameters"]["REGMODE_B"] == "NOREG"
    assert memory["connections"]["DOA3"] == [20]


def test_registers_behind_both_ports_outputs_of_a_wide_memory() -> None:
    wide = f"{36:032b}"
    memory = _memory(
        connections={"OCEA": ["0"], "DOA5": [10], "DOB0": [12]},
        DATA_WIDTH_A=wide,
        DATA_WIDTH_B=wide,
        REGMODE_A="NOREG",
    )
    assert absorb_output_registers(_netlist(memory, _register())) == 1
    assert memory["parameters"]["REGMODE_A"] == memory["parameters"]["REGMODE_B"] == "OUTREG"
    assert memory["connections"]["DOA5"] == [20]
    assert "OCEA" not in memory["connections"]


@pytest.mark.parametrize(
    ("memory", "register"),
    [
        pytest.param({"connections": {"CEB": [5]}}, {}, id="a memory with an enable"),
        pytest.param({"connections": {"RSTB": [5]}}, {}, id="a memory with a reset"),
        pytest.param({"DATA_WIDTH_B": f"{36:032b}"}, {}, id="a memory with both ports' outputs"),
        pytest.param({"DATA_WIDTH_A": f"{36:032b}"}, {}, id="a memory with both ports' inputs"),
        pytest.param({"REGMODE_B": "OUTREG"}, {}, id="a memory with its register on"),
        pytest.param({"connections": {"CLKB": [3]}}, {}, id="another clock"),
        pytest.param({}, {"CEMUX": "CE"}, id="a register with an enable"),
        pytest.param({}, {"CLKMUX": "INV"}, id="the other edge"),
        pytest.param({}, {"connections": {"LSR": [5]}}, id="a register with a reset"),
        pytest.param({}, {"connections": {"M": [10]}}, id="another reader"),
    ],
)
def test_what_would_change_something_is_left(
    memory: dict[str, Any], register: dict[str, Any]
) -> None:
    netlist = _netlist(_memory(**memory), _register(**register))
    mode = netlist["modules"]["top"]["cells"]["memory"]["parameters"]["REGMODE_B"]
    assert absorb_output_registers(netlist) == 0
    cells = netlist["modules"]["top"]["cells"]
    assert set(cells) == {"memory", "register"}
    assert cells["memory"]["parameters"]["REGMODE_B"] == mode


def test_small_memories_and_delays_stay_in_look_up_tables() -> None:
    """Blocks of 16 words of four bits: two for each 16 of the words, two for each ring."""
    shape = {"width": 7, "depth": 48, "cycles": 21, DEVICE: ECP5}
    rtlil = convert_to_rtlil(bench_small_memory.make(**shape), "top")
    cells = Counter(
        re.findall(r"^  ([A-Z]\w+) #", ecp5_netlist.verilog(rtlil, "top"), re.MULTILINE)
    )
    assert cells["TRELLIS_DPR16X4"] == 2 * 3 + 2 * 2
    # the rings' places, and nothing of what is stored
    assert cells["TRELLIS_FF"] == 4 + 4 and not cells["DP16KD"]
