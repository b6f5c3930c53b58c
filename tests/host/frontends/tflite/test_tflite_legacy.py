"""Networks of uint8 codes with weight zero points: the definition, and tflm where it can."""

from pathlib import Path
from typing import Any

import legacy_definition as definition
import numpy as np
import pytest
from slipstick import kernels
from slipstick.compiler import compile_graph
from slipstick.devices import open_device
from slipstick.errors import UnsupportedError
from slipstick.frontends.tflite import load_tflite_bytes
from slipstick.graph import Graph
from slipstick.program import Program
from slipstick.session import InferenceSession
from slipstick.verify.tflm_reference import TflmReference
from slipstick.verify.verifier import Verifier
from slipstick.writers import tflite_functions as functions
from slipstick.writers import tflite_moves as ops
from slipstick.writers import tflite_operators as first
from tflm_cases import codes, scale
from tflm_networks import SMALL, described, integers, network


def unsigned(shape: tuple[int, ...], quantization: tuple[float, int], **more: Any) -> dict:
    """A uint8 tensor."""
    return described(shape, quantization, dtype="uint8", **more)


def run(data: bytes, *inputs: np.ndarray) -> tuple[Graph, Program, list[np.ndarray]]:
    """The golden session's outputs, which must be the kernels'."""
    graph = load_tflite_bytes(data)
    values = kernels.run_graph(graph, inputs)
    program = compile_graph(graph, SMALL)
    with InferenceSession(program, open_device("model", SMALL)) as session:
        outputs = session.run(None, dict(zip(graph.inputs, inputs, strict=True)))
    for name, output in zip(graph.outputs, outputs, strict=True):
        assert output.dtype == np.uint8
        np.testing.assert_array_equal(values[name], output)
    return graph, program, outputs


def point(rng: np.random.Generator) -> int:
    return int(rng.choice([0, 255, 128, int(rng.integers(0, 256))]))


