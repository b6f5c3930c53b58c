"""``slipstick layout``: its refusals, and the smallest block laid out if the packages are there."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from slipstick.cli import layout as command
from slipstick.errors import TargetError
from slipstick.layout import flow, lvs, technology
from slipstick.layout.blocks import FORMATS, find_block
from slipstick.layout.picture import draw_layout
from slipstick.layout.project import Project
from slipstick.layout.simulation import Simulation
from slipstick.layout.technology import find_programs, find_technology

Run = Callable[..., tuple[int, str, str]]

REPORTS = Path(__file__).parents[3] / "reports"


def _skip_reason() -> str:
    try:
        find_programs(find_technology("osu018"))
    except TargetError as error:
        return str(error)
    return ""


REASON = _skip_reason()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("chip", "--pdk", "osu018"), "block must be one of lns-unit, lns-unit-15, element-FORMAT"),
        (("element-int9", "--pdk", "osu018"), "not 'element-int9'"),
        (("lns-unit", "--pdk", "sky130"), "--pdk must be one of osu018, osu035, osu050, not"),
        (("lns-unit",), "Missing option"),
        (("lns-unit", "--pdk", "osu018", "--seed", "0"), "--seed"),
        (
            ("lns-unit", "--pdk", "osu018", "--cells-gds", "no.gds"),
            "--cells-gds must be a file, not no.gds",
        ),
    ],
)
def test_bad_input_is_one_sentence(
    slipstick: Run, arguments: tuple[str, ...], message: str
) -> None:
    status, out, err = slipstick("layout", *arguments)
    assert (status, out) == (2, "")
    assert message in err and err.count("\n") == 1


def test_missing_packages_are_named_with_their_command(
    slipstick: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for program in technology.PROGRAMS:
        monkeypatch.delenv(program.variable, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(technology, "QFLOW", tmp_path / "qflow")
    monkeypatch.setattr(technology, "TECHNOLOGIES_FOLDER", tmp_path / "tech")
    status, out, err = slipstick("layout", "lns-unit", "--pdk", "osu035")
    assert (status, out) == (2, "")
    assert err == (
        "slipstick: a layout in osu035 needs Debian's packages that are missing: apt-get install"
        " --no-install-recommends graywolf qrouter magic netgen-lvs qflow opensta"
        " qflow-tech-osu035\n"
    )


def test_a_named_program_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAGIC", "no-such-magic")
    program = next(it for it in technology.PROGRAMS if it.name == "magic")
    assert not program.is_absent
    with pytest.raises(TargetError, match="MAGIC must name a program .* apt-get install"):
        program.find()
    with pytest.raises(TargetError, match="MAGIC must name a program"):
        program.version()


@pytest.mark.parametrize(
    ("name", "kind", "shape"),
    [
        ("lns-unit", "unit", {}),
        ("lns-unit-15", "unit", {}),
        ("element-lns8", "element", {}),
        ("lane-int8", "lane", {}),
        ("column-lns5", "column", {"rows": 4, "columns": 1}),
        ("column-int8-16", "column", {"rows": 16, "columns": 1}),
        ("array-4x8-lns6", "array", {"rows": 4, "columns": 8}),
    ],
)
def test_blocks_have_names(name: str, kind: str, shape: dict[str, int]) -> None:
    block = find_block(name)
    assert (block.name, block.kind, block.shape) == (name, kind, shape)
    assert block.top.isidentifier()


@pytest.mark.parametrize(
    "name", ["element-lns5", "lane-lns6", "lane-int8", "column-lns5-2", "array-4x4-lns5"]
)
def test_blocks_are_gateware(name: str) -> None:
    assert "\nmodule \\block" in find_block(name).rtlil("block")


def test_a_shape_that_no_array_has() -> None:
    with pytest.raises(TargetError, match="block array-3x4-int8: rows must"):
        find_block("array-3x4-int8").rtlil("block")


def test_formats_are_those_of_the_array() -> None:
    assert list(FORMATS) == ["int8", "lns5", "lns6", "lns7", "lns8"]


def test_folders_must_have_no_spaces(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="--output must have no spaces"):
        flow.lay_out(find_block("lns-unit"), find_technology("osu018"), tmp_path / "my chip")


def test_a_picture_needs_a_layout(tmp_path: Path) -> None:
    pytest.importorskip("klayout.lay", reason="needs the package klayout")
    (tmp_path / "no.gds").write_text("no")
    with pytest.raises(TargetError, match="KLayout cannot read .*no.gds"):
        draw_layout(tmp_path / "no.gds", tmp_path / "no.png")


def test_klayout_is_named_if_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "klayout", None)
    monkeypatch.setitem(sys.modules, "klayout.lay", None)
    with pytest.raises(TargetError, match=r"pip install 'slipstick\[layout\]'"):
        draw_layout(tmp_path / "no.gds", tmp_path / "no.png")


def test_a_layout_that_is_not_clean_ends_with_a_status(
    slipstick: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    osu018 = find_technology("osu018")
    figures = json.loads((REPORTS / "layout-osu018-element-lns5.json").read_text())
    done = SimpleNamespace(
        block=find_block("element-lns5"),
        project=Project(tmp_path, "element_lns5", osu018),
        figures=lambda: figures,
        is_clean=False,
        drc_errors=2,
        drc_errors_with_transistors=1,
        comparison=lvs.Comparison(False, 3),
        simulation=Simulation("layout_element", 4, ("sums: 3 instead of 4",), 10, 1.0),
        delayed=None,
        failures=["sums: 3 instead of 4"],
    )
    monkeypatch.setattr(command, "lay_out", lambda *_, **__: done)
    monkeypatch.setattr(command, "find_programs", lambda technology: {})
    monkeypatch.setattr(command, "versions", dict)
    monkeypatch.setitem(sys.modules, "klayout.lay", None)
    status, out, err = slipstick("layout", "element-lns5", "--pdk", "osu018", "--seed", 7)
    assert status == 2
    assert "no: 1 of 4 tests" in out and "not simulated" in out and "13,901" in out
    assert "26.8" in out
    assert "pip install 'slipstick[layout]'" in err
    assert err.splitlines()[-1] == (
        "slipstick: the layout of element-lns5 has 3 design rule errors, 3 differences between"
        " layout and netlist, a netlist that differs from the golden model (sums: 3 instead of 4):"
        f" another --seed may help (logs: {tmp_path / 'log'})"
    )
    report = json.loads((tmp_path / "reports" / "layout-osu018-element-lns5.json").read_text())
    assert report["picture"] is None


@pytest.mark.borrows
@pytest.mark.skipif(bool(REASON), reason=REASON or "nothing is missing")
def test_the_smallest_block_is_laid_out(
    slipstick: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    status, out, err = slipstick("layout", "element-lns5", "--pdk", "osu018", "--json")
    assert status == 0, err
    found = json.loads(out)
    assert (found["drc_errors"], found["lvs_matches"]) == (0, True)
    assert found["simulation"]["failures"] == []
    delayed = found["simulation_with_delays"]
    assert delayed is None or delayed["failures"] == []
    assert 0 < found["fmax_mhz"] < found["fmax_before_wires_mhz"]
    assert found["hold_slack_ns"] > 0
    assert found["cells"] > found["flip_flops"] > 0
    assert 0.5 < found["utilisation"] < 1
    files = tmp_path / "build" / "layout" / "osu018-element-lns5" / "qflow" / "layout"
    gds = files / "element_lns5.gds"
    assert gds.stat().st_size > 10_000
    for ending in (".def", ".lef", ".spice"):
        assert (files / f"element_lns5{ending}").is_file()
    assert json.loads(Path(found["report"]).read_text())["cells"] == found["cells"]
