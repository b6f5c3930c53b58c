"""``slipstick explore``: configurations against networks; throughput against area."""

import dataclasses
import math
import os
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer
from slipstick_rtl.fpga.parts import Part

from .. import console, reports
from ..cluster.opening import open_cluster_pool
from ..errors import InputError, ModelError, TargetError
from ..explore.explorer import explore, split_front
from ..explore.sweeps import make_configurations
from ..loading import compile_file, is_program
from ..plots.figures import check_png
from ..profile.measure import measure
from ..targets import TARGETS, Target, find_target
from .completion import complete_network, complete_target
from .csv_output import CsvFile, check_csv, write_csv
from .options import ClusterName, Json, check_least, refuse_beside_cluster
from .sweep_options import parse_lists, with_sweep_options
from .sweep_output import Simulated, Sweep, draw, show, sweep_entry, sweep_rows

DEFAULT_BASE = "ulx3s-85f"
DEFAULT_PART = "LFE5U-85F"
DEFAULT_OUTPUT = Path("build") / "explore.png"
NOTHING_FITS = 1
"""Exit status when no configuration is feasible."""
_MEGAHERTZ = 1_000_000
_FASTEST_MHZ = 10_000.0


@with_sweep_options
def explore_command(
    models: Annotated[
        list[Path],
        typer.Argument(
            help="Quantised .tflite or .onnx networks.", autocompletion=complete_network
        ),
    ],
    target: Annotated[
        str,
        typer.Option(
            "--target",
            "-t",
            help="Whose configuration has the other fields.",
            autocompletion=complete_target,
        ),
    ] = DEFAULT_BASE,
    part: Annotated[
        str | None, typer.Option(help=f"An ECP5: the target's, or {DEFAULT_PART}.")
    ] = None,
    clock: Annotated[
        float | None,
        typer.Option(help="MHz: what the target's last build reached, or what it is made for."),
    ] = None,
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", help="Processes: one a core.")] = None,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Run the front's configurations as RTL, too.")
    ] = False,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The picture, a .png.")
    ] = DEFAULT_OUTPUT,
    csv: CsvFile = None,
    cluster: ClusterName = None,
    json: Json = False,
    **lists: str | None,
) -> None:
    """Sweep configurations against networks; draw throughput against area.

    The exit status is 1 if no configuration is feasible.
    """
    check_least("--jobs", jobs, 1)
    refuse_beside_cluster(cluster, {"--jobs": jobs})
    base = find_target(target)
    sweep = Sweep(
        models=_check_networks(models),
        base=base,
        part=_find_part(part, base),
        clock=_clock(clock, base),
        values=parse_lists(lists),
    )
    check_png("--output", output)
    check_csv(csv)
    output.parent.mkdir(parents=True, exist_ok=True)
    sweep = _run(sweep, jobs or os.cpu_count() or 1, cluster)
    if sweep.front:
        draw(sweep, output)
    simulated = _simulate(sweep) if simulate else None
    picture = output if sweep.front else None
    write_csv(csv, sweep_rows(sweep, simulated))
    if json:
        console.print_json(sweep_entry(sweep, simulated, picture))
    else:
        show(sweep, simulated, picture)
    if not sweep.front:
        raise typer.Exit(NOTHING_FITS)


def _check_networks(models: Sequence[Path]) -> tuple[str, ...]:
    """Their files, once it is known that each can be read."""
    from ..frontends import load

    for model in models:
        if is_program(model):
            raise ModelError(f"{model} is a compiled program, not a network to be compiled")
        load(model)
    return tuple(map(str, models))


def _find_part(name: str | None, base: Target) -> Part:
    """The chip of that name; by default the target's own."""
    if base.configuration.traits.shares_memory:
        raise TargetError(
            f'--target must have the engine "pipelined", which can be swept; {base.name} has not'
        )
    if name is None and base.part is not None:
        return base.part
    known = {
        target.part.device: target.part
        for target in TARGETS.values()
        if target.part is not None and target.part.device.startswith("LFE5U")
    }
    wanted = name or DEFAULT_PART
    if wanted not in known:
        raise InputError(f"--part must be one of {', '.join(sorted(known))}, not {wanted!r}")
    return known[wanted]


def _clock(given: float | None, base: Target) -> tuple[float, str]:
    """MHz, and where they come from."""
    if given is not None:
        if not (math.isfinite(given) and 1 <= given <= _FASTEST_MHZ):
            raise InputError(f"--clock must be within 1..{_FASTEST_MHZ:g} MHz, not {given:g}")
        return given, "given"
    build = reports.last_build(base.configuration.fingerprint, base.name)
    if build is not None:
        return float(build["fmax_mhz"]), f"fmax of the last build of {base.name}"
    return base.configuration.clock_hz / _MEGAHERTZ, f"configured for {base.name}"


def _run(sweep: Sweep, jobs: int, cluster: str | None) -> Sweep:
    """The sweep with what came of it."""
    hertz = round(sweep.clock[0] * _MEGAHERTZ)
    base = dataclasses.replace(sweep.base.configuration, clock_hz=hertz)
    configurations, skipped = make_configurations(base, sweep.values, sweep.part)
    begin = time.monotonic()
    with (
        nullcontext() if cluster is None else open_cluster_pool(cluster, sweep.models) as pool,
        console.progress("configurations", len(configurations)) as done,
    ):
        points = explore(sweep.models, configurations, sweep.part, jobs=jobs, done=done, pool=pool)
    front, dominated = split_front([point for point in points if not point.problem])
    return dataclasses.replace(
        sweep,
        front=tuple(front),
        dominated=tuple(dominated),
        infeasible=tuple(point for point in points if point.problem),
        skipped=tuple(skipped),
        seconds=time.monotonic() - begin,
    )


def _simulate(sweep: Sweep) -> list[Simulated]:
    """The networks on the RTL of the front's configurations, one after the other."""
    simulated = []
    with console.progress("simulations", len(sweep.front) * len(sweep.models)) as done:
        for point in sweep.front:
            for model, cost in zip(sweep.models, point.costs, strict=True):
                cycles = measure(compile_file(model, point.configuration)).cycles
                simulated.append(Simulated(point, model, cost.cycles, cycles))
                done(1)
    return simulated
