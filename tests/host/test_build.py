"""The build flow with tools that only pretend: steps, reports, and every way to fail."""

import json
import re
import stat
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from slipstick import build as flow
from slipstick import targets
from slipstick.cli import app
from slipstick.errors import TargetError
from slipstick.parts import Part
from slipstick.place_and_route import Usage, does_not_fit, read_report
from slipstick.targets import Target, find_target
from slipstick.toolchains import TOOLCHAINS
from slipstick_rtl.config import PROTOCOL_VERSION, Configuration
from slipstick_rtl.isa import ISA_VERSION

SMALL = Configuration(
    rows=4, columns=4, lanes=4, activation_bytes=1 << 10, weight_bytes=1 << 10, clock_hz=100_000_000
)
PART = Part("LFE5U-25F", "CABGA381", 6, 24_288, 56, 28)
TARGET = Target("tiny", "a tiny one", SMALL, "ulx3s-25f", PART)
ECP5 = TOOLCHAINS["LFE5U"]


def report_text(fmax: float = 104.26, luts: int = 14359, other: float = 208.52) -> str:
    """A report of nextpnr, cut down to what is read."""
    clock = "$glbnet$clocking.clock"

    def step(source: str, sink: str) -> dict[str, Any]:
        return {"from": {"cell": source, "port": "Q"}, "to": {"cell": sink, "port": "D"}}

    counts = {"TRELLIS_COMB": luts, "TRELLIS_FF": 14068, "MULT18X18D": 24, "DP16KD": 48}
    return json.dumps(
        {
            "fmax": {
                clock: {"achieved": fmax, "constraint": 105.0},
                "$glbnet$usb": {"achieved": other, "constraint": 48.0},
            },
            "utilization": {
                kind: {"used": used, "available": 24288} for kind, used in counts.items()
            },
            "critical_paths": [
                {"from": "<async>", "to": f"posedge {clock}", "path": [step("pin", "x")]},
                {
                    "from": f"posedge {clock}",
                    "to": f"posedge {clock}",
                    "path": [
                        step("a", "a"),
                        step("a", "b_CIN_ALU_COUT"),
                        step("b_CIN_ALU_COUT_CIN_ALU_COUT", "c"),
                    ],
                },
            ],
        }
    )


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


