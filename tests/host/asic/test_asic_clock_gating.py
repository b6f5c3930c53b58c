"""Clock gates: made of the library's cells, equal in effect, counted in area and power."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from optional_tools import needs_sta
from slipstick.asic import clock_gating
from slipstick.asic.clock_gating import NAME, find_clock_gate, probe_name, with_probes
from slipstick.asic.gate_check import compare
from slipstick.asic.mapping import NETLIST, map_design
from slipstick.asic.pdk import Pdk, find_pdk
from slipstick.asic.power import cell_power
from slipstick.asic.saif import Activity, Recording
from slipstick.asic.sta import TimedDesign
from slipstick.asic.timing import static_timing
from slipstick.errors import TargetError
from slipstick_sim.netlist.gate_parts import element
from slipstick_sim.toolchain import convert_to_rtlil
from tiny_liberty import FLIP_FLOP_AREA, GATING, flip_flop, latch, tiny_liberty

WIDTH = 40


class Holder(wiring.Component):
    """A wide register with enable; one that may be cleared besides; one that has neither."""

    enable: Signal
    clear: Signal
    i: Signal
    o: Signal

    def __init__(self) -> None:
        super().__init__({"enable": In(1), "clear": In(1), "i": In(WIDTH), "o": Out(WIDTH)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        held = Signal(WIDTH, reset_less=True)
        cleared = Signal(8)
        last = Signal(WIDTH, reset_less=True)
        with m.If(self.enable):
            m.d.sync += [held.eq(self.i), cleared.eq(self.i)]
        with m.If(self.clear):
            m.d.sync += cleared.eq(0)
        m.d.sync += last.eq(held ^ cleared)
        m.d.comb += self.o.eq(last)
        return m


class Store(wiring.Component):
    """A memory of bytes."""

    enable: Signal
    address: Signal
    i: Signal
    o: Signal

    def __init__(self, words: int) -> None:
        self._words = words
        super().__init__({"enable": In(1), "address": In(range(words)), "i": In(8), "o": Out(8)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.memory = memory = Memory(shape=8, depth=self._words, init=[])
        write, read = memory.write_port(), memory.read_port(domain="comb")
        m.d.comb += [
            write.addr.eq(self.address),
            write.data.eq(self.i),
            write.en.eq(self.enable),
            read.addr.eq(self.address),
            self.o.eq(read.data),
        ]
        return m


@pytest.fixture(scope="module")
def pdk(tmp_path_factory: pytest.TempPathFactory) -> Pdk:
    path = tmp_path_factory.mktemp("pdk") / "tiny.lib"
    path.write_text(tiny_liberty(gates=GATING, flip_flops=flip_flop() + latch()))
    return find_pdk(str(path), feature_nm=90)


def mapped(pdk: Pdk, folder: Path) -> Any:
    return map_design(convert_to_rtlil(Holder(), "top"), "top", pdk, folder, gated=True)


def test_registers_with_an_enable_get_gates(pdk: Pdk, tmp_path: Path) -> None:
    found = mapped(pdk, tmp_path)
    cells = found.design["modules"][found.top]["cells"].values()
    gates = [cell for cell in cells if cell["type"] == NAME]
    # 40 registers behind two gates, 8 behind another whose enable has the clear and the reset
    assert len(gates) == 3
    assert len({cell["connections"]["enable"][0] for cell in gates}) == 2
    assert found.cells["LATCH"] == 3
    assert found.cells["DFF"] == 2 * WIDTH + 8
    text = (tmp_path / NETLIST).read_text()
    assert f"module {NAME} " in text and text.count("LATCH ") == 1
    areas = {name: pdk.cells[name].area for name in found.cells}
    assert found.area == sum(areas[name] * count for name, count in found.cells.items())
    assert areas["DFF"] == FLIP_FLOP_AREA


def test_gates_change_nothing(pdk: Pdk) -> None:
    for component in (Holder(), element("lns1+2+2")):
        found = compare(component, "gated", pdk, cycles=1000, gated=True)
        assert found.mismatches == 0 and found.changes > 300


@pytest.mark.parametrize(
    "harm",
    [
        pytest.param("no latch", marks=pytest.mark.thorough),
        pytest.param("always", marks=pytest.mark.thorough),
        "never",
    ],
)
def test_a_wrong_gate_is_found(pdk: Pdk, monkeypatch: pytest.MonkeyPatch, harm: str) -> None:
    right = find_clock_gate(pdk)
    ports = "module slipstick_clock_gate (input enable, input clk, output gated);"
    bodies = {
        # the enable that changes behind the edge makes an edge of its own
        "no latch": "assign gated = clk & enable;",
        "always": "assign gated = clk;",
        "never": "assign gated = 1'b0;",
    }

    class Wrong:
        parts, cell, verilog = right.parts, right.cell, f"{ports}\n{bodies[harm]}\nendmodule\n"

    monkeypatch.setattr(clock_gating, "find_clock_gate", lambda pdk: Wrong)
    assert compare(Holder(), "gated", pdk, cycles=1000, gated=True).mismatches > 100


def test_enables_can_be_recorded() -> None:
    probed = with_probes(convert_to_rtlil(Holder(), "top"), "top")
    lines = probed.splitlines()
    wires = [line for line in lines if line.startswith("  wire ")]
    found = {
        name
        for name in ("held", "cleared", "last")
        for line in wires
        if line.endswith(probe_name(name))
    }
    assert found == {"held", "cleared"}


@pytest.mark.parametrize(("words", "known"), [(66, True), (255, True), (256, False)])
def test_enables_of_a_memory_made_of_registers_can_be_recorded(words: int, known: bool) -> None:
    """As mapping does it: a memory of fewer bits than are worth a macro is made of registers."""
    probed = with_probes(convert_to_rtlil(Store(words), "top"), "top")
    assert (f"{words - 1}_{probe_name('')}" in probed) == known


@needs_sta
def test_a_gates_enable_must_be_early(pdk: Pdk, tmp_path: Path) -> None:
    timing = static_timing(TimedDesign(mapped(pdk, tmp_path)))
    # enables come from ports only
    assert timing.port_period_ns is not None and timing.port_period_ns > 0


@needs_sta
def test_a_resting_clock_takes_no_power(pdk: Pdk, tmp_path: Path) -> None:
    found = mapped(pdk, tmp_path)

    def clocks(rate: float) -> float:
        enable = Activity(0.0, rate)
        names = [(probe_name("held"), k) for k in range(WIDTH)]
        names += [(probe_name("cleared"), k) for k in range(8)]
        recording = Recording(100, dict.fromkeys(names, enable))
        power = cell_power(found, recording, 10.0)
        assert 0 < power.clock_mw <= power.dynamic_mw
        return power.clock_mw

    rests, half, works = map(clocks, (0.0, 0.5, 1.0))
    assert rests < half < works
    assert half == pytest.approx((rests + works) / 2, rel=0.01)
    unknown = cell_power(found, Recording(100, {("i", 0): Activity(0.5, 0.5)}), 10.0)
    assert unknown.clock_mw == pytest.approx(works, rel=0.01)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (flip_flop(), "clock gates need a latch without clear and preset, and PDK tiny has none"),
        (flip_flop() + latch(), "clock gates need an AND of two, and PDK tiny has none"),
    ],
)
def test_what_a_library_lacks_is_named(
    slipstick: Callable[..., tuple[int, str, str]], tmp_path: Path, cells: str, message: str
) -> None:
    path = tmp_path / "tiny.lib"
    path.write_text(tiny_liberty(flip_flops=cells))
    with pytest.raises(TargetError, match=message):
        find_clock_gate(find_pdk(str(path)))
    status, out, err = slipstick("asic", "--pdk", path, "--feature-nm", 90, "--clock-gating")
    assert (status, out) == (2, "") and message in err and err.count("\n") == 1


@needs_sta
@pytest.mark.borrows
def test_the_command_tells_both(
    slipstick: Callable[..., tuple[int, str, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pdk: Pdk,
) -> None:
    from slipstick.cli import asic as command

    monkeypatch.chdir(tmp_path)
    seen = []

    def rtlil(target: Any) -> str:
        seen.append(target.configuration.silicon)
        return convert_to_rtlil(Holder(), "slipstick")

    monkeypatch.setattr(command, "core_rtlil", rtlil)
    status, out, err = slipstick(
        "asic", "--pdk", pdk.liberty, "--feature-nm", 90, "--clock-gating", "--json"
    )
    assert status == 0, err
    result = json.loads(out)
    assert seen == [1, 0]
    assert result["cells_by_kind"]["LATCH"] == 3
    assert "LATCH" not in result["ungated"]["cells_by_kind"]
    assert result["report"].endswith("-gated.json")


def test_the_latch_may_be_transparent_while_low(pdk: Pdk) -> None:
    low = latch().replace('enable : "CLK"', 'enable : "CLK\'"')
    gate = find_clock_gate(pdk)
    assert gate.inverter is not None
    text = tiny_liberty(gates=GATING, flip_flops=flip_flop() + low)
    path = pdk.liberty.with_name("low.lib")
    path.write_text(text)
    other = find_clock_gate(find_pdk(str(path)))
    assert other.inverter is None and other.cell.area == gate.cell.area - 1.0
    assert replace(gate, inverter=None).verilog.count("(") < gate.verilog.count("(")
