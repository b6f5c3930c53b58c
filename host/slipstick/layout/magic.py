"""magic: a routed block read in, checked, and written as GDS, LEF and SPICE."""

import re
from pathlib import Path

from ..errors import TargetError
from .project import Project
from .running import run_quietly

_COUNT = re.compile(r"^drc_errors = (\d+)$", re.M)
_STYLE = re.compile(r"^extract_style = (.+)$", re.M)

_MISSING = re.compile(r"^Cell \S+ is unavailable", re.M)

_READ = """drc off
box 0 0 0 0
snap int
lef read {lef}
"""

_IMPORT = """def read {name}
load {name}
{labels}writeall force {name}
lef write {name}
expand
puts "extract_style = [extract list style]"
extract all
{spice}ext2spice cthresh infinite
ext2spice
ext2spice cthresh 0
ext2spice -o {name}_capacitances.spice
gds write {name}
quit -noprompt
"""

_CELLS = """drc off
box 0 0 0 0
gds readonly {readonly}
gds rescale false
gds read {cells}
"""

_WRITE = """load {name}
select top cell
expand
gds write {name}
quit -noprompt
"""

_SPICE = """ext2spice hierarchy on
ext2spice format ngspice
ext2spice scale off
ext2spice renumber off
ext2spice rthresh infinite
ext2spice blackbox on
ext2spice subcircuit top auto
ext2spice global off
"""

_LABELS = """select top cell
select area labels
setlabel font FreeSans
setlabel size 0.3um
box grow s -[box height]
box grow s 100
select area labels
setlabel rotate 90
setlabel just e
select top cell
box height 100
select area labels
setlabel rotate 270
setlabel just w
select top cell
box width 100
select area labels
setlabel just w
select top cell
box grow w -[box width]
box grow w 100
select area labels
setlabel just e
"""
"""Names of pins stand outside of the block, turned away from it: a DEF file does not place them."""

_CHECK = """load {name}
drc on
select top cell
expand
drc check
drc catchup
puts "drc_errors = [drc list count total]"
puts "drc_why = [drc listall why]"
quit -noprompt
"""


def extract(project: Project, magic: str) -> str:
    """Reads the routed block; writes its GDS, LEF and SPICE, with and without capacitances.

    The GDS has the cells as their LEF shows them, pins and obstructions in metal: Debian's packages
    hold no transistors.

    Returns
    -------
    str
        The style of extraction that magic's technology file has.

    Raises
    ------
    TargetError
        If magic cannot be run, or a file is missing afterwards.
    """
    script = _IMPORT.format(name=project.name, labels=_LABELS, spice=_SPICE)
    text = _run(project, magic, "extract", _with_lef(project) + script)
    for ending in (".mag", ".lef", ".gds", ".spice", "_capacitances.spice"):
        if not project.file("layout", ending).is_file():
            raise TargetError(
                f"magic wrote no {project.name}{ending} (the whole log: {project.log('extract')})"
            )
    style = _STYLE.search(text)
    return style[1].strip() if style else "unknown"


def count_drc_errors(project: Project, magic: str) -> int:
    """Checks the block by the design rules of magic's technology file; returns the errors' number.

    The log says which rules were violated, and where.

    Raises
    ------
    TargetError
        If magic cannot be run, or tells no number.
    """
    script = _with_lef(project) + _CHECK.format(name=project.name)
    return _count(project, "drc", _run(project, magic, "drc", script))


def add_transistors(project: Project, magic: str, cells: Path) -> int:
    """Writes the block's GDS again, with whole cells, and checks all of it.

    Parameters
    ----------
    project : Project
    magic : str
    cells : Path
        A GDS file of the technology's cells.

    Returns
    -------
    int
        Errors of design rules, those within cells counted.

    Raises
    ------
    TargetError
        If the file lacks a cell of the block, or magic cannot be run.
    """
    path, name = cells.resolve(), project.name
    # as they are in the file, for the GDS; as magic understands them, for the check
    script = _CELLS.format(readonly="true", cells=path) + _WRITE.format(name=name)
    text = _run(project, magic, "gds", script)
    if missing := _MISSING.search(text):
        raise TargetError(f"{cells} must be a GDS file with every cell of {name}: {missing[0]}")
    script = _CELLS.format(readonly="false", cells=path) + _CHECK.format(name=name)
    step = "drc_with_transistors"
    return _count(project, step, _run(project, magic, step, script))


def _count(project: Project, step: str, text: str) -> int:
    count = _COUNT.search(text)
    if count is None:
        raise TargetError(
            f"magic told no number of design rule errors of {project.name} (the whole log:"
            f" {project.log(step)})"
        )
    return int(count[1])


def _with_lef(project: Project) -> str:
    return _READ.format(lef=project.lef_to_check())


def _run(project: Project, magic: str, step: str, script: str) -> str:
    """Runs magic without windows on a script; returns all it said."""
    folder = project.folder / "layout"
    path = folder / f"{step}_{project.name}.tcl"
    path.write_text(script, "utf-8")
    log = project.log(step)
    return run_quietly(step, [magic, "-dnull", "-noconsole", path.name], folder, log)
