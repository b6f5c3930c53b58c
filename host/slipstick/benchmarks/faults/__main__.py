"""Tests the link under faults: ``python -m slipstick.benchmarks.faults``; ``--help`` tells more.

Hosts load a small network, run it and use the memories, over a line that fails in every way, and
together with other hosts. Ends with 1 if a result was wrong, or a device did not recover.
"""

import faulthandler
import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ... import console, reports
from ...failures import command_status
from .boards import BOARDS, Board, open_board
from .ethernet import disturb_ethernet
from .frames import KINDS, fuzz_frames
from .hosts import interrupt, share
from .network import HARDWARE, HARDWARE_OF, Work, small_work
from .suite import FaultSuite, Tally
from .transport import Fault
from .wires import disturb

COMMAND = "python -m slipstick.benchmarks.faults"
REPORT = "faults"
FAULTS = 10_000
"""Number of faults of every kind, unless the command says otherwise."""
HANG_SECONDS = 120.0
WIRES = "wires"
ETHERNET = "ethernet"
FRAMES = "frames"
_BYTES_STEP = 10_000
"""Faults from which on sessions are interrupted at every byte; from a tenth, at every 10th."""

Figures = dict[str, Any]


def _tick(_: int) -> None:
    """The watchdog: prints where the host is, and ends the process with 1."""
    faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)


