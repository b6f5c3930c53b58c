"""Runs the benches and prints a summary: ``python -m slipstick_sim.benches [names]``."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ..toolchain import ToolError
from .registry import Bench, all_benches, describe, load
from .runner import BenchResult, build_directory, run_bench


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs what the command line asks for; 0 if all passed, 1 if not, 2 if it asks for nonsense."""
    parser = argparse.ArgumentParser(prog="python -m slipstick_sim.benches", description=__doc__)
    parser.add_argument("names", nargs="*", help="the benches to run; all by default")
    parser.add_argument("--waves", metavar="NAME", help="write an FST waveform of this bench")
    parser.add_argument("--list", action="store_true", help="list the benches and run none")
    options = parser.parse_args(arguments)
    console = Console()
    try:
        wanted = [*options.names, *([options.waves] if options.waves else [])]
        benches = [load(name) for name in dict.fromkeys(wanted)] if wanted else all_benches()
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    if options.list:
        for bench in benches:
            console.print(bench.name, *map(describe, bench.all_parameters), sep="  ", markup=False)
        return 0
    try:
        results = _run_all(benches, options.waves)
    except ToolError as error:
        print(error, file=sys.stderr)
        return 1
    _report(results, console)
    return 0 if all(result.passed for result in results) else 1


def _run_all(benches: Sequence[Bench], waves_of: str | None) -> list[BenchResult]:
    """Runs them, and tells each begin and end at once: all of them take half an hour."""
    results = list[BenchResult]()
    total = sum(len(bench.all_parameters) for bench in benches)
    for bench in benches:
        for index, parameters in enumerate(bench.all_parameters):
            name = f"{bench.name} ({describe(parameters)})"
            print(f"[{len(results) + 1}/{total}] {name} ...", flush=True)
            waves = _waves_path(bench.name, index) if bench.name == waves_of else None
            result = run_bench(bench, parameters, waves=waves)
            results.append(result)
            verdict = "passed" if result.passed else "FAILED"
            print(f"[{len(results)}/{total}] {verdict} in {result.seconds:.1f} s", flush=True)
    return results


def _waves_path(name: str, index: int) -> Path:
    """NAME.fst for the first set of parameters, NAME-1.fst and so on for the others."""
    suffix = f"-{index}" if index else ""
    return build_directory() / "waves" / f"{name}{suffix}.fst"


def _report(results: Sequence[BenchResult], console: Console) -> None:
    table = Table(title="Benches: gateware against golden model")
    for heading in ("bench", "parameters", "result"):
        table.add_column(heading)
    for heading in ("tests", "passed", "cycles", "seconds"):
        table.add_column(heading, justify="right")
    for result in results:
        table.add_row(
            result.bench,
            describe(result.parameters),
            "[green]passed" if result.passed else "[red]failed",
            str(result.tests),
            str(result.tests - len(result.failures) if result.tests else 0),
            f"{result.cycles:,}",
            f"{result.seconds:.1f}",
        )
    for result in results:
        if not result.passed:
            console.print(result.explain(), markup=False, highlight=False)
    console.print(table)
    for result in results:
        if result.waves is not None:
            console.print(f"waveform: {result.waves}", highlight=False, soft_wrap=True)
    failed = sum(not result.passed for result in results)
    console.print(f"{len(results) - failed} of {len(results)} runs passed", highlight=False)


if __name__ == "__main__":
    sys.exit(main())
