"""Runs a large network from DRAM on the compiled RTL: ``python -m slipstick.benchmarks.dram``.

The target's hardware gets the chip of its board. An inference is one list for the DMA; its cycles
are those of the RTL, with LiteDRAM's controller and a chip that checks every timing rule. The
result is held against the golden model of the same hardware without DRAM.
"""

import dataclasses
import sys
from contextlib import closing
from typing import Annotated, Any

import numpy as np
import typer

from .. import console, reports
from ..compiler.codegen.dram_list import make_dram_program
from ..devices.simulation import SimulationDevice
from ..failures import exit_status
from ..loading import load_program
from ..runtime.feeds import random_feeds
from ..session import InferenceSession
from ..targets import find_target
from .suite import shared_folder

COMMAND = "python -m slipstick.benchmarks.dram"
REPORT = "dram"
_NETWORK = "tf2_mobilenet_v2_1.0_224_ptq.tflite"
_WORD_BYTES = 8


def measure(name: str, chip: str) -> dict[str, Any]:
    """One inference of MobileNetV2; the figures, ready for JSON."""
    path = shared_folder() / "models" / _NETWORK
    plain = find_target(name).configuration
    hardware = dataclasses.replace(plain, dram=chip)
    program = load_program(path, hardware)
    listed = make_dram_program(program)
    feeds = random_feeds(program, 1)
    with InferenceSession(load_program(path, plain), "model") as golden:
        expected = golden.run(None, feeds)
    with (
        closing(SimulationDevice(hardware)) as device,
        InferenceSession(program, device) as session,
    ):
        found = session.run(None, feeds)
        cycles = session.last_cycles or 0
    same = all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
    described = hardware.dram_chip
    assert described is not None
    moved = listed.words * _WORD_BYTES
    return {
        "network": program.name,
        "target": name,
        "dram": chip,
        "clock_mhz": hardware.clock_hz / 1e6,
        "cycles": cycles,
        "core_cycles_predicted": program.predicted_cycles,
        "inferences_per_second": hardware.clock_hz / cycles,
        "dram_bytes": moved,
        "dram_share_of_peak": moved / cycles / (described.data_bits // 8),
        "equal": same,
    }


def dram_benchmark(
    target: Annotated[str, typer.Option(help="Whose hardware.")] = "ulx3s-85f",
    chip: Annotated[str, typer.Option(help="The DRAM behind it.")] = "MT48LC16M16",
) -> int:
    """Measures, prints the figures and writes the report; 1 if the result was wrong."""
    with console.step(f"MobileNetV2 on {target} with {chip}"):
        entry = measure(target, chip)
    reports.write(REPORT, COMMAND, {"cases": {f"MobileNetV2 {target}": entry}})
    console.print_line(
        f"{entry['cycles']:,} cycles, {entry['inferences_per_second']:.1f} inferences per second at"
        f" {entry['clock_mhz']:g} MHz; {entry['dram_bytes'] / 1e6:.1f} MB,"
        f" {console.percent(entry['dram_share_of_peak'])} of the chip's peak rate;"
        f" equal to the golden model: {'yes' if entry['equal'] else 'no'}"
    )
    return 0 if entry["equal"] else 1


def main() -> int:
    """The command line."""
    application = typer.Typer(add_completion=False)
    application.command()(dram_benchmark)
    return exit_status(lambda: application(standalone_mode=False))


if __name__ == "__main__":
    sys.exit(main())
