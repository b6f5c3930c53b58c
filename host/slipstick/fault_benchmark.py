"""How the link bears faults: ``python -m slipstick.fault_benchmark``; ``--help`` tells the options.

The digits network is loaded once; then hosts run it and use the memories over a line that fails in
every way. Ends with 1 if a result was wrong, or a device did not recover.
"""

import faulthandler
import importlib.resources
import sys
import time
from contextlib import closing
from typing import Annotated, Any

import numpy as np
import typer

from . import console, reports
from .devices import open_device
from .devices.faults import Fault
from .execution import Execution, Values
from .failures import exit_status
from .fault_boards import BOARDS, open_board
from .fault_suite import FaultSuite, Tally
from .loading import compile_file
from .program import Program

TARGET = "1x4x4"
COMMAND = "python -m slipstick.fault_benchmark"
FAULTS = {"model": 10_000, "sim": 300}
"""Of every kind, unless the command says otherwise."""
HANG_SECONDS = 120.0
SAMPLES = 4


def digits(target: str = TARGET) -> tuple[Program, list[Values], list[Values]]:
    """The digits network for a target, some inputs, and what the golden model makes of them."""
    model = importlib.resources.files("slipstick") / "assets" / "digits.tflite"
    with importlib.resources.as_file(model) as path:
        program = compile_file(path, target)
    draw = np.random.default_rng(3)
    feeds = [
        {
            name: draw.integers(-128, 128, program.tensors[name].shape).astype(np.int8)
            for name in program.inputs
        }
        for _ in range(SAMPLES)
    ]
    with closing(open_device("model", program.hardware)) as device:
        execution = Execution(program, device)
        expected = [execution.infer(feed) for feed in feeds]
    return program, feeds, expected


def torment(board_name: str, faults: int, seed: int) -> dict[str, Any]:
    """Runs the suite on a board; a process that does not go on for ``HANG_SECONDS`` is ended.

    Parameters
    ----------
    board_name : str
        One of ``fault_boards.BOARDS``.
    faults : int
        Of every kind, at least.
    seed : int

    Returns
    -------
    dict
        Figures for people and reports.
    """
    program, feeds, expected = digits()
    start = time.monotonic()
    with closing(open_board(board_name, program.hardware)) as board:
        suite = FaultSuite(board, program, feeds, expected, seed)

        def tick(rarest: int) -> None:
            # the watchdog: prints where the host is, and ends the process with 1
            faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)

        try:
            tally = suite.run(faults, tick)
        finally:
            faulthandler.cancel_dump_traceback_later()
        return figures(suite, tally) | {
            "board": board_name,
            "target": TARGET,
            "seed": seed,
            "hang_limit_seconds": HANG_SECONDS,
            "seconds": time.monotonic() - start,
            "device_cycles": board.cycles,
        }


def figures(suite: FaultSuite, tally: Tally) -> dict[str, Any]:
    """What a report says of a suite that ran."""
    cycles = tally.recovery_cycles
    return {
        "faults": {fault.value: suite.line.counts[fault] for fault in Fault},
        "runs_stopped_by_a_second_host": suite.second_host.resets,
        "operations": dict(tally.operations),
        "right": dict(tally.right),
        "failed_by_code": dict(tally.failed),
        "wrong": len(tally.wrong),
        "wrong_at": tally.wrong[:20],
        "without_recovery": len(tally.unrecovered),
        "without_recovery_because": tally.unrecovered[:20],
        "longest_operation_seconds": tally.longest_seconds,
        "stalled_seconds_imagined": suite.line.stalled_seconds,
        "recoveries": len(tally.recovery_seconds),
        "recovery_seconds_median": float(np.median(tally.recovery_seconds or [0])),
        "recovery_seconds_longest": max(tally.recovery_seconds, default=0.0),
        "recovery_cycles_median": int(np.median(cycles)) if cycles else None,
        "recovery_cycles_longest": max(cycles, default=None),
    }


def passed(result: dict[str, Any]) -> bool:
    """Whether nothing was wrong, every failure had a code, and the device always recovered."""
    bad = result["wrong"] or result["without_recovery"]
    return not bad and "without a code" not in result["failed_by_code"]


def show(result: dict[str, Any]) -> None:
    """Prints a board's figures."""
    rows: list[list[object]] = [[f"fault: {name}", n] for name, n in result["faults"].items()]
    rows.append(["runs reset by a second host", result["runs_stopped_by_a_second_host"]])
    for name, count in result["operations"].items():
        right = result["right"].get(name, 0)
        rows.append([f"{name}: right of all", f"{right:,} of {count:,}"])
    rows += [[f"failed: {code}", count] for code, count in result["failed_by_code"].items()]
    rows += [
        ["wrong", result["wrong"]],
        ["no step hung for, s", result["hang_limit_seconds"]],
        ["not recovered", f"{result['without_recovery']} of {result['recoveries']:,}"],
        ["longest operation, s", f"{result['longest_operation_seconds']:.2f}"],
        ["recovery, median, ms", f"{1e3 * result['recovery_seconds_median']:.2f}"],
        ["recovery, longest, ms", f"{1e3 * result['recovery_seconds_longest']:.2f}"],
        ["recovery, median, device cycles", result["recovery_cycles_median"]],
        ["recovery, longest, device cycles", result["recovery_cycles_longest"]],
    ]
    title = f"faults on the line of the {result['board']}, {result['seconds']:.0f} s"
    console.print_table(title, {"figure": "left", "value": "right"}, rows)


def fault_benchmark(
    faults: Annotated[
        int | None, typer.Option(min=1, help="Of every kind; by default as in FAULTS.")
    ] = None,
    device: Annotated[str | None, typer.Option(help="model or sim; by default both.")] = None,
    seed: Annotated[int, typer.Option(help="Of faults and operations.")] = 1,
) -> int:
    """Torments boards, prints the figures and writes the report; 1 if anything was wrong."""
    results = []
    for name in [device] if device else BOARDS:
        with console.waiting(f"faults on the {name}"):
            results.append(torment(name, faults or FAULTS.get(name, 1), seed))
        show(results[-1])
    path = reports.write("faults", COMMAND, {"boards": results})
    console.print_line(f"written to {path}")
    return 0 if all(map(passed, results)) else 1


def main() -> int:
    """The command line."""
    application = typer.Typer(add_completion=False)
    application.command()(fault_benchmark)
    return exit_status(lambda: application(standalone_mode=False))


if __name__ == "__main__":
    sys.exit(main())
