"""The build flow with tools that only pretend: steps, reports, and every way to fail."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from pretended_tools import (
    ECP5,
    NETLIST,
    PACKING,
    PART,
    PLACEMENT,
    SMALL,
    SYNTHESIS,
    TARGET,
    pretend,
    report_text,
)
from slipstick.errors import TargetError
from slipstick.fpga import build as flow
from slipstick.fpga.build_report import write_report
from slipstick.fpga.place_and_route import Usage, does_not_fit, read_report
from slipstick.fpga.synthesis import without_brackets
from slipstick.targets import find_target
from slipstick_rtl.config import PROTOCOL_VERSION, Configuration
from slipstick_rtl.isa import ISA_VERSION


def test_a_report_gives_clock_resources_and_slowest_path(tmp_path: Path) -> None:
    path = tmp_path / "timing.json"
    path.write_text(report_text())
    layout = read_report(path, ECP5.resources)
    assert layout.fmax_mhz == 104.26
    assert layout.usage["lut"] == Usage(14359, 24288)
    assert [layout.usage[name].used for name in ("ff", "dsp", "bram")] == [14068, 24, 48]
    assert layout.slowest_path == ("a", "b_CIN_ALU_COUT", "c")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"fmax": {}, "utilization": {}}'])
def test_what_is_no_report_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "timing.json"
    path.write_text(text)
    with pytest.raises(TargetError, match=r"timing\.json is not a report of nextpnr"):
        read_report(path, ECP5.resources)


def test_overfull_resources_are_found_in_a_log() -> None:
    log = """Info: Device utilisation:
