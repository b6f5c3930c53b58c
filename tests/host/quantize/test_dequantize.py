"""An int8 network as float ONNX: nearly the same classes, and ready for another number format."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from slipstick.errors import UnsupportedError
from slipstick.examples.digits import MODEL, load_digits
from slipstick.frontends import load
from slipstick.quantize import FloatNetwork
from slipstick.quantize.dequantize import dequantized
from slipstick.session import InferenceSession
from slipstick.targets import find_target

IMAGES = 200


def _real(codes: np.ndarray) -> np.ndarray:
    return ((codes.astype(np.float32) + 128) / 240).transpose(0, 3, 1, 2)


def test_digits_have_the_same_classes() -> None:
    _, _, images, labels = load_digits()
    session = onnxruntime.InferenceSession(dequantized(load(MODEL)))
    with InferenceSession(MODEL, device="model") as codes:
        (expected,) = codes.run_batch(None, {codes.program.inputs[0]: images[:IMAGES]})
    answers = [session.run(None, {"image": _real(images[k : k + 1])})[0] for k in range(IMAGES)]
    found = np.concatenate([np.asarray(answer) for answer in answers])
    # activations are not rounded in it: a doubtful image may have another class
    assert np.mean(found.argmax(1) == expected.reshape(IMAGES, -1).argmax(1)) > 0.98
    assert np.mean(found.argmax(1) == labels[:IMAGES]) > 0.96


def test_it_can_be_quantised_for_logarithms(tmp_path: Path) -> None:
    _, _, images, labels = load_digits()
    path, target = tmp_path / "float.onnx", find_target("sim-lns8")
    path.write_bytes(dequantized(load(MODEL)))
    arithmetic = target.configuration.logarithmic
    assert arithmetic is not None
    (tmp_path / "lns8.onnx").write_bytes(
        FloatNetwork(path).quantize_logarithmic(_real(images[:64]), arithmetic)
    )
    with InferenceSession(tmp_path / "lns8.onnx", device="model", target=target) as session:
        (found,) = session.run_batch(None, {session.program.inputs[0]: _real(images[:IMAGES])})
    assert np.mean(found.argmax(1) == labels[:IMAGES]) > 0.95


def test_other_operators_are_named() -> None:
    graph = load(MODEL)
    odd = replace(graph.nodes[-1], operator="tanh")
    with pytest.raises(UnsupportedError, match="softmax_9: tanh must be one of conv2d, "):
        dequantized(replace(graph, nodes=(*graph.nodes[:-1], odd)))
