"""``slipstick export``: its files, its JSON, one sentence for whatever is wrong."""

import json
import re
from pathlib import Path

import pytest
from slipstick import export as exports
from slipstick.errors import TargetError
from slipstick.targets import Target
from slipstick_rtl.config import Configuration
from slipstick_sim.netlist import portable
from slipstick_sim.netlist.portable import NetlistError

SMALL = Configuration(
    rows=4,
    columns=4,
    lanes=4,
    activation_bytes=1 << 10,
    weight_bytes=1 << 10,
    accumulator_depth=16,
    instruction_words=64,
    payload_bytes=64,
)
TARGET = Target("tiny", "a tiny one", SMALL)
NAMES = ["slipstick.v", "design.json", "slipstick.h", "instance.v"]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the half minute that Verilog takes; tests/sim has that."""
    monkeypatch.setattr(portable, "portable_verilog", lambda rtlil, top: f"module {top};\n")
    monkeypatch.setattr("slipstick_sim.toolchain.convert_to_rtlil", lambda top, name: "")


@pytest.mark.parametrize("interface", exports.INTERFACE_NAMES)
def test_files_agree(interface: str, tmp_path: Path, quick: None) -> None:
    done = exports.export(TARGET, interface, tmp_path / "out")
    assert [path.name for path in done.files] == NAMES
    description = json.loads((tmp_path / "out" / "design.json").read_text())
    assert description == done.description
    assert Configuration.from_dict(description["configuration"]) == SMALL
    assert description["fingerprint"] == SMALL.fingerprint
    assert description["latencies"]["matrix_engine"] > 0
    assert description["protocol"]["commands"]["RUN"] == 4
    assert description["protocol"]["spaces"]["WEIGHTS"] == {
        "number": 1,
        "unit_bytes": 4,
        "units": 256,
    }
    fields = description["isa"]["matrix_fields"]
    assert description["isa"]["opcodes"]["CONVOLVE"] == 1 and fields[0]["name"] == "opcode"
    ports = [port["name"] for port in description["interface"]["ports"]]
    instance = (tmp_path / "out" / "instance.v").read_text()
    assert re.findall(r"\.(\w+)\(", instance) == ports
    clock, reset = description["interface"]["clock"], description["interface"]["reset"]
    assert ports[:2] == [clock, reset]
    header = (tmp_path / "out" / "slipstick.h").read_text()
    assert f'SLIPSTICK_FINGERPRINT "{SMALL.fingerprint}"' in header
    assert ("SLIPSTICK_RESPONSE_DATA 0x34u" in header) == (interface != "stream")
    assert (description["registers"] is None) == (interface == "stream")
    verilog = (tmp_path / "out" / "slipstick.v").read_text()
    active = "low" if interface == "axi" else "high"
    assert f"{reset} is synchronous to {clock} and active {active}" in verilog


def test_json_and_table(slipstick, tmp_path: Path, quick: None) -> None:
    arguments = ("export", "--interface", "wishbone", "--target", "sim-small", "-o", tmp_path / "a")
    status, out, err = slipstick(*arguments, "--json")
    assert status == 0 and not err and out.count("\n") == 1
    result = json.loads(out)
    assert (result["interface"], result["clock"], result["reset"]) == ("wishbone", "clk", "rst")
    assert list(result["files"]) == NAMES
    assert all(Path(path).is_file() for path in result["files"].values())
    status, out, err = slipstick(*arguments)
    assert status == 0 and not err and all(name in out for name in NAMES)


def test_a_shape_and_the_usual_folder(
    slipstick, tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    status, out, _ = slipstick("export", "-i", "stream", "--shape", "2x4x8", "--json")
    assert status == 0
    assert json.loads(out)["files"]["slipstick.v"] == "build/exports/2x4x8-stream/slipstick.v"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-i", "apb"], "interface must be one of axi, wishbone, stream, not 'apb'"),
        (["--target", "nexys"], "target must be one of .*, not 'nexys'"),
        (["--shape", "3x4"], "target must be one of .* shape PxRxC .*, not '3x4'"),
        (["--shape", "1x5x4"], "rows must be a power of two.* not 5"),
        (["--shape", "sim-small"], "--shape must be PxRxC such as 1x16x16, not the target"),
        (
            ["--shape", "1x4x4", "--target", "sim-small"],
            "--target and --shape must not be given together",
        ),
        (["-o", "taken/out"], r"taken(/out)?: (Not a directory|File exists)"),
        (["-o", "taken"], "taken: (File exists|Not a directory)"),
        (["-o", "full"], "design.json: Is a directory"),
    ],
)
def test_bad_input(
    slipstick,
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("a file")
    (tmp_path / "full" / "design.json").mkdir(parents=True)
    for options in ([], ["--json"]):
        status, out, err = slipstick("export", *arguments, *options)
        assert status == 2 and not out
        assert re.search(message, err), err
        assert err.count("\n") == 1


def test_what_cannot_be_exported_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick: None
) -> None:
    def refuse(rtlil: str, top: str) -> str:
        raise NetlistError("a portable design must not hold cells like MULT18X18D")

    monkeypatch.setattr(portable, "portable_verilog", refuse)
    with pytest.raises(TargetError, match="target tiny cannot be exported: .* like MULT18X18D"):
        exports.export(TARGET, "axi", tmp_path)
    assert not (tmp_path / "slipstick.v").exists()
