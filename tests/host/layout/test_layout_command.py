"""``slipstick layout``: its refusals, and the smallest block laid out if the packages are there."""

import json
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from slipstick.cli import layout as command
from slipstick.errors import TargetError
from slipstick.layout import flow, lvs, magic, project, technology
from slipstick.layout.blocks import FORMATS, find_block
from slipstick.layout.lef import read_metal, without_slivers
from slipstick.layout.netlist import Gate, GateNetlist, Port
from slipstick.layout.picture import draw_layout
from slipstick.layout.project import Project
from slipstick.layout.simulation import Simulation
from slipstick.layout.technology import find_programs, find_technology
from slipstick.layout.timing import read_timing

REPORTS = Path(__file__).parents[3] / "reports"

LEF = """LAYER metal2
  WIDTH 0.9 ;
  SPACING 1.0 ;
END metal2
VIA M2_M1 DEFAULT
  LAYER metal2 ;
    RECT -0.900 -0.600 0.900 0.600 ;
END M2_M1
MACRO INV
  OBS
      LAYER metal2 ;
        RECT 0.600 5.700 1.800 6.000 ;
  END
END INV
"""
DEF = """UNITS DISTANCE MICRONS 100 ;
VIAS 1 ;
- wide
+ RECT metal1 ( -360 -60 ) ( 360 60 )
+ RECT metal2 ( -300 -60 ) ( 300 60 ) ;
END VIAS
PINS 0 ;
END PINS
NETS 1 ;
- a
+ ROUTED metal1 ( 0 0 ) ( 240 * ) M2_M1
  NEW metal2 ( 0 0 ) M2_M1 ;
END NETS
SPECIALNETS 2 ;
- vdd
+ FIXED metal1 120 ( 500 150 ) ( * * ) wide
 ;
- gnd
+ FIXED metal1 120 ( 900 450 ) ( * * ) wide
 ;
END SPECIALNETS
"""

Run = Callable[..., tuple[int, str, str]]

REPORT = """=== setup
Startpoint: DFF_1 (rising edge-triggered flip-flop clocked by clock)
    Delay      Time   Description
   0.0000    0.0000   clock clock (rise edge)
   0.3410    0.3410   clock network delay (propagated)
   0.0000    0.3410 ^ DFF_1/CLK (DFFPOSX1)
   0.2090    0.5500 ^ DFF_1/Q (DFFPOSX1)
   0.2000    0.7500 v INV_1/Y (INVX1)
             0.7500   data arrival time
            98.0000   slack (MET)
=== hold
            -0.1250   slack (VIOLATED)
=== in
No paths found.
=== out
            99.0000   slack (MET)
=== skew
Clock clock
Latency      CRPR       Skew
DFF_17/CLK ^
   0.35
DFF_139/CLK ^
   0.32      0.00       0.03
"""


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


def test_timing_is_read() -> None:
    found = read_timing(REPORT, "block")
    assert (found.period_ns, found.fmax_mhz) == (2.0, 500.0)
    assert (found.hold_slack_ns, found.skew_ns, found.clock_latency_ns) == (-0.125, 0.03, 0.341)
    assert found.port_period_ns == 1.0
    assert found.critical_path[-1] == ("INVX1", 0.75)
    assert found.figures()["fmax_mhz"] == 500.0


@pytest.mark.parametrize("text", ["", "=== setup\nNo paths found.\n", REPORT.split("=== hold")[0]])
def test_timing_needs_paths(text: str) -> None:
    with pytest.raises(TargetError, match="block block must have a path between registers"):
        read_timing(text, "block")


@pytest.fixture
def pretended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Project]:
    """A project whose programs run a line of Python each."""
    home, tech = tmp_path / "qflow_home", tmp_path / "tech"
    for folder in (home / "bin", home / "scripts", tech / "osu018"):
        folder.mkdir(parents=True)
    (home / "bin" / "vesta").write_text("")
    (tech / "osu018" / "osu018.magicrc").write_text("tech load x\n")
    (tech / "osu018" / "osu018.par").write_text("*random.seed : 1\n*gridX : 80\n")
    monkeypatch.setattr(project, "QFLOW", home)
    monkeypatch.setattr(technology, "TECHNOLOGIES_FOLDER", tech)
    made = Project(tmp_path / "project", "block", find_technology("osu018"))
    netlist = GateNetlist(
        "block", {"a": Port("input", ("a",))}, [Gate("INVX1", {"A": "a", "Y": "n1"})]
    )
    made.write(netlist, {"netgen-lvs": "/usr/bin/netgen-lvs"}, 7, 0.75)

    def ready(program: str, body: str) -> Project:
        for path in (home / "scripts" / program, tmp_path / program):
            path.write_text(f"#!{sys.executable}\nimport os, sys\n{body}\n")
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return made

    return ready


def test_a_project_is_what_qflow_reads(pretended: Callable[[str, str], Project]) -> None:
    made = pretended("x", "")
    assert ".gate INVX1 A=a Y=n1" in made.file("synthesis", ".blif").read_text()
    assert (
        made.file("layout", ".par").read_text().endswith("*gridX : 80\n*random.seed\t      : 7\n")
    )
    assert f"set projectpath={made.folder}\n" in (made.folder / "qflow_vars.sh").read_text()
    assert (made.folder / "project_vars.sh").read_text() == "set initial_density = 0.75\n"
    assert "proc qrouter::cleanup" in made.file("layout", ".cfg2").read_text()
    assert os.readlink(made.folder / "bin" / "netgen") == "/usr/bin/netgen-lvs"


