"""``slipstick asic``: what it prints and writes, and its refusals."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from optional_tools import needs_sta
from pretended_tools import pretend
from slipstick.asic import energy as energy_of
from slipstick.asic.energy import inference_energy
from slipstick.asic.implementation import implement
from slipstick.asic.pdk import find_pdk
from slipstick.cli import asic as command
from slipstick.reports import last_build
from slipstick_sim.toolchain import convert_to_rtlil
from small_design import Pair
from tiny_liberty import tiny_liberty

pytestmark = pytest.mark.borrows

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A liberty file in an empty current folder, and a core that is quickly mapped."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "core_rtlil", lambda target: convert_to_rtlil(Pair(), "slipstick"))
    path = tmp_path / "tiny.lib"
    path.write_text(tiny_liberty())
    return path


@needs_sta
def test_a_core_is_reported(slipstick: Run, library: Path) -> None:
    status, out, err = slipstick("asic", "--pdk", library, "--feature-nm", 90, "--json")
    assert (status, err.count("\n")) == (0, 3), err
    result = json.loads(out)
    assert result["target"] == "1x8x8"
    assert result["feature_nm"] == 90
    assert {block["block"] for block in result["blocks"]} == {"", "hold_*"}
    assert result["memory_bits"] == 4096
    assert result["timing"]["fmax_mhz"] > 0
    # no benchmark may take it for the clock of an FPGA
    assert last_build(result["fingerprint"]) is None
    assert Path(result["treemap"]).read_bytes().startswith(b"\x89PNG")
    report = json.loads(Path(result["report"]).read_text())
    assert report["command"] == f"slipstick asic --pdk {library} --target 1x8x8 --feature-nm 90"
    assert report["cell_area_um2"] == result["cell_area_um2"]
    assert set(report["tools"]) == {"yosys", "sta"}


@needs_sta
def test_people_get_a_table(slipstick: Run, library: Path, tmp_path: Path) -> None:
    where = tmp_path / "here"
    status, out, _ = slipstick("asic", "-p", library, "--feature-nm", 45, "-o", where)
    assert status == 0
    assert "hold_*" in out and "critical path" in out and "MHz" in out
    assert (where / "area.png").is_file()


@needs_sta
def test_an_inference_has_an_energy(
    slipstick: Run, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program: Any = SimpleNamespace(name="net", macs=1000, inputs=("x",))
    monkeypatch.setattr(command, "load_program", lambda network, hardware: program)
    monkeypatch.setattr(energy_of, "_record", _pretend_to_record)
    status, out, _ = slipstick(
        *("asic", "--pdk", library, "--feature-nm", 45, "--network", "net.tflite", "--json")
    )
    assert status == 0
    figures = json.loads(out)["energy"]
    assert (figures["cycles"], figures["first_output"]) == (50, [1, 2])
    power = figures["cell_dynamic_mw"] + figures["cell_leakage_mw"]
    assert figures["cells_uj"] == pytest.approx(
        power * figures["seconds_of_inference"] * 1e3, rel=1e-2
    )
    assert figures["memories_uj"] > 0
    assert figures["mac_pj"] == pytest.approx(figures["inference_uj"] * 1e3, rel=1e-2, abs=0.1)
    (access,) = figures["memory_accesses"]
    assert access["shape"] == "512x8"
    status, out, _ = slipstick(
        *("asic", "--pdk", library, "--feature-nm", 45, "--network", "net.tflite")
    )
    assert status == 0 and "pJ a MAC" in out


def _pretend_to_record(
    gateware: object, program: object, samples: object, seed: int, path: Path, *, gated: bool
) -> tuple[int, tuple[int, ...]]:
    assert not gated
    nets = "\n".join(
        f"({name} (T0 25) (T1 25) (TZ 0) (TX 0) (TB 0) (TC 10))" for name in ("i", "write", "o")
    )
    path.write_text(f"(DURATION 50)\n(INSTANCE slipstick\n(NET\n{nets}\n)\n)\n")
    return 50, (1, 2)


@needs_sta
def test_a_random_input_is_a_seeded_one(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds = list[int]()

    def record(*arguments: Any, **options: Any) -> tuple[int, tuple[int, ...]]:
        seeds.append(arguments[3])
        return _pretend_to_record(*arguments, **options)

    monkeypatch.setattr(energy_of, "_record", record)
    pdk = find_pdk(str(library), feature_nm=45)
    rtlil = convert_to_rtlil(Pair(), "slipstick")
    done = implement(rtlil, pdk, tmp_path / "out")
    program: Any = SimpleNamespace(name="net", macs=10)
    first = inference_energy(done, program, None, seed=7)
    assert seeds == [7]
    assert first.total_uj == first.cells_uj + first.memories_uj


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--pdk", "sky999"), "PDK must be one of gscl45, osu018 or the path of a liberty file"),
        (("--pdk", "tiny.lib", "--target", "9"), "target must be one of"),
        (("--pdk", "tiny.lib", "--input", "x.npy"), "--input must be given with --network"),
        (
            ("--pdk", "tiny.lib", "--feature-nm", "45", "--network", "none.tflite"),
            "model none.tflite must be a file",
        ),
        (("--pdk", "tiny.lib", "--feature-nm", "0"), "a feature size must be within 1..10000"),
        (("--pdk", "broken.lib"), "PDK broken.lib: line 1 of a liberty file must be"),
        (("--pdk", "bare.lib"), "PDK bare.lib: mapping needs a flip-flop"),
        ((), "Missing option"),
    ],
)
def test_bad_input_is_one_sentence(
    slipstick: Run,
    library: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    pretend(tmp_path / "tools", monkeypatch)
    Path("broken.lib").write_text("library")
    Path("bare.lib").write_text(tiny_liberty(flip_flops=""))
    status, out, err = slipstick("asic", *arguments)
    assert (status, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_memories_need_a_feature_size(
    slipstick: Run, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(tmp_path / "tools", monkeypatch)
    monkeypatch.delenv("YOSYS")
    status, _, err = slipstick("asic", "--pdk", library)
    assert status == 2
    assert "PDK tiny must have a feature size in nanometres" in err.splitlines()[-1]


def test_missing_tools_are_named_before_the_work(
    slipstick: Run, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENSTA", "no-such-sta")
    status, _, err = slipstick("asic", "--pdk", library, "--feature-nm", 45)
    assert status == 2
    assert "not no-such-sta" in err.splitlines()[-1]
    assert "mapping" not in err
