"""Power after layout: what ports do in an inference, what nets do in its replay."""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from optional_tools import needs_sta
from slipstick.asic.pdk import find_pdk
from slipstick.asic.saif import Activity
from slipstick.errors import TargetError
from slipstick.layout.blocks import element_format, find_block
from slipstick.layout.inference import has_inference, read_values, record_inference
from slipstick.layout.netlist import Port
from slipstick.layout.power import clock_nets, power_of
from slipstick.layout.replay import Replay, port_words, scalar_activity
from slipstick.layout.spice import Extracted, Instance, layout_verilog
from slipstick.toolchain import OPENSTA
from tiny_liberty import tiny_liberty

VALUES = """$version any $end
$timescale 1ps $end
$scope module TOP $end
$scope module core $end
$var wire 1 ! outside $end
$scope module part $end
$var wire 4 " number [3:0] $end
$var wire 2 % number$12 [1:0] $end
$var wire 1 # bit $end
$var wire 2 & other [1:0] $end
$var wire 4 ' other$7 [3:0] $end
$var wire 4 ( twice$1 [3:0] $end
$var wire 4 ) twice$2 [3:0] $end
$scope module inner $end
$var wire 1 $ hidden $end
$upscope $end
$upscope $end
$upscope $end
$upscope $end
$enddefinitions $end
#0
b0011 "
1#
1!
#2
b1111 "
b1010 '
0#
#3
1#
"""


def test_a_scopes_values_are_read_cycle_by_cycle(tmp_path: Path) -> None:
    path = tmp_path / "x.vcd"
    path.write_text(VALUES)
    wanted = {"number": 4, "bit": 1, "other": 4, "twice": 4, "hidden": 1, "outside": 1}
    found = read_values(path, "core.part", 5, wanted)
    # a port whose name another signal has, and what is there twice, or elsewhere
    assert {name: values.tolist() for name, values in found.items()} == {
        "number": [3, 3, 15, 15, 15],
        "bit": [1, 1, 0, 1, 1],
        "other": [0, 0, 10, 10, 10],
    }


ACTIVITY = """$scope module layout $end
$var wire 1 ! a $end
$var wire 1 " b $end
$var wire 1 ! c $end
$var wire 1 # never $end
$upscope $end
$enddefinitions $end
#1000
$dumpvars
0!
x"
0#
$end
#1100
1!
#1150
0!
1"
#1200
1!
1"
#1400
"""


def test_every_change_of_a_net_counts_and_what_is_unknown_is_0(tmp_path: Path) -> None:
    path = tmp_path / "x.vcd"
    path.write_text(ACTIVITY)
    found = scalar_activity(path, 2)
    # of 400 units
    assert found == {
        "a": Activity(1.5, 0.625),
        "c": Activity(1.5, 0.625),
        "b": Activity(0.5, 0.625),
        "never": Activity(0.0, 0.0),
    }


def test_ports_become_a_binary_word_per_cycle() -> None:
    ports = {"low": Port("input", ("low_0", "low_1")), "high": Port("input", ("high",))}
    columns = {"low": np.array([2, 1]), "high": np.array([0, 1])}
    assert port_words(columns, ports) == "010\n101\n"


def test_the_clocks_nets_end_at_registers() -> None:
    buffer = SimpleNamespace(inputs=("A",), outputs={"Y": None}, state={})
    register = SimpleNamespace(inputs=("D", "CLK"), outputs={"Q": None}, state={"clocked_on": None})
    pdk = SimpleNamespace(cells={"BUF": buffer, "DFF": register})
    found = Extracted(
        "x",
        ("clk", "d"),
        {
            "b1": Instance("BUF", {"A": "clk", "Y": "clk_1"}),
            "b2": Instance("BUF", {"A": "clk_1", "Y": "clk_2"}),
            "r": Instance("DFF", {"D": "d", "CLK": "clk_2", "Q": "q"}),
            "b3": Instance("BUF", {"A": "q", "Y": "y"}),
            "filler": Instance("FILL", {}),
        },
        {},
    )
    assert clock_nets(found, pdk) == {"clk", "clk_1", "clk_2"}  # type: ignore[arg-type]


def test_parts_of_a_core_have_an_inference() -> None:
    assert has_inference(find_block("element-lns5")) and has_inference(find_block("array-4x4-int8"))
    assert not has_inference(find_block("lns-unit"))


def test_a_shape_that_runs_no_digits_is_told(tmp_path: Path) -> None:
    block = find_block("array-64x1-int8")
    with pytest.raises(TargetError, match="block array-64x1-int8: no core to run the digits on: "):
        record_inference(block, {}, tmp_path / "x.vcd")


