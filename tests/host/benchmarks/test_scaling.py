"""The helpers beside the kernels: multipliers, clamps, fixed point, and the dispatcher's checks."""

import numpy as np
import pytest
import tflm_cases as cases
from slipstick import kernels
from slipstick.errors import InputError, UnsupportedError
from slipstick.frontends.tflite import load_tflite_bytes
from slipstick.graph import Quantization
from slipstick.kernels.tflite import fixed_point
from slipstick.writers import tflite_operators as ops


@pytest.mark.parametrize(
    ("real", "expected"),
    [
        (0.0, (0, 0)),
        (1.0, (1 << 30, 1)),
        (0.75, (3 << 29, 0)),
        (1 - 2.0**-40, (1 << 30, 1)),
        (2.0**-31, (1 << 30, -30)),
        (2.0**-40, (0, 0)),
        (2.0**40, ((1 << 31) - 1, 30)),
    ],
)
def test_quantize_multiplier(real: float, expected: tuple[int, int]) -> None:
    assert kernels.quantize_multiplier(real) == expected


def test_activation_range() -> None:
    assert kernels.activation_range("none", 0.1, 5) == (-128, 127)
    assert kernels.activation_range("relu", 0.1, 5) == (5, 127)
    assert kernels.activation_range("relu6", 0.1, 5) == (5, 65)
    assert kernels.activation_range("relu_n1_to_1", 0.1, 5) == (-5, 15)
    assert kernels.activation_range("relu6", 1e-3, 0) == (0, 127)
    assert kernels.activation_range("relu", 0.1, 9, "uint8") == (9, 255)


def test_fixed_point_follows_the_functions() -> None:
    x = np.linspace(-7.9, 7.9, 1001)
    raw = np.round(x * (1 << 27)).astype(np.int64)
    one = 1 << 31
    np.testing.assert_allclose(fixed_point.logistic(raw, 4) / one, 1 / (1 + np.exp(-x)), atol=1e-6)
    np.testing.assert_allclose(fixed_point.tanh(raw, 4) / one, np.tanh(x), atol=1e-6)


def test_bad_arguments() -> None:
    ordinary, channels = (
        Quantization(np.ones(1), np.zeros(1, int)),
        Quantization(np.ones(2), np.zeros(2, int), 0),
    )
    with pytest.raises(ValueError, match="a multiplier must be finite and at least 0, not -1"):
        kernels.quantize_multiplier(-1.0)
    with pytest.raises(ValueError, match="activation must be one of .*, not 'elu'"):
        kernels.activation_range("elu", 1.0, 0)
    with pytest.raises(ValueError, match="dtype must be one of .*, not 'int16'"):
        kernels.activation_range("relu", 1.0, 0, "int16")
    with pytest.raises(ValueError, match="operator must be one of .*, not 'sine'"):
        kernels.activation_table("sine", ordinary, ordinary)
    with pytest.raises(ValueError, match="an activation must have one scale, not 2"):
        kernels.activation_table("relu", channels, ordinary)
    with pytest.raises(UnsupportedError, match="needs an output scale above"):
        kernels.add_parameters(ordinary, ordinary, Quantization(np.array([1e-7]), np.zeros(1, int)))


def test_dispatch_checks_its_inputs() -> None:
    shape = (1, 4)
    graph = load_tflite_bytes(
        cases.single_operator(ops.Relu(), (shape, 1.0, 0), (shape, 1.0, 0)), "tiny"
    )
    node = graph.nodes[0]
    good = np.zeros(shape, np.int8)
    with pytest.raises(InputError, match="node relu_0 takes 1 activations, not 2"):
        kernels.run(node, graph, [good, good])
    with pytest.raises(InputError, match="node relu_0: x must be int8 of shape .* not int32"):
        kernels.run(node, graph, [good.astype(np.int32)])
    with pytest.raises(InputError, match=r"not int8 of shape \(1, 5\)"):
        kernels.run(node, graph, [np.zeros((1, 5), np.int8)])
    with pytest.raises(InputError, match="tiny takes 1 inputs, not 0"):
        kernels.run_graph(graph, [])
