"""The wrapper of the reference runtime: shapes, names, and what it refuses."""

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflm_cases as cases
from slipstick.errors import DeviceError, InputError, ModelError
from slipstick.verify.tflm_reference import TflmReference
from slipstick.writers import tflite_operators as ops
from slipstick.writers.tflite import TfliteWriter

SHAPE = (1, 3, 4)
X = np.arange(-6, 6, dtype=np.int8).reshape(SHAPE)


def negated_twice() -> bytes:
    """x -> relu -> middle -> softmax -> y."""
    writer = TfliteWriter()
    writer.tensor("x", SHAPE, scale=1.0)
    writer.tensor("middle", SHAPE, scale=1.0)
    writer.tensor("y", SHAPE, scale=1 / 256, zero_point=-128)
    writer.add(ops.Relu(), ["x"], ["middle"])
    writer.add(ops.Softmax(), ["middle"], ["y"])
    return writer.to_bytes(["x"], ["y"])


def test_runs_single_images_and_batches(tmp_path: Path) -> None:
    path = tmp_path / "tiny.tflite"
    path.write_bytes(negated_twice())
    reference = TflmReference(path)
    assert (reference.inputs, reference.outputs) == (("x",), ("y",))
    (single,) = reference.run(X[0])
    (one,) = reference.run(X)
    (two,) = reference.run(np.concatenate([X, X[:, ::-1]]))
    assert single.shape == one.shape == SHAPE
    np.testing.assert_array_equal(single, one)
    assert two.shape == (2, 3, 4)
    np.testing.assert_array_equal(two[0], one[0])
    np.testing.assert_array_equal(two[1], one[0, ::-1])


def test_layers() -> None:
    layers = TflmReference(negated_twice()).run_layers(X)
    assert list(layers) == ["middle", "y"]
    np.testing.assert_array_equal(layers["middle"], np.maximum(X, 0))


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ((), "model takes 1 inputs, not 0"),
        ((X.astype(np.uint8),), r"input x must be int8 of shape \(1, 3, 4\) or .* not uint8"),
        ((X[..., :2],), r"not int8 of shape \(1, 3, 2\)"),
        ((X[:0],), r"not int8 of shape \(0, 3, 4\)"),
    ],
)
def test_bad_inputs(inputs: tuple[np.ndarray, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TflmReference(negated_twice()).run(*inputs)


def test_batches_must_agree() -> None:
    data, (a, b) = cases.addition(np.random.default_rng(0))
    with pytest.raises(InputError, match=r"inputs must have one batch size, not \[3, 2\]"):
        TflmReference(data).run(a, b[:2])


def test_bad_networks() -> None:
    with pytest.raises(ModelError, match="model must be a TFLite file"):
        TflmReference(b"nonsense")
    with pytest.raises(ModelError, match="model is damaged or cut short"):
        TflmReference(negated_twice()[:200])
    with pytest.raises(DeviceError, match="the reference runtime refuses model"):
        # int8 SOFTMAX of another output scale
        source = SHAPE, 1.0, 0
        TflmReference(cases.single_operator(ops.Softmax(), source, source))


def test_absent_depthwise_bias_is_refused() -> None:
    writer = TfliteWriter()
    writer.tensor("x", (1, 2, 2, 1), scale=1.0)
    writer.tensor("w", (1, 1, 1, 1), scale=1.0, data=np.ones((1, 1, 1, 1)))
    writer.tensor("y", (1, 2, 2, 1), scale=1.0)
    writer.add(ops.DepthwiseConv2D(), ["x", "w", ""], ["y"])
    with pytest.raises(DeviceError, match="has an absent bias written as -1"):
        TflmReference(writer.to_bytes(["x"], ["y"]))


def test_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    ordinary = builtins.__import__

    def without_tflm(name: str, *arguments: Any, **options: Any) -> Any:
        if name.startswith("tflite_micro"):
            raise ImportError(name)
        return ordinary(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without_tflm)
    with pytest.raises(DeviceError, match=r"install slipstick\[reference\]"):
        TflmReference(negated_twice())
