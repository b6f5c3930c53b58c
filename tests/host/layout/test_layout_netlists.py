"""Netlists of a layout: gates to be placed, the clock's tree, SPICE, Verilog, netgen's report."""

import random
from pathlib import Path
from typing import Any

import pytest
from slipstick.asic.pdk import Pdk, find_pdk
from slipstick.errors import TargetError
from slipstick.layout.clock_tree import insert_clock_tree
from slipstick.layout.lvs import count_differences
from slipstick.layout.netlist import Gate, GateNetlist, Port, read_gates
from slipstick.layout.simulation import layout_sources, wrapper
from slipstick.layout.spice import layout_verilog, read_spice
from slipstick.layout.technology import Technology
from tiny_liberty import tiny_liberty

SPICE = """* extracted
* Black-box entry subcircuit for INV abstract view
.subckt INV A gnd Y vdd
.ends

.subckt FILL gnd vdd
.ends

.subckt block vdd gnd a
+ q
XINV_1 a gnd INV_2/A vdd INV
XINV_2 INV_2/A gnd q vdd INV
XFILL_1 gnd vdd FILL
C0 a INV_2/A 1.5fF
C1 INV_2/A gnd 250aF **FLOATING
C2 q INV_1/m1_2# 0.001pF
.ends
"""


class Tiny(Technology):
    """A technology of the tests' library."""

    buffer = clock_buffer = "BUF"


TINY = Tiny("tiny", 90.0, "tiny.lib")


@pytest.fixture(scope="module")
def pdk(tmp_path_factory: pytest.TempPathFactory) -> Pdk:
    path: Path = tmp_path_factory.mktemp("library") / "tiny.lib"
    path.write_text(tiny_liberty())
    return find_pdk(str(path), feature_nm=90)


def _module(cells: dict[str, tuple[str, dict[str, int | str]]], **ports: Any) -> dict[str, Any]:
    return {
        "ports": {name: {"direction": way, "bits": bits} for name, (way, bits) in ports.items()},
        "cells": {
            name: {"type": kind, "connections": {pin: [bit] for pin, bit in pins.items()}}
            for name, (kind, pins) in cells.items()
        },
    }


def test_gates_get_plain_names(pdk: Pdk) -> None:
    module = _module(
        {
            "$1": ("INV", {"A": 2, "Y": 9}),
            "$2": ("INV", {"A": 9, "Y": 4}),
            "$3": ("INV", {"A": 3, "Y": 10}),
        },
        a=("input", [2, 3]),
        rst=("input", [8]),
        **{"o.payload": ("output", [4, "0", 4, 2])},
    )
    found = read_gates(module, "block", pdk, "BUF")
    # what drives nothing is gone, and with it the use of a pin
    assert [name for name, _ in found.instances()] == ["INV_1", "INV_2", "BUF_1", "BUF_2"]
    assert found.ports["a"].nets == ("a_0", "")
    assert found.ports["rst"].nets == ("",)
    assert found.ports["o.payload"].nets == ("o_payload_0", "1'b0", "o_payload_2", "o_payload_3")
    assert found.gates[2] == Gate("BUF", {"A": "o_payload_0", "Y": "o_payload_2"})
    assert found.gates[3] == Gate("BUF", {"A": "a_0", "Y": "o_payload_3"})
    assert found.blif() == (
        ".model block\n.inputs a_0\n.outputs o_payload_0 o_payload_2 o_payload_3\n"
        ".gate INV A=a_0 Y=n9\n.gate INV A=n9 Y=o_payload_0\n"
        ".gate BUF A=o_payload_0 Y=o_payload_2\n.gate BUF A=a_0 Y=o_payload_3\n.end\n"
    )
    text = wrapper("bench", "block", found.ports)
    assert "  input [1:0] a" in text and "    .a_0(a[0])" in text
    assert "a_1" not in text and "  assign \\o.payload [1] = 1'b0;" in text


@pytest.mark.parametrize(
    ("kind", "bit", "message"),
    [
        ("OTHER", 2, "block must consist of the library's cells, not 'OTHER'"),
        ("INV", "1", "block must have no constant at a pin, and \\$1 has '1'"),
    ],
)
def test_gates_that_cannot_be_placed(pdk: Pdk, kind: str, bit: int | str, message: str) -> None:
    module = _module({"$1": (kind, {"A": bit, "Y": 3})}, o=("output", [3]))
    with pytest.raises(TargetError, match=message):
        read_gates(module, "block", pdk, "BUF")


def test_ports_must_differ(pdk: Pdk) -> None:
    module = _module({}, **{"a.b": ("input", [2]), "a_b": ("input", [3])})
    with pytest.raises(TargetError, match="ports of block must differ in letters"):
        read_gates(module, "block", pdk, "BUF")


