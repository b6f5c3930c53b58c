"""``slipstick export --asic``: files that layout tools read, sizes that the design needs."""

import json
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from slipstick import export as exports
from slipstick.asic.flow_files import Flow
from slipstick.asic.gate_count import GateCount, count_gates
from slipstick.asic.macros import Macro
from slipstick.asic.memories import FLIP_FLOPS, SRAM
from slipstick.asic.processes import PROCESSES
from slipstick.targets import find_target
from slipstick_sim import toolchain
from slipstick_sim.netlist import portable

TARGET = find_target("asic-4x4")
MACROS = (Macro("a", 64, 32, 2, 8), Macro("b", 512, 32, 1, 32))
GATES = GateCount(Counter({"$_NAND_": 1000, "$_DFF_P_": 100}), MACROS)
MODELS = ["slipstick_sram_1rw.v", "slipstick_sram_1rw1r.v"]


class Adder(wiring.Component):
    """A registered sum."""

    a: Signal
    b: Signal
    o: Signal

    def __init__(self) -> None:
        super().__init__({"a": In(8), "b": In(8), "o": Out(8)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.d.sync += self.o.eq(self.a + self.b)
        return m


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the minutes that counting gates takes."""
    monkeypatch.setattr(exports, "count_gates", lambda rtlil, top: GATES)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, counted: None) -> None:
    """Without those that Verilog takes."""
    text = "module slipstick (input aclk);\nendmodule\n"
    monkeypatch.setattr(portable, "portable_verilog", lambda rtlil, top, **options: text)
    monkeypatch.setattr(exports, "with_macros", lambda rtlil: rtlil)
    monkeypatch.setattr("slipstick_sim.toolchain.convert_to_rtlil", lambda top, name: "")


def variables(path: Path) -> dict[str, str]:
    """What a makefile exports."""
    lines = path.read_text().splitlines()
    matches = [re.fullmatch(r"export (\w+) = (.*)", line) for line in lines]
    assert all(matches)
    return {match[1]: match[2] for match in matches if match}


@pytest.mark.parametrize(("memories", "models"), [(SRAM, MODELS), (FLIP_FLOPS, [])])
def test_files_of_the_flows(memories: str, models: list[str], tmp_path: Path, quick: None) -> None:
    done = exports.export(TARGET, "axi", tmp_path, memories=memories)
    verilog = ["slipstick.v", *models]
    assert sorted(path.name for path in done.files) == sorted(
        [*verilog, "design.json", "slipstick.h", "instance.v", "slipstick.sdc", "config.json"]
        + ["sky130hd.mk", "ihp-sg13g2.mk"]
    )
    configuration = json.loads((tmp_path / "config.json").read_text())
    assert configuration["DESIGN_NAME"] == "slipstick" and configuration["CLOCK_PERIOD"] == 25
    assert configuration["CLOCK_PORT"] == "aclk"
    assert configuration["VERILOG_FILES"] == [f"dir::{name}" for name in verilog]
    named = [configuration["PNR_SDC_FILE"], configuration["SIGNOFF_SDC_FILE"]]
    for name in [*configuration["VERILOG_FILES"], *named]:
        assert (tmp_path / name.removeprefix("dir::")).is_file()
    for process in PROCESSES:
        side = done.sides[process.name]
        assert configuration[f"pdk::{process.librelane}"]["DIE_AREA"] == [0, 0, side, side]
        found = variables(tmp_path / f"{process.openroad}.mk")
        assert found["PLATFORM"] == process.openroad and found["DIE_AREA"] == f"0 0 {side} {side}"
        low, _, high, _ = map(float, found["CORE_AREA"].split())
        assert 0 < low and high == side - low
        paths = f"{found['VERILOG_FILES']} {found['SDC_FILE']}"
        for name in paths.replace("$(dir $(DESIGN_CONFIG))", "").split():
            assert (tmp_path / name).is_file()
        assert int(found["SYNTH_MEMORY_MAX_BITS"]) >= 512 * 32


def test_constraints_are_tcl(tmp_path: Path, quick: None) -> None:
    """They run: a clock, delays of every other port."""
    exports.export(TARGET, "axi", tmp_path, memories=FLIP_FLOPS)
    tkinter = pytest.importorskip(
        "tkinter", reason="needs tkinter, on Debian: apt-get install python3-tk"
    )
    shell = tkinter.Tcl()
    calls: list[str] = []
    for name in ("create_clock", "set_clock_uncertainty", "set_input_delay", "set_output_delay"):
        shell.createcommand(name, lambda *given, name=name: calls.append(" ".join((name, *given))))
    shell.createcommand("all_inputs", lambda: "aclk aresetn s_axil_wdata[0]")
    shell.createcommand("all_outputs", lambda: "interrupt")
    shell.createcommand("get_ports", lambda name: name)
    shell.createcommand("get_clocks", lambda name: name)
    shell.createcommand("get_property", lambda port, what: port)
    shell.eval((tmp_path / "slipstick.sdc").read_text())
    assert calls[0] == "create_clock -name aclk -period 25 aclk"
    assert calls[2] == "set_input_delay 5 -clock aclk aresetn {s_axil_wdata[0]}"
    assert calls[3] == "set_output_delay 5 -clock aclk interrupt"


def test_a_die_has_room_for_everything() -> None:
    for process in PROCESSES:
        cells = 1000 * process.cells["$_NAND_"] + 100 * process.cells["$_DFF_P_"]
        stored = sum(macro.size for macro in MACROS) * process.stored_bit
        flip_flops = GATES.core_area(process, FLIP_FLOPS)
        assert 0.4 < (cells + stored) / flip_flops < 0.6
        assert GATES.core_area(process, SRAM) > sum(map(process.macro_area, MACROS)) + cells
        flow = Flow("t", "c", "r", 10.0, ["t.v"], GATES, FLIP_FLOPS)
        assert flow.die_side(process) ** 2 > flip_flops


def test_gates_are_counted() -> None:
    count = count_gates(toolchain.convert_to_rtlil(Adder(), "adder"), "adder")
    assert count.macros == () and count.gates["$_DFF_P_"] == 8
    assert set(count.gates) <= set(PROCESSES[0].cells) == set(PROCESSES[1].cells)


def test_a_core_with_macros_is_clean_verilog(tmp_path: Path, counted: None) -> None:
    """Verilator finds nothing in the file and the wrappers' models. A compact core has both."""
    compact = find_target("tang-nano-9k")
    done = exports.export(compact, "stream", tmp_path, memories=SRAM)
    named = json.loads((tmp_path / "config.json").read_text())["VERILOG_FILES"]
    files = [name.removeprefix("dir::") for name in named]
    assert files == ["slipstick.v", *MODELS]
    text = (tmp_path / "slipstick.v").read_text()
    instances = Counter(re.findall(r"^  (slipstick_sram_\w+) #\(", text, re.MULTILINE))
    # what it computes with; parameters, the link's regions and, by columns, sums
    assert instances == {
        "slipstick_sram_1rw": 1,
        "slipstick_sram_1rw1r": 2 + compact.configuration.columns,
    }
    assert "core_compact_store_memory_0_0" in text
    with toolchain.tool_environment():
        command = ["verilator", "--lint-only", "-Wall", "--top-module", "slipstick", *files]
        found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    said = [line for line in (found.stdout + found.stderr).splitlines() if line.startswith("%")]
    assert found.returncode == 0 and not said, said[:5]
    assert done.files[0].name == "slipstick.v"


def test_json_and_table(slipstick, tmp_path: Path, quick: None) -> None:
    status, out, err = slipstick("export", "--asic", "-o", tmp_path, "--json")
    assert status == 0 and not err
    result = json.loads(out)
    assert result["target"] == "asic-4x4"
    assert list(result["die_micrometres"]) == [process.name for process in PROCESSES]
    status, out, _ = slipstick("export", "--asic", "--memories", "sram", "-o", tmp_path)
    assert status == 0 and all(name in out for name in [*MODELS, "sky130hd.mk", "asic-flow.md"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--memories", "sram"], "--memories must be given with --asic"),
        (["--asic", "--memories", "dram"], "memories must be sram or flip-flops, not 'dram'"),
    ],
)
def test_bad_input(slipstick, arguments: list[str], message: str, tmp_path: Path) -> None:
    status, out, err = slipstick("export", *arguments, "-o", tmp_path / "out")
    assert status == 2 and not out and message in err and err.count("\n") == 1
    assert not (tmp_path / "out").exists()