@pytest.mark.thorough
def test_an_elements_ports_are_recorded(tmp_path: Path) -> None:
    """In a whole inference on the RTL: what goes in comes out a cycle later, products are added."""
    names = {
        **{"activations": 8, "weight": 8, "partial_sums": 16, "capture": 1, "swap": 1},
        **{"activations_out": 8, "partial_sums_out": 17},
    }
    ports = {
        name: Port(
            "output" if name.endswith("_out") else "input",
            tuple(f"{name}_{bit}" for bit in range(size)),
        )
        for name, size in names.items()
    }
    found = record_inference(find_block("element-int8"), ports, tmp_path / "x.vcd")
    assert set(found.inputs) | set(found.outputs) == set(names)
    assert found.cycles > 10_000 and found.macs > 100_000
    entered = found.inputs["activations"]
    assert len(entered) == found.cycles and len(np.unique(entered)) > 50
    np.testing.assert_array_equal(found.outputs["activations_out"][1:], entered[:-1])
    # the weight in use is the last one captured before the last swap
    captured = working = 0
    products = np.zeros(found.cycles, np.int64)
    for cycle in range(found.cycles):
        products[cycle] = _signed(int(entered[cycle]), 8) * _signed(working, 8)
        if found.inputs["swap"][cycle]:
            working = captured
        if found.inputs["capture"][cycle]:
            captured = int(found.inputs["weight"][cycle])
    late = element_format("int8").multiplier_latency + 1
    above = found.inputs["partial_sums"]
    expected = [
        (_signed(int(above[cycle - 1]), 16) + int(products[cycle - late])) & 0x1FFFF
        for cycle in range(late, found.cycles)
    ]
    np.testing.assert_array_equal(found.outputs["partial_sums_out"][late:], expected)


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


CIRCUIT = Extracted(
    "block",
    ("clk", "a", "b", "y"),
    {
        "BUF_1": Instance("BUF", {"A": "clk", "Y": "tree"}),
        "XOR_1": Instance("XOR2", {"A": "a", "B": "b", "Y": "odd"}),
        "DFF_1": Instance("DFF", {"D": "odd", "CLK": "tree", "Q": "kept"}),
        "INV_1": Instance("INV", {"A": "kept", "Y": "y"}),
    },
    {},
)
WIRES = """*SPEF "IEEE 1481-1998"
*DESIGN "block"
*DATE "-"
*VENDOR "-"
*PROGRAM "-"
*VERSION "1"
*DESIGN_FLOW "NETLIST_TYPE_VERILOG"
*DIVIDER /
*DELIMITER :
*BUS_DELIMITER [ ]
*T_UNIT 1 NS
*C_UNIT 1 PF
*R_UNIT 1 OHM
*L_UNIT 1 HENRY

*D_NET a 0.02
*CONN
*P a I
*I XOR_1:A I
*CAP
1 a 0.01
2 a:1 0.01
*RES
1 a a:1 5
2 a:1 XOR_1:A 0.001
*END
*D_NET odd 0.05
*CONN
*I XOR_1:Y O
*I DFF_1:D I
*CAP
1 XOR_1:Y 0.05
*RES
1 XOR_1:Y DFF_1:D 5
*END
"""


@needs_sta
def test_power_is_that_of_the_changes_of_each_net(tmp_path: Path) -> None:
    """Half of capacitance times voltage squared per change, in gates behind inputs as well."""
    library = tmp_path / "cells.lib"
    library.write_text(tiny_liberty())
    pdk = find_pdk(str(library), feature_nm=90)
    (tmp_path / "block.v").write_text(layout_verilog(CIRCUIT, ["clk", "a", "b"], []))
    (tmp_path / "block.spef").write_text(WIRES)
    nets = {
        "a": Activity(0.9, 0.3),
        "b": Activity(0.8, 0.6),
        # less than OpenSTA would make of its inputs
        "odd": Activity(0.25, 0.5),
        "kept": Activity(0.125, 0.5),
        "y": Activity(0.125, 0.5),
    }
    period = 4.0
    done = Replay(1000, 0, period, nets)
    found = power_of("digits", done, CIRCUIT, "block", pdk, OPENSTA.find(), tmp_path)
    voltage = pdk.voltage
    assert voltage is not None

    def switching(picofarads: float, changes: float) -> float:
        return picofarads * voltage**2 / 2 * changes / period

    def reported(step: str) -> dict[str, float]:
        rows = re.findall(r"^ *\S+ +(\S+) +\S+ +\S+ +(\w+)$", (tmp_path / step).read_text(), re.M)
        return {name: 1000 * float(watts) for watts, name in rows}

    pin = 0.01
    assert reported("power.log")["XOR_1"] == pytest.approx(switching(0.05 + pin, 0.25), rel=1e-3)
    assert reported("power.log")["DFF_1"] == pytest.approx(switching(pin, 0.125), rel=1e-3)
    assert reported("power.log")["BUF_1"] == pytest.approx(switching(pin, 2), rel=1e-3)
    without = reported("power_without_wires.log")
    assert without["XOR_1"] == pytest.approx(switching(pin, 0.25), rel=1e-3)
    still = reported("power_of_clock.log")
    assert still["XOR_1"] < 1e-9 and still["BUF_1"] == pytest.approx(switching(pin, 2), rel=1e-3)
    assert 0 < found.clock_mw < found.without_wires_mw < found.dynamic_mw
    assert found.changes_per_cycle == pytest.approx((0.9 + 0.8 + 0.25 + 0.125 + 0.125) / 5)
    assert found.leakage_mw > 0


def test_a_net_that_was_not_replayed_is_named(tmp_path: Path) -> None:
    library = tmp_path / "cells.lib"
    library.write_text(tiny_liberty())
    pdk = find_pdk(str(library), feature_nm=90)
    done = Replay(1000, 0, 4.0, {"a": Activity(0.9, 0.3)})
    with pytest.raises(TargetError, match="the replay must tell of net b, and does not"):
        power_of("digits", done, CIRCUIT, "block", pdk, "sta", tmp_path)
