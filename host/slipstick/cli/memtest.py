"""``slipstick memtest``: a board's whole DRAM tested through the DMA."""

import math
from collections.abc import Callable
from contextlib import ExitStack, closing
from typing import Annotated, Any, cast

import typer

from .. import console
from ..devices import KINDS, open_device
from ..devices.link import LinkDevice
from ..errors import InputError
from ..runtime.memory_test import MemoryReport, MemoryTest, check_covered
from ..targets import DEFAULT_TARGET, TARGETS, Target, find_target
from .options import DeviceName, Json, Take, TargetName, taken

LONGEST_WAIT = 3600.0
_RESULTS = {True: "passed", False: "FAULTY", None: "not judged"}

Wait = Annotated[
    float,
    typer.Option(
        "--wait",
        metavar="SECONDS",
        help="That the memory has to keep each pattern: many times its refresh interval.",
    ),
]
Bytes = Annotated[
    int | None,
    typer.Option(
        "--bytes",
        metavar="N",
        help="Fill and check only N bytes, half of them at each end of the memory: for"
        " simulations. By default all.",
        show_default=False,
    ),
]


def memtest_command(
    device: DeviceName = "sim",
    take: Take = False,
    target: TargetName = None,
    wait: Wait = 1.0,
    covered: Bytes = None,
    json: Json = False,
) -> None:
    """Test a board's DRAM: data lines, address lines, every cell, bandwidth.

    What the DRAM holds is lost. The exit status is 1 if a fault was found.
    """
    device = taken(device, take)
    wanted = _target_of(device, target)
    chip = wanted.configuration.dram_chip
    if chip is None:
        raise InputError(
            f"target {wanted.name} has no DRAM: give a --target that has one,"
            f" {', '.join(_with_dram())}"
        )
    if not (math.isfinite(wait) and 0 <= wait <= LONGEST_WAIT):
        raise InputError(f"--wait must be within 0..{LONGEST_WAIT:g} seconds, not {wait:g}")
    covered = chip.bytes if covered is None else covered
    check_covered("--bytes", covered, chip)
    with console.waiting(f"opening {device}"):
        # every kind of device speaks over the link
        opened = cast(LinkDevice, open_device(device, wanted.configuration))
    with closing(opened):
        report = _run(MemoryTest(opened, covered_bytes=covered, wait_seconds=wait))
    result = {
        "device": device,
        "target": wanted.name,
        "dram": chip.name,
        "bytes": chip.bytes,
        "covered_bytes": covered,
        "wait_seconds": wait,
        **_entries(report),
    }
    if json:
        console.print_json(result)
    else:
        _show(result, report)
    if not report.passed:
        raise typer.Exit(1)


def _target_of(device: str, target: str | None) -> Target:
    """The one that is asked for, by its own option or behind a simulated device's colon."""
    kind, colon, place = device.partition(":")
    if target is None and colon and kind in KINDS and KINDS[kind].is_simulated:
        target = place
    return find_target(DEFAULT_TARGET if target is None else target)


def _with_dram() -> list[str]:
    return [target.name for target in TARGETS.values() if target.configuration.dram]


def _run(test: MemoryTest) -> MemoryReport:
    with ExitStack() as bars:

        def progress(what: str, total: int) -> Callable[[int], None]:
            bars.close()
            return bars.enter_context(console.progress(what, total))

        return test.run(progress)


def _entries(report: MemoryReport) -> dict[str, Any]:
    names = ("read_mb_per_s", "write_mb_per_s", "peak_mb_per_s")
    shares = ("read_share_of_peak", "write_share_of_peak")
    measured = report.bandwidth.entry() if report.bandwidth else {}
    return {
        "tests": [verdict.entry() for verdict in report.verdicts],
        **{name: measured.get(name) for name in (*names, *shares)},
        "passed": report.passed,
    }


def _show(result: dict[str, Any], report: MemoryReport) -> None:
    rows = [[verdict.name, _RESULTS[verdict.passed], verdict.detail] for verdict in report.verdicts]
    console.print_table(
        f"DRAM of {result['target']} on {result['device']}: {result['dram']},"
        f" {result['bytes'] >> 20} MiB",
        {"test": "left", "result": "left", "": "text"},
        rows,
        _footer(result),
    )
    for verdict in report.verdicts:
        # the first one is in the table
        for fault in verdict.faults[1:]:
            console.print_line(f"{verdict.name}: {fault}")


def _footer(result: dict[str, Any]) -> str:
    if not result["passed"]:
        return "the DRAM is faulty: its bandwidth was not measured"
    if result["read_mb_per_s"] is None:
        return "the device counts no cycles: there is no bandwidth to show"
    read, write = (
        f"{name}s {result[f'{name}_mb_per_s']:,.1f} MB/s"
        f" ({console.percent(result[f'{name}_share_of_peak'])})"
        for name in ("read", "write")
    )
    return f"{read} and {write} of a peak of {result['peak_mb_per_s']:,.1f} MB/s"
