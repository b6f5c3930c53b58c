"""Networks that do not fit a chip: what compiling and running them costs, with all transfers.

``python -m slipstick.benchmarks.large``, from the project's folder: MobileNetV2 of the shared
networks on the compiled RTL, and VGG-16 as ``tools/make_network.py`` makes it.
"""

import dataclasses
import json
import resource
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from .. import console, reports
from ..data.inputs import load_inputs
from ..devices.simulation import SimulationDevice
from ..errors import DeviceError
from ..failures import exit_status
from ..loading import compile_file
from ..program import Program
from ..program.steps import RunStep
from ..runtime.executor import Execution, Values
from .suite import shared_folder, timed

COMMAND = "python -m slipstick.benchmarks.large"
TARGET = "1x16x16"
NETWORK = Path("models", "tf2_mobilenet_v2_1.0_224_ptq.tflite")
PHOTOS = Path("data", "photos")
NETWORK_SCRIPT = Path("tools", "make_network.py")
_KIBIBYTE = 1024


def one_after_the_other(program: Program) -> Program:
    """The same program without transfers during runs."""
    return dataclasses.replace(
        program,
        steps=tuple(
            dataclasses.replace(step, overlapped=0) if isinstance(step, RunStep) else step
            for step in program.steps
        ),
    )


def _inference(program: Program, inputs: Values) -> dict[str, Any]:
    """Cycles of the runs, and of everything from the first byte to the last, on a fresh core."""
    with closing(SimulationDevice(program.hardware)) as device:
        execution = Execution(program, device)
        begin = device.clock_cycles
        seconds, values = timed(lambda: execution.infer(inputs))
        return {
            "run_cycles": execution.last_cycles,
            "clock_cycles": device.clock_cycles - begin,
            "seconds": seconds,
            "outputs": [values[name] for name in program.outputs],
        }


def simulated(model: Path, photos: Path) -> dict[str, Any]:
    """MobileNetV2: one photo on the RTL, with transfers during runs and without.

    Raises
    ------
    DeviceError
        If the two give other results: something that overlaps is not independent.
    """
    seconds, program = timed(lambda: compile_file(model, TARGET))
    name = program.inputs[0]
    photo = load_inputs([photos], program.tensors[name].shape).first(1).x
    together = _inference(program, {name: photo})
    apart = _inference(one_after_the_other(program), {name: photo})
    if not all(map(np.array_equal, together.pop("outputs"), apart.pop("outputs"))):
        raise DeviceError(f"{model}: results must not depend on when transfers are made")
    return {
        "network": model.stem,
        "target": TARGET,
        "fingerprint": program.fingerprint,
        "compile_seconds": seconds,
        "macs": program.macs,
        "runs": sum(isinstance(step, RunStep) for step in program.steps),
        "predicted_cycles": program.predicted_cycles,
        "prediction_error": program.predicted_cycles / together["run_cycles"] - 1,
        **dataclasses.asdict(program.transferred()),
        "overlapped": together,
        "one_after_the_other": apart,
    }


def compiled_vgg() -> dict[str, Any]:
    """VGG-16: seconds and memory of ``slipstick compile``, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "vgg16.tflite"
        _call([str(NETWORK_SCRIPT), "vgg16", str(model)])
        command = ["-m", "slipstick", "compile", str(model), "--target", TARGET, "--json"]
        seconds, text = timed(lambda: _call(command))
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * _KIBIBYTE
    entry = json.loads(text)
    kept = ("macs", "runs", "predicted_cycles", "utilisation", "program_bytes")
    moved = ("loaded_bytes", "uploaded_bytes", "downloaded_bytes")
    return {
        "network": "vgg16",
        "target": TARGET,
        "fingerprint": entry["fingerprint"],
        "compile_seconds": seconds,
        "compile_peak_bytes": most,
        **{name: entry[name] for name in (*kept, *moved)},
    }


def _call(arguments: list[str]) -> str:
    outcome = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
    if outcome.returncode:
        raise DeviceError(f"{' '.join(arguments)} failed: {outcome.stderr.strip()}")
    return outcome.stdout


def large_benchmark() -> int:
    """Both networks, printed and written under ``reports/``."""
    figures: dict[str, Any] = {}
    if NETWORK_SCRIPT.is_file():
        with console.step("VGG-16, compiled"):
            figures["vgg16"] = compiled_vgg()
    model, photos = shared_folder() / NETWORK, shared_folder() / PHOTOS
    if model.is_file() and photos.is_dir():
        with console.step("MobileNetV2 on the compiled RTL"):
            figures["mobilenet_v2"] = simulated(model, photos)
    else:
        console.print_line(f"skipped: {model} or {photos} is not there; set SLIPSTICK_DATA")
    if not figures:
        return 0
    for entry in figures.values():
        _show(entry)
    console.print_line(f"written to {reports.write('bench_large', COMMAND, figures)}")
    return 0


def _show(entry: dict[str, Any]) -> None:
    rows: list[list[object]] = [
        ["seconds to compile", f"{entry['compile_seconds']:.1f}"],
        ["multiply-accumulates", entry["macs"]],
        ["runs", entry["runs"]],
        ["cycles, predicted", entry["predicted_cycles"]],
    ]
    if "compile_peak_bytes" in entry:
        rows.append(["largest memory of compiling, bytes", entry["compile_peak_bytes"]])
    for key, title in (("overlapped", "during"), ("one_after_the_other", "between")):
        if key in entry:
            rows.append([f"cycles of runs, transfers {title} them", entry[key]["run_cycles"]])
            rows.append([f"cycles in all, transfers {title} runs", entry[key]["clock_cycles"]])
    console.print_table(
        f"{entry['network']} on {entry['target']}", {"figure": "left", "value": "right"}, rows
    )


if __name__ == "__main__":
    sys.exit(exit_status(large_benchmark))
