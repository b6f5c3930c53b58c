"""``slipstick layout``: a block as a chip's layout, by Debian's packages."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import console, reports
from ..errors import InputError, TargetError
from ..layout.blocks import KINDS, find_block
from ..layout.flow import SEED, lay_out
from ..layout.picture import draw_layout
from ..layout.result import Layout
from ..layout.simulation import Simulation
from ..layout.technology import TECHNOLOGIES, find_programs, find_technology, versions
from .options import Json

PICTURE = "layout.png"


def layout_command(
    block: Annotated[str, typer.Argument(help=f"What to lay out: {KINDS}.")],
    pdk: Annotated[
        str, typer.Option("--pdk", "-p", help=f"The process: {', '.join(TECHNOLOGIES)}.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder of all files: build/layout/PDK-BLOCK."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=1, help="Of the placement.")] = SEED,
    density: Annotated[
        float | None,
        typer.Option(
            "--density",
            min=0.2,
            max=1.0,
            help="Share of the rows that cells may take; less gives wires more room.",
        ),
    ] = None,
    cells_gds: Annotated[
        Path | None,
        typer.Option(
            "--cells-gds", help="GDS of the process' cells, which Debian's packages lack."
        ),
    ] = None,
    picture: Annotated[
        bool, typer.Option("--picture/--no-picture", help="Draw it; needs the package klayout.")
    ] = True,
    simulate: Annotated[
        bool,
        typer.Option(
            "--simulate/--no-simulate", help="Hold the layout's netlist to the golden model."
        ),
    ] = True,
    json: Json = False,
) -> None:
    """Place and route a block; check it, time it with its wires, write GDS and a picture."""
    wanted, technology = find_block(block), find_technology(pdk)
    if cells_gds is not None and not cells_gds.is_file():
        raise InputError(f"--cells-gds must be a file, not {cells_gds}")
    # what is missing is told before the work of minutes
    find_programs(technology)
    folder = output or Path("build") / "layout" / f"{technology.name}-{wanted.name}"
    done = lay_out(
        wanted,
        technology,
        folder,
        seed=seed,
        density=density,
        simulated=simulate,
        cells_gds=cells_gds,
        step=console.step,
    )
    used = technology.density if density is None else density
    figures = {**done.figures(), "seed": seed, "density": used, "tools": versions()}
    figures["picture"] = _draw(done, folder) if picture else None
    words = ["slipstick", "layout", wanted.name, "--pdk", technology.name]
    if seed != SEED:
        words += ["--seed", str(seed)]
    if density is not None:
        words += ["--density", f"{density:g}"]
    if cells_gds is not None:
        words += ["--cells-gds", cells_gds.name]
    report = reports.write(f"layout-{technology.name}-{wanted.name}", shlex.join(words), figures)
    if json:
        console.print_json({**figures, "report": str(report)})
    else:
        _show(done, figures)
        console.print_line(f"report: {report}")
    if not done.is_clean:
        raise TargetError(_complaint(done))


def _draw(done: Layout, folder: Path) -> str | None:
    """Draws the layout; None, and a line that says so, if the package is missing."""
    path = folder / PICTURE
    try:
        draw_layout(done.project.file("layout", ".gds"), path)
    except TargetError as error:
        typer.echo(str(error), err=True)
        return None
    return str(path)


def _show(done: Layout, figures: dict[str, Any]) -> None:
    rows: list[list[object]] = [
        ["die, um", f"{figures['width_um']:g} x {figures['height_um']:g}"],
        ["area, um2", round(figures["area_um2"])],
        ["cells", figures["cells"]],
        ["clock buffers", sum(figures["clock_buffers"])],
        ["nets", figures["nets"]],
        ["utilisation", console.percent(figures["utilisation"])],
        ["wires, um", round(figures["wire_length_um"])],
        ["clock before wires, MHz", figures["fmax_before_wires_mhz"]],
        ["clock with wires, MHz", figures["fmax_mhz"]],
        ["hold slack, ns", figures["hold_slack_ns"]],
        ["clock skew, ns", figures["timing"]["skew_ns"]],
        ["design rule errors", done.drc_errors],
        ["layout equals netlist", "yes" if done.comparison.matches else "no"],
        ["layout equals golden model", _simulated(done.simulation)],
        ["the same with delays", _simulated(done.delayed)],
    ]
    if power := figures["power"]:
        clock = console.percent(power["clock_mw"] / power["dynamic_mw"])
        rows += [
            [
                f"power at {1000 / power['period_ns']:.0f} MHz in an inference, mW",
                power["dynamic_mw"],
            ],
            ["of that the clock", clock],
            ["energy per cycle, pJ", power["pj_per_cycle"]],
        ]
    title = f"{done.block.name} in {done.project.technology.name}"
    console.print_table(title, {"": "left", "measured": "right"}, rows)
    files = done.project.folder / "layout"
    console.print_line(f"GDS, DEF, LEF, SPICE: {files}\npicture: {figures['picture']}")


def _simulated(run: Simulation | None) -> str:
    if run is None:
        return "not simulated"
    wrong = len(run.failures)
    return f"no: {wrong} of {run.tests} tests" if wrong else "yes"


def _complaint(done: Layout) -> str:
    faults = list[str]()
    if errors := done.drc_errors + (done.drc_errors_with_transistors or 0):
        faults.append(f"{errors} design rule errors")
    if not done.comparison.matches:
        faults.append(f"{done.comparison.differences} differences between layout and netlist")
    if done.failures:
        faults.append(f"a netlist that differs from the golden model ({done.failures[0]})")
    return (
        f"the layout of {done.block.name} has {', '.join(faults)}: another --seed may help"
        f" (logs: {done.project.folder / 'log'})"
    )
