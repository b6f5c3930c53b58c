"""``slipstick export``: the core as Verilog."""

from pathlib import Path
from typing import Annotated, Any

import typer

from .. import console
from ..asic.memories import FLIP_FLOPS, TECHNOLOGIES
from ..errors import TargetError
from ..export import Export, check_interface, default_output, export
from ..targets import DEFAULT_TARGET, TARGETS, find_target
from .completion import complete_target
from .options import Json

DEFAULT_TILE = "asic-4x4"
DEFAULT_MEMORIES = FLIP_FLOPS
"""Layout runs without macros then."""


def export_command(
    interface: Annotated[
        str, typer.Option("--interface", "-i", help="axi, wishbone or stream.")
    ] = "axi",
    target: Annotated[
        str | None,
        typer.Option(
            "--target", "-t", help="A target's configuration.", autocompletion=complete_target
        ),
    ] = None,
    shape: Annotated[
        str | None, typer.Option("--shape", help="Array of PxRxC, with the default memories.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder of all files: build/exports/TARGET-INTERFACE."),
    ] = None,
    asic: Annotated[
        bool,
        typer.Option("--asic", help="With constraints and configurations of open layout flows."),
    ] = False,
    memories: Annotated[
        str | None,
        typer.Option("--memories", help=f"With --asic: {' or '.join(TECHNOLOGIES)}."),
    ] = None,
    json: Json = False,
) -> None:
    """Write the core as Verilog, for designs that have a bus of their own, or for a chip."""
    check_interface(interface)
    if memories is not None and not asic:
        raise TargetError("--memories must be given with --asic: FPGAs have memories of their own")
    technology = (memories or DEFAULT_MEMORIES) if asic else None
    if target is not None and shape is not None:
        raise TargetError("--target and --shape must not be given together")
    if shape is not None and shape in TARGETS:
        raise TargetError(f"--shape must be PxRxC such as 1x16x16, not the target {shape!r}")
    wanted = find_target(shape or target or (DEFAULT_TILE if asic else DEFAULT_TARGET))
    folder = output or default_output(wanted, interface, technology)
    with console.waiting(f"exporting {wanted.name}"):
        done = export(wanted, interface, folder, memories=technology)
    if json:
        console.print_json(_result(done))
    else:
        _show(done)


def _result(done: Export) -> dict[str, Any]:
    face = done.description["interface"]
    return {
        "target": done.target.name,
        "interface": done.interface,
        "fingerprint": done.description["fingerprint"],
        "top": done.description["top"],
        "clock": face["clock"],
        "reset": face["reset"],
        "reset_active": face["reset_active"],
        "die_micrometres": dict(done.sides),
        "files": {path.name: str(path) for path in done.files},
    }


def _show(done: Export) -> None:
    about = {
        "slipstick.v": "the core: one module, slipstick",
        "design.json": "configuration, ports, registers, instruction set, protocol",
        "slipstick.h": "the same for drivers in C",
        "instance.v": "an instance to copy",
        "slipstick_sram_1rw.v": "model of a memory macro with one port, to be replaced",
        "slipstick_sram_1rw1r.v": "model of a memory macro with two ports, to be replaced",
        "slipstick.sdc": "clock and delays of ports",
        "config.json": "for LibreLane: sky130 and IHP SG13G2",
        "sky130hd.mk": "for OpenROAD-flow-scripts",
        "ihp-sg13g2.mk": "for OpenROAD-flow-scripts",
    }
    rows = [[path.name, path.stat().st_size, about[path.name]] for path in done.files]
    face = done.description["interface"]
    guide = "docs/how-to/asic-flow.md" if done.sides else "docs/how-to/soc.md"
    dies = "".join(f"; die {side} x {side} um in {name}" for name, side in done.sides.items())
    console.print_table(
        f"{done.target.name} with {face['description']}",
        {"file": "left", "bytes": "right", "": "text"},
        rows,
        f"in {done.files[0].parent}; clock {face['clock']}, reset {face['reset']} (synchronous,"
        f" active {face['reset_active']}){dies}; {guide} shows how to use it",
    )
