"""Memories on silicon: which become macros and which flip-flops, and that cores still compute."""

import json
import re
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from slipstick.asic.macros import SMALLEST_SRAM_BITS, WRAPPERS, Macro, memory_macros, wrappers
from slipstick.asic.memories import FLIP_FLOPS, SRAM, large_shapes, memory_mapping, with_macros
from slipstick.errors import TargetError
from slipstick_rtl.accelerator import Accelerator
from slipstick_rtl.config import Configuration
from slipstick_sim.benches.registry import Bench, load
from slipstick_sim.benches.runner import run_bench
from slipstick_sim.toolchain import convert_to_rtlil, run_full_yosys

CONFIGURATION = Configuration(
    pixels=2,
    rows=4,
    columns=4,
    lanes=4,
    activation_bytes=1 << 12,
    weight_bytes=1 << 13,
    accumulator_depth=64,
    instruction_words=64,
    payload_bytes=64,
)


class OneMemory(wiring.Component):
    """A memory with one port that reads, and one that writes if it has no contents."""

    enable: Signal
    write_enable: Signal
    address: Signal
    i: Signal
    o: Signal

    def __init__(
        self, *, depth: int = 256, contents: tuple[int, ...] = (), written: bool = True
    ) -> None:
        self._depth, self._contents, self._written = depth, contents, written
        super().__init__(
            {
                "enable": In(1),
                "write_enable": In(4),
                "address": In(8),
                "i": In(32),
                "o": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.memory = memory = Memory(shape=32, depth=self._depth, init=self._contents)
        reader = memory.read_port()
        m.d.comb += [
            reader.addr.eq(self.address),
            reader.en.eq(self.enable),
            self.o.eq(reader.data),
        ]
        if self._written:
            writer = memory.write_port(granularity=8)
            m.d.comb += [
                writer.addr.eq(self.address),
                writer.en.eq(self.write_enable),
                writer.data.eq(self.i),
            ]
        return m


def mapped(rtlil: str, technology: str, folder: Path, more: str = "") -> dict:
    """The design with its memories mapped, as Yosys' JSON; ``more`` commands follow."""
    mapping = memory_mapping(rtlil, technology)
    mapping.write(folder)
    script = f"read_rtlil design.il\nhierarchy -auto-top\nproc\n{mapping.commands}{more}"
    run_full_yosys(script + "write_json design.json\n", cwd=folder)
    return json.loads((folder / "design.json").read_text())


def kinds(netlist: dict) -> Counter[str]:
    """Counts the cells of each kind that is no module of the design."""
    return Counter(
        cell["type"]
        for module in netlist["modules"].values()
        for cell in module["cells"].values()
        if cell["type"] not in netlist["modules"] or cell["type"] in WRAPPERS.values()
    )


@pytest.fixture(scope="module")
def core() -> str:
    return convert_to_rtlil(Accelerator(configuration=CONFIGURATION), "slipstick")


def test_macros_of_a_core(core: str, tmp_path: Path) -> None:
    netlist = mapped(core, SRAM, tmp_path)
    macros = memory_macros(netlist, "slipstick")
    shapes = Counter((macro.words, macro.bits, macro.ports, macro.write_bits) for macro in macros)
    c = CONFIGURATION
    assert shapes == {
        # each bank once for each pixel's window
        (c.activation_bytes // c.rows, 8, 2, 8): c.rows * c.pixels,
        (c.weight_bytes // c.columns, 32, 2, 8): 1,
        (c.accumulator_depth, 32 * c.pixels, 2, 32 * c.pixels): 2 * c.columns,
        (c.instruction_words, 32, 2, 8): 1,
        (512, 32, 2, 32): c.lanes,
    }
    assert sum(macro.size for macro in macros if macro.path.startswith("weights.")) == 8 << 13
    # no cell of a vendor, and nothing left of Yosys' memories
    found = kinds(netlist)
    assert all(kind.startswith("$") or kind in WRAPPERS.values() for kind in found)
    assert not [kind for kind in found if kind.startswith("$mem")]


def test_macros_need_no_logic_beside(core: str, tmp_path: Path) -> None:
    """As many flip-flops as without the large memories: nothing imitates what macros lack."""
    small = "t:$mem_v2"
    for shape in large_shapes(core):
        small += f" t:$mem_v2 r:SIZE={shape.words} %i r:WIDTH={shape.bits} %i %d"
    (tmp_path / "plain.il").write_text(memory_mapping(core, FLIP_FLOPS).design)
    script = "read_rtlil plain.il\nhierarchy -auto-top\nproc\nmemory_collect\n"
    script += f"memory_map {small}\nopt_clean\ntee -o plain.txt stat\n"
    run_full_yosys(script, cwd=tmp_path)
    mapped(core, SRAM, tmp_path, "tee -o mapped.txt stat\n")

    def flip_flops(name: str) -> int:
        text = (tmp_path / name).read_text()
        total = text[text.rindex("design hierarchy") :]
        return sum(map(int, re.findall(r"(\d+) +\$s?dffe?\n", total)))

    assert 0 < flip_flops("plain.txt") == flip_flops("mapped.txt")


def test_flip_flops(core: str, tmp_path: Path) -> None:
    netlist = mapped(OneMemoryText.small, FLIP_FLOPS, tmp_path)
    assert memory_macros(netlist, "one") == ()
    found = kinds(netlist)
    assert not [kind for kind in found if kind.startswith("$mem") or kind in WRAPPERS.values()]
    assert found["$dff"] + found["$dffe"] >= 16
    mapping = memory_mapping(core, FLIP_FLOPS)
    assert not mapping.files and "libmap" not in mapping.commands


class OneMemoryText:
    """Designs of one memory as RTLIL: at the bound, below it, a table of constants."""

    large = convert_to_rtlil(OneMemory(depth=SMALLEST_SRAM_BITS // 32), "one")
    small = convert_to_rtlil(OneMemory(depth=SMALLEST_SRAM_BITS // 32 - 1), "one")
    table = convert_to_rtlil(OneMemory(contents=tuple(range(256)), written=False), "one")
    filled = convert_to_rtlil(OneMemory(contents=(7,)), "one")


def test_the_bound(tmp_path: Path) -> None:
    macros = memory_macros(mapped(OneMemoryText.large, SRAM, tmp_path), "one")
    # one address for reading and writing: one port, and bytes are enabled
    assert macros == (Macro("memory.0.0", SMALLEST_SRAM_BITS // 32, 32, 1, 8),)
    assert memory_macros(mapped(OneMemoryText.small, SRAM, tmp_path), "one") == ()


def test_a_table_of_constants_is_logic(tmp_path: Path) -> None:
    netlist = mapped(OneMemoryText.table, SRAM, tmp_path)
    assert memory_macros(netlist, "one") == ()


def test_a_macro_path_names_its_blocks() -> None:
    parameters = {"WORDS": f"{64:b}", "BITS": f"{16:b}", "WRITE_BITS": f"{8:b}"}
    macro = {"type": "slipstick_sram_1rw", "parameters": parameters}
    netlist = {
        "modules": {
            "top": {"cells": {"x": {"type": "block"}, "y": {"type": "block"}}},
            "block": {"cells": {"m": macro, "g": {"type": "$and"}}},
        }
    }
    assert memory_macros(netlist, "top") == (Macro("x.m", 64, 16, 1, 8), Macro("y.m", 64, 16, 1, 8))


def test_bad_input() -> None:
    with pytest.raises(TargetError, match="memories must be sram or flip-flops, not 'dram'"):
        memory_mapping("", "dram")
    for technology in (SRAM, FLIP_FLOPS):
        with pytest.raises(TargetError, match=r"memory one\S*\.memory must not begin with cont"):
            memory_mapping(OneMemoryText.filled, technology)


def verilog_with_macros(rtlil: str, top: str) -> str:
    """A design of which each large memory is a wrapper, and the wrappers' models."""
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "design.il").write_text(with_macros(rtlil))
        run_full_yosys("read_rtlil design.il\nwrite_verilog -noattr design.v\n", cwd=Path(name))
        text = (Path(name) / "design.v").read_text()
        assert "slipstick_sram_1rw1r #(" in text
        return "\n".join([text, *wrappers().values()])


@pytest.mark.parametrize(
    ("name", "parameters"),
    # the least payload whose ring is worth a macro, and the least activations
    [
        pytest.param(
            "bench_weights",
            {"rows": 8, "columns": 16, "weight_rows": 2},
            marks=pytest.mark.thorough,
        ),
        ("bench_weights", {"rows": 8, "columns": 4, "silicon": 1}),
        pytest.param(
            "bench_link",
            {"rows": 4, "columns": 8, "lanes": 4, "payload_bytes": 128},
            marks=pytest.mark.thorough,
        ),
        (
            "bench_activation_memory",
            {"rows": 16, "lanes": 4, "silicon": 1, "activation_bytes": 1 << 12},
        ),
        (
            "bench_matrix",
            {"pixels": 1, "rows": 8, "columns": 8, "lanes": 4, "weight_rows": 2, "silicon": 1},
        ),
        (
            "bench_post",
            {"pixels": 1, "rows": 4, "columns": 4, "lanes": 4, "halved_tables": 1, "products": 1}
            | {"silicon": 1},
        ),
        pytest.param(
            "bench_post",
            {"rows": 16, "columns": 8, "lanes": 4, "weight_rows": 4, "drain_tables": 1}
            | {"silicon": 1},
            marks=pytest.mark.thorough,
        ),
    ],
    ids=[
        "weights",
        "resting-weights",
        "link",
        "resting-activations",
        "resting-accumulators",
        "resting-halved-tables",
        "resting-drain-tables",
    ],
)
def test_blocks_of_macros_compute(name: str, parameters: dict[str, int]) -> None:
    """Byte enables and ninth bits of weights; the link's ring, which holds what it reads; memories
    for silicon, that rest where nobody asks, and whose words nobody holds. The models give no word
    for longer than a cycle, and nothing sensible of one that is written."""
    bench: Bench = replace(load(name), verilog=verilog_with_macros, optimisation="-O0")
    result = run_bench(bench, parameters)
    assert result.passed, result.explain()
