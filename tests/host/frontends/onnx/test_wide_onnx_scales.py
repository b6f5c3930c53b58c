"""Scales of any size in ONNX files: what is accepted is onnxruntime's, the rest is refused."""

import zlib

import numpy as np
import pytest
import wide_onnx_scales
from onnx_checks import check
from onnx_writer import MICROSOFT, OnnxWriter
from onnxruntime.capi.onnxruntime_pybind11_state import RuntimeException
from slipstick.errors import UnsupportedError
from slipstick.frontends.onnx import load_onnx_bytes

NETWORKS = 60


@pytest.mark.parametrize("name", wide_onnx_scales.CASES)
def test_what_is_accepted_is_onnxruntime(name: str) -> None:
    accepted = 0
    for number in range(NETWORKS):
        rng = np.random.default_rng([number, zlib.crc32(name.encode())])
        data, codes = wide_onnx_scales.CASES[name](rng)
        try:
            check(data, codes, most=0)
        except UnsupportedError:
            continue
        except RuntimeException as error:
            # onnxruntime has fewer factors for one of its kernels
            assert "out of computation range" in str(error)
            continue
        accepted += 1
    assert accepted > NETWORKS // 3


def _network(operator: str, scales: tuple[float, ...]) -> bytes:
    net = OnnxWriter()
    x = net.input("x", (1, 2, 3, 4), "int8")
    first, second, last = (net.scale(scale, 0) for scale in scales)
    if operator == "QLinearConv":
        kernel = [net.constant(np.ones((2, 2, 1, 1), np.int8)), *second]
        y = net.add(operator, [x, *first, *kernel, *last], "y")
    elif operator == "QLinearAveragePool":
        y = net.add(operator, [x, *first, *last], "y", MICROSOFT, kernel_shape=[2, 2])
    else:
        turned = net.add("MaxPool", [x], kernel_shape=[1, 1])
        y = net.add(operator, [x, *first, turned, *second, *last], "y", MICROSOFT)
    return net.to_bytes([y], "int8")


@pytest.mark.parametrize(
    ("operator", "scales", "message"),
    [
        (
            "QLinearConv",
            (1e30, 1e30, 1.0),
            r"\(conv2d\): scales 1e[+]30 of .* make results up to inf output scales",
        ),
        (
            "QLinearAdd",
            (1e4, 1.0, 1.0),
            r"\(add\): scales 10000 of 'x.*, 1 of .* make results up to 2.55026e\+06 output scales,"
            r" which must be below 2\^20",
        ),
        (
            "QLinearMul",
            (1e3, 1e3, 1e-2),
            r"\(mul\): .* up to 6.5025e\+12 output scales, which must be below 2\^31",
        ),
        (
            "QLinearAveragePool",
            (1e9, 1.0, 1e-2),
            r"\(average_pool2d\): .* up to 2.55e\+13 output scales",
        ),
    ],
)
def test_refusals(operator: str, scales: tuple[float, ...], message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        load_onnx_bytes(_network(operator, scales))
