"""``slipstick asic``: a core on a process of standard cells."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import console, reports
from .. import toolchain as tools
from ..asic.clock_gating import find_clock_gate
from ..asic.energy import Energy, inference_energy
from ..asic.implementation import Implementation, core_rtlil, implement
from ..asic.memory_model import check_modelled
from ..asic.pdk import NAMED, Pdk, find_pdk
from ..asic.treemap import draw_treemap
from ..data.inputs import Samples, load_inputs
from ..errors import InputError
from ..loading import load_program
from ..plots.figures import blank_figure
from ..program import Program
from ..targets import Target, find_target
from .completion import complete_target
from .options import INPUTS_HELP, Json
from .run import one_input

DEFAULT_TARGET = "1x8x8"
TREEMAP = "area.png"
UNGATED = "ungated"
"""Folder of the core without clock gates, in that of the core with them."""

GATED_REPORT = "-gated"
TOOLS = (tools.YOSYS, tools.OPENSTA)


def asic_command(
    pdk: Annotated[
        str,
        typer.Option("--pdk", "-p", help=f"{', '.join(NAMED)}, or the path of a liberty file."),
    ],
    target: Annotated[
        str,
        typer.Option(
            "--target",
            "-t",
            help="A target, or a shape such as 1x16x16.",
            autocompletion=complete_target,
        ),
    ] = DEFAULT_TARGET,
    feature_nm: Annotated[
        float | None,
        typer.Option("--feature-nm", help="Feature size of a liberty file's process."),
    ] = None,
    network: Annotated[
        Path | None,
        typer.Option("--network", help="A network: power and energy of one of its inferences."),
    ] = None,
    inputs: Annotated[
        list[Path] | None,
        typer.Option("--input", "-i", help=f"{INPUTS_HELP} Of it the first is run."),
    ] = None,
    clock_gating: Annotated[
        bool,
        typer.Option(
            "--clock-gating/--no-clock-gating",
            help="Gate the clocks of registers with a common enable, and tell what that saves: the"
            " core is mapped twice.",
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder of all files: build/asic/PDK-TARGET."),
    ] = None,
    json: Json = False,
) -> None:
    """Map a core to standard cells; report area by block, clock, and the energy of an inference."""
    wanted = find_target(target)
    if inputs and network is None:
        raise InputError("--input must be given with --network, whose input it is")
    process = find_pdk(pdk, feature_nm=feature_nm)
    # what is missing is told before the work of minutes
    for tool in TOOLS:
        tool.find()
    blank_figure((1.0, 1.0))
    check_modelled(process)
    if clock_gating:
        find_clock_gate(process)
    taken = _for_silicon(wanted) if clock_gating else wanted
    program = _program(network, taken)
    samples = _samples(program, inputs or [])
    folder = output or default_output(process.name, wanted)
    title = f"{wanted.name} ({wanted.configuration.number_format}) on {process.name}"

    done, energy = _measure(taken, process, folder, program, samples, gated=clock_gating)
    draw_treemap(folder / TREEMAP, done.blocks, title)
    figures = _figures(done, taken, folder)
    if energy is not None:
        figures["energy"] = {**energy.figures(), "input": _input_text(inputs)}
    before = None
    if clock_gating:
        program = _program(network, wanted)
        plain, before = _measure(wanted, process, folder / UNGATED, program, samples, gated=False)
        figures["ungated"] = {
            **plain.figures(),
            **({} if before is None else {"energy": before.figures()}),
        }
    command = _command(pdk, wanted, feature_nm, network, inputs or [], clock_gating)
    name = f"asic-{process.name}-{wanted.name}{GATED_REPORT if clock_gating else ''}"
    report = reports.write(name, command, figures)
    if json:
        console.print_json({**figures, "report": str(report)})
    else:
        _show(done, title, folder)
        if energy is not None:
            _show_energy(energy, title)
        if energy is not None and before is not None:
            _show_savings(before, energy, title)
        console.print_line(f"report: {report}")


def _program(network: Path | None, target: Target) -> Program | None:
    return None if network is None else load_program(network, target.configuration)


def _measure(
    target: Target,
    process: Pdk,
    folder: Path,
    program: Program | None,
    samples: Samples | None,
    *,
    gated: bool,
) -> tuple[Implementation, Energy | None]:
    """Maps a core, and runs an inference on it if there is a program for it."""
    with console.step("gateware to RTLIL"):
        rtlil = core_rtlil(target)
    done = implement(rtlil, process, folder.resolve(), gated=gated, step=console.step)
    if program is None:
        return done, None
    with console.step(f"one inference of {program.name}, its activity, its power"):
        return done, inference_energy(done, program, samples)


def _for_silicon(target: Target) -> Target:
    """The same array and memories, made for standard cells; a compact engine as it is."""
    c = target.configuration
    if not c.traits.overlaps_streams:
        return target
    made = replace(c, multiplier="plain", packed_rows=0, silicon=1)
    return replace(target, configuration=made)


def default_output(pdk: str, target: Target) -> Path:
    """Returns the folder of a core's files unless the user names another one."""
    return Path("build") / "asic" / f"{pdk}-{target.name}"


