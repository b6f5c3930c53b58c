"""Array sizes against cycles: what two networks gain from a larger array, RTL simulated.

``python -m slipstick.benchmarks.scaling``, from the project's folder. It also draws the largest
target's rooflines, and tells how long its simulation takes to build and to run.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import console, reports
from ..data.inputs import load_inputs
from ..failures import exit_status
from ..loading import compile_file
from ..profile.measure import Benchmark, measure
from ..profile.roofline import draw_roofline
from ..targets import find_target
from .suite import library_seconds, shared_folder, simulated

COMMAND = "python -m slipstick.benchmarks.scaling"
TARGET = "ulx3s-85f"
TARGETS = ("1x8x8", "1x8x16", "1x16x16", "1x32x16", TARGET)
NETWORKS = ("ic01_resnet8_int8", "kws01_dscnn_int8")
IMAGES = Path("data", "cifar10", "ic01_cifar10_200.npz")
"""Images for the first network."""


def scaling(model: Path, targets: Sequence[str]) -> tuple[dict[str, Any], Benchmark]:
    """A network's cycles on each target, and the benchmark of the last.

    Speed-ups are against the first, and so is ``of_proportional``: 1 where the cycles fall as the
    multipliers grow.
    """
    benchmarks = [measure(compile_file(model, target), target=target) for target in targets]
    first = benchmarks[0]
    entries = []
    for target, benchmark in zip(targets, benchmarks, strict=True):
        hardware = benchmark.program.hardware
        speed_up = first.cycles / benchmark.cycles
        grown = hardware.macs_per_cycle / first.program.hardware.macs_per_cycle
        entries.append(
            {
                "target": target,
                "fingerprint": hardware.fingerprint,
                "array": hardware.shape,
                "macs_per_cycle": hardware.macs_per_cycle,
                "cycles": benchmark.cycles,
                "prediction_error": benchmark.prediction_error,
                "share_of_peak": benchmark.utilisation,
                "speed_up": speed_up,
                "of_proportional": speed_up / grown,
            }
        )
    return {"network": model.stem, "sizes": entries}, benchmarks[-1]


def simulation_speed(model: Path, images: Path, target: str) -> dict[str, Any]:
    """Measures the time to build the compiled simulation of a target, and its time for an image."""
    program = compile_file(model, target)
    samples = load_inputs([images], program.tensors[program.inputs[0]].shape)
    return {
        "target": target,
        "sim_build_seconds": library_seconds(target),
        **simulated(model, samples, target),
    }


def scaling_benchmark() -> int:
    """Every network that there is a file for."""
    networks: list[dict[str, Any]] = []
    for name in NETWORKS:
        model = shared_folder() / "models" / f"{name}.tflite"
        if not model.is_file():
            console.print_line(f"skipped: {model} is not there; set SLIPSTICK_DATA")
            continue
        with console.step(f"{name} on {', '.join(TARGETS)}"):
            figures, benchmark = scaling(model, TARGETS)
        networks.append(figures)
        _show(figures)
        picture = Path(reports.FOLDER) / f"roofline_{name}.png"
        draw_roofline(picture, benchmark, TARGETS[-1])
        console.print_line(f"roofline on {TARGETS[-1]} drawn to {picture}")
    if not networks:
        return 0
    figures: dict[str, Any] = {"networks": networks}
    model, images = shared_folder() / "models" / f"{NETWORKS[0]}.tflite", shared_folder() / IMAGES
    if model.is_file() and images.is_file():
        with console.step(f"building the simulation of {TARGET}"):
            figures["simulation"] = simulation_speed(model, images, TARGET)
        speed = figures["simulation"]
        console.print_line(
            f"compiled simulation of {TARGET} ({find_target(TARGET).configuration.shape}):"
            f" {speed['sim_build_seconds']:.1f} s to build,"
            f" {speed['sim_seconds_per_image']:.3f} s an image of {model.stem}, transfers included"
        )
    console.print_line(f"written to {reports.write('bench_scaling', COMMAND, figures)}")
    return 0


def _show(figures: dict[str, Any]) -> None:
    columns = (
        "multipliers", "cycles", "prediction", "of peak", "speed-up", "of proportional",
    )  # fmt: skip
    rows = [
        [
            entry["target"],
            entry["array"],
            entry["macs_per_cycle"],
            entry["cycles"],
            f"{entry['prediction_error']:+.2%}",
            console.percent(entry["share_of_peak"]),
            f"{entry['speed_up']:.2f}",
            console.percent(entry["of_proportional"]),
        ]
        for entry in figures["sizes"]
    ]
    console.print_table(
        f"{figures['network']}, RTL simulated",
        {"target": "left", "array": "left", **dict.fromkeys(columns, "right")},
        rows,
        f"speed-up against {figures['sizes'][0]['target']}; of proportional: divided by how many"
        " times the multipliers are",
    )


if __name__ == "__main__":
    sys.exit(exit_status(scaling_benchmark))