Info: \t              DP16KD:      57/     56   101%
Info: \t          MULT18X18D:      24/     28    85%
Info: \t        TRELLIS_COMB:   31000/  24288   127%
"""
    assert does_not_fit(log) == "57 of 56 DP16KD, 31,000 of 24,288 TRELLIS_COMB"
    assert does_not_fit("Info: \t DP16KD:  56/  56   100%\n") is None


def test_a_build_leaves_design_logs_bitstream_and_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pretend(
        tmp_path / "tools", monkeypatch, YOSYS=SYNTHESIS, NEXTPNR_ECP5=PLACEMENT, ECPPACK=PACKING
    )
    done = flow.build(TARGET, seeds=[7], options={"baud": 1_000_000})
    folder = tmp_path / "build" / "bitstreams" / "tiny"
    assert done.bitstream == folder / "slipstick.bit"
    assert done.bitstream.read_bytes() == b"bits"
    for log in ("synthesis", "seed_7/place_and_route", "packing"):
        assert (folder / f"{log}.log").is_file()
    called = (folder / "seed_7" / "place_and_route.log").read_text()
    assert "--25k --package CABGA381 --speed 6" in called
    assert "--freq 105 --seed 7" in called
    pins = (folder / "pins.lpf").read_text()
    assert 'FREQUENCY NET "clocking.clock" 105000000.0 HZ' in pins
    assert 'LOCATE COMP "uart_0__tx__io" SITE "L4"' in pins
    assert "\\slipstick" in (folder / "design.il").read_text()
    cells = json.loads((folder / "netlist.json").read_text())["modules"]["slipstick"]["cells"]
    # 2 goes into the next carry; 3 and 5 go nowhere
    assert [cell["connections"]["COUT"] for cell in cells.values()] == [[2], ["x"], ["x"]]

    described = json.loads((folder / "design.json").read_text())
    assert Configuration.from_dict(described["configuration"]) == SMALL
    assert described["fingerprint"] == SMALL.fingerprint
    assert described["isa_version"] == ISA_VERSION
    assert described["protocol_version"] == PROTOCOL_VERSION
    assert described["board"] == "ulx3s-25f" and described["link"] == "uart"
    assert described["baud"] == 1_000_000
    assert described["latencies"]["matrix_engine"] > described["latencies"]["array"] > SMALL.rows

    path = write_report(done, "slipstick build")
    report = json.loads(path.read_text())
    assert path.name == "build-tiny.json"
    assert report["fmax_mhz"] == 104.26 and report["meets_clock"] and report["clock_mhz"] == 100
    assert report["asked_mhz"] == 105
    assert (report["lut"], report["ff"], report["dsp"], report["bram"]) == (14359, 14068, 24, 48)
    assert report["seed"] == 7 and report["seconds"] >= 0 and report["link"] == "uart"
    assert report["baud"] == 1_000_000
    assert report["fingerprint"] == SMALL.fingerprint
    assert report["bitstream"] == "build/bitstreams/tiny/slipstick.bit"
    assert report["tools"] == {"yosys": "9.1-2", "nextpnr-ecp5": "9.1-2", "ecppack": "9.1-2"}
    assert {"command", "date", "versions"} <= set(report)


FULL = "print('Info: \\t  DP16KD:  57/  56  101%'); print('ERROR: no Bels'); sys.exit(1)"


@pytest.mark.usefixtures("no_gateware")
@pytest.mark.parametrize("options", ["--threads", "--parallel-refine"])
def test_place_and_route_uses_threads_if_it_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str
) -> None:
    """The report tells, as another nextpnr gives other results."""
    monkeypatch.chdir(tmp_path)
    working = {"YOSYS": SYNTHESIS, "NEXTPNR_ECP5": PLACEMENT, "ECPPACK": PACKING}
    pretend(tmp_path / "tools", monkeypatch, options=options, **working)
    done = flow.build(TARGET)
    called = (done.bitstream.parent / "seed_1" / "place_and_route.log").read_text()
    used = options == "--parallel-refine"
    assert ("--parallel-refine --threads 2" in called) == used
    told = done.figures().get("threads")
    assert told == ("--parallel-refine --threads 2" if used else None)


@pytest.mark.usefixtures("no_gateware")
@pytest.mark.parametrize(
    ("bodies", "message"),
    [
        (
            {"YOSYS": "print('ERROR: no module'); sys.exit(1)"},
            r"synthesis failed: no module \(the whole log: .*synthesis\.log\)",
        ),
        (
            {"NEXTPNR_ECP5": "print('gone'); sys.exit(3)"},
            r"place and route failed: exit status 3, 'gone' .*place_and_route\.log\)",
        ),
        ({"NEXTPNR_ECP5": FULL}, r"tiny does not fit on LFE5U-25F: it needs 57 of 56 DP16KD .*log"),
        ({"NEXTPNR_ECP5": "pass"}, r"timing\.json is not a report of nextpnr"),
        ({"ECPPACK": "print('ERROR: bad'); sys.exit(1)"}, r"packing failed: bad .*packing\.log"),
    ],
)
def test_a_tool_that_fails_is_named_with_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bodies: dict[str, str], message: str
) -> None:
    working = {"YOSYS": SYNTHESIS, "NEXTPNR_ECP5": PLACEMENT, "ECPPACK": PACKING}
    pretend(tmp_path / "tools", monkeypatch, **(working | bodies))
    with pytest.raises(TargetError, match=message):
        flow.build(TARGET, output=tmp_path / "out")


def test_a_missing_tool_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(tmp_path / "tools", monkeypatch)
    monkeypatch.setenv("YOSYS", "no-such-yosys")
    with pytest.raises(
        TargetError, match=r"YOSYS must name a program .* not no-such-yosys; .* pip install"
    ):
        flow.build(TARGET, output=tmp_path / "out")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--baud", "30000000"],
            "--baud: baud must be at most 25000000, a 4th of the clock, not 3",
        ),
        (["--baud", "0"], "--baud: baud must be at least 1, not 0"),
        (
            ["--ip", "10.0.0.0", "--link", "rmii"],
            "--ip: an IP address must be that of one host, not 10.0.0.0",
        ),
        (
            ["--mac", "02", "--link", "rmii"],
            "--mac: a MAC address must be six bytes, such as 02:00:00:00:00:01, not '02'",
        ),
        (
            ["--ip", "10.0.0.1", "--link", "uart"],
            "--ip is the address of a board on Ethernet: leave it out with uart",
        ),
        (
            ["--mac", "02:00:00:00:00:01", "--bare"],
            "--mac is the address of a board on Ethernet: leave it out with bare",
        ),
        (
            ["--baud", "9600", "--link", "spi"],
            "--baud is the rate of a UART: leave it out with spi",
        ),
    ],
)
def test_rates_that_cannot_be_built(slipstick, words: list[str], message: str) -> None:
    status, _, error = slipstick("build", "--target", "ulx3s-25f", *words)
    assert status == 2 and message in error


def test_a_simulated_target_cannot_be_built(tmp_path: Path) -> None:
    message = r"sim-small has no board to build for; those that have: .*ulx3s-12f, .*ulx3s-25f"
    with pytest.raises(TargetError, match=message):
        flow.build(find_target("sim-small"), output=tmp_path)


def test_an_unknown_part_cannot_be_built(tmp_path: Path) -> None:
    other = replace(TARGET, part=replace(PART, device="XC7A35T"))
    with pytest.raises(TargetError, match="part must begin with one of LFE5U.*, not XC7A35T"):
        flow.build(other, output=tmp_path)


@pytest.mark.parametrize(
    ("changes", "link", "message"),
    [
        ({"clock_hz": 100_300_000}, "uart", "nearest are 100 and 101.786 MHz"),
        ({}, "carrier-pigeon", "tiny: link must be one of uart.* here, not carrier-pigeon"),
        ({"weight_bytes": 1 << 17}, "uart", "must be within 129,024 bytes of RAM .*not 197,632"),
        (
            {"rows": 16, "columns": 16},
            "uart",
            r"multipliers must be within 28, not 268 \(array 256, post-processor 12\)",
        ),
        # of look-up tables, but for five rows of which two elements share a block
        (
            {"rows": 8, "columns": 8, "multiplier": "lut", "packed_rows": 5},
            "uart",
            r"multipliers must be within 28, not 32 \(array 20, post-processor 12\)",
        ),
        # few bytes, in more banks than there are block RAMs
        (
            {"rows": 64, "weight_bytes": 1 << 13, "activation_bytes": 1 << 12, "multiplier": "lut"},
            "uart",
            r"within 56 block RAMs, not \d+ \(weights \d+, activations 64, accumulators 8,",
        ),
    ],
)
def test_what_the_board_cannot_do_is_refused_at_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, int],
    link: str,
    message: str,
) -> None:
    pretend(tmp_path / "tools", monkeypatch, YOSYS="sys.exit(1)")
    other = replace(TARGET, configuration=replace(SMALL, **changes))
    with pytest.raises(TargetError, match=message):
        flow.build(other, link=link, output=tmp_path / "out")


@pytest.mark.usefixtures("no_gateware")
def test_a_netlist_that_is_too_large_is_not_placed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = {
        f"{kind}_{index}": {
            "type": kind,
            "parameters": {"INIT0": "0" * 16},
            "port_directions": {"C0": "input", "D0": "input"},
            "connections": {"C0": ["0"], "D0": ["0"]},
        }
        for kind, count in (("DP16KD", 57), ("MULT18X18D", 28), ("CCU2C", 12_200))
        for index in range(count)
    }
    netlist = json.dumps({"modules": {"slipstick": {"ports": {}, "cells": cells}}})
    (tmp_path / "large.json").write_text(netlist)
    synthesis = f"Path('netlist.json').write_text(Path('{tmp_path}/large.json').read_text())"
    pretend(tmp_path / "tools", monkeypatch, YOSYS=synthesis, NEXTPNR_ECP5="sys.exit(1)")
    message = r"tiny does not fit on LFE5U-25F: it needs 24,400 of 24,288 lut, 57 of 56 bram"
    with pytest.raises(TargetError, match=message):
        flow.build(TARGET, output=tmp_path / "out")


def test_a_bare_core_has_no_board_around_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pretend(
        tmp_path / "tools", monkeypatch, YOSYS=SYNTHESIS, NEXTPNR_ECP5=PLACEMENT, ECPPACK=PACKING
    )
    done = flow.build(TARGET, link=flow.BARE, output=tmp_path / "out")
    assert (tmp_path / "out" / "pins.lpf").read_text().startswith('LOCATE COMP "clk" SITE "G2"')
    # benchmarks must not take its clock for a board's
    assert write_report(done, "slipstick build --bare") == tmp_path / "out" / "report.json"
    assert not (tmp_path / "reports").exists()


@pytest.fixture
def no_gateware(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves out what takes the most time."""
    monkeypatch.setattr(flow, "_generate", lambda *arguments: None)


