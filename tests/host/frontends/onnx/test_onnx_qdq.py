"""Networks between QuantizeLinear and DequantizeLinear, operator by operator, as onnxruntime."""

from typing import Any

import numpy as np
import pytest
from onnx_checks import check, on_device, operators
from onnx_writer import MICROSOFT, OnnxWriter

RNG = np.random.default_rng(4)
SHAPE = (1, 6, 9, 8)


def pictures(*shape: int, count: int = 3) -> np.ndarray:
    return RNG.normal(0, 2, (count, *shape[1:])).astype(np.float32)


def codes(*shape: int, dtype: str = "int8") -> np.ndarray:
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def convolution(
    *, dtype: str = "int8", zero_point: Any = 0, filters: int = 10, group: int = 1, **options: Any
) -> OnnxWriter:
    """x -> Conv with bias -> codes of scale 0.1."""
    net = OnnxWriter()
    x = net.pair(net.input("x", SHAPE), 0.06, 7 if dtype == "int8" else 130, dtype)
    scale = RNG.uniform(0.001, 0.004, filters).astype(np.float32)
    weights = codes(filters, SHAPE[1] // group, 3, 3, dtype=dtype)
    kernel = net.weights(weights, scale, zero_point)
    bias = net.weights(
        RNG.integers(-3000, 3000, filters).astype(np.int32), scale * np.float32(0.06)
    )
    made = net.add("Conv", [x, kernel, bias], group=group, **options)
    net.pair(made, 0.1, -3 if dtype == "int8" else 125, dtype)
    return net


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"pads": [1, 0, 2, 1], "strides": [2, 1]},
        {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
        {"auto_pad": "SAME_LOWER", "strides": [2, 3]},
        {"auto_pad": "VALID", "dilations": [2, 2]},
        {"group": 2},
        {"group": 6, "filters": 12, "pads": [1, 1, 1, 1]},
        {"dtype": "uint8", "zero_point": 128},
        {"dtype": "uint8", "zero_point": 117},
        {"zero_point": np.arange(-5, 5)},
    ],
)
def test_convolution(options: dict[str, Any]) -> None:
    net = convolution(**options)
    graph = check(net.to_bytes([net.nodes[-1].output[0]]), pictures(*SHAPE))
    assert {"conv2d", "depthwise_conv2d"} & on_device(graph)


@pytest.mark.parametrize("after", ["Relu", "Clip", "BatchNormalization", "scaled"])
def test_what_folds_into_a_convolution(after: str) -> None:
    net = OnnxWriter()
    x = net.pair(net.input("x", SHAPE), 0.06, 7)
    kernel = net.weights(codes(4, 6, 3, 3), np.array([0.001, 0.003, 0.002, 0.004], "f4"))
    y = net.add("Conv", [x, kernel])
    if after == "Relu":
        y = net.add("Relu", [y])
    elif after == "Clip":
        y = net.add("Clip", [y, net.constant(-1.0, "float32"), net.constant(2.5, "float32")])
    elif after == "BatchNormalization":
        numbers = [np.abs(RNG.normal(1, 0.2, 4)).astype(np.float32) for _ in range(4)]
        y = net.add("BatchNormalization", [y, *map(net.constant, numbers)])
    else:
        y = net.add("Mul", [y, net.constant(np.array([0.5, 2, 1, 3], "f4").reshape(4, 1, 1))])
        y = net.add("Add", [net.constant(np.array([1, 2, 3, 4], "f4").reshape(1, 4, 1, 1)), y])
    y = net.pair(y, 0.1)
    graph = check(net.to_bytes([y]), pictures(*SHAPE))
    assert operators(graph).count("conv2d") == 1
    assert len(graph.nodes) == 5, operators(graph)


def test_a_convolution_of_one_dimension() -> None:
    net = OnnxWriter()
    x = net.pair(net.input("x", (1, 5, 30)), 0.06, 7)
    kernel = net.weights(codes(4, 5, 4), np.float32(0.003))
    y = net.pair(net.add("Conv", [x, kernel], strides=[2], pads=[1, 2]), 0.1)
    y = net.pair(net.add("GlobalAveragePool", [y]), 0.05)
    graph = check(
        net.to_bytes([net.add("Squeeze", [y, net.constant([2], "int64")])]), pictures(1, 5, 30)
    )
    assert {"conv2d", "mean"} <= on_device(graph)


