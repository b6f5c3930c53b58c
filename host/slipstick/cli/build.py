"""``slipstick build``: the bitstream of a target."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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
    uart_baud,
)
from ..fpga.build_report import Start, known_start, report_figures, write_report
from ..fpga.clocks import at_clock, build_fastest
from ..fpga.seeds import Spread
from ..targets import Target, find_target
from .build_output import show_build, show_clocks, verdict
from .completion import complete_target
from .options import ClusterName, Json, check_least

DEFAULT_BOARD = "ulx3s-25f"
FASTEST = "fastest"
"""Value of ``--clock`` that asks for the fastest clock."""

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
        int | None,
        typer.Option(
            "--seed",
            min=0,
            help="Of place and route: that of the target's report, with which it reached its"
            f" clock; else {DEFAULT_SEED}.",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option("--seeds", help="Try seeds 1 to N, in parallel, and keep the fastest."),
    ] = None,
    route: Annotated[
        int | None,
        typer.Option("--route", help="Place with all seeds, route the N that look fastest."),
    ] = None,
    placer: Annotated[
        str | None,
        typer.Option(
            "--placer",
            help="Of place and route for an ECP5, heap or static: that of the target's report, else"
            " heap.",
            show_default=False,
        ),
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
    clock: Annotated[
        str | None,
        typer.Option(
            "--clock",
            "-c",
            help="Clock of the core in MHz, in place of the target's; or fastest: build again for"
            " the clock that place and route reaches.",
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
    wanted = _clocked(find_target(target), clock, bare)
    layer = BARE if bare else link
    start = known_start(wanted, layer)
    tried, given = _seeds(start, seed, seeds, route)
    if placer is None and (seed, seeds) == (None, None):
        placer = start.placer
    options = {"baud": baud, "ip": ip, "mac": mac}
    asked = _Asked(
        target=wanted,
        layer=layer,
        seeds=tried,
        routed=route,
        placer=placer,
        options=_options(wanted, layer, {k: v for k, v in options.items() if v is not None}),
        folder=default_output(wanted) if output is None else output,
    )
    with _spread(cluster) as spread:
        done, builds = (
            asked.build_fastest(spread) if clock == FASTEST else (asked.build(spread), ())
        )
    placed = f" --placer {done.placer}" if done.placer else ""
    report = write_report(done, asked.command(clock, given + placed), builds)
    if json:
        console.print_json({**report_figures(done, builds), "report": str(report)})
    else:
        if builds:
            show_clocks(builds, done)
        show_build(done, report)
    if not done.meets_clock:
        print(f"slipstick: {verdict(done)}", file=sys.stderr)
        raise typer.Exit(CLOCK_MISSED)


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """Holds the target and how it is built.

    Parameters
    ----------
    target : Target
    layer : str
        The wire, or ``BARE``.
    seeds : sequence of int
    routed : int or None
        How many of them are routed; None: all.
    placer : str or None
        None: the usual one.
    options : dict
        Of the wire's PHY.
    folder : Path
        Of all files.
    """

    target: Target
    layer: str
    seeds: Sequence[int]
    routed: int | None
    placer: str | None
    options: dict[str, Any]
    folder: Path

    def build(self, spread: Spread | None) -> Build:
        """Builds for the target's clock."""
        return self._build(self.target, self.folder, spread)

    def build_fastest(self, spread: Spread | None) -> tuple[Build, Sequence[Build]]:
        """Builds for one clock after the other; returns the best build, and all."""

        def build_at(target: Target, output: Path) -> Build:
            told = f"build for {target.configuration.clock_hz / 1e6:g} MHz"
            print(told, file=sys.stderr)
            return self._build(target, output, spread)

        rate = uart_baud(self.target, self.layer, self.options)
        found = build_fastest(self.target, build_at, self.folder, baud=rate)
        return found.best, found.builds

    def _build(self, target: Target, output: Path, spread: Spread | None) -> Build:
        return build(
            target,
            seeds=self.seeds,
            routed=self.routed,
            placer=self.placer,
            link=self.layer,
            options=self.options,
            output=output,
            step=console.step,
            spread=spread,
        )

    def command(self, clock: str | None, given: str) -> str:
        """Writes the command that asks for it, with seeds and placer as they were given."""
        words = [
            f"slipstick build --target {self.target.name}",
            "--bare" if self.layer == BARE else f"--link {self.layer}",
            *([] if clock is None else [f"--clock {clock}"]),
            *(f"--{k} {v}" for k, v in self.options.items()),
            given,
            f"--output {self.folder}",
        ]
        return " ".join(words)


def _seeds(
    start: Start, seed: int | None, seeds: int | None, route: int | None
) -> tuple[Sequence[int], str]:
    """Returns the seeds that are tried, and the options that ask for them."""
    check_least("--seeds", seeds, 1)
    if seed is not None and seeds is not None:
        raise InputError("--seed and --seeds must not be given together")
    check_least("--route", route, 1)
    if seeds is not None:
        routed = "" if route is None else f" --route {route}"
        return range(1, seeds + 1), f"--seeds {seeds}{routed}"
    if route is not None:
        raise InputError("--route needs --seeds: it says how many of them are routed")
    tried = start.seed if seed is None else seed
    return [tried], f"--seed {tried}"


@contextmanager
def _spread(cluster: str | None) -> Iterator[Spread | None]:
    """Runs seeds on a cluster; None: on this machine."""
    if cluster is None:
        yield None
        return
    with open_cluster_pool(cluster) as pool:
        from ..cluster.placing import SeedSpread

        yield SeedSpread(pool)


def _clocked(target: Target, clock: str | None, bare: bool) -> Target:
    """Returns the target with the clock that ``--clock`` names."""
    if clock is None:
        return target
    if clock == FASTEST:
        if bare:
            raise InputError("--clock fastest is for a board's PLL: leave it out with --bare")
        return target
    try:
        hertz = round(float(clock) * 1e6)
    except (ValueError, OverflowError):
        hertz = 0
    if hertz < 1:
        raise InputError(f"--clock must be a number of MHz, or {FASTEST}, not {clock}")
    return at_clock(target, hertz, pll=not bare)


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