def torment(board_name: str, faults: int, seed: int) -> Figures:
    """All suites on one board; a process that stands still for ``HANG_SECONDS`` is ended.

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
    hardware = HARDWARE_OF.get(board_name, HARDWARE)
    work = small_work(hardware=hardware)
    start = time.monotonic()
    with closing(open_board(board_name, hardware)) as board:
        try:
            suite = FaultSuite(board, work, seed)
            tally = suite.run(faults, _tick)
            result = figures(suite, tally)
            result["shared"] = _shared(board, work, faults, seed, _tick)
            result["interrupted"] = _interrupted(board, work, faults, _tick)
        finally:
            faulthandler.cancel_dump_traceback_later()
        return result | {
            "board": board_name,
            "hardware": hardware.to_dict(),
            "seed": seed,
            "hang_limit_seconds": HANG_SECONDS,
            "seconds": time.monotonic() - start,
            "device_cycles": board.cycles,
        }


def torment_wires(disturbances: int, seed: int) -> Figures:
    """The RTL behind the pins of its UART, whose wires are disturbed; watched like ``torment``."""
    try:
        return disturb(HARDWARE, small_work(), disturbances, seed, _tick)
    finally:
        faulthandler.cancel_dump_traceback_later()


def torment_ethernet(faults: int, seed: int) -> Figures:
    """The golden model behind a network that fails, in imagined time; watched like ``torment``."""
    try:
        return disturb_ethernet(HARDWARE, small_work(), faults, seed, _tick)
    finally:
        faulthandler.cancel_dump_traceback_later()


def torment_frames(faults: int, seed: int) -> Figures:
    """The RTL behind its Ethernet port, which gets frames that nobody should send; watched too."""
    start = time.monotonic()
    try:
        result = fuzz_frames(HARDWARE, KINDS * faults, seed, _tick)
    finally:
        faulthandler.cancel_dump_traceback_later()
    return result | {"hardware": HARDWARE.to_dict(), "seconds": time.monotonic() - start}


def figures(suite: FaultSuite, tally: Tally) -> Figures:
    """Returns the figures that a report has of a suite that ran."""
    result: Figures = {
        "faults": {fault.value: suite.line.counts[fault] for fault in Fault},
        **tally.figures(),
        "wrong_at": tally.wrong[:20],
        "stalled_seconds_imagined": suite.line.stalled_seconds,
    }
    for name in ("answer_seconds", "answer_cycles", "result_seconds", "result_cycles"):
        values = getattr(tally, name)
        result[f"{name}_median"] = float(np.median(values)) if values else None
        result[f"{name}_worst"] = max(values, default=None)
    return result


def _shared(
    board: Board, work: Work, sessions: int, seed: int, tick: Callable[[int], object]
) -> Figures:
    """Hosts that take the board from each other, until so many sessions were opened."""
    opened, rounds, wrong = 0, 0, 0
    right: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    while opened < sessions:
        tick(opened)
        hosts = 2 + rounds % 3 // 2
        tally = share(board, work, seed + rounds, hosts=hosts, bus=rounds % 2 == 1)
        opened, rounds, wrong = opened + tally.sessions, rounds + 1, wrong + len(tally.wrong)
        right += tally.right
        failed += tally.failed
    return {
        "sessions": opened,
        "right": dict(right),
        "failed_by_code": dict(failed),
        "wrong": wrong,
    }


def _interrupted(
    board: Board, work: Work, faults: int, tick: Callable[[int], object]
) -> dict[str, Figures]:
    """Sessions whose host dies, or whose board is reset, after each number of bytes."""
    step = max(1, _BYTES_STEP // faults)
    result: dict[str, Figures] = {}
    for name, host_dies in (("host died", True), ("board reset", False)):
        told: Counter[str] = Counter()
        after = 0
        while (said := interrupt(board, work, after, host_dies=host_dies)) != "finished":
            tick(after)
            told[said] += 1
            after += step
        result[name] = {"sent_bytes": after, "step_bytes": step, "told": dict(told)}
    return result


def passed(result: Figures) -> bool:
    """Checks that nothing was wrong, every failure had a code, and the device always recovered."""
    bad = result["wrong"] or result["without_recovery"]
    bad = bad or any(code.startswith("without") for code in result["failed_by_code"])
    bad = bad or result.get("shared", {}).get("wrong")
    parts = result.get("interrupted", {}).values()
    return not bad and not any("wrong" in part["told"] for part in parts)


def show(result: Figures) -> None:
    """Prints a board's figures."""
    rows: list[list[object]] = [
        [f"fault: {name}", f"{count:,}"] for name, count in result["faults"].items()
    ]
    rows += _outcomes(result)
    shared = result["shared"]
    rows.append(["sessions of hosts on one port", f"{shared['sessions']:,}"])
    rows.append(["their results: right", f"{sum(shared['right'].values()):,}"])
    rows += _failures(shared)
    for name, part in result["interrupted"].items():
        told = ", ".join(f"{code} {count:,}" for code, count in part["told"].items())
        rows.append([f"{name} at each of {part['sent_bytes']:,} bytes", told])
    rows += [
        ["wrong results", result["wrong"] + shared["wrong"]],
        ["no step hung for, s", result["hang_limit_seconds"]],
        ["not recovered", f"{result['without_recovery']} of {result['recoveries']:,}"],
        ["longest operation, s", f"{result['longest_operation_seconds']:.2f}"],
    ]
    for name, what in (("answer", "recovery, to an answer"), ("result", "to a right result")):
        rows.append([f"{what}: median / worst, ms", _pair(result, f"{name}_seconds", 1e3)])
        if result[f"{name}_cycles_median"] is not None:
            rows.append([f"{what}: median / worst, cycles", _pair(result, f"{name}_cycles", 1)])
    title = f"faults on the line of the {result['board']}, {result['seconds']:.0f} s"
    console.print_table(title, {"figure": "left", "value": "right"}, rows)


def show_wires(result: Figures) -> None:
    """Prints the figures of disturbed wires."""
    figures = {
        f"disturbance: {name}": f"{count:,}" for name, count in result["disturbances"].items()
    }
    _show_disturbed(result, figures, "disturbed wires of the UART")


def show_ethernet(result: Figures) -> None:
    """Prints the figures of a network that fails."""
    figures = {f"fault: {name}": f"{count:,}" for name, count in result["faults"].items()}
    figures |= {
        "datagrams": f"{result['datagrams']:,}",
        "imagined time, s": f"{result['imagined_seconds']:,.0f}",
        "longest wait in it, s": f"{result['longest_wait_seconds']:.2f}",
    }
    _show_disturbed(result, figures, "a faulty Ethernet")