def pretend(folder: Path, monkeypatch: pytest.MonkeyPatch, **bodies: str) -> None:
    """Tools that run a line of Python each; ``arguments`` are theirs."""
    folder.mkdir(exist_ok=True)
    for tool in ECP5.tools:
        body = bodies.get(tool.variable, "pass")
        program = folder / tool.name
        program.write_text(
            f"#!{sys.executable}\nimport sys\nfrom pathlib import Path\narguments = sys.argv[1:]\n"
            f"if '--version' in arguments:\n    sys.exit('{tool.name} (Version 9.1-2)')\n{body}\n"
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv(tool.variable, str(program))


NETLIST = {
    "modules": {
        "slipstick": {
            "ports": {"o": {"direction": "output", "bits": [4]}},
            "cells": {
                f"carry_{bit}": {
                    "type": "CCU2C",
                    "port_directions": {"CIN": "input", "COUT": "output"},
                    "connections": {"CIN": [bit - 1], "COUT": [bit]},
                }
                for bit in (2, 3, 5)
            },
        }
    }
}
SYNTHESIS = f"Path('netlist.json').write_text({json.dumps(json.dumps(NETLIST))})"


def placement(fmax: float = 104.26, **counts: Any) -> str:
    """Place and route that writes its report where it is told to."""
    text = report_text(fmax, **counts)
    return f"Path(arguments[arguments.index('--report') + 1]).write_text({text!r})"


PLACEMENT = placement()
PACKING = "Path(arguments[-1]).write_bytes(b'bits')"


def test_a_build_leaves_design_logs_bitstream_and_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pretend(
        tmp_path / "tools", monkeypatch, YOSYS=SYNTHESIS, NEXTPNR_ECP5=PLACEMENT, ECPPACK=PACKING
    )
    done = flow.build(TARGET, seeds=[7])
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
    assert described["latencies"]["matrix_engine"] > described["latencies"]["array"] > SMALL.rows

    path = flow.write_report(done, "slipstick build")
    report = json.loads(path.read_text())
    assert path.name == "build-tiny.json"
    assert report["fmax_mhz"] == 104.26 and report["meets_clock"] and report["clock_mhz"] == 100
    assert report["asked_mhz"] == 105
    assert (report["lut"], report["ff"], report["dsp"], report["bram"]) == (14359, 14068, 24, 48)
    assert report["seed"] == 7 and report["seconds"] >= 0 and report["link"] == "uart"
    assert report["fingerprint"] == SMALL.fingerprint
    assert report["bitstream"] == "build/bitstreams/tiny/slipstick.bit"
    assert report["tools"] == {"yosys": "9.1-2", "nextpnr-ecp5": "9.1-2", "ecppack": "9.1-2"}
    assert {"command", "date", "versions"} <= set(report)


FULL = "print('Info: \\t  DP16KD:  57/  56  101%'); print('ERROR: no Bels'); sys.exit(1)"


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
    with pytest.raises(TargetError, match=r"no-such-yosys, which is not on PATH.* YOSYS"):
        flow.build(TARGET, output=tmp_path / "out")


def test_a_simulated_target_cannot_be_built(tmp_path: Path) -> None:
    message = r"sim-small has no board to build for; those that have: ulx3s-12f, ulx3s-25f"
    with pytest.raises(TargetError, match=message):
        flow.build(find_target("sim-small"), output=tmp_path)


def test_an_unknown_part_cannot_be_built(tmp_path: Path) -> None:
    other = replace(TARGET, part=replace(PART, device="XC7A35T"))
    with pytest.raises(TargetError, match="part must begin with one of LFE5U.*, not XC7A35T"):
        flow.build(other, output=tmp_path)


@pytest.mark.parametrize(
    ("changes", "link", "message"),
    [
        ({"clock_hz": 100_300_000}, "uart", "nearest are 100 and 112.5 MHz"),
        ({}, "carrier-pigeon", "tiny: link must be one of uart.* here, not carrier-pigeon"),
        ({"weight_bytes": 1 << 17}, "uart", "must be within 129,024 bytes of RAM .*not 197,632"),
        ({"rows": 16, "columns": 16}, "uart", "array's multipliers must be within 56, not 256"),
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
        f"{kind}_{index}": {"type": kind, "port_directions": {}, "connections": {}}
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
    assert flow.write_report(done, "slipstick build --bare") == tmp_path / "out" / "report.json"
    assert not (tmp_path / "reports").exists()


# the fastest seed is the third; the second fails
SEEDS = f"""
seed = int(arguments[arguments.index('--seed') + 1])
if seed == 2:
    print('ERROR: routing failed'); sys.exit(1)
text = {report_text(1234.5)!r}.replace('1234.5', str(90.0 + 5 * seed))
Path(arguments[arguments.index('--report') + 1]).write_text(text)
"""
NAMED_PACKING = "Path(arguments[-1]).write_text(arguments[1])"


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        app(list(arguments))
    return int(ended.value.code or 0)


@pytest.fixture
def no_gateware(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves out what takes the most time."""
    monkeypatch.setattr(flow, "_generate", lambda *arguments: None)


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(targets.TARGETS, "tiny", TARGET)
    return tmp_path


@pytest.mark.usefixtures("no_gateware")
def test_the_fastest_seed_is_kept(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend(tiny / "tools", monkeypatch, YOSYS=SYNTHESIS, NEXTPNR_ECP5=SEEDS, ECPPACK=NAMED_PACKING)
    assert run("build", "--target", "tiny", "--seeds", "3") == 0
    printed = capsys.readouterr().out
    assert "95.00" in printed and "105.00" in printed and "routing failed" in printed
    report = json.loads((tiny / "reports" / "build-tiny.json").read_text())
    assert report["seed"] == 3 and report["fmax_mhz"] == 105.0
    assert [entry["seed"] for entry in report["seeds"]] == [1, 2, 3]
    assert "routing failed" in report["seeds"][1]["problem"]
    assert "--seeds 3" in report["command"]
    bitstream = tiny / "build" / "bitstreams" / "tiny" / "slipstick.bit"
    assert bitstream.read_text() == "seed_3/slipstick.config"


@pytest.mark.usefixtures("no_gateware")
@pytest.mark.parametrize(
    ("placing", "message"),
    [
        (placement(98.7), "tiny MISSES ITS CLOCK.* the core's reaches 98.7 of 100 MHz; try more"),
        (placement(other=47.0), "MISSES ITS CLOCK.*usb reaches 47.0 of 48.0 MHz; try more"),
    ],
)
def test_a_missed_clock_is_an_error_that_leaves_its_report(
    tiny: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    placing: str,
    message: str,
) -> None:
    pretend(tiny / "tools", monkeypatch, YOSYS=SYNTHESIS, NEXTPNR_ECP5=placing, ECPPACK=PACKING)
    assert run("build", "--target", "tiny") == 1
    assert re.search(message, capsys.readouterr().err)
    report = json.loads((tiny / "reports" / "build-tiny.json").read_text())
    assert report["meets_clock"] is False


def test_seed_and_seeds_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("build", "--seed", "1", "--seeds", "2") == 2
    assert "--seed and --seeds must not be given together" in capsys.readouterr().err
    assert run("build", "--seeds", "0") == 2
    assert "--seeds must be at least 1, not 0" in capsys.readouterr().err


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