def test_layers_without_codes_run_in_float() -> None:
    net = OnnxWriter()
    x = net.input("x", SHAPE)
    kernel = RNG.normal(0, 0.2, (4, 3, 3, 3)).astype(np.float32)
    y = net.add("Relu", [net.add("Conv", [x, net.constant(kernel)], group=2)])
    y = net.pair(y, 0.02, -128)
    y = net.add("Flatten", [y])
    y = net.add("MatMul", [y, net.weights(codes(168, 5), np.float32(0.001))])
    y = net.add("Softmax", [net.add("Add", [y, net.constant(np.arange(5), "float32")])])
    graph = check(net.to_bytes([y]), pictures(*SHAPE))
    assert graph.tensors[graph.outputs[0]].dtype == "float32"


@pytest.mark.parametrize(
    ("operator", "scales"),
    [("Add", (0.0317, 0.0521, 0.0613)), ("Sub", (0.0521, 0.0317, 0.0613)),
     ("Mul", (0.0317, 0.0521, 0.0613)), ("Div", (0.0317, 0.0521, 0.6)),
     ("Max", (0.0317, 0.0521, 0.0613)), ("Min", (0.0521, 0.0317, 0.0613))],
)  # fmt: skip
def test_two_activations(operator: str, scales: tuple[float, float, float]) -> None:
    net = OnnxWriter()
    a = net.pair(net.input("a", SHAPE), scales[0], 3)
    # a divisor is at least 8 codes
    b = net.pair(net.input("b", SHAPE), scales[1], -5)
    if operator == "Div":
        b = net.add("Add", [net.add("Abs", [b]), net.constant(0.4, "float32")])
    y = net.pair(net.add(operator, [a, b]), scales[2], 11)
    graph = check(net.to_bytes([y]), pictures(*SHAPE), pictures(*SHAPE))
    if operator in ("Add", "Sub"):
        assert "add" in on_device(graph)


def test_an_activation_and_a_constant() -> None:
    net = OnnxWriter()
    x = net.pair(net.input("x", SHAPE), 0.06, 7)
    y = net.pair(net.add("Mul", [x, net.constant(np.float32(0.7))]), 0.05)
    y = net.add("Add", [y, net.constant(RNG.normal(0, 1, (6, 1, 1)).astype(np.float32))])
    graph = check(net.to_bytes([net.pair(y, 0.08)]), pictures(*SHAPE))
    assert "lookup" in operators(graph) and "mul" not in operators(graph)


FUNCTIONS = {
    "Relu": {}, "Sigmoid": {}, "Tanh": {}, "LeakyRelu": {"alpha": 0.2}, "Elu": {"alpha": 0.7},
    "Selu": {}, "HardSigmoid": {"alpha": 0.3}, "HardSwish": {}, "Softplus": {}, "Softsign": {},
    "Mish": {}, "Gelu": {"approximate": "tanh"}, "Erf": {}, "Exp": {}, "Abs": {}, "Neg": {},
    "Celu": {}, "ThresholdedRelu": {"alpha": 0.5}, "Floor": {}, "Round": {}, "Sin": {},
}  # fmt: skip


@pytest.mark.parametrize("operator", FUNCTIONS)
def test_functions_of_one_number_are_tables(operator: str) -> None:
    net = OnnxWriter()
    x = net.pair(net.input("x", SHAPE), 0.03, 7)
    y = net.pair(net.add(operator, [x], **FUNCTIONS[operator]), 0.013, 3)
    graph = check(net.to_bytes([y]), pictures(*SHAPE))
    assert operators(graph)[1:2] == ["lookup"]
    assert "lookup" in on_device(graph)


def test_a_function_of_many_nodes_is_one_table() -> None:
    net = OnnxWriter()
    x = net.pair(net.input("x", SHAPE), 0.03, 7)
    y = net.add("Mul", [x, net.add("Sigmoid", [x])])
    y = net.add("Add", [y, net.constant(1.0, "float32")])
    y = net.add("PRelu", [y, net.constant(0.1, "float32")])
    graph = check(net.to_bytes([net.pair(y, 0.04)]), pictures(*SHAPE))
    assert operators(graph) == ["quantize", "lookup", "dequantize"]


@pytest.mark.parametrize(
    ("operator", "options", "scale"),
    [
        ("MaxPool", {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]}, 0.06),
        ("MaxPool", {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}, 0.06),
        ("AveragePool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, 0.047),
        (
            "AveragePool",
            {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1},
            0.0413,
        ),
        ("AveragePool", {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}, 0.0527),
        ("AveragePool", {"kernel_shape": [4, 4], "strides": [2, 2]}, 0.06),
        ("GlobalAveragePool", {}, 0.031),
        ("ReduceMean", {"keepdims": 0}, 0.031),
    ],
)
def test_pools(operator: str, options: dict[str, Any], scale: float) -> None:
    net = OnnxWriter()
    x = net.pair(net.input("x", SHAPE), 0.06, 7)
    more = [net.constant([2, 3], "int64")] if operator == "ReduceMean" else []
    same = operator == "MaxPool" or scale == 0.06
    y = net.pair(net.add(operator, [x, *more], **options), scale, 7 if same else -9)
    check(net.to_bytes([y]), pictures(*SHAPE))


