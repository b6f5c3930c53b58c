"""Delays of a layout: SDF made ready for Icarus, cells that take it, the period a bench needs."""

import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from optional_tools import needs_icarus
from slipstick.asic.pdk import find_pdk
from slipstick.errors import TargetError
from slipstick.layout import delays
from slipstick.layout.blocks import find_block
from slipstick.layout.delays import (
    delayed_models,
    delayed_sources,
    needed_period,
    scaled_sdf,
    simulate_delays,
)
from slipstick.layout.inference import PortValues
from slipstick.layout.lvs import Comparison
from slipstick.layout.netlist import Port
from slipstick.layout.project import Project
from slipstick.layout.replay import replay
from slipstick.layout.result import Layout
from slipstick.layout.simulation import UNDEFINED, Simulation
from slipstick.layout.technology import find_technology
from slipstick.layout.timing import WireTiming
from slipstick.layout.vesta import read_vesta
from tiny_liberty import tiny_liberty

SDF = """(DELAYFILE
 (SDFVERSION "3.0")
 (TIMESCALE 1ns)
 (CELL
  (CELLTYPE "block")
  (INSTANCE)
  (DELAY
   (ABSOLUTE
    (INTERCONNECT a INV_1/A (0.0012::0.0012) (0.0012::0.0012))
   )
  )
 )
 (CELL
  (CELLTYPE "INV")
  (INSTANCE INV_1)
  (DELAY
   (ABSOLUTE
    (IOPATH A Y (0.1000::0.2000) (0.3000::0.4000))
   )
  )
  (TIMINGCHECK
    (SETUP (posedge D) (posedge CLK) (0.2319::0.2498))
  )
 )
)
"""
TIMING = WireTiming(2.0, 0.1, 0.02, 0.3, 1.0, ())

TOY_BENCH = """import cocotb
from cocotb.triggers import RisingEdge
from slipstick_sim.benches.drivers.streams import start


@cocotb.test()
async def repeats(dut):
    await start(dut)
    sent = []
    for cycle in range(20):
        sent.append(cycle * 5 >> 1 & 1)
        dut.a.value = sent[-1]
        await RisingEdge(dut.clk)
        seen = int(dut.o.value)
        if cycle >= 2:
            assert seen == sent[-3]
"""
"""Of a block that repeats ``a`` two cycles later. As the array's bench, it leaves an input without
a value, and reads the output in all cycles."""

TOY = """module lns_unit (clk, rst, a, mode, o);
  input clk, rst, a, mode; output o;
  wire n, d, q, p;
  XOR2 XOR2_1 (.A(a), .B(mode), .Y(n));
  INV INV_1 (.A(n), .Y(d));
  DFF DFF_1 (.CLK(clk), .D(d), .Q(q));
  INV INV_2 (.A(q), .Y(p));
  DFF DFF_2 (.CLK(clk), .D(p), .Q(o));
endmodule
"""


def test_delays_are_scaled() -> None:
    text = scaled_sdf(SDF, 2.0)
    assert "    (IOPATH A Y (0.4000:0.4000:0.4000) (0.8000:0.8000:0.8000))\n" in text
    assert "INTERCONNECT" not in text and "SETUP" not in text and '"block"' not in text
    assert text.count("(") == text.count(")")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (SDF, "", "an SDF file must have delays through cells"),
        ("IOPATH", "PATH", "an SDF file must have delays through cells"),
        (
            "0.1000::0.2000",
            "0.1.0::.",
            r"an SDF file must have numbers as delays, not \(0.1.0::.\)",
        ),
    ],
)
def test_a_bad_sdf_file_is_refused(old: str, new: str, message: str) -> None:
    with pytest.raises(TargetError, match=message):
        scaled_sdf(SDF.replace(old, new), 2.0)


def test_damaged_sdf_is_read_or_refused() -> None:
    generator = random.Random(3)
    for _ in range(300):
        letters = list(SDF)
        for _ in range(4):
            letters[generator.randrange(len(letters))] = generator.choice('().:"0-\n')
        try:
            scaled_sdf("".join(letters), 1.5)
        except TargetError as error:
            assert "\n" not in str(error)


