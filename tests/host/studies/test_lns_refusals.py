"""Logarithmic networks that are refused: one sentence that names what is wrong."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from lns_networks import LnsWriter
from slipstick.cli import app
from slipstick.compiler import compile_graph
from slipstick.errors import ModelError, SlipstickError, UnsupportedError
from slipstick.frontends.onnx import load_onnx_bytes
from slipstick.frontends.semantics import with_semantics
from slipstick.loading import compile_file
from slipstick_rtl.config import Configuration

SHAPE = (1, 2, 5, 5)


def plain(net: LnsWriter, x: str) -> str:
    return net.conv(net.coded(x, 1.0), 4, 2, 3)


def int8_beside(net: LnsWriter, x: str) -> str:
    return net.pair(plain(net, x), 0.1)


def int8_weights(net: LnsWriter, x: str) -> str:
    weights = net.weights(np.ones((4, 2, 3, 3), np.int8), 0.1)
    return net.coded(net.add("Conv", [net.coded(x, 1.0), weights]), 1.0)


def two_formats(net: LnsWriter, x: str) -> str:
    coded = plain(net, x)
    net.bits = {"integer_bits": 3, "fraction_bits": 3}
    return net.coded(coded, 1.0)


def no_format(net: LnsWriter, x: str) -> str:
    net.bits = {"integer_bits": 7, "fraction_bits": 6}
    return plain(net, x)


def no_bits(net: LnsWriter, x: str) -> str:
    net.bits = {"integer_bits": 3}
    return plain(net, x)


def beyond_codes(net: LnsWriter, x: str) -> str:
    parts = [net.constant(np.full((4, 2, 3, 3), -128, np.int8)), net.constant(0.1, "float32")]
    weights = net.log("LogDequantizeLinear", parts)
    return net.coded(net.add("Conv", [net.coded(x, 1.0), weights]), 1.0)


def wide_codes(net: LnsWriter, x: str) -> str:
    parts = [net.constant(np.ones((4, 2, 3, 3), np.int32)), net.constant(0.1, "float32")]
    weights = net.log("LogDequantizeLinear", parts)
    return net.coded(net.add("Conv", [net.coded(x, 1.0), weights]), 1.0)


def few_scales(net: LnsWriter, x: str) -> str:
    parts = [net.constant(np.ones((4, 2, 3, 3), np.int8)), net.constant([0.1] * 3, "float32")]
    weights = net.log("LogDequantizeLinear", parts, axis=0)
    return net.coded(net.add("Conv", [net.coded(x, 1.0), weights]), 1.0)


def many_scales(net: LnsWriter, x: str) -> str:
    scales = net.constant([0.1, 0.2], "float32")
    return net.log("LogDequantizeLinear", [net.log("LogQuantizeLinear", [x, scales]), scales])


def coded_constant(net: LnsWriter, x: str) -> str:
    constant = net.coded(net.constant(np.ones(SHAPE), "float32"), 1.0)
    return net.add("Add", [plain(net, x), constant])


def not_codes(net: LnsWriter, x: str) -> str:
    return net.log("LogDequantizeLinear", [x, net.constant(0.1, "float32")])


def padded(net: LnsWriter, x: str) -> str:
    pads, value = net.constant([0, 0, 1, 1] * 2), net.constant(0.5, "float32")
    return net.add("Pad", [net.coded(x, 1.0), pads, value])


def shifted(net: LnsWriter, x: str) -> str:
    coded = net.log("LogQuantizeLinear", [x, net.constant(0.1, "float32")])
    return net.add("Resize", [coded, "", "", net.constant([1, 2, 9, 9])], mode="linear")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (int8_beside, "must have no int8 ones beside them, and this is QuantizeLinear"),
        (int8_weights, "must have no int8 ones beside them, and this is DequantizeLinear"),
        (two_formats, "must be those of the network's other codes, 3 and 4, not 3 and 3"),
        (no_format, "an array's logarithmic format must have at most 8 bits, not 14"),
        (no_bits, "fraction_bits must be int, not None"),
        (beyond_codes, r"must be within -127..127 with lns1\+3\+4, not -128"),
        (wide_codes, "codes input 0 .* must be int8, not int32"),
        (few_scales, "axis 0 must have 4 scales, not 3"),
        (many_scales, "a computed tensor must have 1 scale, not 2"),
        (coded_constant, "must be computed: constants are stored as codes"),
        (not_codes, "must be logarithmic codes, and is not"),
        (padded, "the value must be 0 between logarithmic codes, not 0.5"),
        (shifted, "input 0 .* must be real numbers, behind DequantizeLinear, and is codes"),
    ],
)
def test_networks_are_refused(make: Callable[[LnsWriter, str], str], message: str) -> None:
    net = LnsWriter("lns1+3+4")
    data = net.to_bytes([make(net, net.input("x", SHAPE))])
    with pytest.raises(SlipstickError, match=message):
        load_onnx_bytes(data)


def test_codes_stay_inside() -> None:
    net = LnsWriter("lns1+3+4")
    scale = net.constant(0.1, "float32")
    x = net.input("x", SHAPE, "int8")
    data = net.to_bytes([net.log("LogDequantizeLinear", [x, scale])])
    with pytest.raises(UnsupportedError, match="input 'x' of a logarithmic network must be float"):
        load_onnx_bytes(data)
    net = LnsWriter("lns1+3+4")
    codes = net.log("LogQuantizeLinear", [net.input("x", SHAPE), net.constant(0.1, "float32")])
    with pytest.raises(UnsupportedError, match="output .* of a logarithmic network must be float"):
        load_onnx_bytes(net.to_bytes([codes], "int8"))


def test_sums_that_pass_32_bits() -> None:
    net = LnsWriter("lns1+3+4")
    x = net.coded(net.input("x", (1, 3000)), 1.0)
    codes = [net.constant(np.full((2, 3000), 127, np.int8)), net.constant(0.1, "float32")]
    weights = net.log("LogDequantizeLinear", codes)
    product = net.coded(net.add("Gemm", [x, weights], transB=1), 1.0)
    with pytest.raises(SlipstickError, match=r"must be below 2\^31, not 2875392000: its weights"):
        load_onnx_bytes(net.to_bytes([product]))


def test_formats_of_targets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net = LnsWriter("lns1+3+4")
    logarithmic, linear = tmp_path / "logs.onnx", tmp_path / "codes.onnx"
    logarithmic.write_bytes(net.to_bytes([plain(net, net.input("x", SHAPE))]))
    coded = LnsWriter("lns1+3+4")
    linear.write_bytes(coded.to_bytes([coded.pair(coded.input("x", SHAPE), 0.1)]))
    compile_file(logarithmic, "sim-lns8")
    for arguments, sentence in (
        ([str(logarithmic)], "holds codes of lns1+3+4, and the target computes with int8"),
        (
            [str(logarithmic), "--target", "sim-lns6"],
            "holds codes of lns1+3+4, and the target computes with lns1+3+2",
        ),
        (
            [str(linear), "--target", "sim-lns8"],
            "holds codes of int8, and the target computes with lns1+3+4",
        ),
    ):
        with pytest.raises(SystemExit) as ended:
            app(["compile", *arguments])
        captured = capsys.readouterr()
        assert ended.value.code == 2 and not captured.out
        assert sentence in captured.err and captured.err.count("\n") == 1


def test_other_semantics() -> None:
    net = LnsWriter("lns1+3+4")
    graph = load_onnx_bytes(net.to_bytes([plain(net, net.input("x", SHAPE))]))
    assert with_semantics(graph, "lns1+3+4") is graph
    for semantics in ("tflm", "onnx"):
        with pytest.raises(UnsupportedError, match=r"must be lns1\+3\+4, not"):
            with_semantics(graph, semantics)
    with pytest.raises(UnsupportedError, match="semantics must be tflm or onnx, not guess"):
        compile_graph(graph.replace(semantics="guess"), Configuration())


def test_a_damaged_axis() -> None:
    net = LnsWriter("lns1+3+4")
    parts = [net.constant(np.ones((4, 2, 3, 3), np.int8)), net.constant([0.1] * 4, "float32")]
    weights = net.log("LogDequantizeLinear", parts, axis=4)
    made = net.add("Conv", [net.coded(net.input("x", SHAPE), 1.0), weights])
    with pytest.raises(ModelError, match=r"axis must be within -4\.\.3, not 4"):
        load_onnx_bytes(net.to_bytes([made]))
