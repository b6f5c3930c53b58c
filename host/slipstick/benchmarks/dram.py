"""Runs a large network from DRAM on the compiled RTL: ``python -m slipstick.benchmarks.dram``.

An inference, or a batch of some, is one list for the DMA; its cycles are those of the RTL, with
LiteDRAM's controller and a chip that checks every timing rule. The results are held against the
golden model of the same hardware without DRAM.
"""

import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from .. import console, reports
from ..compiler.codegen.dram_list import make_dram_program
from ..devices.simulation import SimulationDevice
from ..failures import command_status
from ..loading import load_program
from ..profile.dram import list_figures
from ..program import Program
from ..runtime.feeds import random_batch
from ..session import InferenceSession
from ..targets import find_target
from .suite import shared_folder

COMMAND = "python -m slipstick.benchmarks.dram"
REPORT = "dram"
_NETWORK = "tf2_mobilenet_v2_1.0_224_ptq.tflite"


def measure_from_dram(
    program: Program, expected: Sequence[np.ndarray] | None = None
) -> dict[str, Any]:
    """A list of random images on the compiled RTL; the figures, ready for JSON.

    Parameters
    ----------
    program : Program
        One that runs from DRAM.
    expected : sequence of array, optional
        Its outputs for ``random_batch``; by default those of the golden model.
    """
    hardware, listed = program.hardware, make_dram_program(program)
    feeds = random_batch(program, program.batch)
    if expected is None:
        with InferenceSession(program, "model") as golden:
            expected = golden.run_batch(None, feeds)
    with (
        closing(SimulationDevice(hardware)) as device,
        InferenceSession(program, device) as session,
    ):
        found = session.run_batch(None, feeds)
        cycles = session.last_cycles or 0
    assert all(len(value) == program.batch for value in expected)
    same = all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
    return {
        "network": program.name,
        "dram": hardware.dram,
        "clock_mhz": hardware.clock_hz / 1e6,
        **list_figures(program, listed, cycles),
        "cycles_predicted": listed.timeline.end / program.batch,
        "core_cycles_predicted": program.predicted_cycles,
        "equal": same,
    }


def measure(model: Path, name: str, chip: str, batch: int) -> dict[str, Any]:
    """Some images of a network in one list, held against the golden model without DRAM.

    Parameters
    ----------
    model : Path
        A quantised network, larger than the chip.
    name : str
        The target's.
    chip : str
        The DRAM; empty: the target's own.
    batch : int
    """
    configuration = find_target(name).configuration
    hardware = configuration.with_dram(chip or configuration.dram)
    program = load_program(model, hardware, batch=batch)
    plain = load_program(model, configuration.with_dram(""))
    with InferenceSession(plain, "model") as golden:
        expected = golden.run_batch(None, random_batch(program, program.batch))
    return {"target": name, **measure_from_dram(program, expected)}


def dram_benchmark(
    target: Annotated[str, typer.Option(help="Whose hardware.")] = "ulx3s-85f-sdram",
    chip: Annotated[str, typer.Option(help="The DRAM behind it, if not the target's.")] = "",
    batch: Annotated[list[int] | None, typer.Option(help="Images in a list: 1 and 8.")] = None,
    model: Annotated[
        Path | None, typer.Option(help="A network larger than the chip: MobileNetV2.")
    ] = None,
) -> int:
    """Measures, prints the figures and writes the report; 1 if a result was wrong."""
    cases = {}
    title = "MobileNetV2" if model is None else model.stem
    path = model or shared_folder() / "models" / _NETWORK
    for count in batch or (1, 8):
        with console.step(f"{title} on {target}, batches of {count}"):
            entry = measure(path, target, chip, count)
        cases[f"{title} {target} batch {count}"] = entry
        console.print_line(
            f"{entry['cycles']:,.0f} cycles per image ({entry['cycles_predicted']:,.0f} predicted),"
            f" {entry['inferences_per_second']:.2f} inferences per second at"
            f" {entry['clock_mhz']:g} MHz; {entry['dram_bytes'] / 1e6:.1f} MB,"
            f" {console.percent(entry['dram_share_of_peak'])} of the chip's peak rate;"
            f" equal to the golden model: {'yes' if entry['equal'] else 'no'}"
        )
    reports.write_cases(REPORT, COMMAND, cases)
    return 0 if all(entry["equal"] for entry in cases.values()) else 1


def main() -> int:
    """The command line."""
    return command_status(dram_benchmark)


if __name__ == "__main__":
    sys.exit(main())