def test_a_bench_needs_time_for_its_ports() -> None:
    assert needed_period(TIMING) == pytest.approx(2.1)
    assert needed_period(replace(TIMING, port_period_ns=None)) == pytest.approx(2.1)
    late = replace(TIMING, port_period_ns=2.0)
    assert needed_period(late) == pytest.approx(1.05 * (2.0 + 0.3 + 0.05))


def test_cells_have_paths(tmp_path: Path) -> None:
    path = tmp_path / "tiny.lib"
    path.write_text(tiny_liberty())
    pdk = find_pdk(str(path), feature_nm=90)
    (flip_flop,) = pdk.flip_flops
    text = delayed_models(pdk, ["NAND2", flip_flop])
    assert "    (A => Y) = (0, 0);\n    (B => Y) = (0, 0);" in text
    assert text.count("specify\n") == 4 and text.count("initial begin") == 1
    assert text.count("=> Q) = (0, 0);") == 1


@needs_icarus
def test_delays_take_part(tmp_path: Path) -> None:
    """A chain of inverters is late or not, as its SDF file says; no bench is needed for that."""
    from slipstick import toolchain

    library = tmp_path / "tiny.lib"
    library.write_text(tiny_liberty())
    pdk = find_pdk(str(library), feature_nm=90)
    ports = {"clk": Port("input", ("clk",)), "o": Port("output", ("o",))}
    netlist = (
        "module lns_unit (clk, o);\n  input clk; output o;\n  INV INV_1 (.A(clk), .Y(o));\n"
        "endmodule\n"
    )
    text = delayed_sources(
        find_block("lns-unit"), ports, netlist, ["INV"], pdk, top="bench", input_delay_ns=0.1
    )
    watch = (
        "module watch; reg clk = 1; wire o; bench b(clk, o);\n"
        "  initial begin repeat (3) #5 clk = ~clk; #0.7 $display(o); #0.2 $display(o); end\n"
        "endmodule\n"
    )
    (tmp_path / "delays.sdf").write_text(scaled_sdf(SDF, 4.0))
    (tmp_path / "bench.v").write_text(text + watch)
    build = ["-gspecify", "-g2012", "-Tmax", "-o", "sim", "-s", "watch", "bench.v"]
    icarus, runtime = toolchain.ICARUS.find(), toolchain.ICARUS_RUNTIME.find()
    toolchain.run("building", [icarus, *build], folder=tmp_path, log=tmp_path / "build.log")
    said = toolchain.run("running", [runtime, "sim"], folder=tmp_path, log=tmp_path / "run.log")
    # the rising output takes four times 0.2 ns
    assert said.splitlines()[-2:] == ["0", "1"]


@needs_icarus
@pytest.mark.parametrize(
    ("old", "new", "failure"),
    [
        ("", "", ""),
        ("XOR2 XOR2_1", "NAND2 NAND2_1", "repeats: assert 1 == 0"),
        ("XOR2 XOR2_1", "NOR2 NOR2_1", "repeats: assert 1 == 0"),
        ("(.A(n), ", "(", f"repeats: {UNDEFINED}"),
    ],
)
def test_a_wrong_gate_is_found_and_a_silent_input_is_not_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, failure: str
) -> None:
    library = tmp_path / "tiny.lib"
    library.write_text(tiny_liberty())
    pdk = find_pdk(str(library), feature_nm=90)
    (tmp_path / "toy_bench.py").write_text(TOY_BENCH)
    # cocotb's own interpreter gets this path
    monkeypatch.syspath_prepend(tmp_path)
    bench = SimpleNamespace(name="toy", test_module="toy_bench")
    monkeypatch.setattr(delays, "find_bench", lambda block: (bench, {}))
    netlist = TOY.replace(old, new)
    assert netlist != TOY or not old
    ports = {name: Port("input", (name,)) for name in ("clk", "rst", "a", "mode")}
    ports["o"] = Port("output", ("o",))
    cells = ["XOR2", "NAND2", "NOR2", "INV", *pdk.flip_flops]
    block = find_block("lns-unit")
    found = simulate_delays(block, ports, netlist, SDF, cells, pdk, TIMING, tmp_path / "delays")
    assert found.tests == 1 and found.cycles > 0
    assert [text.splitlines()[0] for text in found.failures] == ([failure] if failure else [])