def _figures(done: Implementation, target: Target, folder: Path) -> dict[str, Any]:
    return {
        "target": target.name,
        "fingerprint": target.configuration.fingerprint,
        "number_format": target.configuration.number_format,
        "shape": target.configuration.shape,
        **done.figures(),
        "treemap": str(folder / TREEMAP),
        "tools": {tool.name: tool.version() for tool in TOOLS},
    }


def _samples(program: Program | None, paths: list[Path]) -> Samples | None:
    """Loads the samples that are given for the network's input."""
    if program is None or not paths:
        return None
    return load_inputs(paths, program.tensors[one_input(program)].shape)


def _input_text(paths: list[Path] | None) -> str:
    return f"the first of {', '.join(map(str, paths))}" if paths else "random, seed 0"


def _command(
    pdk: str,
    target: Target,
    feature_nm: float | None,
    network: Path | None,
    inputs: list[Path],
    clock_gating: bool,
) -> str:
    """Writes the command that makes this report again."""
    words = ["slipstick", "asic", "--pdk", pdk, "--target", target.name]
    if feature_nm is not None:
        words += ["--feature-nm", f"{feature_nm:g}"]
    if network is not None:
        words += ["--network", str(network)]
    for path in inputs:
        words += ["--input", str(path)]
    if clock_gating:
        words.append("--clock-gating")
    return shlex.join(words)


def _show(done: Implementation, title: str, folder: Path) -> None:
    _show_areas(done, title)
    path = done.timing.path
    console.print_line(
        f"clock: {done.timing.period_ns:.3f} ns, {done.timing.fmax_mhz:.0f} MHz, without wires and"
        f" with an ideal clock tree\ncritical path: {len(path)} cells from {path[0].place}"
        f" to {path[-1].place}\ntreemap: {folder / TREEMAP}"
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
    footer = "memories by the model of docs/reference/asic.md" if done.memory_area else ""
    console.print_table(title, columns, rows, footer)


def _show_energy(energy: Energy, title: str) -> None:
    columns = {
        "block": "left",
        "mW": "right",
        "clock mW": "right",
        "leakage mW": "right",
        "of cells": "right",
    }
    total = energy.cells.dynamic_mw
    rows: list[list[object]] = [
        [
            block.name or "top",
            f"{block.dynamic_mw:.2f}",
            f"{block.clock_mw:.2f}",
            f"{block.leakage_mw:.3f}",
            console.percent(block.dynamic_mw / total),
        ]
        for block in energy.cells.blocks
    ]
    cells = energy.cells
    rows.append(
        [
            "all cells",
            f"{total:.2f}",
            f"{cells.clock_mw:.2f}",
            f"{cells.leakage_mw:.3f}",
            "100.0%",
        ]
    )
    matched = energy.cells.matched / max(1, energy.cells.sources)
    console.print_table(
        f"Power of {energy.program.name}: {title}",
        columns,
        rows,
        f"{energy.program.macs:,} MACs in {energy.cycles:,} cycles, {energy.seconds * 1e6:.1f} us;"
        f" activity recorded for {matched:.1%} of registers and ports\n"
        f"an inference: {energy.total_uj:.2f} uJ, {energy.cells_uj:.2f} of cells and"
        f" {energy.memories_uj:.2f} of memories' accesses; {energy.mac_pj:.2f} pJ a MAC\n"
        f"not in it: {energy.memory_leakage_mw:.1f} mW that the memories leak by their model,"
        " wires, and the clock's tree",
    )


def _show_savings(before: Energy, after: Energy, title: str) -> None:
    """Energy of each block without and with clock gates."""
    columns = {
        "block": "left",
        "uJ ungated": "right",
        "uJ gated": "right",
        "of it clocks": "right",
        "saved": "right",
    }
    blocks = {block.name: block for block in after.cells.blocks}
    rows: list[list[object]] = []
    for block in before.cells.blocks:
        now = blocks.get(block.name)
        if now is not None:
            was, becomes = before.microjoules(block), after.microjoules(now)
            rows.append([block.name or "top", *_savings(was, becomes, after.clock_uj(now))])
    clocks = after.clock_uj(after.cells)
    rows.append(["all, with memories", *_savings(before.total_uj, after.total_uj, clocks)])
    console.print_table(f"Clock gates: {title}", columns, rows)


def _savings(before: float, after: float, clocks: float) -> list[object]:
    saved = console.percent(1 - after / before) if before else None
    return [f"{before:.2f}", f"{after:.2f}", f"{clocks:.2f}", saved]
