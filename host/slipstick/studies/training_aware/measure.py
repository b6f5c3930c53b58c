"""Counts the right answers of files: float, int8 and logarithmic ones."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ... import kernels
from ...frontends.onnx import load_onnx_bytes
from ...frontends.tflite import load_tflite
from ...graph import Graph
from .tasks import Images

CHUNK = 16
"""Images that are run together: their tensors fit a second-level cache."""

Percents = dict[str, float]
"""Right answers in %, by the name of the test images."""


def percents(classes: Mapping[str, np.ndarray], tests: Mapping[str, Images]) -> Percents:
    """Computes the shares of right classes, in %, that were chosen for some test images."""
    return {
        name: round(100 * float((classes[name] == test.y).mean()), 3)
        for name, test in tests.items()
    }


def classes_of_file(data: bytes, x: np.ndarray) -> np.ndarray:
    """Returns the classes that a quantised .onnx file chooses.

    They are chosen by the kernels that define its operators.
    """
    return _run(load_onnx_bytes(data), x.astype(np.float32))


def classes_of_tflite(path: Path, x: np.ndarray) -> np.ndarray:
    """Returns the classes that a .tflite of int8 pictures chooses.

    Pixels of 0..255 are its codes, less 128.
    """
    codes = (x.astype(np.int16) - 128).astype(np.int8).transpose(0, 2, 3, 1)
    return _run(load_tflite(path), np.ascontiguousarray(codes))


def classes_of_float(data: bytes, x: np.ndarray) -> np.ndarray:
    """Returns the classes that a float .onnx file chooses, in onnxruntime."""
    import onnxruntime

    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    scores = [np.asarray(session.run(None, {name: one[None].astype(np.float32)})[0]) for one in x]
    return _largest(scores, len(x))


def classes_on_model(path: Path, target: str, x: np.ndarray) -> np.ndarray:
    """Returns the classes that a file chooses on the golden model of a target's core."""
    from ...session import InferenceSession

    with InferenceSession(path, device="model", target=target) as session:
        name = session.get_inputs()[0].name
        return _largest([np.asarray(session.run(None, {name: x.astype(np.float32)})[0])], len(x))


def _run(graph: Graph, x: np.ndarray) -> np.ndarray:
    parts = (x[first : first + CHUNK] for first in range(0, len(x), CHUNK))
    scores = [kernels.run_graph(graph, [part])[graph.outputs[0]] for part in parts]
    return _largest(scores, len(x))


def _largest(scores: list[np.ndarray], count: int) -> np.ndarray:
    """The first of the largest."""
    return np.concatenate(scores).reshape(count, -1).argmax(axis=1)
