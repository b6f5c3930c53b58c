"""Area by block, the model of memories, buffers, and the treemap."""

import math
from pathlib import Path
from typing import Any

import pytest
from slipstick.asic.areas import block_areas, family_of
from slipstick.asic.buffers import MOST_LOADS, find_buffer, insert_buffers
from slipstick.asic.loads import LoadCounter, outer_loads
from slipstick.asic.macro_liberty import macro_cell, macro_liberty
from slipstick.asic.macros import Macro
from slipstick.asic.mapping import Block, Mapping
from slipstick.asic.memory_model import BIT_AREA, access_energy, memory_cost
from slipstick.asic.pdk import Pdk, find_pdk
from slipstick.asic.treemap import Rectangle, draw_treemap, squarify
from slipstick.errors import TargetError
from tiny_liberty import GATES, tiny_liberty

SMALL = Macro("inner_0.memory.0.0", 512, 64, 1, 64)
PAIR = Macro("memory.0.0", 1024, 32, 2, 8)


@pytest.fixture
def pdk(tmp_path: Path) -> Pdk:
    path = tmp_path / "tiny.lib"
    path.write_text(tiny_liberty())
    return find_pdk(str(path), feature_nm=45)


def design(pdk: Pdk) -> Mapping:
    """Two equal blocks and a third, each of a flip-flop and gates, and two memories."""
    inner = Block("top.inner_0", 10.0, {"DFF": 1, "NAND2": 1}, {})
    other = Block("top.other", 3.0, {"INV": 3}, {})
    instances = {"inner_0": "inner", "inner_1": "inner", "other": "other"}
    top = Block("top", 8.0, {"DFF": 1}, instances)
    blocks = {"inner": inner, "other": other, "top": top}
    return Mapping("top", pdk, Path(), blocks, (SMALL, PAIR), 0.0)


def test_areas_are_told_by_block_and_sum_up(pdk: Pdk) -> None:
    mapping = design(pdk)
    blocks = {block.name: block for block in block_areas(mapping)}
    assert set(blocks) == {"", "inner_*", "other"}
    inner = blocks["inner_*"]
    assert (inner.count, inner.cells, inner.flip_flops, inner.cell_area) == (2, 4, 2, 20.0)
    assert inner.memory_bits == 512 * 64
    assert inner.memory_area == memory_cost(SMALL, pdk).area
    assert blocks[""].memory_bits == 1024 * 32
    assert sum(block.cell_area for block in blocks.values()) == mapping.area == 31.0
    assert mapping.cells == {"DFF": 3, "NAND2": 2, "INV": 3}


def test_only_numbered_siblings_are_a_family() -> None:
    names = family_of(["element_0_1", "element_1_0", "block_3", "reader"])
    assert names == {
        "element_0_1": "element_*_*",
        "element_1_0": "element_*_*",
        "block_3": "block_3",
        "reader": "reader",
    }


@pytest.mark.parametrize(
    ("words", "bits", "area", "access_ns"),
    [(64, 32, 1241, 0.207), (512, 64, 17301, 0.305), (1024, 32, 16406, 0.309)],
)
def test_the_model_meets_published_memories(
    pdk: Pdk, words: int, bits: int, area: float, access_ns: float
) -> None:
    cost = memory_cost(Macro("m", words, bits, 1, bits), pdk)
    assert cost.area == pytest.approx(area, rel=0.15)
    assert cost.access_ns == pytest.approx(access_ns, abs=0.03)


def test_energy_goes_through_its_points() -> None:
    points = [access_energy(size) for size in (8192, 32768, 1 << 20)]
    assert points == pytest.approx([10, 20, 100])
    assert access_energy(2048) == pytest.approx(5)
    assert 20 < access_energy(1 << 17) < 100 < access_energy(1 << 22)


def test_memories_scale_with_the_process(tmp_path: Path) -> None:
    path = tmp_path / "tiny.lib"
    path.write_text(tiny_liberty().replace("nom_voltage : 1.2", "nom_voltage : 1.8"))
    cost = memory_cost(PAIR, find_pdk(str(path), feature_nm=180))
    assert cost.area == pytest.approx(PAIR.size * BIT_AREA * 1.8 * 16)
    assert cost.setup_ns == pytest.approx(0.2)
    assert cost.access_pj == pytest.approx(access_energy(4096) / 2 * 4 * 4)
    assert cost.leakage_mw > 0
    with pytest.raises(TargetError, match="must have a feature size .* give it by --feature-nm"):
        memory_cost(PAIR, find_pdk(str(path)))
    path.write_text(tiny_liberty().replace("nom_voltage : 1.2;", ""))
    with pytest.raises(TargetError, match="must give nom_voltage"):
        memory_cost(PAIR, find_pdk(str(path), feature_nm=180))


