"""Layers that the device runs in part or not at all, between codes, as onnxruntime."""

from typing import Any

import numpy as np
import pytest
from onnx_checks import check, on_device, operators
from onnx_writer import MICROSOFT, OnnxWriter

RNG = np.random.default_rng(9)
SHAPE = (1, 6, 5, 7)


def numbers(*shape: int, scale: float = 1.0) -> np.ndarray:
    return RNG.normal(0, scale, shape).astype(np.float32)


def codes(*shape: int, dtype: str = "int8") -> np.ndarray:
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def pictures() -> np.ndarray:
    return numbers(4, *SHAPE[1:], scale=2)


def start(opset: int = 21) -> tuple[OnnxWriter, str]:
    """A network, and its input between codes."""
    net = OnnxWriter(opset)
    return net, net.pair(net.input("x", SHAPE), 0.0613, 7)


def one(
    operator: str,
    more: tuple[Any, ...] | list[Any] = (),
    opset: int = 21,
    scale: float = 0.0517,
    **options: Any,
) -> list[str]:
    """x -> the operator with constants -> codes; returns the graph's operators."""
    net, x = start(opset)
    inputs = [x, *("" if item is None else net.constant(item) for item in more)]
    y = net.pair(net.add(operator, inputs, **options), scale, -9)
    return operators(check(net.to_bytes([y]), pictures()))


