"""Delays of a layout: SDF made ready for Icarus, cells that take it, the period a bench needs."""

import random
from dataclasses import replace
from pathlib import Path

import pytest
from optional_tools import needs_icarus
from slipstick.asic.pdk import find_pdk
from slipstick.errors import TargetError
from slipstick.layout.blocks import find_block
from slipstick.layout.delays import (
    delayed_models,
    delayed_sources,
    needed_period,
    scaled_sdf,
)
from slipstick.layout.netlist import Port
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
        "  initial begin #5 clk = 0; #0.7 $display(o); #0.2 $display(o); end\nendmodule\n"
    )
    (tmp_path / "delays.sdf").write_text(scaled_sdf(SDF, 4.0))
    (tmp_path / "bench.v").write_text(text + watch)
    build = ["-gspecify", "-g2012", "-Tmax", "-o", "sim", "-s", "watch", "bench.v"]
    icarus, runtime = toolchain.ICARUS.find(), toolchain.ICARUS_RUNTIME.find()
    toolchain.run("building", [icarus, *build], folder=tmp_path, log=tmp_path / "build.log")
    said = toolchain.run("running", [runtime, "sim"], folder=tmp_path, log=tmp_path / "run.log")
    # the rising output takes four times 0.2 ns
    assert said.splitlines()[-2:] == ["0", "1"]


def test_vesta_is_read() -> None:
    text = "Computed maximum clock frequency (zero margin) = 548.821 MHz\nx\n"
    assert read_vesta(text, "block").figures() == {"fmax_mhz": 548.821, "meets_hold": False}
    assert read_vesta(f"{text}Design meets minimum hold timing.\n", "block").meets_hold


@pytest.mark.parametrize("text", ["", "Computed maximum clock frequency (zero margin) = 1.2.3 MHz"])
def test_vesta_must_tell_a_clock(text: str) -> None:
    with pytest.raises(TargetError, match="vesta must tell"):
        read_vesta(text, "block")