def show_frames(result: Figures) -> None:
    """Prints the figures of wrong frames."""
    rows: list[list[object]] = [
        [f"frames: {name}", f"{count:,}"] for name, count in result["frames"].items()
    ]
    rows.append(["all frames", f"{result['sent']:,}"])
    rows.append(["clock cycles", f"{result['device_cycles']:,}"])
    rows.append(["not answered", f"{result['without_recovery']} of {result['recoveries']:,}"])
    title = f"wrong Ethernet frames, {result['seconds']:.0f} s"
    console.print_table(title, {"figure": "left", "value": "right"}, rows)


def _show_disturbed(result: Figures, figures: dict[str, str], title: str) -> None:
    rows: list[list[object]] = [[name, value] for name, value in figures.items()]
    rows += _outcomes(result)
    rows += [
        ["wrong results", result["wrong"]],
        ["not recovered", f"{result['without_recovery']} of {result['recoveries']:,}"],
    ]
    title = f"{title}, {result['seconds']:.0f} s"
    console.print_table(title, {"figure": "left", "value": "right"}, rows)


def _outcomes(result: Figures) -> list[list[object]]:
    """Rows of what hosts tried and were told."""
    right: list[list[object]] = [
        [f"{name}: right of all", f"{result['right'].get(name, 0):,} of {count:,}"]
        for name, count in result["operations"].items()
    ]
    return right + _failures(result)


def _failures(result: Figures) -> list[list[object]]:
    return [[f"failed: {code}", f"{count:,}"] for code, count in result["failed_by_code"].items()]


def _pair(result: Figures, name: str, scale: float) -> str:
    values = [scale * (result[f"{name}_{which}"] or 0.0) for which in ("median", "worst")]
    return " / ".join(f"{value:,.0f}" if scale == 1 else f"{value:,.2f}" for value in values)


_DISTURBED = {
    WIRES: (torment_wires, show_wires),
    ETHERNET: (torment_ethernet, show_ethernet),
    FRAMES: (torment_frames, show_frames),
}
"""Functions that run the faults and that show the figures, by the name of the device."""


def fault_benchmark(
    faults: Annotated[int, typer.Option(min=1, help="Of every kind.")] = FAULTS,
    device: Annotated[
        str | None,
        typer.Option(
            help="model, sim, compact, streamed, wires, ethernet, frames; by default all."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of faults and operations.")] = 1,
) -> int:
    """Torments boards, prints and reports the figures of each; 1 if anything was wrong."""
    sound = True
    for name in [device] if device else [*BOARDS, *_DISTURBED]:
        campaign, display = _DISTURBED.get(name, (partial(torment, name), show))
        with console.step(f"faults on the {name}"):
            result = campaign(faults, seed)
        display(result)
        if name in _DISTURBED:
            sound &= not (result["wrong"] or result["without_recovery"])
        else:
            sound &= passed(result)
        path = _write_part(name, {"faults_wanted": faults, **result})
        console.print_line(f"written to {path}")
    return 0 if sound else 1


def _write_part(device: str, figures: Figures) -> Path:
    """Writes a device's figures beside those that other devices have: all of them take hours."""
    path = Path(reports.FOLDER) / f"{REPORT}.json"
    try:
        parts = json.loads(path.read_text("utf-8"))["devices"]
    except (OSError, ValueError, KeyError, TypeError):
        parts = {}
    own = f"{COMMAND} --device {device}"
    parts[device] = {**reports.stamp(own), "versions": reports.versions(), **figures}
    return reports.write(REPORT, COMMAND, {"devices": parts})


def main() -> int:
    """The command line."""
    return command_status(fault_benchmark)


if __name__ == "__main__":
    sys.exit(main())
