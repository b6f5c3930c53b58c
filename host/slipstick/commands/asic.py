"""``slipstick asic``: a core on a process of standard cells."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import build_tools as tools
from .. import console, reports
from ..asic.implementation import Implementation, core_rtlil, implement
from ..asic.pdk import NAMED, find_pdk
from ..asic.treemap import draw_treemap
from ..targets import Target, find_target
from .options import Json

DEFAULT_TARGET = "1x8x8"
TREEMAP = "area.png"


def asic_command(
    pdk: Annotated[
        str,
        typer.Option("--pdk", "-p", help=f"{', '.join(NAMED)}, or the path of a liberty file."),
    ],
    target: Annotated[
        str, typer.Option("--target", "-t", help="A target, or a shape such as 1x16x16.")
    ] = DEFAULT_TARGET,
    feature_nm: Annotated[
        float | None,
        typer.Option("--feature-nm", help="Feature size of a liberty file's process."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder of all files: build/asic/PDK-TARGET."),
    ] = None,
    json: Json = False,
) -> None:
    """Map a core to standard cells; report its area by block and its clock."""
    wanted = find_target(target)
    process = find_pdk(pdk, feature_nm=feature_nm)
    folder = output or default_output(process.name, wanted)
    with _step("gateware to RTLIL"):
        rtlil = core_rtlil(wanted)
    done = implement(rtlil, process, folder.resolve(), step=_step)
    title = f"{wanted.name} ({wanted.configuration.number_format}) on {process.name}"
    draw_treemap(folder / TREEMAP, done.blocks, title)
    figures = _figures(done, wanted, folder)
    command = f"slipstick asic --pdk {pdk} --target {wanted.name}"
    if feature_nm is not None:
        command += f" --feature-nm {feature_nm:g}"
    report = reports.write(f"asic-{process.name}-{wanted.name}", command, figures)
    if json:
        console.print_json({**figures, "report": str(report)})
    else:
        _show(done, title, folder, report)


def default_output(pdk: str, target: Target) -> Path:
    """Where a core's files go unless the user says otherwise."""
    return Path("build") / "asic" / f"{pdk}-{target.name}"


@contextmanager
def _step(what: str) -> Iterator[None]:
    """The step that runs, on the standard error: a turning wheel, or a line where there is none."""
    if sys.stderr.isatty():
        with console.waiting(f"{what} ..."):
            yield
    else:
        print(f"{what} ...", file=sys.stderr, flush=True)
        yield


def _figures(done: Implementation, target: Target, folder: Path) -> dict[str, Any]:
    programs = (tools.YOSYS, tools.OPENSTA)
    return {
        "target": target.name,
        "fingerprint": target.configuration.fingerprint,
        "number_format": target.configuration.number_format,
        "shape": target.configuration.shape,
        **done.figures(),
        "treemap": str(folder / TREEMAP),
        "tools": {tool.name: tools.version_of(tool.find()) for tool in programs},
    }


def _show(done: Implementation, title: str, folder: Path, report: Path) -> None:
    _show_areas(done, title)
    path = done.timing.path
    console.print_line(
        f"clock: {done.timing.period_ns:.3f} ns, {done.timing.fmax_mhz:.0f} MHz, without wires and"
        f" with an ideal clock tree\ncritical path: {len(path)} cells from {path[0].place}"
        f" to {path[-1].place}\ntreemap: {folder / TREEMAP}\nreport: {report}"
    )


def _show_areas(done: Implementation, title: str) -> None:
    total = done.cell_area
    columns = {
        "block": "left",
        "count": "right",
        "cells": "right",
        "flip-flops": "right",
        "cells um2": "right",
        "of cells": "right",
        "memory bits": "right",
        "memory um2": "right",
    }
    rows: list[list[object]] = [
        [
            block.name or "top",
            block.count,
            block.cells,
            block.flip_flops,
            round(block.cell_area),
            console.percent(block.cell_area / total),
            block.memory_bits or None,
            round(block.memory_area) or None,
        ]
        for block in sorted(done.blocks, key=lambda block: -block.cell_area)
    ]
    rows.append(
        [
            "all",
            None,
            sum(block.cells for block in done.blocks),
            sum(block.flip_flops for block in done.blocks),
            round(total),
            "100.0%",
            sum(block.memory_bits for block in done.blocks),
            round(done.memory_area),
        ]
    )
    footer = "memories by the model of docs/asic.md" if done.memory_area else ""
    console.print_table(title, columns, rows, footer)