@needs_icarus
def test_an_earlier_program_is_not_run_again(tmp_path: Path) -> None:
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "sim.vvp").write_text("of an earlier run")
    (tmp_path / "delayed.v").write_text("module toy; INV INV_1 (); endmodule\n")
    (tmp_path / "delays.sdf").write_text("")
    bench = SimpleNamespace(name="toy", test_module="toy_bench")
    with pytest.raises(TargetError, match="Icarus cannot build it"):
        delays._run(bench, {}, tmp_path)


@pytest.mark.parametrize(
    ("errors", "matches", "failures", "told"),
    [
        (0, True, ("one: assert 1 == 2", f"two: {UNDEFINED}"), True),
        (1, True, (f"two: {UNDEFINED}",), False),
        (0, False, (f"two: {UNDEFINED}",), False),
        (0, True, ("one: assert 1 == 2",), False),
        (0, True, (), False),
    ],
)
def test_another_seed_is_no_advice_for_outputs_without_a_value(
    tmp_path: Path, errors: int, matches: bool, failures: tuple[str, ...], told: bool
) -> None:
    fields = dict.fromkeys(Layout.__dataclass_fields__) | {
        "block": find_block("lns-unit"),
        "project": Project(tmp_path, "lns_unit", find_technology("osu018")),
        "drc_errors": errors,
        "comparison": Comparison(matches, 0 if matches else 3),
        "delayed": Simulation("bench_lns_unit", 2, failures, 10, 1.0),
    }
    done = Layout(**cast(dict[str, Any], fields))
    assert done.undefined == (
        "the layout of lns-unit equals its netlist, but with delays two: an output is neither 0"
        " nor 1: another --seed does not help, as the netlist or its bench leaves a register"
        f" without a value (log: {tmp_path / 'delays' / 'test.log'})"
        if told
        else None
    )


def test_vesta_is_read() -> None:
    text = "Computed maximum clock frequency (zero margin) = 548.821 MHz\nx\n"
    assert read_vesta(text, "block").figures() == {"fmax_mhz": 548.821, "meets_hold": False}
    assert read_vesta(f"{text}Design meets minimum hold timing.\n", "block").meets_hold


@pytest.mark.parametrize("text", ["", "Computed maximum clock frequency (zero margin) = 1.2.3 MHz"])
def test_vesta_must_tell_a_clock(text: str) -> None:
    with pytest.raises(TargetError, match="vesta must tell"):
        read_vesta(text, "block")


@needs_icarus
@pytest.mark.parametrize("wrong", [(), (7,), (3, 11)])
def test_a_replay_tells_in_how_many_cycles_outputs_differ(
    tmp_path: Path, wrong: tuple[int, ...]
) -> None:
    library = tmp_path / "tiny.lib"
    library.write_text(tiny_liberty())
    pdk = find_pdk(str(library), feature_nm=90)
    drawn = np.random.default_rng(1).integers(0, 2, (2, 50))
    ports = {name: Port("input", (name,)) for name in ("clk", "rst", "a", "mode")}
    ports["o"] = Port("output", ("o",))
    # registers begin with 0, and an inverter lies between them
    outputs = np.concatenate([[0, 1], (drawn[0] ^ drawn[1])[:-2]])
    outputs[list(wrong)] ^= 1
    values = PortValues("toy", 1, 50, {"a": drawn[0], "mode": drawn[1]}, {"o": outputs})
    cells = ["XOR2", "INV", "DFF"]
    done = replay(values, "lns_unit", ports, TOY, SDF, cells, pdk, TIMING, tmp_path / "replay")
    assert (done.cycles, done.different) == (50, len(wrong))
    assert done.period_ns == needed_period(TIMING)
    # the clock stands still in the first cycle
    assert done.nets["clk"].changes == 2 * 49 / 50
    assert done.nets["a"].changes == np.count_nonzero(np.diff(drawn[0])) / 50
    assert {"n", "d", "q", "p", "o"} <= set(done.nets)
