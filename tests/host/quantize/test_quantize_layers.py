"""Post-training quantisation: int8 networks that it makes follow their float networks."""

import numpy as np
import pytest
from float_layers import INPUT, FloatLayer, run_float
from quantize_layers import Codes, quantize, range_codes
from slipstick.writers import tflite_operators as ops
from tflite_micro.python.tflite_micro import runtime

SEED = 5
INPUT_CODES = Codes(1 / 128, 3)


def layer(
    name: str, operator: ops.Operator, source: str, shape: tuple[int, ...] | None = None
) -> FloatLayer:
    if shape is None:
        return FloatLayer(name, operator, (source,))
    rng = np.random.default_rng([SEED, *name.encode()])
    channels = shape[3] if shape[0] == 1 else shape[0]
    fan_in = np.prod(shape) / channels
    weights = rng.normal(0, fan_in**-0.5, shape).astype(np.float32)
    bias = rng.normal(0, 0.2, channels).astype(np.float32)
    return FloatLayer(name, operator, (source,), weights, bias)


def network() -> list[FloatLayer]:
    relu = ops.Conv2D(activation="RELU", stride=(2, 1), padding="SAME")
    mean = ops.AveragePool2D(window=(2, 3), stride=(2, 2), padding="SAME")
    return [
        layer("conv", relu, INPUT, (6, 3, 5, 2)),
        layer("wide", ops.DepthwiseConv2D(multiplier=2, padding="VALID"), "conv", (1, 2, 2, 12)),
        layer("dilute", ops.Conv2D(activation="RELU6"), "wide", (12, 1, 1, 12)),
        FloatLayer("sum", ops.Add(), ("wide", "dilute")),
        layer("peak", ops.MaxPool2D(window=(2, 2), stride=(1, 1), padding="SAME"), "sum"),
        layer("mean", mean, "peak"),
        layer("flat", ops.Reshape(shape=(1, 96)), "mean"),
        layer("dense", ops.FullyConnected(), "flat", (7, 96)),
        layer("softmax", ops.Softmax(), "dense"),
    ]


@pytest.mark.parametrize("depth", range(1, 10))
def test_int8_follows_float(depth: int) -> None:
    layers = network()[:depth]
    codes = np.random.default_rng(SEED).integers(-128, 128, (20, 10, 8, 2), dtype=np.int8)
    scale = np.float32(INPUT_CODES.scale)
    real = (codes.astype(np.float32) - INPUT_CODES.zero_point) * scale
    interpreter = runtime.Interpreter.from_bytes(quantize(layers, real, INPUT_CODES, "test"))
    parameters = interpreter.get_output_details(0)["quantization_parameters"]
    step, zero_point = parameters["scales"][0], parameters["zero_points"][0]
    errors = []
    for image, wanted in zip(codes, run_float(layers, real)[layers[-1].name], strict=True):
        interpreter.set_input(image[np.newaxis], 0)
        interpreter.invoke()
        errors.append(interpreter.get_output(0)[0].astype(float) - zero_point - wanted / step)
    # one layer errs by half a step, each further one adds to it
    assert np.sqrt(np.mean(np.square(errors))) < 0.35 + 0.3 * depth


def test_float_layers_by_hand() -> None:
    x = np.arange(9, dtype=np.float32).reshape(1, 3, 3, 1)
    ones = np.ones((1, 2, 2, 1), np.float32)
    bias = np.array([0.5], np.float32)
    conv = FloatLayer("y", ops.Conv2D(stride=(2, 2)), (INPUT,), ones, bias)
    # SAME pads below and to the right
    expected = np.array([[0 + 1 + 3 + 4, 2 + 5], [6 + 7, 8]]) + 0.5
    np.testing.assert_array_equal(run_float([conv], x)["y"][0, :, :, 0], expected)
    mean = FloatLayer(
        "y", ops.AveragePool2D(window=(2, 2), stride=(2, 2), padding="SAME"), (INPUT,)
    )
    np.testing.assert_array_equal(run_float([mean], x)["y"][0, :, :, 0], [[2, 3.5], [6.5, 8]])


def test_range_codes_hold_zero() -> None:
    assert range_codes(0.0, 2.55) == Codes(float(np.float32(0.01)), -128)
    assert range_codes(-1.0, -0.5).zero_point == 127
    codes = range_codes(-0.3, 1.1)
    assert codes.encode(np.array([0.0])) == codes.zero_point
    with pytest.raises(ValueError, match=r"an activation's range must not be 0\.0\.\.0\.0"):
        range_codes(0.0, 0.0)


def test_float_layers_refuse() -> None:
    x = np.zeros((1, 2, 2, 1), np.float32)
    with pytest.raises(ValueError, match="layer y: no float arithmetic for PAD"):
        run_float([FloatLayer("y", ops.Pad(), (INPUT,))], x)
    with pytest.raises(ValueError, match="layer y: CONV_2D needs weights and bias"):
        run_float([FloatLayer("y", ops.Conv2D(), (INPUT,))], x)