@pytest.mark.parametrize("depthwise", [False, True])
def test_convolution(depthwise: bool) -> None:
    rng = np.random.default_rng(1)
    for trial in range(25):
        kernel, (height, width) = tuple(rng.integers(1, 4, 2).tolist()), rng.integers(3, 7, 2)
        channels, multiplier = int(rng.integers(1, 4)), int(rng.integers(1, 3))
        filters = channels * multiplier if depthwise else int(rng.integers(1, 6))
        shape = (1, *kernel, filters) if depthwise else (filters, *kernel, channels)
        weights = codes(rng, shape, "uint8")
        # every third network's weights are narrow: they fit 8 bits without their zero point
        weight_zero = 128 if trial % 3 == 0 else point(rng)
        source, top = (scale(rng, -6, 0), point(rng)), point(rng)
        weight_scale = 2.0 ** rng.uniform(-9, -5)
        out_scale = source[0] * weight_scale * 150 * 150 * np.sqrt(np.prod(kernel)) / 60
        options: dict[str, Any] = {"stride": tuple(rng.integers(1, 3, 2).tolist())}
        # rows, columns, or neither of them can be read twice
        options["dilation"] = ((1, 1), (2, 1), (1, 1), (2, 2))[trial % 4]
        kind: Any = first.Conv2D
        if depthwise:
            kind, options = first.DepthwiseConv2D, options | {"multiplier": multiplier}
        out = (
            1,
            *(-(-int(n) // s) for n, s in zip((height, width), options["stride"], strict=True)),
        )
        out = (*out, filters)
        bias = rng.integers(-3000, 3000, filters)
        inputs = [
            unsigned((1, int(height), int(width), channels), source),
            unsigned(shape, (weight_scale, weight_zero), data=weights),
            integers(bias) | {"scale": 1.0},
        ]
        data = network(kind(**options), inputs, [unsigned(out, (out_scale, top))])
        x = codes(rng, (2, int(height), int(width), channels), "uint8")
        graph, program, (actual,) = run(data, x)
        layer = next(node for node in graph.nodes if "conv2d" in node.operator)
        attributes = {**layer.attributes}
        scales = source, (weight_scale, weight_zero), (out_scale, top)
        if not depthwise:
            attributes.pop("multiplier", None)
        for image, value in zip(x, actual, strict=True):
            wanted = definition.convolution(image, weights, bias, scales, attributes, out)
            np.testing.assert_array_equal(value, wanted)
        places = {e.where for e in program.layers if e.operator == layer.operator}
        # a window that leaves out rows and columns could only read channels twice
        assert places == {"device"} or depthwise and options["dilation"] == (2, 2)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_average_pool(padding: str) -> None:
    rng = np.random.default_rng(2)
    for _ in range(15):
        window, stride = rng.integers(1, 5, 2).tolist(), rng.integers(1, 3, 2).tolist()
        height, width, channels = (int(size) for size in rng.integers((4, 4, 1), (9, 9, 4)))
        sides = zip((height, width), window, stride, strict=True)
        out = [-(-n // s) if padding == "SAME" else (n - w) // s + 1 for n, w, s in sides]
        same = scale(rng, -5, 0), point(rng)
        operator = first.AveragePool2D(
            window=(window[0], window[1]), stride=(stride[0], stride[1]), padding=padding
        )
        shape = (1, height, width, channels)
        data = network(operator, [unsigned(shape, same)], [unsigned((1, *out, channels), same)])
        x = codes(rng, (2, *shape[1:]), "uint8")
        graph, program, (actual,) = run(data, x)
        pool = next(node for node in graph.nodes if node.operator == "average_pool2d")
        for image, value in zip(x, actual, strict=True):
            wanted = definition.average(image, {**pool.attributes}, (1, *out, channels))
            np.testing.assert_array_equal(value, wanted)
        assert [e.where for e in program.layers if e.operator == pool.operator] == ["device"]


def test_concatenation_rescales() -> None:
    rng = np.random.default_rng(3)
    for _ in range(15):
        source, target = (scale(rng), point(rng)), (scale(rng), point(rng))
        shape = (1, 3, 2, 4)
        inputs = [unsigned(shape, source), unsigned(shape, target)]
        outputs = [unsigned((1, 3, 2, 8), target)]
        data = network(ops.Concatenation(axis=3), inputs, outputs)
        a, b = (codes(rng, (2, *shape[1:]), "uint8") for _ in range(2))
        (actual,) = run(data, a, b)[2]
        wanted = np.concatenate([definition.rescaled(a, source, target), b], axis=3)
        np.testing.assert_array_equal(actual, wanted)


@pytest.mark.parametrize("centers", [False, True])
def test_resize_bilinear(centers: bool) -> None:
    rng = np.random.default_rng(5)
    for _ in range(10):
        shape = (1, *(int(size) for size in rng.integers(1, 7, 3)))
        size = (int(rng.integers(1, 12)), int(rng.integers(1, 12)))
        same = scale(rng), point(rng)
        operator = ops.ResizeBilinear(half_pixel_centers=centers)
        outputs = [unsigned((1, *size, shape[3]), same)]
        data = network(operator, [unsigned(shape, same), integers(size)], outputs)
        x = codes(rng, (2, *shape[1:]), "uint8")
        for image, value in zip(x, run(data, x)[2][0], strict=True):
            wanted = definition.bilinear(image, size, centers=centers)
            np.testing.assert_array_equal(value, wanted)


CASES: dict[str, tuple[Any, int, tuple[float, int] | None]] = {
    "add": (first.Add(), 2, None),
    "sub": (functions.Sub(), 2, None),
    "mul": (functions.Mul(), 2, None),
    "relu": (first.Relu(), 1, None),
    "leaky_relu": (functions.LeakyRelu(alpha=0.1), 1, None),
    "softmax": (first.Softmax(), 1, (1 / 256, 0)),
    "logistic": (first.Logistic(), 1, (1 / 256, 0)),
    "tanh": (first.Tanh(), 1, (1 / 128, 128)),
}


@pytest.mark.parametrize("name", CASES)
def test_as_int8_in_tflm(name: str) -> None:
    """The same network, its codes 128 lower, on tflm."""
    rng = np.random.default_rng(4)
    operator, count, fixed = CASES[name]
    shape = (1, 2, 3, 5)
    for _ in range(10):
        sources = [(scale(rng, -6, -1), point(rng)) for _ in range(count)]
        top = fixed or (max(s for s, _ in sources) * scale(rng, -1, 2), point(rng))
        made = []
        for build, offset in ((unsigned, 0), (described, 128)):
            inputs = [build(shape, (s, zero - offset)) for s, zero in sources]
            made.append(network(operator, inputs, [build(shape, (top[0], top[1] - offset))]))
        images = [codes(rng, (2, *shape[1:]), "uint8") for _ in range(count)]
        lowered = [(image ^ 0x80).view(np.int8) for image in images]
        (wanted,) = TflmReference(made[1]).run(*lowered)
        (actual,) = run(made[0], *images)[2]
        np.testing.assert_array_equal((actual ^ 0x80).view(np.int8), wanted)


def test_verification_goes_by_the_definition(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    weights = unsigned((4, 3, 3, 2), (0.01, 99), data=codes(rng, (4, 3, 3, 2), "uint8"))
    tensors = [unsigned((1, 5, 5, 2), (0.1, 7)), weights]
    path = tmp_path / "legacy.tflite"
    path.write_bytes(network(first.Conv2D(), tensors, [unsigned((1, 5, 5, 4), (0.3, 120))]))
    verifier = Verifier(path, SMALL)
    feeds = verifier.random_inputs(3, 0)
    checked = verifier.check(feeds, lambda *_: lambda _: None, rtl=False)
    assert sum(entry.mismatches for entry in checked) == 0
    assert all(entry.reference is not None for entry in checked if entry.operator == "conv2d")


def test_mixed_types_are_refused() -> None:
    tensors = [unsigned((1, 4), (1.0, 3)), described((1, 4), (1.0, 3))]
    data = network(first.Add(), tensors, [unsigned((1, 4), (1.0, 3))])
    with pytest.raises(UnsupportedError, match="ADD .*input 1 'x1' must be uint8, and is int8"):
        load_tflite_bytes(data)
