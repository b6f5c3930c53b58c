"""``make bench``: what the project's figures are today, printed and written under ``reports/``."""

import os
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from .. import console, reports
from ..data.inputs import Samples, load_inputs
from ..devices import open_device
from ..errors import DeviceError
from ..loading import compile_file
from ..profile.measure import benchmark_entry, measure
from ..session import InferenceSession
from ..targets import find_target

SHAPES = ("1x16x16", "1x8x8")
SIMULATED_IMAGES = 5
COMMAND = "python -m slipstick.benchmarks"


def shared_folder() -> Path:
    """Networks and data that are not part of the project: ``SLIPSTICK_DATA``, or ``../shared``."""
    return Path(os.environ.get("SLIPSTICK_DATA", Path("..") / "shared"))


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds that an action took, and what it returned."""
    start = time.perf_counter()
    result = action()
    return time.perf_counter() - start, result


def _golden(model: Path, samples: Samples) -> dict[str, Any]:
    """Images a second of the golden model, and its accuracy."""
    with InferenceSession(model, "model", SHAPES[0]) as session:
        feeds = {session.program.inputs[0]: samples.x}
        session.run_batch(None, feeds)
        seconds, outputs = timed(lambda: session.run_batch(None, feeds))
    guesses = outputs[0].reshape(len(samples), -1).argmax(axis=1)
    return {
        "golden_images_per_second": len(samples) / seconds,
        "golden_accuracy": None if samples.y is None else float(np.mean(guesses == samples.y)),
        "golden_images": len(samples),
    }


def library_seconds(target: str) -> float:
    """Seconds to build the simulation of a target, once, without its cache.

    Raises
    ------
    DeviceError
        If that is not installed, or fails.
    """
    try:
        from slipstick_sim.toolchain import ToolError
        from slipstick_sim.verilated.build import accelerator_library
    except ImportError as error:
        raise DeviceError(f"the simulation needs slipstick[sim]: {error}") from error
    with tempfile.TemporaryDirectory() as folder:
        try:
            seconds, _ = timed(
                lambda: accelerator_library(find_target(target).configuration, Path(folder))
            )
        except ToolError as error:
            raise DeviceError(f"the simulation of {target}: {error}") from error
    return seconds


def simulated(model: Path, samples: Samples, target: str) -> dict[str, Any]:
    """Seconds an image of the compiled RTL, transfers included."""
    program = compile_file(model, target)
    with closing(open_device("sim", program.hardware)) as device:
        loading, session = timed(lambda: InferenceSession(program, device))
        name = program.inputs[0]
        seconds, outputs = timed(lambda: session.run(None, {name: samples.x[:SIMULATED_IMAGES]}))
    with InferenceSession(program, "model") as golden:
        wanted = golden.run(None, {name: samples.x[:SIMULATED_IMAGES]})
    return {
        "sim_load_seconds": loading,
        "sim_seconds_per_image": seconds / SIMULATED_IMAGES,
        "sim_images": SIMULATED_IMAGES,
        "sim_equals_golden": all(map(np.array_equal, outputs, wanted)),
    }


def _cycles(model: Path) -> list[dict[str, Any]]:
    """Cycles and utilisation, a shape each."""
    entries = []
    for shape in SHAPES:
        seconds, benchmark = timed(
            lambda shape=shape: measure(compile_file(model, find_target(shape).configuration))
        )
        entries.append({"target": shape, "seconds": seconds, **benchmark_entry(benchmark)})
    return entries


def benchmarks() -> int:
    """Runs everything that there is data for."""
    folder = shared_folder()
    model = folder / "models" / "ic01_resnet8_int8.tflite"
    data = folder / "data" / "cifar10" / "ic01_cifar10_200.npz"
    if not (model.is_file() and data.is_file()):
        console.print_line(f"skipped: {model} or {data} is not there; set SLIPSTICK_DATA")
        return 0
    program = compile_file(model, SHAPES[0])
    samples = load_inputs([data], program.tensors[program.inputs[0]].shape)
    figures: dict[str, Any] = {"network": model.stem}
    with console.step("golden model"):
        figures.update(_golden(model, samples))
    with console.step("compiled RTL"):
        figures.update(simulated(model, samples, SHAPES[0]))
    with console.step("building the simulation"):
        figures["sim_build_seconds"] = library_seconds(SHAPES[0])
    with console.step("cycles of the RTL"):
        figures["rtl"] = _cycles(model)
    _show(figures)
    path = reports.write("bench_resnet8", COMMAND, figures)
    console.print_line(f"written to {path}")
    return 0


def _show(figures: dict[str, Any]) -> None:
    rows = [
        ["golden model, images a second", f"{figures['golden_images_per_second']:.1f}"],
        ["golden model, accuracy", console.percent(figures["golden_accuracy"])],
        [f"simulation of {SHAPES[0]}: its build, s", f"{figures['sim_build_seconds']:.1f}"],
        ["simulation: loading the program, s", f"{figures['sim_load_seconds']:.2f}"],
        ["simulation: one image with transfers, s", f"{figures['sim_seconds_per_image']:.3f}"],
        ["simulation equals golden model", str(figures["sim_equals_golden"])],
    ]
    for entry in figures["rtl"]:
        name = f"RTL {entry['target']}"
        rows += [
            [f"{name}: cycles", entry["cycles"]],
            [f"{name}: share of peak", console.percent(entry["utilisation"])],
            [f"{name}: prediction", f"{entry['prediction_error']:+.2%}"],
        ]
    console.print_table(figures["network"], {"figure": "left", "value": "right"}, rows)
