"""Timing and power: what OpenSTA says of small designs, and what is read of recordings."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from optional_tools import needs_sta
from slipstick.asic import opensta
from slipstick.asic.accesses import memory_ports, memory_uses
from slipstick.asic.hierarchy import merge
from slipstick.asic.implementation import Implementation, implement
from slipstick.asic.macros import Macro
from slipstick.asic.pdk import Pdk, find_pdk
from slipstick.asic.power import cell_power
from slipstick.asic.saif import Activity, Recording, read_saif
from slipstick.asic.timing_netlist import port_name, timing_netlist
from slipstick.errors import TargetError
from slipstick_sim.toolchain import convert_to_rtlil
from small_design import Hold, Pair
from tiny_liberty import tiny_liberty

SAIF = r"""(SAIFILE
(DIVIDER / )
(DURATION 100)
 (INSTANCE TOP
  (NET
   (clk (T0 0) (T1 100) (TZ 0) (TX 0) (TB 0) (TC 1))
  )
  (INSTANCE chip
   (NET
    (ready (T0 60) (T1 40) (TZ 0) (TX 0) (TB 0) (TC 20))
   )
   (INSTANCE inner
    (NET
     (word\[0\] (T0 100) (T1 0) (TZ 0) (TX 0) (TB 0) (TC 0))
     (word\[1\] (T0 50) (T1 50) (TZ 0) (TX 0) (TB 0) (TC 100))
    )
   )
  )
 )
)
"""


@pytest.fixture
def pdk(tmp_path: Path) -> Pdk:
    path = tmp_path / "tiny.lib"
    path.write_text(tiny_liberty())
    return find_pdk(str(path), feature_nm=45)


def implemented(component: Any, pdk: Pdk, folder: Path) -> Implementation:
    return implement(convert_to_rtlil(component, "chip"), pdk, folder / "out", top="chip")


def test_recordings_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.saif"
    path.write_text(SAIF)
    recording = read_saif(path, "chip")
    assert recording.cycles == 100
    assert recording.signals == {
        ("ready", 0): Activity(0.2, 0.4),
        ("inner.word", 0): Activity(0.0, 0.0),
        ("inner.word", 1): Activity(1.0, 0.5),
    }
    assert recording.of("inner.word", 2) is None


@pytest.mark.parametrize("text", ["", "nonsense", SAIF.replace("100)", "0)"), "(DURATION 5)"])
def test_what_is_no_recording_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.saif"
    path.write_text(text)
    with pytest.raises(TargetError, match="must hold the activity of chip in at least one cycle"):
        read_saif(path, "chip")
    with pytest.raises(TargetError, match="SAIF file .*none cannot be read"):
        read_saif(tmp_path / "none", "chip")


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(cut=st.integers(0, len(SAIF)), put=st.text("()T01\n ", max_size=8))
def test_damaged_recordings_are_refused_or_read(tmp_path: Path, cut: int, put: str) -> None:
    path = tmp_path / "a.saif"
    path.write_text(SAIF[:cut] + put + SAIF[cut + len(put) :])
    try:
        read_saif(path, "chip")
    except TargetError:
        pass


def test_accesses_are_counted_by_their_enables(pdk: Pdk) -> None:
    hierarchy = merge(convert_to_rtlil(Pair(), "chip"), "chip")
    ports = memory_ports(hierarchy)
    assert sorted((port.memory, port.reads) for port in ports) == [
        ("memory", False),
        ("memory", True),
    ]
    (writer,) = [port for port in ports if not port.reads]
    (enable,) = writer.enables
    recording = Recording(10, {enable: Activity(0.1, 0.25)})
    macro = Macro("memory.0.0", 512, 8, 2, 8)
    (use,) = memory_uses(hierarchy, (macro,), recording, pdk)
    # what is always enabled always reads
    assert (use.reads, use.writes) == (1.0, 0.25)
    assert use.cycle_pj == pytest.approx(1.25 * use.access_pj)
    halves = tuple(Macro(f"memory.{k}.0", 512, 4, 2, 4) for k in range(2))
    shared = memory_uses(hierarchy, halves, Recording(10, {}), pdk)
    assert [(use.reads, use.writes) for use in shared] == [(0.5, 0.5)] * 2


def test_the_netlist_for_timing_has_plain_names() -> None:
    module = {
        "ports": {
            "clk": {"direction": "input", "bits": [2]},
            "a$1": {"direction": "input", "bits": [3]},
            "o": {"direction": "output", "bits": [4, "1", 3]},
        },
        "netnames": {"state.x": {"hide_name": 0, "bits": [4]}},
        "cells": {
            "\\odd name": {
                "type": "DFF",
                "connections": {"CLK": [2], "D": [3], "Q": [4]},
            }
        },
    }
    netlist = timing_netlist({"modules": {"top": module}}, ["top"], {"DFF": "Q"})
    assert netlist.registers["top"] == {"r0": ("state.x", 0)}
    assert "DFF r0 (.CLK(p0_clk), .D(p1_a_1), .Q(p2_o[0]));" in netlist.verilog
    assert "assign p2_o[1] = 1'b1;" in netlist.verilog
    assert "assign p2_o[2] = p1_a_1;" in netlist.verilog
    assert port_name(1, "a$1") == "p1_a_1"


@needs_sta
def test_the_clock_is_what_the_longest_path_takes(tmp_path: Path, pdk: Pdk) -> None:
    done = implemented(Hold(), pdk, tmp_path)
    timing = done.timing
    assert [step.cell for step in timing.path] == ["DFF", "INV", "DFF"]
    assert str(timing.path[0].place) == "top: taken[0]"
    assert str(timing.path[-1].place) == "top: o[0]"
    # the flip-flop's delay grows from 0.2 ns by as much for a picofarad, the inverter's from 0.1
    flip_flop, inverter = 0.2 * 1.01, 0.1 * 1.01
    assert timing.path[0].time_ns == pytest.approx(flip_flop, abs=1e-3)
    assert timing.period_ns == pytest.approx(flip_flop + inverter + 0.05, abs=2e-3)
    assert timing.fmax_mhz == pytest.approx(1000 / timing.period_ns)
    assert timing.port_period_ns == pytest.approx(flip_flop + 0.05, abs=2e-3)


@needs_sta
def test_macros_are_timed_and_named(tmp_path: Path, pdk: Pdk) -> None:
    done = implemented(Pair(), pdk, tmp_path)
    (macro,) = done.mapping.macros
    assert macro.words == 512
    report = done.figures()
    assert report["memory_area_um2"] > 0
    assert {block["block"] for block in report["blocks"]} == {"", "hold_*"}
    assert report["timing"]["critical_path"]["cells"] == len(done.timing.path)


@needs_sta
def test_power_is_that_of_the_recorded_changes(tmp_path: Path, pdk: Pdk) -> None:
    """Twice the changes are twice the switching; the clock's part stays."""
    done = implemented(Hold(), pdk, tmp_path)

    def power(changes: float) -> float:
        quiet = Activity(changes, 0.5)
        names = ("i", "taken", "o", "rst")
        recording = Recording(1000, {(name, 0): quiet for name in names})
        found = cell_power(done.mapping, recording, 1.0)
        assert found.matched == found.sources
        assert found.leakage_mw == pytest.approx(5e-6)
        return found.dynamic_mw

    still, once, twice = (power(changes) for changes in (0.0, 0.2, 0.4))
    assert once > still >= 0
    assert twice - still == pytest.approx(2 * (once - still), rel=1e-3)
    # an input pin of 0.01 pF at the inverter's input and one at its output, at 1.2 V and 1 GHz;
    # the energy within the cells comes on top
    assert once - still > 0.2 * 0.5 * 2 * 0.01e-12 * 1.2**2 * 1e9 * 1e3


