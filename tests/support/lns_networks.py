"""Random networks of logarithmic codes as ONNX files, for tests of the host."""

from typing import Any

import numpy as np
from onnx_writer import OnnxWriter
from slipstick_rtl.numbers.lns.array_arithmetic import ArrayArithmetic
from slipstick_rtl.numbers.lns.formats import Lns

FORMATS = ("lns1+3+4", "lns1+4+3", "lns1+3+2", "lns1+2+2")


class LnsWriter(OnnxWriter):
    """Networks whose tensors have scales that suit random weights.

    Parameters
    ----------
    name : str
        Of the format.
    seed : int
    """

    def __init__(self, name: str, seed: int = 0) -> None:
        super().__init__(21)
        self.arithmetic = ArrayArithmetic(Lns.parse(name))
        self.rng = np.random.default_rng(seed)
        lns = self.arithmetic.lns
        self.bits = {"integer_bits": lns.integer_bits, "fraction_bits": lns.fraction_bits}
        self.largest = 2.0 ** (lns.largest_code / (1 << lns.fraction_bits))

    def log(self, kind: str, inputs: list[str], **options: Any) -> str:
        """A LogQuantizeLinear or LogDequantizeLinear."""
        return self.add(kind, inputs, domain="slipstick", **{**self.bits, **options})

    def coded(self, x: str, top: float) -> str:
        """As codes of which the largest stands for ``top``, and back."""
        scale = self.constant(top / self.largest, "float32")
        return self.log("LogDequantizeLinear", [self.log("LogQuantizeLinear", [x, scale]), scale])

    def coded_weights(self, *shape: int, axis: int = 0) -> str:
        """Random weights with a scale a channel, a tenth of them zero, for sums of about 1."""
        most = self.arithmetic.lns.largest_code
        codes = self.rng.integers(-most, most + 1, shape, dtype=np.int8)
        codes[self.rng.random(shape) < 0.1] = 0
        lanes = np.prod(shape) / shape[axis]
        scale = self.rng.uniform(1, 4, shape[axis]) / self.largest / np.sqrt(lanes)
        parts = [self.constant(codes), self.constant(scale, "float32")]
        return self.log("LogDequantizeLinear", parts, axis=axis)

    def bias(self, outputs: int) -> str:
        """Random real numbers."""
        return self.constant(self.rng.normal(0, 0.2, outputs), "float32")

    def conv(self, x: str, filters: int, channels: int, kernel: int, **options: Any) -> str:
        """A convolution and its codes."""
        weights = self.coded_weights(filters, channels, kernel, kernel)
        return self.coded(self.add("Conv", [x, weights, self.bias(filters)], **options), 2.0)


def every_layer(name: str, seed: int = 0) -> bytes:
    """A network, of 1 x 3 x 11 x 9 numbers, of all that a logarithmic array runs."""
    net = LnsWriter(name, seed)
    x = net.coded(net.input("input", ("N", 3, 11, 9)), 1.0)
    first = net.coded(
        net.add(
            "Relu",
            [net.add("Conv", [x, net.coded_weights(12, 3, 3, 3), net.bias(12)], pads=[1] * 4)],
        ),
        2.0,
    )
    strided = net.conv(first, 8, 12, 3, strides=[2, 1], pads=[1, 2, 1, 2], dilations=[1, 2])
    grouped = net.conv(first, 8, 6, 1, group=2, strides=[2, 1])
    summed = net.coded(net.add("Relu", [net.add("Add", [strided, grouped])]), 3.0)
    apart = net.coded(net.add("Sub", [strided, grouped]), 1.5)
    deep = net.conv(summed, 8, 1, 3, group=8, pads=[1] * 4)
    clipped = net.add("Clip", [deep, net.constant(-0.3, "float32"), net.constant(0.8, "float32")])
    pooled = net.add(
        "MaxPool",
        [net.coded(clipped, 1.0)],
        kernel_shape=[3, 3],
        strides=[1, 2],
        pads=[1, 1, 1, 1],
    )
    window: dict[str, Any] = {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 1, 0, 1]}
    mean = net.coded(net.add("AveragePool", [apart], **window), 1.0)
    counted = net.coded(net.add("AveragePool", [apart], count_include_pad=1, **window), 1.0)
    both = net.coded(net.add("Add", [mean, counted]), 2.0)
    curved = net.coded(net.add("Sigmoid", [pooled]), 1.0)
    everywhere = net.coded(net.add("GlobalAveragePool", [curved]), 1.0)
    rows = net.add("Flatten", [both])
    size = 8 * 3 * 5
    product = net.add("Gemm", [rows, net.coded_weights(10, size), net.bias(10)], transB=1)
    wide = net.coded(product, 2.0)
    other = net.add("MatMul", [net.add("Flatten", [everywhere]), net.coded_weights(8, 10, axis=1)])
    total = net.coded(net.add("Add", [wide, net.coded(other, 2.0)]), 4.0)
    return net.to_bytes([net.add("Softmax", [total], name="output")])
