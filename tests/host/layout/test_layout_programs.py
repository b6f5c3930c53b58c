"""Programs of a layout: what they are given, and what is said if they fail."""

import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from slipstick.errors import TargetError
from slipstick.layout import lvs, magic, project, technology
from slipstick.layout.lef import read_metal, without_slivers
from slipstick.layout.netlist import Gate, GateNetlist, Port
from slipstick.layout.project import Project
from slipstick.layout.technology import find_technology
from slipstick.layout.timing import read_timing

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