@needs_sta
def test_what_was_not_recorded_takes_the_mean_of_its_block(tmp_path: Path, pdk: Pdk) -> None:
    done = implemented(Pair(), pdk, tmp_path)
    recording = Recording(10, {("hold_0.taken", 0): Activity(0.5, 0.5)})
    found = cell_power(done.mapping, recording, 2.0)
    assert 0 < found.matched < found.sources
    assert {block.name for block in found.blocks} == {"", "hold_*"}


def test_a_missing_timer_is_named(
    tmp_path: Path, pdk: Pdk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENSTA", "no-such-sta")
    with pytest.raises(
        TargetError,
        match="OPENSTA must name a program .* not no-such-sta; .* apt-get install opensta",
    ):
        implemented(Hold(), pdk, tmp_path)


@needs_sta
def test_a_design_without_the_clocks_port_is_refused(tmp_path: Path, pdk: Pdk) -> None:
    text = re.sub(r"\\clk\b", r"\\clock", convert_to_rtlil(Hold(), "chip"))
    with pytest.raises(TargetError, match="design chip must have the port 'clk'"):
        implement(text, pdk, tmp_path / "out", top="chip")


def test_errors_of_opensta_are_told(tmp_path: Path) -> None:
    """It ends with success after them."""
    program = tmp_path / "sta"
    program.write_text("#!/bin/sh\ncat $3\n")
    program.chmod(0o755)
    script = tmp_path / "work.tcl"
    assert opensta.run(str(program), "work", ["report a", "No Error: b"], script) == (
        f"$ {program} -no_splash -exit work.tcl\nreport a\nNo Error: b\n"
    )
    message = r"OpenSTA stopped at work: Error: line 7 \(the whole log: .*work\.log\)"
    with pytest.raises(TargetError, match=message):
        opensta.run(str(program), "work", ["report a", "Error: line 7"], script)
