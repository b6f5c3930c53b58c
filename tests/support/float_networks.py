"""Small float ONNX networks of the usual kinds, random weights, for onnxruntime to quantise."""

from collections.abc import Callable, Mapping

import numpy as np
from onnx_writer import OnnxWriter

OPSET = 17


class FloatNetwork(OnnxWriter):
    """A float network; its input is ``x``."""

    def __init__(self) -> None:
        super().__init__(OPSET)
        self._rng = np.random.default_rng(12)

    def numbers(self, *shape: int, scale: float = 0.0) -> str:
        """A constant of random numbers; as weights, by default, of sums that stay as large."""
        width = float(np.prod(shape[1:])) if len(shape) > 1 else 1.0
        values = self._rng.normal(0, scale or width**-0.5, shape)
        return self.constant(values.astype(np.float32))

    def list(self, *values: int) -> str:
        """A constant of whole numbers."""
        return self.constant(values, "int64")

    def conv(
        self, x: str, inputs: int, outputs: int, size: int = 3, act: str = "Relu", **options: int
    ) -> str:
        """A convolution that keeps the sides, with a bias and a function."""
        stride, group = options.get("stride", 1), options.get("group", 1)
        kernel = self.numbers(outputs, inputs // group, size, size)
        pads, strides = [(size - 1) // 2] * 4, [stride, stride]
        bias = self.numbers(outputs, scale=0.1)
        y = self.add("Conv", [x, kernel, bias], pads=pads, strides=strides, group=group)
        if act == "Swish":
            return self.add("Mul", [y, self.add("Sigmoid", [y])])
        if act == "Clip":
            ends = [self.constant(end, "float32") for end in (0, 6)]
            return self.add("Clip", [y, *ends])
        return self.add(act, [y]) if act else y

    def dense(self, x: str, inputs: int, outputs: int) -> str:
        """A fully connected layer."""
        weights = self.numbers(outputs, inputs)
        return self.add("Gemm", [x, weights, self.numbers(outputs)], transB=1)


def squeeze_and_excite() -> bytes:
    """Inverted bottleneck with a gate for each channel, as in MobileNetV3."""
    net = FloatNetwork()
    x = net.conv(net.input("x", ("N", 3, 16, 16)), 3, 8, act="HardSwish", stride=2)
    y = net.conv(net.conv(x, 8, 16, 1), 16, 16, act="HardSwish", group=16)
    gate = net.conv(net.add("GlobalAveragePool", [y]), 16, 4, 1)
    y = net.add("Mul", [y, net.conv(gate, 4, 16, 1, act="HardSigmoid")])
    y = net.add("Add", [x, net.conv(y, 16, 8, 1, act="")])
    y = net.add("Flatten", [net.add("GlobalAveragePool", [y])])
    return net.to_bytes([net.add("Softmax", [net.dense(y, 8, 5)], axis=1)])


def segmentation(up: str) -> bytes:
    """Down, up again and joined with what was there, as in U-Net; a class a pixel."""
    net = FloatNetwork()
    x = net.conv(net.input("x", (1, 3, 16, 16)), 3, 8)
    low = net.add("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
    low = net.conv(low, 8, 16)
    if up == "transposed":
        weights = [net.numbers(16, 8, 2, 2), net.numbers(8)]
        low = net.add("ConvTranspose", [low, *weights], strides=[2, 2])
    else:
        scales = [net.constant([], "float32"), net.constant([1, 1, 2, 2], "float32")]
        low = net.conv(net.add("Resize", [low, *scales], mode=up), 16, 8)
    y = net.conv(net.conv(net.add("Concat", [x, low], axis=1), 16, 8), 8, 4, 1, act="")
    return net.to_bytes([net.add("ArgMax", [y], axis=1)], "int64")


def detection() -> bytes:
    """Split and joined channels, a pyramid of pools, boxes in rows, as in YOLO."""
    net = FloatNetwork()
    x = net.conv(net.input("x", (1, 3, 16, 16)), 3, 8, act="Swish", stride=2)
    net.add("Split", [x, net.list(4, 4)], "left", axis=1)
    net.nodes[-1].output.append("right")
    parts = ["left", "right", net.conv("right", 4, 4, act="Swish")]
    x = net.conv(net.add("Concat", parts, axis=1), 12, 8, 1, act="LeakyRelu")
    pools = [x]
    for _ in range(3):
        pools.append(net.add("MaxPool", [pools[-1]], kernel_shape=[5, 5], pads=[2] * 4))
    x = net.conv(net.add("Concat", pools, axis=1), 32, 8, 1, act="Swish")
    y = net.add("Reshape", [net.conv(x, 8, 14, 1, act=""), net.list(1, 2, 7, 64)])
    y = net.add("Sigmoid", [net.add("Transpose", [y], perm=[0, 1, 3, 2])])
    return net.to_bytes([net.add("Reshape", [y, net.list(1, -1, 7)])])


def super_resolution() -> bytes:
    """Channels become pixels, as PyTorch's PixelShuffle has it."""
    net = FloatNetwork()
    x = net.conv(net.input("x", ("N", 1, 8, 8)), 1, 8, 5, act="Tanh")
    y = net.add("DepthToSpace", [net.conv(x, 8, 4, act="")], blocksize=2, mode="CRD")
    return net.to_bytes([y])


def residual() -> bytes:
    """Batch normalisation, PReLU and a shortcut of pooled pixels."""
    net = FloatNetwork()
    x = net.conv(net.input("x", ("N", 3, 12, 12)), 3, 8, act="")
    ones = net.constant(np.linspace(0.5, 1.5, 8, dtype=np.float32))
    x = net.add("BatchNormalization", [x, ones, net.numbers(8), net.numbers(8), ones])
    x = net.add("PRelu", [x, net.constant(np.full((8, 1, 1), 0.2, np.float32))])
    deep = net.conv(net.conv(x, 8, 8, stride=2), 8, 8, act="")
    pooled = net.add("AveragePool", [x], kernel_shape=[2, 2], strides=[2, 2])
    y = net.add("Relu", [net.add("Add", [deep, net.conv(pooled, 8, 8, 1, act="")])])
    y = net.add("ReduceMean", [y], axes=[2, 3], keepdims=0)
    y = net.add("Add", [net.add("MatMul", [y, net.numbers(8, 5)]), net.numbers(5)])
    return net.to_bytes([net.add("LogSoftmax", [y], axis=-1)])


def keywords() -> bytes:
    """Sound as a picture of one channel, in depthwise separable convolutions."""
    net = FloatNetwork()
    x = net.add("Reshape", [net.input("x", ("N", 1, 490)), net.list(-1, 1, 49, 10)])
    x = net.conv(x, 1, 8, act="Clip", stride=2)
    x = net.conv(net.conv(x, 8, 8, group=8), 8, 8, 1)
    x = net.add("AveragePool", [x], kernel_shape=[25, 5])
    return net.to_bytes([net.dense(net.add("Squeeze", [x, net.list(2, 3)]), 8, 4)])


def signals() -> bytes:
    """One dimension, with dilations."""
    net = FloatNetwork()
    x = net.add("Conv", [net.input("x", ("N", 4, 64)), net.numbers(8, 4, 5)], strides=[2])
    x = net.add("MaxPool", [net.add("Relu", [x])], kernel_shape=[2], strides=[2])
    x = net.add("Conv", [x, net.numbers(8, 1, 3), net.numbers(8)], group=8, dilations=[2])
    x = net.add("Flatten", [net.add("GlobalAveragePool", [net.add("Relu", [x])])])
    return net.to_bytes([net.dense(x, 8, 4)])


NETWORKS: Mapping[str, tuple[Callable[[], bytes], tuple[int, ...]]] = {
    "squeeze and excite": (squeeze_and_excite, (3, 16, 16)),
    "segmentation, transposed": (lambda: segmentation("transposed"), (3, 16, 16)),
    "segmentation, linear": (lambda: segmentation("linear"), (3, 16, 16)),
    "segmentation, nearest": (lambda: segmentation("nearest"), (3, 16, 16)),
    "detection": (detection, (3, 16, 16)),
    "super-resolution": (super_resolution, (1, 8, 8)),
    "residual": (residual, (3, 12, 12)),
    "keywords": (keywords, (1, 490)),
    "signals": (signals, (4, 64)),
}
"""What makes each, and the shape of its input without the batch."""
