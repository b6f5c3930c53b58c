"""Mapping: modules merged, blocks kept apart, cells and areas counted."""

from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from slipstick.asic.hierarchy import merge
from slipstick.asic.mapping import NETLIST, map_design
from slipstick.asic.memories import FLIP_FLOPS
from slipstick.asic.pdk import Pdk, find_pdk
from slipstick.errors import TargetError
from slipstick_rtl.primitives.delay import delay
from slipstick_sim.toolchain import convert_to_rtlil, run_full_yosys
from tiny_liberty import FLIP_FLOP_AREA, GATES, tiny_liberty

WIDTH = 4


class Stage(wiring.Component):
    """A register with enable that adds, and one with reset behind it."""

    enable: Signal
    i: Signal
    o: Signal

    def __init__(self, *, step: int) -> None:
        self._step = step
        super().__init__({"enable": In(1), "i": In(WIDTH), "o": Out(WIDTH)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        held = Signal(WIDTH, reset_less=True)
        with m.If(self.enable):
            m.d.sync += held.eq(self.i + self._step)
        m.d.comb += self.o.eq(delay(m, held, 1, "late"))
        return m


class Chain(wiring.Component):
    """Stages one behind another: all but the last are equal. And a memory."""

    enable: Signal
    i: Signal
    o: Signal

    def __init__(self, *, stages: int = 3, depth: int = 4) -> None:
        self._stages, self._depth = stages, depth
        super().__init__({"enable": In(1), "i": In(WIDTH), "o": Out(WIDTH)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.inner = inner = Module()
        value: Any = self.i
        for k in range(self._stages):
            stage = Stage(step=1 if k < self._stages - 1 else 2)
            inner.submodules[f"stage_{k}"] = stage
            inner.d.comb += [stage.enable.eq(self.enable), stage.i.eq(value)]
            value = stage.o
        m.submodules.memory = memory = Memory(shape=WIDTH, depth=self._depth, init=[])
        writer, reader = memory.write_port(), memory.read_port()
        m.d.comb += [
            writer.addr.eq(value),
            writer.data.eq(self.i),
            writer.en.eq(self.enable),
            reader.addr.eq(self.i),
            reader.en.eq(1),
            self.o.eq(reader.data ^ value),
        ]
        return m


@pytest.fixture
def pdk(tmp_path: Path) -> Pdk:
    path = tmp_path / "tiny.lib"
    path.write_text(tiny_liberty())
    return find_pdk(str(path))


def rtlil(**settings: int) -> str:
    return convert_to_rtlil(Chain(**settings), "chain")


def test_equal_modules_are_merged() -> None:
    text = rtlil()
    assert text.count("module \\chain.inner.stage_") == 3
    hierarchy = merge(text, "chain")
    assert list(hierarchy.modules) == [
        "chain_inner_stage_0",
        "chain_inner_stage_2",
        "chain_inner",
        "chain",
    ]
    assert hierarchy.modules["chain_inner"].cells == (
        ("stage_0", "chain_inner_stage_0"),
        ("stage_1", "chain_inner_stage_0"),
        ("stage_2", "chain_inner_stage_2"),
    )
    assert hierarchy.modules["chain_inner_stage_0"].path == "chain.inner.stage_0"
    assert "\\init" not in hierarchy.rtlil()


def test_a_merged_design_is_the_same_design(tmp_path: Path) -> None:
    """Yosys proves both equal, register for register."""
    text = rtlil()
    (tmp_path / "gold.il").write_text(text.replace("\\chain", "\\gold"))
    (tmp_path / "gate.il").write_text(merge(text, "chain").rtlil())
    flatten = "proc; flatten; attrmap -remove init; memory; opt_clean"
    run_full_yosys(
        f"read_rtlil gold.il\nhierarchy -top gold\n{flatten}\nrename -top gold\ndesign -stash a\n"
        f"read_rtlil gate.il\nhierarchy -top chain\n{flatten}\nrename -top gate\ndesign -stash b\n"
        "design -copy-from a gold\ndesign -copy-from b gate\n"
        "equiv_make gold gate both\nhierarchy -top both\nequiv_simple -undef\n"
        "equiv_induct -undef\nequiv_status -assert\n",
        cwd=tmp_path,
    )


def test_blocks_are_the_upper_levels_and_what_is_numbered() -> None:
    hierarchy = merge(rtlil(), "chain")
    stages = {"chain_inner_stage_0", "chain_inner_stage_2"}
    assert hierarchy.blocks(0) == {"chain", *stages}
    assert hierarchy.blocks(1) == {"chain", "chain_inner", *stages}
    assert merge(rtlil(stages=1), "chain").blocks(0) == {"chain"}
    assert hierarchy.rtlil(hierarchy.blocks(0)).count("keep_hierarchy") == 3


def test_a_missing_top_is_refused() -> None:
    with pytest.raises(TargetError, match="must have a module 'other', not only chain"):
        merge(rtlil(), "other")
    with pytest.raises(TargetError, match="not only none"):
        merge("nonsense", "chain")


def test_a_design_becomes_cells(tmp_path: Path, pdk: Pdk) -> None:
    mapped = map_design(rtlil(), "chain", pdk, tmp_path / "out", memories=FLIP_FLOPS)
    registers = 3 * 2 * WIDTH + 4 * WIDTH + WIDTH
    assert mapped.cells["DFF"] == registers
    assert mapped.blocks["chain_inner"].blocks["stage_1"] == "chain_inner_stage_0"
    assert mapped.blocks["chain_inner_stage_0"].cells["DFF"] == 2 * WIDTH
    assert mapped.blocks["chain_inner_stage_2"].path == "chain.inner.stage_2"
    areas = {name: area for name, (_, area) in GATES.items()} | {"DFF": FLIP_FLOP_AREA}
    assert mapped.area == sum(areas[name] * count for name, count in mapped.cells.items())
    stage = mapped.blocks["chain_inner_stage_0"]
    assert stage.area == sum(areas[name] * count for name, count in stage.cells.items())
    verilog = (tmp_path / "out" / NETLIST).read_text()
    assert verilog.count("module chain_inner_stage_0(") == 1
    assert " signed " not in verilog
    assert not mapped.macros


def test_large_memories_become_macros(tmp_path: Path, pdk: Pdk) -> None:
    mapped = map_design(rtlil(depth=1024), "chain", pdk, tmp_path / "out")
    (macro,) = mapped.macros
    assert (macro.words, macro.bits) == (1024, WIDTH)
    assert mapped.cells["DFF"] == 3 * 2 * WIDTH


def test_a_plain_multiplier_is_larger(tmp_path: Path, pdk: Pdk) -> None:
    class Product(wiring.Component):
        a: In(8)  # type: ignore[reportInvalidTypeForm]
        b: In(8)  # type: ignore[reportInvalidTypeForm]
        o: Out(16)  # type: ignore[reportInvalidTypeForm]

        def elaborate(self, platform: object) -> Module:
            m = Module()
            m.d.sync += self.o.eq(self.a.as_signed() * self.b.as_signed())
            return m

    text = convert_to_rtlil(Product(), "product")
    plain = map_design(text, "product", pdk, tmp_path / "plain", booth=False)
    booth = map_design(text, "product", pdk, tmp_path / "booth")
    assert booth.area < plain.area, (booth.area, plain.area)


def test_a_missing_tool_is_named(tmp_path: Path, pdk: Pdk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YOSYS", "no-such-yosys")
    with pytest.raises(
        TargetError, match="YOSYS must name a program that is on PATH .* not no-such-yosys"
    ):
        map_design(rtlil(), "chain", pdk, tmp_path / "out")
