"""``slipstick build``: the bitstream of a target."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from .. import console
from ..build import DEFAULT_SEED, Build, build, default_output, write_report
from ..targets import find_target
from .options import Json

DEFAULT_BOARD = "ulx3s-25f"


def build_command(
    target: Annotated[
        str, typer.Option("--target", "-t", help="A target with a board.")
    ] = DEFAULT_BOARD,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of place and route.")] = DEFAULT_SEED,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder of all files: build/bitstreams/TARGET."),
    ] = None,
    json: Json = False,
) -> None:
    """Build a target's bitstream with the open toolchain; report its clock and its size."""
    wanted = find_target(target)
    done = build(wanted, seed=seed, output=output, step=_step)
    folder = default_output(wanted) if output is None else output
    command = f"slipstick build --target {wanted.name} --seed {seed} --output {folder}"
    report = write_report(done, command)
    if json:
        console.print_json({**done.figures(), "report": str(report)})
    else:
        _show(done, report)


@contextmanager
def _step(what: str) -> Iterator[None]:
    """The step that runs, on the standard error: a turning wheel, or a line where there is none."""
    if sys.stderr.isatty():
        with console.waiting(f"{what} ..."):
            yield
    else:
        print(f"{what} ...", file=sys.stderr, flush=True)
        yield


def _show(done: Build, report: Path) -> None:
    rows = [
        [name, entry.used, entry.available, console.percent(entry.used / entry.available)]
        for name, entry in done.layout.usage.items()
    ]
    columns = {"resource": "left", "used": "right", "available": "right", "share": "right"}
    asked = done.target.configuration.clock_hz / 1e6
    verdict = "reached" if done.meets_clock else "NOT reached"
    footer = (
        f"clock: {done.layout.fmax_mhz:.1f} MHz ({asked:g} MHz asked for, {verdict}),"
        f" seed {done.seed}, {done.seconds:.0f} s\nbitstream: {done.bitstream}\nreport: {report}"
    )
    console.print_table(f"Build of {done.target.name}", columns, rows, footer)