@pytest.mark.parametrize(("flip_flops", "levels"), [(16, []), (17, [2]), (300, [19, 2])])
def test_clocks_get_a_tree(pdk: Pdk, flip_flops: int, levels: list[int]) -> None:
    (kind,) = pdk.flip_flops
    cell = pdk.cells[kind]
    clock = next(iter(cell.state["clocked_on"].variables))
    gates = [Gate(kind, {clock: "clk", "D": "d"}) for _ in range(flip_flops)]
    netlist = GateNetlist("block", {"clk": Port("input", ("clk",))}, gates)
    assert insert_clock_tree(netlist, TINY, pdk) == levels
    assert len(netlist.gates) == flip_flops + sum(levels)
    loads = dict[str, int]()
    for gate in netlist.gates:
        for pin, net in gate.pins.items():
            if pin in (clock, "A"):
                loads[net] = loads.get(net, 0) + 1
    assert max(loads.values()) <= 16
    assert {net for net in loads if net != "clk"} == {
        f"clk{level}_bF$buf{k}" for level, count in enumerate(levels) for k in range(count)
    }


def test_an_extracted_netlist_is_read(pdk: Pdk) -> None:
    found = read_spice(SPICE, "block")
    assert found.ports == ("vdd", "gnd", "a", "q")
    assert found.instances["INV_2"].nets == {"A": "INV_2/A", "gnd": "gnd", "Y": "q", "vdd": "vdd"}
    assert found.capacitances["INV_2/A"] == pytest.approx(1.75)
    assert found.capacitances["q"] == pytest.approx(1.0)
    assert found.pins["INV_1", "Y"] == "INV_2/A"
    assert layout_verilog(found, ["a"], ["vdd", "gnd"]) == (
        "module block (a, q);\n  input a;\n  output q;\n  wire INV_2_A;\n"
        "  INV INV_1 (.A(a), .Y(INV_2_A));\n  INV INV_2 (.A(INV_2_A), .Y(q));\nendmodule\n"
    )
    ports = {"a": Port("input", ("a",)), "q": Port("output", ("q",))}
    sources = layout_sources(found, ports, ("vdd", "gnd"), pdk)
    assert "module INV (input A, output Y);" in sources and "FILL" not in sources


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (".subckt block", ".subckt other", "the SPICE netlist must have a subcircuit 'block'"),
        (".subckt INV A gnd Y vdd", ".subckt", "line 3 of the SPICE netlist must name its"),
        ("gnd vdd FILL\nC0", "gnd vdd GONE\nC0", "XFILL_1 must be of a subcircuit before it"),
        ("a gnd INV_2/A vdd INV", "a gnd vdd INV", "instance XINV_1 must have 4 nets as INV has"),
        ("C0 a INV_2/A 1.5fF", "C0 a INV_2/A", "a capacitance must have two nets and a value"),
        ("1.5fF", "much", "a capacitance must have two nets and a value, not C0 a INV_2/A much"),
        ("1.5fF", "1.2.3fF", "a capacitance must have two nets and a value"),
        ("C2 q", "R2 q", "the SPICE netlist must have cells and capacitances, not R2 q"),
    ],
)
def test_a_bad_netlist_is_refused(old: str, new: str, message: str) -> None:
    assert old in SPICE
    with pytest.raises(TargetError) as refused:
        read_spice(SPICE.replace(old, new), "block")
    assert message in str(refused.value)


def test_nets_must_differ_in_verilog() -> None:
    found = read_spice(
        SPICE.replace("XFILL_1 gnd vdd FILL", "XINV_3 q gnd INV_2.A vdd INV"), "block"
    )
    with pytest.raises(TargetError, match="nets of block must differ in letters and digits"):
        layout_verilog(found, ["a"], ["vdd", "gnd"])


def test_damaged_netlists_are_read_or_refused() -> None:
    generator = random.Random(2)
    for _ in range(300):
        letters = list(SPICE)
        for _ in range(3):
            letters[generator.randrange(len(letters))] = generator.choice("+.XC \nf0-*")
        try:
            read_spice("".join(letters), "block")
        except TargetError as error:
            assert "\n" not in str(error)


def test_differences_are_counted() -> None:
    top: dict[str, Any] = {
        "devices": [[["INV", 3], ["BUF", 1]], [["INV", 3], ["BUF", 1]]],
        "nets": [5, 5],
        "pins": [["a", "gnd!"], ["A", "gnd"]],
    }
    assert count_differences([{}, top]) == 0
    worse = {
        "devices": [[["INV", 3]], [["INV", 1]]],
        "nets": [6, 5],
        "badnets": [[]],
        "badelements": [[], []],
        "pins": [["a"], ["b"]],
    }
    assert count_differences([worse]) == 2 + 1 + 1 + 2 + 1


@pytest.mark.parametrize(
    "report", [[], {}, None, [3], [{"devices": 3}], [{"nets": [1]}], [{"pins": [[1], [2]]}]]
)
def test_a_report_that_is_none_of_netgen(report: Any) -> None:
    with pytest.raises(ValueError, match="the report must be a list|the top's entry is not"):
        count_differences(report)
