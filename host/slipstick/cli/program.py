"""``slipstick program``: a bitstream onto a board."""

from pathlib import Path
from typing import Annotated

import typer

from .. import console
from ..fpga.programmer import find_bitstream, program
from ..targets import find_target
from .build import DEFAULT_BOARD
from .completion import complete_target
from .options import Json


def program_command(
    target: Annotated[
        str,
        typer.Option(
            "--target", "-t", help="A target with a board.", autocompletion=complete_target
        ),
    ] = DEFAULT_BOARD,
    bitstream: Annotated[
        Path | None,
        typer.Option("--bitstream", "-b", help="By default, that of the target's last build."),
    ] = None,
    flash: Annotated[
        bool,
        typer.Option("--flash", help="Into flash, where it stays; else until the power goes."),
    ] = False,
    cable: Annotated[
        str | None, typer.Option("--cable", help="openFPGALoader's name of another cable.")
    ] = None,
    device: Annotated[
        str | None, typer.Option("--device", help="One of several boards: BUS:DEVICE of USB.")
    ] = None,
    json: Json = False,
) -> None:
    """Put a target's bitstream on the board that is connected."""
    wanted = find_target(target)
    path = find_bitstream(wanted, bitstream)
    log = program(wanted, bitstream=path, flash=flash, cable=cable, device=device)
    memory = "flash" if flash else "sram"
    if json:
        console.print_json(
            {
                "target": wanted.name,
                "bitstream": str(path),
                "fingerprint": wanted.configuration.fingerprint,
                "memory": memory,
                "log": str(log),
            }
        )
    else:
        console.print_line(f"{path} runs on {wanted.name} (in {memory}; log: {log})")