def test_macros_have_a_cell_for_each_shape(pdk: Pdk) -> None:
    text = macro_liberty([SMALL, PAIR, PAIR], pdk)
    assert text.count("  cell (") == 2
    assert macro_cell(PAIR) == "slipstick_sram_1rw1r_1024x32_w8"
    assert "bus (wmask0) {\n      bus_type : bits4;" in text
    assert text.count("{") == text.count("}")


def gate(kind: str, **nets: int) -> dict[str, Any]:
    return {
        "type": kind,
        "parameters": {},
        "port_directions": {pin: "output" if pin in "YQ" else "input" for pin in nets},
        "connections": {pin: [net] for pin, net in nets.items()},
    }


def fan_out(loads: int) -> dict[str, Any]:
    """A module whose input drives inverters, in a block and beside it, and its clock registers."""
    ports = {name: {"direction": "input", "bits": [k]} for name, k in (("clk", 2), ("i", 3))}
    inner_cells = {f"g{k}": gate("INV", A=3, Y=100 + k) for k in range(loads)}
    inner_cells |= {f"r{k}": gate("DFF", CLK=2, D=3, Q=300 + k) for k in range(loads)}
    top_cells = {f"g{k}": gate("INV", A=3, Y=100 + k) for k in range(loads)}
    top_cells["b"] = gate("inner", clk=2, i=3)
    return {
        "modules": {
            "inner": {"ports": ports, "netnames": {}, "cells": inner_cells},
            "top": {"ports": ports, "netnames": {}, "cells": top_cells},
        }
    }


@pytest.mark.parametrize("loads", [4, 8, 9, 40, 300])
def test_no_net_but_the_clock_drives_too_many_pins(pdk: Pdk, loads: int) -> None:
    netlist = fan_out(loads)
    inserted = insert_buffers(netlist, ["inner", "top"], pdk)
    assert (inserted > 0) == (2 * loads > MOST_LOADS or 3 * loads > MOST_LOADS)
    counter = LoadCounter(netlist, pdk)
    for module in ("inner", "top"):
        nets = counter.nets(module)
        counter.remember(module, nets)
        counts = {net: found.count for net, found in nets.items() if not found.clock}
        assert max(counts.values()) <= MOST_LOADS
        assert nets[2].count == loads
        assert _reached(netlist["modules"][module], 3) == loads * (
            2 if module == "inner" else 1
        ) + (module == "top")


def _reached(module: dict[str, Any], net: int) -> int:
    """Pins that a net drives through buffers."""
    total = 0
    for cell in module["cells"].values():
        pins = cell["connections"]
        if net in pins.get("A", ()) and cell["type"] == "BUF":
            total += _reached(module, pins["Y"][0])
        else:
            total += sum(
                net in bits for pin, bits in pins.items() if cell["port_directions"][pin] == "input"
            )
    return total


def test_a_library_without_buffers_gets_none(tmp_path: Path) -> None:
    path = tmp_path / "tiny.lib"
    gates = {name: about for name, about in GATES.items() if name != "BUF"}
    path.write_text(tiny_liberty(gates=gates))
    pdk = find_pdk(str(path))
    assert find_buffer(pdk) is None
    assert insert_buffers(fan_out(40), ["inner", "top"], pdk) == 0


def test_loads_beyond_an_output_are_counted(pdk: Pdk) -> None:
    netlist = fan_out(3)
    inner, top = netlist["modules"]["inner"], netlist["modules"]["top"]
    inner["ports"] = {**inner["ports"], "o": {"direction": "output", "bits": [100]}}
    top["cells"]["b"]["connections"]["o"] = [50]
    top["cells"] |= {f"h{k}": gate("INV", A=50, Y=60 + k) for k in range(5)}
    counter, nets = LoadCounter(netlist, pdk), {}
    for module in ("inner", "top"):
        nets[module] = counter.nets(module)
        counter.remember(module, nets[module])
    outside = outer_loads(netlist, ["inner", "top"], "top", nets)
    assert outside["inner"] == {("o", 0): 5.0}


def test_a_treemap_fills_its_place(pdk: Pdk, tmp_path: Path) -> None:
    areas = [6.0, 6, 4, 3, 2, 2, 1]
    place = Rectangle(0, 0, 6, 4)
    parts = squarify(areas, place)
    assert [part.size for part in parts] == pytest.approx(areas)
    assert max(max(p.width / p.height, p.height / p.width) for p in parts) < 3
    assert math.isclose(max(part.x + part.width for part in parts), 6)
    assert squarify([], place) == []
    draw_treemap(tmp_path / "area.png", block_areas(design(pdk)), "a title")
    assert (tmp_path / "area.png").read_bytes().startswith(b"\x89PNG")