@pytest.mark.parametrize("form", ["MatMul", "Gemm", "turned", "turned codes", "per channel"])
def test_fully_connected_after_a_picture(form: str) -> None:
    net = OnnxWriter()
    x = net.pair(net.input("x", SHAPE), 0.06, 7)
    x = net.pair(net.add("MaxPool", [x], kernel_shape=[3, 3], strides=[3, 3]), 0.06, 7)
    x = net.add("Reshape", [x, net.constant([0, -1], "int64")])
    x = net.pair(x, 0.06, 7)
    scale: Any = np.float32(0.002)
    if form == "per channel":
        scale = RNG.uniform(0.001, 0.002, 5).astype(np.float32)
    matrix = codes(5, 36) if form in ("Gemm", "turned") else codes(36, 5)
    if form == "turned codes":
        weights = net.weights(codes(5, 36), scale)
        weights = net.add("Transpose", [weights], perm=[1, 0])
    else:
        weights = net.weights(matrix, scale, axis=1)
    bias = net.constant(RNG.normal(0, 1, 5).astype(np.float32))
    if form in ("Gemm", "turned"):
        y = net.add("Gemm", [x, weights, bias], transB=1, alpha=0.5, beta=2.0)
    else:
        y = net.add("Add", [net.add("MatMul", [x, weights]), bias])
    graph = check(net.to_bytes([net.pair(y, 0.1)]), pictures(*SHAPE))
    assert "transpose" not in operators(graph)[2:]
    assert {"fully_connected", "max_pool2d"} <= on_device(graph)


def test_shapes_of_all_kinds() -> None:
    net = OnnxWriter()
    x = net.pair(net.input("x", SHAPE), 0.06, 7)
    y = net.add("Pad", [x, net.constant([0, 0, 1, 2, 0, 0, 0, 1], "int64")])
    y = net.pair(net.add("Conv", [y, net.weights(codes(6, 6, 2, 2), np.float32(0.002))]), 0.1)
    y = net.add("Transpose", [y], perm=[0, 2, 3, 1])
    y = net.add("Reshape", [y, net.constant([1, 9, -1], "int64")])
    y = net.add("Unsqueeze", [y, net.constant([1], "int64")])
    y = net.add("Dropout", [net.add("Identity", [y])])
    check(net.to_bytes([net.pair(y, 0.1)]), pictures(*SHAPE))


def test_shapes_computed_of_shapes() -> None:
    net = OnnxWriter()
    x = net.pair(net.input("x", ("N", *SHAPE[1:])), 0.06, 7)
    size = net.add("Gather", [net.add("Shape", [x]), net.constant([0], "int64")])
    target = net.add("Concat", [size, net.constant([-1, 8], "int64")], axis=0)
    y = net.add("Reshape", [x, target])
    y = net.add("MatMul", [y, net.weights(codes(8, 3), np.float32(0.01))])
    check(net.to_bytes([net.pair(y, 0.1)]), pictures(*SHAPE))


def test_concatenation() -> None:
    net = OnnxWriter()
    x = net.pair(net.input("x", (1, 8, 6, 6)), 0.06, 7)
    parts = []
    for scale in (0.1, 0.1, 0.2):
        kernel = net.weights(codes(16, 8, 1, 1), np.float32(0.004))
        parts.append(net.pair(net.add("Conv", [x, kernel]), scale, 4))
    same = net.pair(net.add("Concat", parts[:2], axis=1), 0.1, 4)
    every = net.pair(net.add("Concat", [same, parts[2]], axis=1), 0.15, 4)
    check(net.to_bytes([every]), pictures(1, 8, 6, 6))


