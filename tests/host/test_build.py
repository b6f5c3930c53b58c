"""The build flow with tools that only pretend: steps, reports, and every way to fail."""

import json
import stat
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from slipstick import build as flow
from slipstick import build_tools
from slipstick.errors import TargetError
from slipstick.place_and_route import Usage, does_not_fit, read_report
from slipstick.targets import Part, Target, find_target
from slipstick_rtl.config import Configuration

SMALL = Configuration(
    rows=4, columns=4, lanes=4, activation_bytes=1 << 10, weight_bytes=1 << 10, clock_hz=100_000_000
)
TARGET = Target("tiny", "a tiny one", SMALL, "ulx3s", Part("LFE5U-25F", "CABGA381", 6, 56, 28))


def report_text(fmax: float = 104.26, luts: int = 14359) -> str:
    """A report of nextpnr, cut down to what is read."""

    def step(source: str, sink: str) -> dict[str, Any]:
        return {"from": {"cell": source, "port": "Q"}, "to": {"cell": sink, "port": "D"}}

    counts = {"TRELLIS_COMB": luts, "TRELLIS_FF": 14068, "MULT18X18D": 24, "DP16KD": 48}
    return json.dumps(
        {
            "fmax": {
                "$glbnet$clk": {"achieved": fmax, "constraint": 100.0},
                "$glbnet$fast": {"achieved": 2 * fmax, "constraint": 100.0},
            },
            "utilization": {
                kind: {"used": used, "available": 24288} for kind, used in counts.items()
            },
            "critical_paths": [
                {"from": "<async>", "to": "posedge $glbnet$clk", "path": [step("pin", "x")]},
                {
                    "from": "posedge $glbnet$clk",
                    "to": "posedge $glbnet$clk",
                    "path": [step("a", "a"), step("a", "b"), step("b", "c")],
                },
            ],
        }
    )


def test_a_report_gives_clock_resources_and_slowest_path(tmp_path: Path) -> None:
    path = tmp_path / "timing.json"
    path.write_text(report_text())
    layout = read_report(path)
    assert layout.fmax_mhz == 104.26
    assert layout.usage["lut"] == Usage(14359, 24288)
    assert [layout.usage[name].used for name in ("ff", "dsp", "bram")] == [14068, 24, 48]
    assert layout.slowest_path == ("a", "b", "c")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"fmax": {}, "utilization": {}}'])
def test_what_is_no_report_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "timing.json"
    path.write_text(text)
    with pytest.raises(TargetError, match=r"timing\.json is not a report of nextpnr"):
        read_report(path)


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
    for tool in build_tools.ALL:
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
PLACEMENT = f"Path('timing.json').write_text({report_text()!r})"
PACKING = "Path(arguments[-1]).write_bytes(b'bits')"


def test_a_build_leaves_design_logs_bitstream_and_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pretend(
        tmp_path / "tools", monkeypatch, YOSYS=SYNTHESIS, NEXTPNR_ECP5=PLACEMENT, ECPPACK=PACKING
    )
    done = flow.build(TARGET, seed=7)
    folder = tmp_path / "build" / "bitstreams" / "tiny"
    assert done.bitstream == folder / "slipstick.bit"
    assert done.bitstream.read_bytes() == b"bits"
    for log in ("synthesis", "place_and_route", "packing"):
        assert (folder / f"{log}.log").is_file()
    assert "--25k --package CABGA381 --speed 6" in (folder / "place_and_route.log").read_text()
    assert "--freq 105 --seed 7" in (folder / "place_and_route.log").read_text()
    assert "\\slipstick" in (folder / "design.il").read_text()
    cells = json.loads((folder / "netlist.json").read_text())["modules"]["slipstick"]["cells"]
    # 2 goes into the next carry; 3 and 5 go nowhere
    assert [cell["connections"]["COUT"] for cell in cells.values()] == [[2], ["x"], ["x"]]

    path = flow.write_report(done, "slipstick build")
    report = json.loads(path.read_text())
    assert path.name == "build-tiny.json"
    assert report["fmax_mhz"] == 104.26 and report["meets_clock"] and report["clock_mhz"] == 100
    assert report["asked_mhz"] == 105
    assert (report["lut"], report["ff"], report["dsp"], report["bram"]) == (14359, 14068, 24, 48)
    assert report["seed"] == 7 and report["seconds"] >= 0
    assert report["fingerprint"] == SMALL.fingerprint
    assert report["bitstream"] == "build/bitstreams/tiny/slipstick.bit"
    assert report["tools"] == {"yosys": "9.1-2", "nextpnr-ecp5": "9.1-2", "ecppack": "9.1-2"}
    assert {"command", "date", "versions"} <= set(report)


def test_the_description_beside_the_design_names_the_hardware(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(
        tmp_path / "tools", monkeypatch, YOSYS=SYNTHESIS, NEXTPNR_ECP5=PLACEMENT, ECPPACK=PACKING
    )
    flow.build(TARGET, output=tmp_path / "out")
    described = json.loads((tmp_path / "out" / "design.json").read_text())
    assert Configuration.from_dict(described["configuration"]) == SMALL
    assert described["fingerprint"] == SMALL.fingerprint
    assert described["isa_version"] == 1 and described["protocol_version"] == 1
    assert described["latencies"]["matrix_engine"] > described["latencies"]["array"] > SMALL.rows


FULL = "print('Info: \\t  DP16KD:  57/  56  101%'); print('ERROR: no Bels'); sys.exit(1)"


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
    monkeypatch.setattr(flow, "_generate", lambda target, folder: None)
    with pytest.raises(TargetError, match=message):
        flow.build(TARGET, output=tmp_path / "out")


def test_a_missing_tool_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(tmp_path / "tools", monkeypatch)
    monkeypatch.setenv("YOSYS", "no-such-yosys")
    with pytest.raises(TargetError, match=r"no-such-yosys, which is not on PATH.* YOSYS"):
        flow.build(TARGET, output=tmp_path / "out")


def test_a_simulated_target_cannot_be_built(tmp_path: Path) -> None:
    message = r"sim-small has no board to build for; those that have: ulx3s-25f, ulx3s-85f"
    with pytest.raises(TargetError, match=message):
        flow.build(find_target("sim-small"), output=tmp_path)


def test_an_unknown_part_cannot_be_built(tmp_path: Path) -> None:
    other = replace(TARGET, part=Part("GW1NR-9", "QN88", 6, 26, 20))
    message = r"tiny must have one of .*LFE5U-85F in one of CABGA381, not GW1NR-9 in QN88"
    with pytest.raises(TargetError, match=message):
        flow.build(other, output=tmp_path)
