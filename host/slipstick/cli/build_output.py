"""Prints a finished build: area and clock, seeds, and the clocks that were tried."""

from collections.abc import Sequence
from pathlib import Path

from .. import console
from ..fpga.build import Build, asked_mhz


def show_clocks(builds: Sequence[Build], best: Build) -> None:
    """Prints the clocks that :func:`~slipstick.fpga.clocks.build_fastest` tried."""
    columns = {"clock, MHz": "right", "asked, MHz": "right", "reached, MHz": "right", "": "text"}
    kept = best.target.configuration.clock_hz
    rows: list[list[object]] = [
        [
            f"{done.target.configuration.clock_hz / 1e6:g}",
            f"{asked_mhz(done.target):g}",
            _two_places(done.layout.fmax_mhz),
            "kept" if done.target.configuration.clock_hz == kept else "",
        ]
        for done in builds
    ]
    console.print_table(f"Clocks of {best.target.name}", columns, rows)


def verdict(done: Build) -> str:
    """Says why the bitstream is not to be trusted, and what to do."""
    wanted = done.target.configuration.clock_hz / 1e6
    missed = list(done.layout.missed)
    if done.layout.fmax_mhz < wanted:
        missed.insert(0, f"the core's reaches {done.layout.fmax_mhz:.1f} of {wanted:g} MHz")
    return (
        f"{done.target.name} MISSES ITS CLOCK, so this bitstream may compute wrong results:"
        f" {'; '.join(missed)}; try more seeds, such as --seeds 8"
    )


def show_build(done: Build, report: Path) -> None:
    """Prints the area and the clock of a build, and where its files are."""
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
