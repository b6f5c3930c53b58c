"""Scales of any size: what is accepted is tflm's to the last code, the rest is refused by name."""

import zlib
from collections.abc import Iterator

import numpy as np
import pytest
import wide_scales
from slipstick import kernels
from slipstick.compiler import compile_graph
from slipstick.devices import open_device
from slipstick.errors import SlipstickError, UnsupportedError
from slipstick.frontends.tflite import load_tflite_bytes
from slipstick.session import InferenceSession
from slipstick.writers import tflite_functions as functions
from slipstick.writers import tflite_operators as basic
from tflm_networks import SMALL, described, integers, network
from tflm_process import TflmProcess

NETWORKS = 60

PICTURE = (1, 4, 4, 2)
FILTERS = np.full((3, 1, 1, 2), 100, np.int8)


@pytest.fixture(scope="module")
def tflm() -> Iterator[TflmProcess]:
    with TflmProcess() as process:
        yield process


@pytest.mark.parametrize("name", wide_scales.CASES)
def test_what_is_accepted_is_the_reference(tflm: TflmProcess, name: str) -> None:
    accepted = 0
    for number in range(NETWORKS):
        rng = np.random.default_rng([number, zlib.crc32(name.encode())])
        data, inputs = wide_scales.CASES[name](rng)
        try:
            graph = load_tflite_bytes(data)
        except SlipstickError:
            continue
        accepted += 1
        (expected,) = tflm.run(data, *inputs)
        (output,) = graph.outputs
        message = f"network {number}"
        found = kernels.run_graph(graph, inputs)[output]
        np.testing.assert_array_equal(found, expected, message)
        with InferenceSession(compile_graph(graph, SMALL), open_device("model", SMALL)) as session:
            (found,) = session.run(None, dict(zip(graph.inputs, inputs, strict=True)))
        np.testing.assert_array_equal(found, expected, message)
    assert accepted > NETWORKS // 5


def _layer(source: float, weight: float, result: float, activation: str = "NONE") -> bytes:
    filters = described(FILTERS.shape, (weight, 0), data=FILTERS)
    x, y = described(PICTURE, (source, 0)), described((*PICTURE[:3], 3), (result, 0))
    return network(basic.Conv2D(activation=activation), [x, filters], [y])


def _function(operator: basic.Operator, source: float, result: float, point: int = 0) -> bytes:
    y = described((1, 256), (result, point))
    return network(operator, [described((1, 256), (source, 0))], [y])


REFUSALS = [
    (
        _layer(2.0**60, 1.0, 2.0**-45),
        r"CONV_2D .*: scales 1.15292e\+18 of 'x0', 1 of 'x1' and 2.84217e-14 of 'y0' make a"
        r" factor of 4.05648e\+31: with what it multiplies, up to 25600, it must stay below 2\^31",
    ),
    (_layer(1.0, 1.0, 2.0**-16), "make a factor of 65536: .* up to 25600"),
    (
        _layer(1e-10, 1.0, 1e-10, activation="RELU6"),
        "scale 1e-10 of 'y0' makes the code of 6, to which relu6 clamps, leave 32 bits",
    ),
    (
        _function(basic.Tanh(), 660, 1 / 128),
        r"TANH .*: scale 660 of 'x0' must be at least 3.72529e-09 and below 8",
    ),
    (_function(basic.Logistic(), 1e-9, 1 / 256, -128), "LOGISTIC .*: scale 1e-09 of 'x0' must be"),
    (
        _function(basic.Softmax(beta=1e-9), 0.1, 1 / 256, -128),
        r"scale 0.1 of 'x0', times beta 1e-09, must be above 1.49012e-08: the reference stops",
    ),
    (_function(functions.LogSoftmax(), 1e-9, 1 / 16, 127), "scale 1e-09 of 'x0', times beta 1,"),
    (
        _function(basic.HardSwish(), 1.0, 1000.0),
        "1000 of 'y0' at most 512 times it: the reference's 16 bits hold no other",
    ),
    (_function(functions.Rsqrt(), 1.0, 1e6), "make a factor of 1e-06, which must be at least"),
    (_function(basic.Quantize(), 1e9, 1e-3), "make a factor of 1e[+]12: .* up to 255"),
    (_function(functions.LeakyRelu(alpha=1e5), 1e6, 1.0), "make a factor of 1e[+]11"),
    (
        network(
            functions.Mul(),
            [described(PICTURE, (1e3, 0)), described(PICTURE, (1e3, 0))],
            [described(PICTURE, (1.0, 0))],
        ),
        "MUL .*: scales 1000 of 'x0', 1000 of 'x1' and 1 of 'y0' make .* up to 16384",
    ),
    (
        network(
            basic.Mean(),
            [described(PICTURE, (1e8, 0)), integers([1, 2])],
            [described((1, 2), (1.0, 0))],
        ),
        "MEAN .*: scales 1e[+]08 of 'x0' and 1 of 'y0' make",
    ),
]


@pytest.mark.parametrize(("data", "message"), REFUSALS)
def test_refusals(data: bytes, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        load_tflite_bytes(data)


def test_a_dead_channel_may_have_any_scale(tflm: TflmProcess) -> None:
    weights = FILTERS * np.array([1, 0, 1], np.int8).reshape(3, 1, 1, 1)
    scales = [0.01, 1e20, 0.02]
    filters = {"shape": weights.shape, "scale": scales, "axis": 0, "data": weights}
    x, y = described(PICTURE, (0.5, 3)), described((*PICTURE[:3], 3), (1.0, 0))
    data = network(basic.Conv2D(), [x, filters], [y])
    image = np.random.default_rng(1).integers(-128, 128, PICTURE).astype(np.int8)
    graph = load_tflite_bytes(data)
    (expected,) = tflm.run(data, image)
    np.testing.assert_array_equal(kernels.run_graph(graph, [image])["y0"], expected)
