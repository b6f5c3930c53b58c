"""``slipstick build``: the bitstream of a target."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from slipstick_rtl.phy.ethernet.addresses import parse_ip, parse_mac
from slipstick_rtl.phy.registry import all_wires
from slipstick_rtl.phy.uart_rates import DEFAULT_BAUD, uart_divisor

from .. import console
from ..cluster.opening import open_cluster_pool
from ..errors import InputError
from ..fpga.build import (
    BARE,
    DEFAULT_LINK,
    DEFAULT_SEED,
    Build,
    build,
    default_output,
    write_report,
)
from ..fpga.seeds import Spread
from ..targets import Target, find_target
from .completion import complete_target
from .options import ClusterName, Json, check_least

DEFAULT_BOARD = "ulx3s-25f"
CLOCK_MISSED = 1
"""Exit status when all is built, but too slow."""


def build_command(
    target: Annotated[
        str,
        typer.Option(
            "--target", "-t", help="A target with a board.", autocompletion=complete_target
        ),
    ] = DEFAULT_BOARD,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help=f"Of place and route: {DEFAULT_SEED}.")
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option("--seeds", help="Try seeds 1 to N, in parallel, and keep the fastest."),
    ] = None,
    route: Annotated[
        int | None,
        typer.Option("--route", help="Place with all seeds, route the N that look fastest."),
    ] = None,
    link: Annotated[
        str, typer.Option("--link", help=f"The wire, of the board's: {', '.join(all_wires())}.")
    ] = DEFAULT_LINK,
    baud: Annotated[
        int | None,
        typer.Option(
            "--baud",
            "-b",
            help=f"Rate of the UART, in bits per second; by default the board's, {DEFAULT_BAUD}.",
            show_default=False,
        ),
    ] = None,
    ip: Annotated[
        str | None,
        typer.Option(
            "--ip", help="IP address of the board, on Ethernet; by default it asks by DHCP."
        ),
    ] = None,
    mac: Annotated[
        str | None,
        typer.Option(
            "--mac",
            help="MAC address of the board, on Ethernet; by default one of its configuration's.",
        ),
    ] = None,
    bare: Annotated[
        bool, typer.Option("--bare", help="The core without a board, to measure it.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder of all files: build/bitstreams/TARGET."),
    ] = None,
    cluster: ClusterName = None,
    json: Json = False,
) -> None:
    """Build a target's bitstream with the open toolchain; report its clock and its size.

    The exit status is 1 if all was built but the clock was not reached.
    """
    wanted = find_target(target)
    check_least("--seeds", seeds, 1)
    if seed is not None and seeds is not None:
        raise InputError("--seed and --seeds must not be given together")
    check_least("--route", route, 1)
    if route is not None and seeds is None:
        raise InputError("--route needs --seeds: it says how many of them are routed")
    if seeds is None:
        tried = [DEFAULT_SEED if seed is None else seed]
        given = f"--seed {tried[0]}"
    else:
        tried = list(range(1, seeds + 1))
        given = f"--seeds {seeds}" + ("" if route is None else f" --route {route}")
    layer = BARE if bare else link
    given_options = {"baud": baud, "ip": ip, "mac": mac}
    options = _options(wanted, layer, {k: v for k, v in given_options.items() if v is not None})
    with _spread(cluster) as spread:
        done = build(
            wanted,
            seeds=tried,
            routed=route,
            link=layer,
            options=options,
            output=output,
            step=console.step,
            spread=spread,
        )
    folder = default_output(wanted) if output is None else output
    face = " ".join(
        ["--bare" if bare else f"--link {link}", *(f"--{k} {v}" for k, v in options.items())]
    )
    command = f"slipstick build --target {wanted.name} {face} {given} --output {folder}"
    report = write_report(done, command)
    if json:
        console.print_json({**done.figures(), "report": str(report)})
    else:
        _show(done, report)
    if not done.meets_clock:
        print(f"slipstick: {_verdict(done)}", file=sys.stderr)
        raise typer.Exit(CLOCK_MISSED)


@contextmanager
def _spread(cluster: str | None) -> Iterator[Spread | None]:
    """Runs seeds on a cluster; None: on this machine."""
    if cluster is None:
        yield None
        return
    with open_cluster_pool(cluster) as pool:
        from ..cluster.placing import SeedSpread

        yield SeedSpread(pool)


def _options(target: Target, layer: str, given: dict[str, Any]) -> dict[str, Any]:
    """Returns the PHY's options; InputError if wire or clock cannot have one."""
    known = all_wires()[layer].options if layer in all_wires() else ()
    for name, what in (
        ("baud", "the rate of a UART"),
        ("ip", "the address of a board on Ethernet"),
        ("mac", "the address of a board on Ethernet"),
    ):
        if name in given and name not in known:
            raise InputError(f"--{name} is {what}: leave it out with {layer}")
    checks = {
        "baud": lambda baud: uart_divisor(target.configuration.clock_hz, baud),
        "ip": parse_ip,
        "mac": parse_mac,
    }
    for name, value in given.items():
        try:
            checks[name](value)
        except ValueError as error:
            raise InputError(f"--{name}: {error}") from None
    return given


def _verdict(done: Build) -> str:
    """Why the bitstream is not to be trusted, and what to do."""
    wanted = done.target.configuration.clock_hz / 1e6
    missed = list(done.layout.missed)
    if done.layout.fmax_mhz < wanted:
        missed.insert(0, f"the core's reaches {done.layout.fmax_mhz:.1f} of {wanted:g} MHz")
    return (
        f"{done.target.name} MISSES ITS CLOCK, so this bitstream may compute wrong results:"
        f" {'; '.join(missed)}; try more seeds, such as --seeds 8"
    )


def _show(done: Build, report: Path) -> None:
    if len(done.attempts) > 1:
        _show_seeds(done)
    rows = [
        [name, entry.used, entry.available, console.percent(entry.used / entry.available)]
        for name, entry in done.layout.usage.items()
        if entry.available
    ]
    columns = {"resource": "left", "used": "right", "available": "right", "share": "right"}
    asked = done.target.configuration.clock_hz / 1e6
    verdict = "reached" if done.meets_clock else "NOT reached"
    footer = (
        f"clock: {done.layout.fmax_mhz:.1f} MHz ({asked:g} MHz needed, {verdict}),"
        f" seed {done.best.seed}, {done.seconds:.0f} s\n"
        f"bitstream: {done.bitstream}\nreport: {report}"
    )
    console.print_table(f"Build of {done.target.name} ({done.link})", columns, rows, footer)


def _show_seeds(done: Build) -> None:
    names = list(done.layout.usage)
    columns = {"seed": "right", "estimate, MHz": "right", "MHz": "right"}
    rows: list[list[object]] = []
    for attempt in done.attempts:
        estimate = attempt.estimate.fmax_mhz if attempt.estimate else None
        row: list[object] = [attempt.seed, _two_places(estimate)]
        if attempt.layout is None:
            rows.append([*row, None, *[None] * len(names), attempt.problem or "not routed"])
            continue
        used = [attempt.layout.usage[name].used for name in names]
        mark = "kept" if attempt is done.best else ""
        rows.append([*row, _two_places(attempt.layout.fmax_mhz), *used, mark])
    columns |= dict.fromkeys(names, "right") | {"": "text"}
    console.print_table(f"Seeds of {done.target.name}", columns, rows)


def _two_places(mhz: float | None) -> str | None:
    return None if mhz is None else f"{mhz:.2f}"