@pytest.mark.thorough
def test_names_with_brackets_are_given_up_if_yosys_mistakes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twice = json.loads(json.dumps(NETLIST))
    top = twice["modules"]["slipstick"]
    top["cells"]["carry_3"]["connections"]["COUT"] = [2]
    top["netnames"] = {"done": {"bits": [7, 2]}}
    (tmp_path / "twice.json").write_text(json.dumps(twice))
    # as long as there is a name with brackets
    mistaken = (
        "if 'done[1]' in Path('design.il').read_text():\n"
        f"    Path('netlist.json').write_text(Path('{tmp_path}/twice.json').read_text())\n"
        f"else:\n    {SYNTHESIS}"
    )
    monkeypatch.chdir(tmp_path)
    tools = {"NEXTPNR_ECP5": PLACEMENT, "ECPPACK": PACKING}
    pretend(tmp_path / "tools", monkeypatch, YOSYS=mistaken, **tools)
    done = flow.build(TARGET, output=tmp_path / "out")
    assert done.meets_clock
    text = (tmp_path / "out" / "design.il").read_text()
    assert "done[" not in text and "done<1>" in text
    always = f"Path('netlist.json').write_text(Path('{tmp_path}/twice.json').read_text())"
    pretend(tmp_path / "tools", monkeypatch, YOSYS=always, **tools)
    with pytest.raises(TargetError, match="net done has more than one driver"):
        flow.build(TARGET, output=tmp_path / "out")


def test_brackets_of_bits_stay() -> None:
    text = "  connect \\a.done[1] \\a.done [16]\n  wire width 16 \\a.done[1][0].low\n"
    wanted = "  connect \\a.done<1> \\a.done [16]\n  wire width 16 \\a.done<1><0>.low\n"
    assert without_brackets(text) == wanted


@pytest.mark.usefixtures("no_gateware")
def test_what_an_earlier_build_left_is_not_taken_for_this_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(
        tmp_path / "tools", monkeypatch, YOSYS=SYNTHESIS, NEXTPNR_ECP5=PLACEMENT, ECPPACK=PACKING
    )
    done = flow.build(TARGET, output=tmp_path / "out")
    pretend(tmp_path / "tools", monkeypatch, YOSYS="sys.exit(1)")
    with pytest.raises(TargetError, match="synthesis failed"):
        flow.build(TARGET, output=tmp_path / "out")
    assert not done.bitstream.exists()