def test_scripts_that_fail_are_told(pretended: Callable[[str, str], Project]) -> None:
    made = pretended("placement.sh", "print('no room'); sys.exit(3)")
    with pytest.raises(TargetError, match="place of block failed: exit status 3, 'no room'"):
        made.place()
    # qflow's scripts end well and say in their logs that they did not
    made = pretended("router.sh", "open('log/route.log', 'w').write('stopped on error condition.')")
    with pytest.raises(TargetError, match="route of block failed: .*route.log"):
        made.route()
    made = pretended("router.sh", "open('log/route.log', 'w').write('Failed net n7')")
    with pytest.raises(TargetError, match="routing of block left nets without a route"):
        made.route()
    made = pretended("router.sh", "open('log/route.log', 'w').write('Final: No failed routes!')")
    made.technology.file("_stdcells.lef").write_text(LEF)
    made.file("layout", ".def").write_text(DEF)
    made.route()
    # the router left a notch between two vias
    assert "SPECIALNETS 3 ;\n- a\n+ ROUTED metal2" in made.file("layout", ".def").read_text()


def test_rows_are_joined_where_qflow_cannot(
    pretended: Callable[[str, str], Project], tmp_path: Path
) -> None:
    made = pretended("placement.sh", "")
    made = Project(made.folder, made.name, find_technology("osu050"))
    made.file("layout", "_unroute.def").write_text(DEF)
    made.place()
    assert "NEW metal2 600" in made.file("layout", "_unroute.def").read_text()
    lef = tmp_path / "tech" / "osu050"
    lef.mkdir()
    (lef / "osu050_stdcells.lef").write_text(LEF)
    assert made.lef_to_check().read_text() == without_slivers(LEF, read_metal(LEF))[0]


def test_magic_must_write_and_count(
    pretended: Callable[[str, str], Project], tmp_path: Path
) -> None:
    made = pretended("magic", "print('drc_errors = 4')")
    program = str(tmp_path / "magic")
    assert magic.count_drc_errors(made, program) == 4
    with pytest.raises(TargetError, match="magic wrote no block.mag"):
        magic.extract(made, program)
    pretended("magic", "print('nothing')")
    with pytest.raises(TargetError, match="magic told no number of design rule errors of block"):
        magic.count_drc_errors(made, program)
    pretended("magic", "sys.exit('segmentation fault')")
    with pytest.raises(TargetError, match="drc failed: exit status 1, 'segmentation fault'"):
        magic.count_drc_errors(made, program)
    with pytest.raises(TargetError, match="/no/such/magic cannot be run"):
        magic.count_drc_errors(made, "/no/such/magic")
    pretended(
        "magic",
        "for e in ('.mag', '.lef', '.gds', '.spice', '_capacitances.spice'):\n"
        "    open('block' + e, 'w').close()\nprint('extract_style = slow')",
    )
    assert magic.extract(made, program) == "slow"


def test_transistors_come_from_a_file_of_cells(
    pretended: Callable[[str, str], Project], tmp_path: Path
) -> None:
    cells, program = tmp_path / "cells.gds", str(tmp_path / "magic")
    made = pretended("magic", "print('drc_errors = 2')")
    assert magic.add_transistors(made, program, cells) == 2
    script = (made.folder / "layout" / "gds_block.tcl").read_text()
    assert f"gds readonly true\ngds rescale false\ngds read {cells}\n" in script
    pretended("magic", "print('Cell INVX1 is unavailable.  It could not be expanded.')")
    with pytest.raises(TargetError, match="a GDS file with every cell of block: Cell INVX1 is un"):
        magic.add_transistors(made, program, cells)


@pytest.mark.parametrize(
    ("report", "said", "expected"),
    [
        ('[{"nets": [2, 2]}]', "Circuits match uniquely.", (True, 0)),
        ('[{"nets": [2, 2]}]', "Netlists do not match.", (False, 0)),
        ('[{"nets": [2, 3]}]', "Circuits match uniquely.", (False, 1)),
    ],
)
def test_netgen_must_find_both_equal(
    pretended: Callable[[str, str], Project],
    tmp_path: Path,
    report: str,
    said: str,
    expected: tuple[bool, int],
) -> None:
    made = pretended("netgen", f"open('comp.json', 'w').write('{report}'); print('{said}')")
    found = lvs.compare(made, str(tmp_path / "netgen"))
    assert (found.matches, found.differences) == expected


def test_netgen_must_write_a_report(
    pretended: Callable[[str, str], Project], tmp_path: Path
) -> None:
    for body in ("", "open('comp.json', 'w').write('[')", "open('comp.json', 'w').write('3')"):
        made = pretended("netgen", body)
        with pytest.raises(TargetError, match="netgen wrote no report of block that can be read"):
            lvs.compare(made, str(tmp_path / "netgen"))


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
