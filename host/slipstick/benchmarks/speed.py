"""Images a second of the golden model beside the reference runtimes, on the same inputs."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import console, reports
from ..data.inputs import Samples, load_inputs, load_labels
from ..errors import DeviceError
from ..failures import exit_status
from ..program import Program
from ..runtime.feeds import prepare_input
from ..session import InferenceSession
from ..verify.tflm_reference import TflmReference
from .suite import SHAPES, shared_folder, timed

COMMAND = "python -m slipstick.benchmarks.speed"
REPEATS = 3
"""The quickest counts, of either side: other work on the machine only ever slows one down."""


@dataclass(frozen=True)
class Case:
    """A network and what it is run on.

    Parameters
    ----------
    model : str
        Below ``models``.
    inputs : str or None
        Below ``data``; None: seeded random ones.
    count : int
        Inputs, at most.
    labels : str or None
        Below ``data``, if they are not beside the inputs.
    """

    model: str
    inputs: str | None
    count: int
    labels: str | None = None


CIFAR = "cifar10/ic01_cifar10_200.npz"
CASES = (
    Case("ic01_resnet8_int8.tflite", CIFAR, 200),
    Case("resnet8_cifar10_int8_qdq.onnx", CIFAR, 200),
    Case("resnet8_cifar10_int8_qoperator_perchannel.onnx", CIFAR, 200),
    Case("kws01_dscnn_int8.tflite", "kws/kws01_mfcc_1000.npz", 1000),
    Case("vww01_mobilenetv1_025_int8.tflite", None, 64),
    Case("ad01_int8.tflite", None, 2000),
    Case(
        "mnist_int8_qoperator_pertensor.onnx",
        "mnist/t10k-images-idx3-ubyte.gz",
        10_000,
        "mnist/t10k-labels-idx1-ubyte.gz",
    ),
    Case("tf2_mobilenet_v2_1.0_224_ptq.tflite", "photos", 5),
)


def _samples(case: Case, program: Program, folder: Path) -> Samples:
    described = program.tensors[program.inputs[0]]
    if case.inputs is None:
        limits = np.iinfo(described.dtype)
        shape = (case.count, *described.shape[1:])
        drawn = np.random.default_rng(0).integers(limits.min, limits.max, shape, endpoint=True)
        return Samples(drawn.astype(described.dtype), ("random",) * case.count)
    samples = load_inputs([folder / "data" / case.inputs], described.shape)
    labels = samples.y if case.labels is None else load_labels(folder / "data" / case.labels)
    return Samples(samples.x, samples.names, labels).first(case.count)


def _reference(path: Path) -> tuple[str, Callable[[np.ndarray], np.ndarray]]:
    """The runtime's name, and what runs one image after the other on it."""
    if path.suffix == ".tflite":
        interpreter = TflmReference(path)
        return "tflm", lambda x: interpreter.run(x)[0]
    try:
        import onnxruntime
    except ImportError as error:
        raise DeviceError(f"the runtime needs slipstick[reference]: {error}") from error
    # as its users run it, on all cores
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return "onnxruntime", lambda x: np.concatenate(
        [np.asarray(session.run(None, {name: image[np.newaxis]})[0]) for image in x]
    )


def _quickest(action: Callable[[], Any]) -> tuple[float, Any]:
    """As ``timed``, of several times."""
    return min((timed(action) for _ in range(REPEATS)), key=lambda made: made[0])


def _measure(case: Case, folder: Path) -> dict[str, Any]:
    path = folder / "models" / case.model
    with InferenceSession(path, "model", SHAPES[0]) as session:
        program = session.program
        samples = _samples(case, program, folder)
        name = program.inputs[0]
        x = prepare_input(name, program.tensors[name], samples.x)
        # what is prepared once, and the caches
        session.run_batch(None, {name: x[:32]})
        seconds, outputs = _quickest(lambda: session.run_batch(None, {name: x}))
    runtime, run = _reference(path)
    run(x[:2])
    reference_seconds, wanted = _quickest(lambda: run(x))
    ours = outputs[0].reshape(len(x), -1)
    figures = {
        "network": path.name,
        "images": len(x),
        "macs": program.macs,
        "golden_images_per_second": len(x) / seconds,
        "runtime": runtime,
        "runtime_images_per_second": len(x) / reference_seconds,
        "outputs": ours.size,
        "outputs_that_differ": int((ours != wanted.reshape(ours.shape)).sum()),
        "accuracy": None,
    }
    if samples.y is not None:
        figures["accuracy"] = float((ours.argmax(axis=1) == samples.y).mean())
    return figures


def speed_benchmark() -> int:
    """Every network that there is a file and data for."""
    folder, measured = shared_folder(), []
    for case in CASES:
        data = None if case.inputs is None else folder / "data" / case.inputs
        missing = [
            path for path in (folder / "models" / case.model, data) if path and not path.exists()
        ]
        if missing:
            console.print_line(f"skipped: {missing[0]} is not there; set SLIPSTICK_DATA")
            continue
        with console.step(case.model):
            measured.append(_measure(case, folder))
    if measured:
        _show(measured)
        path = reports.write("bench_speed", COMMAND, {"target": SHAPES[0], "networks": measured})
        console.print_line(f"written to {path}")
    return 0


def _show(measured: list[dict[str, Any]]) -> None:
    columns = {
        "network": "text",
        "images": "right",
        "golden model, /s": "right",
        "runtime": "left",
        "its, /s": "right",
        "outputs that differ": "right",
        "accuracy": "right",
    }
    rows = [
        [
            entry["network"],
            entry["images"],
            f"{entry['golden_images_per_second']:,.1f}",
            entry["runtime"],
            f"{entry['runtime_images_per_second']:,.1f}",
            f"{entry['outputs_that_differ']:,} of {entry['outputs']:,}",
            console.percent(entry["accuracy"]),
        ]
        for entry in measured
    ]
    console.print_table("images a second, golden model and runtime", columns, rows)


if __name__ == "__main__":
    sys.exit(exit_status(speed_benchmark))