@pytest.mark.parametrize(
    ("options", "lowered"),
    [
        ({}, True),
        ({"strides": [2, 2], "pads": [1, 0, 0, 1], "output_padding": [1, 0]}, True),
        ({"strides": [2, 2], "group": 2}, True),
        ({"strides": [3, 2], "dilations": [1, 2]}, False),
        ({"auto_pad": "SAME_UPPER", "strides": [2, 2]}, True),
        ({"auto_pad": "SAME_LOWER", "strides": [2, 2]}, True),
        ({"output_shape": [10, 13], "strides": [2, 2]}, True),
        ({"strides": [2, 2], "dtype": "uint8", "zero_point": 119}, True),
    ],
)
def test_conv_transpose(options: dict[str, Any], lowered: bool) -> None:
    """Where the strides are equal, a convolution of the device."""
    options = dict(options)
    dtype, zero_point = options.pop("dtype", "int8"), options.pop("zero_point", 0)
    groups = options.get("group", 1)
    net, x = start()
    scale = RNG.uniform(0.001, 0.004, 8).astype(np.float32) if groups == 1 else np.float32(0.003)
    weights = net.weights(codes(6, 8 // groups, 3, 3, dtype=dtype), scale, zero_point, axis=1)
    y = net.add("ConvTranspose", [x, weights, net.constant(numbers(8))], **options)
    y = net.pair(net.add("Relu", [y]), 0.0517, -128)
    graph = check(net.to_bytes([y]), pictures())
    assert ("conv2d" in on_device(graph)) == lowered


def test_conv_transpose_of_real_numbers_and_of_one_dimension() -> None:
    net = OnnxWriter()
    x = net.pair(net.input("x", (1, 5, 9)), 0.06, 7)
    y = net.add("ConvTranspose", [x, net.constant(numbers(5, 4, 3))], strides=[2], pads=[1, 1])
    y = net.add(
        "ConvTranspose", [net.pair(y, 0.1), net.weights(codes(4, 3, 2), np.float32(0.0117))]
    )
    check(net.to_bytes([net.pair(y, 0.2131)]), numbers(4, 5, 9))


RESIZED = [
    {"mode": "linear"},
    {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
    {"mode": "linear", "coordinate_transformation_mode": "asymmetric"},
    {"mode": "linear", "coordinate_transformation_mode": "pytorch_half_pixel"},
    {"mode": "cubic"},
    {"mode": "cubic", "cubic_coeff_a": -0.5, "exclude_outside": 1},
    {"mode": "nearest", "nearest_mode": "ceil"},
    {"mode": "nearest", "coordinate_transformation_mode": "asymmetric"},
]


@pytest.mark.parametrize("options", RESIZED)
@pytest.mark.parametrize("size", [(10, 14), (3, 4), (8, 5)])
@pytest.mark.parametrize("same", [False, True])
def test_resize(options: dict[str, Any], size: tuple[int, int], same: bool) -> None:
    """Between equal scales sums lie halfway between codes often: they are onnxruntime's here."""
    net, x = start()
    empty = net.constant([], "float32")
    sizes = net.constant([1, 6, *size], "int64")
    y = net.add("Resize", [x, empty, empty, sizes], **options)
    nearest = options["mode"] == "nearest"
    same = same or nearest
    y = net.pair(y, 0.0613 if same else 0.0711, 7 if same else -3)
    graph = check(net.to_bytes([y]), pictures())
    assert nearest or "resize" in operators(graph)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("size", [(10, 14), (3, 4), (8, 5)])
def test_codes_are_mixed_as_they_are(dtype: str, size: tuple[int, int]) -> None:
    net = OnnxWriter()
    empty = net.constant([], "float32")
    sizes = net.constant([1, 6, *size], "int64")
    y = net.add("Resize", [net.input("x", SHAPE, dtype), empty, empty, sizes], mode="linear")
    parts = net.scale(0.0613, 3, dtype)
    y = net.add("QuantizeLinear", [net.add("DequantizeLinear", [y, *parts]), *parts])
    check(net.to_bytes([y], dtype), codes(4, *SHAPE[1:], dtype=dtype))


@pytest.mark.parametrize("opset", [11, 13, 18])
def test_resize_by_scales(opset: int) -> None:
    scales = np.array([1, 1, 2, 2], np.float32)
    region = np.zeros(0, np.float32)
    made = one("Resize", [region, scales], opset, scale=0.0613, mode="linear")
    assert "resize" in made


def test_upsampling_of_opset_10() -> None:
    scales = np.array([1, 1, 2, 2], np.float32)
    assert "resize" in one("Resize", [scales], 10, mode="linear")


@pytest.mark.parametrize("mode", ["reflect", "edge"])
def test_padding_by_the_picture(mode: str) -> None:
    net, x = start()
    pads = net.constant([0, 0, 1, 2, 0, 0, 2, 1], "int64")
    y = net.pair(net.add("Pad", [x, pads], mode=mode), 0.0613, 7)
    graph = check(net.to_bytes([y]), pictures())
    assert {"mirror_pad", "edge_pad"} & set(operators(graph))


@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool"])
def test_windows_with_gaps(kind: str) -> None:
    made = one(kind, opset=19, scale=0.0711, kernel_shape=[2, 3], dilations=[2, 2])
    assert {"dilated_max_pool2d", "dilated_average_pool2d"} & set(made)


@pytest.mark.parametrize("operator", ["DepthToSpace", "SpaceToDepth"])
def test_columns_first(operator: str) -> None:
    net = OnnxWriter(13)
    x = net.pair(net.input("x", (1, 8, 4, 6)), 0.06, 7)
    options = {"mode": "CRD"} if operator == "DepthToSpace" else {}
    y = net.add(operator, [x], blocksize=2, **options)
    graph = check(net.to_bytes([net.pair(y, 0.06, 7)]), numbers(4, 8, 4, 6))
    assert {"pixel_shuffle", "space_to_depth"} & set(operators(graph))


@pytest.mark.parametrize(
    "operator",
    ["ReduceSum", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp"],
)
def test_reductions(operator: str) -> None:
    axes = np.array([1, 3], np.int64)
    assert "reduce" in one(operator, [axes], opset=18, scale=1.317, keepdims=0)


def test_normalisation() -> None:
    made = one("InstanceNormalization", [1 + numbers(6, scale=0.1), numbers(6)])
    assert "layer_normalization" in made
    made = one("BatchNormalization", [numbers(6), numbers(6), numbers(6), np.abs(numbers(6)) + 1])
    assert {"mul", "add"} <= set(made)


@pytest.mark.parametrize("operator", ["Asinh", "Atan", "Sinh", "Shrink"])
def test_more_functions_are_tables(operator: str) -> None:
    assert "lookup" in one(operator)


@pytest.mark.parametrize("indices", [[3, 0, 0, 4], [[1, 0], [2, 4]]])
def test_gather_of_any_places(indices: Any) -> None:
    net, x = start()
    y = net.add("Gather", [x, net.constant(indices, "int64")], axis=2)
    graph = check(net.to_bytes([net.pair(y, 0.0613, 7)]), pictures())
    assert "gather" in operators(graph)


@pytest.mark.parametrize(
    ("operator", "numbers"), [("Expand", [1, 3, 6, 5, 7]), ("Tile", [1, 2, 1, 3])]
)
def test_copies(operator: str, numbers: list[int]) -> None:
    net, x = start()
    if operator == "Expand":
        x = net.add("Unsqueeze", [x, net.constant([1], "int64")])
    y = net.add(operator, [x, net.constant(numbers, "int64")])
    graph = check(net.to_bytes([net.pair(y, 0.0613, 7)]), pictures())
    assert operator.lower() in operators(graph)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_choice(dtype: str) -> None:
    net = OnnxWriter()
    point = 128 if dtype == "uint8" else 0
    own, other, made = (net.scale(s, point, dtype) for s in (0.0613, 0.0417, 0.0711))
    x, y = net.input("x", SHAPE, dtype), net.input("y", SHAPE, dtype)
    seen = net.constant(RNG.random((5, 7)) < 0.5)
    z = net.add("QLinearWhere", [seen, x, *own, y, *other, *made], domain=MICROSOFT)
    shape = (4, *SHAPE[1:])
    graph = check(net.to_bytes([z], dtype), codes(*shape, dtype=dtype), codes(*shape, dtype=dtype))
    assert "where" in operators(graph)


def test_choice_of_a_mask() -> None:
    net, x = start()
    y = net.add("Where", [net.constant(np.tri(7, dtype=bool)[:5]), x, net.constant(np.float32(-9))])
    y = net.pair(net.add("Softmax", [y]), 1 / 256, -128)
    y = net.add("Mean", [y, net.pair(net.add("Relu", [x]), 0.05, -128)])
    check(net.to_bytes([net.pair(y, 0.0371)]), pictures())


def test_means_and_deviations_of_normalisation() -> None:
    net = OnnxWriter(17)
    x = net.pair(net.input("x", (1, 10, 16)), 0.03)
    scale = net.constant(1 + numbers(16, scale=0.1))
    y = net.add("LayerNormalization", [x, scale], "normal", axis=-1)
    net.nodes[-1].output.extend(["mean", "factor"])
    check(net.to_bytes([net.pair(y, 0.03), "mean", "factor"]), numbers(4, 10, 16))


def test_a_scale_for_each_channel_of_an_activation() -> None:
    net, x = start()
    parts = [net.constant(RNG.uniform(0.01, 0.03, 6), "float32"), net.constant(range(6), "int8")]
    q = net.add("QuantizeLinear", [x, *parts], axis=1)
    y = net.add("Relu", [net.add("DequantizeLinear", [q, *parts], axis=1)])
    graph = check(net.to_bytes([net.pair(y, 0.02)]), pictures())
    assert {"quantize_by", "dequantize_by"} <= set(operators(graph))


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("nij,njk->nik", [(1, 4, 6), (1, 6, 5)]),
        ("nihd,njhd->nhij", [(1, 4, 2, 3), (1, 5, 2, 3)]),
        ("nihd,nihd->nh", [(1, 4, 2, 3), (1, 4, 2, 3)]),
        ("nij,kj->nik", [(1, 4, 6), (7, 6)]),
    ],
)
def test_einsum(equation: str, shapes: list[tuple[int, ...]]) -> None:
    net = OnnxWriter()
    given = [shape for shape in shapes if shape[0] == 1]
    names = [net.pair(net.input(f"x{index}", shape), 0.05) for index, shape in enumerate(given)]
    names += [net.weights(codes(*shape), np.float32(0.01)) for shape in shapes[len(given) :]]
    y = net.pair(net.add("Einsum", names, equation=equation), 0.0917)
    graph = check(net.to_bytes([y]), *(numbers(4, *shape[1:]) for shape in given))
    assert "einsum" in operators(graph)


@pytest.mark.parametrize("axis", [1, 2, 3])
def test_softmax_of_older_opsets(axis: int) -> None:
    """Of all axes from the one given on."""
    net, x = start(12)
    y = net.pair(net.add("Softmax", [x], axis=axis), 1 / 256, -128)
    check(net.to_bytes([y]), pictures())
    net = OnnxWriter(12)
    kernel = net.weights(codes(4, 6, 2, 2), np.float32(0.003))
    y = net.add("Conv", [net.pair(net.input("x", SHAPE), 0.0613, 7), kernel])
    y = net.add("LogSoftmax", [net.pair(y, 0.1)], axis=axis)
    check(net.to_bytes([net.pair(y, 0.0517, 127)]), pictures())