def test_a_block_of_a_transformer() -> None:
    net = OnnxWriter(opset=20)
    x = net.pair(net.input("x", (1, 10, 16)), 0.03)
    names = []
    for _ in range(3):
        matrix = net.weights(codes(16, 16), np.float32(0.003))
        names.append(net.pair(net.add("MatMul", [x, matrix]), 0.0507))
    turned = net.add("Transpose", [names[1]], perm=[0, 2, 1])
    scores = net.pair(net.add("MatMul", [names[0], turned]), 0.3113)
    scores = net.add("Div", [scores, net.constant(4.0, "float32")])
    weights = net.pair(net.add("Softmax", [scores]), 1 / 256, -128)
    mixed = net.pair(net.add("MatMul", [weights, names[2]]), 0.0419)
    summed = net.pair(net.add("Add", [x, mixed]), 0.0523)
    scale, bias = (net.constant(RNG.normal(1, 0.1, 16).astype(np.float32)) for _ in range(2))
    normal = net.pair(net.add("LayerNormalization", [summed, scale, bias], axis=-1), 0.03)
    y = net.pair(net.add("Gelu", [normal]), 0.03)
    # of so many codes that one in five hundred may be off by one, as float32 sums have an order
    check(net.to_bytes([y]), pictures(1, 10, 16, count=50))


def test_networks_of_channels_behind() -> None:
    net = OnnxWriter()
    x = net.pair(net.input("x", (1, 9, 8, 6)), 0.06, 7)
    y = net.add("Transpose", [x], perm=[0, 3, 1, 2])
    y = net.pair(net.add("Conv", [y, net.weights(codes(6, 6, 2, 2), np.float32(0.002))]), 0.1)
    y = net.add("Transpose", [y], perm=[0, 2, 3, 1])
    graph = check(net.to_bytes([y]), pictures(1, 9, 8, 6))
    assert "transpose" not in operators(graph)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_inputs_and_outputs_of_codes(dtype: str) -> None:
    net = OnnxWriter()
    parts = net.scale(0.05, 120 if dtype == "uint8" else 3, dtype)
    x = net.add("DequantizeLinear", [net.input("x", SHAPE, dtype), *parts])
    y = net.add("Conv", [x, net.weights(codes(4, 6, 3, 3), np.float32(0.002))])
    y = net.add("QuantizeLinear", [y, *net.scale(0.1, 100 if dtype == "uint8" else -4, dtype)])
    graph = check(net.to_bytes([y], dtype), codes(3, *SHAPE[1:], dtype=dtype))
    assert graph.tensors["x"].dtype == dtype


def test_two_readers_and_two_outputs() -> None:
    net = OnnxWriter()
    x = net.pair(net.input("x", SHAPE), 0.06, 7)
    y = net.add("Conv", [x, net.weights(codes(4, 6, 3, 3), np.float32(0.002))])
    a, b = net.pair(y, 0.1), net.pair(net.add("Relu", [y]), 0.05, -128)
    check(net.to_bytes([a, b, y]), pictures(*SHAPE))


@pytest.mark.parametrize("opset", range(10, 24))
def test_every_opset(opset: int) -> None:
    net = OnnxWriter(opset)
    x = net.pair(net.input("x", SHAPE), 0.06, 7)
    kernel = net.weights(codes(4, 6, 3, 3), np.float32(0.002), axis=0)
    y = net.add("Conv", [x, kernel])
    if opset < 11:
        y = net.add("Clip", [y], min=0.0, max=6.0)
    else:
        y = net.add("Clip", [y, net.constant(0.0, "float32"), net.constant(6.0, "float32")])
    y = net.pair(net.add("GlobalAveragePool", [net.pair(y, 0.0243, -128)]), 0.0107, -128)
    y = net.add("Softmax", [net.add("Flatten", [y])])
    check(net.to_bytes([net.pair(y, 1 / 256, -128)]), pictures(*SHAPE))


def test_microsofts_forms() -> None:
    net = OnnxWriter(17)
    parts = net.scale(0.05, 3)
    q = net.add("QuantizeLinear", [net.input("x", SHAPE), *parts], domain=MICROSOFT)
    x = net.add("DequantizeLinear", [q, *parts], domain=MICROSOFT)
    y = net.add("Gelu", [x], domain=MICROSOFT)
    q = net.add("QuantizeLinear", [y, *parts], domain=MICROSOFT)
    y = net.add("DequantizeLinear", [q, *parts], domain=MICROSOFT)
    check(net.to_bytes([y]), pictures(*SHAPE))


def test_a_product_with_a_function_of_itself_is_one_table() -> None:
    net = OnnxWriter()
    x = net.pair(net.input("x", SHAPE), 0.0307, 7)
    y = net.pair(net.add("Sigmoid", [x]), 1 / 256, -128)
    y = net.pair(net.add("Mul", [x, y]), 0.0193, -100)
    graph = check(net.to_bytes([y]), pictures(*SHAPE))
    assert "mul" not in operators(graph) and "lookup" in on_device(graph)
