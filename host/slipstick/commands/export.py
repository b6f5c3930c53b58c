"""``slipstick export``: the core as Verilog."""

from pathlib import Path
from typing import Annotated, Any

import typer

from .. import console
from ..errors import TargetError
from ..export import Export, check_interface, default_output, export
from ..targets import DEFAULT_TARGET, TARGETS, find_target
from .options import Json


def export_command(
    interface: Annotated[
        str, typer.Option("--interface", "-i", help="axi, wishbone or stream.")
    ] = "axi",
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="A target's configuration.")
    ] = None,
    shape: Annotated[
        str | None, typer.Option("--shape", help="Array of PxRxC, with the default memories.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder of all files: build/exports/TARGET-INTERFACE."),
    ] = None,
    json: Json = False,
) -> None:
    """Write the core as Verilog, for designs that have a bus of their own."""
    check_interface(interface)
    if target is not None and shape is not None:
        raise TargetError("--target and --shape must not be given together")
    if shape is not None and shape in TARGETS:
        raise TargetError(f"--shape must be PxRxC such as 1x16x16, not the target {shape!r}")
    wanted = find_target(shape or target or DEFAULT_TARGET)
    folder = output or default_output(wanted, interface)
    with console.waiting(f"exporting {wanted.name}"):
        done = export(wanted, interface, folder)
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
        "files": {path.name: str(path) for path in done.files},
    }


def _show(done: Export) -> None:
    about = {
        "slipstick.v": "the core: one module, slipstick",
        "design.json": "configuration, ports, registers, instruction set, protocol",
        "slipstick.h": "the same for drivers in C",
        "instance.v": "an instance to copy",
    }
    rows = [[path.name, path.stat().st_size, about[path.name]] for path in done.files]
    face = done.description["interface"]
    console.print_table(
        f"{done.target.name} with {face['description']}",
        {"file": "left", "bytes": "right", "": "text"},
        rows,
        f"in {done.files[0].parent}; clock {face['clock']}, reset {face['reset']} (synchronous,"
        f" active {face['reset_active']}); docs/soc.md shows how to use it",
    )
