"""Writes a large network with random weights as an int8 TensorFlow Lite file.

``python tools/make_network.py vgg16 vgg16.tflite`` (138 million weights), or ``resnet50`` (25
million): networks that fit no chip, to try compilers on. ``chain --side 32`` (46 thousand): one
that two small boards hold, and one does not. VGG-16 is configuration D of Simonyan and
Zisserman, "Very deep convolutional networks for large-scale image recognition", 2015. ResNet-50 is
that of He et al., "Deep residual learning for image recognition", 2015, in its version 1.5: a
stage's first stride is that of the 3x3 convolution. ``mobilenet-v3-small`` (2.5 million) is that of
Howard et al., "Searching for MobileNetV3", 2019, table 2, with sigmoids for gates: maps are
multiplied by vectors. ``efficientnet-b0`` (5.3 million) is that of Tan and Le, "EfficientNet:
Rethinking Model Scaling for Convolutional Neural Networks", 2019, table 1: SiLU is a sigmoid and a
product of two maps.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from slipstick.writers.tflite import TfliteWriter
from slipstick.writers.tflite_functions import Mul
from slipstick.writers.tflite_operators import (
    Add,
    Conv2D,
    DepthwiseConv2D,
    FullyConnected,
    HardSwish,
    Logistic,
    MaxPool2D,
    Mean,
    Operator,
    Reshape,
)

VGG_BLOCKS = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
"""Channels of the convolutions before each pool."""
VGG_HIDDEN = 4096
RESNET_BLOCKS = (3, 4, 6, 3)
"""Blocks of each stage; each stage has twice the channels of the one before."""
RESNET_WIDTH = 64
BOTTLENECK = 4
"""Channels of a block's result, for each one of its 3x3 convolution."""
MOBILENET_BLOCKS = (
    # kernel, channels inside, channels of the result, has a gate, function is a ReLU, stride
    (3, 16, 16, True, True, 2),
    (3, 72, 24, False, True, 2),
    (3, 88, 24, False, True, 1),
    (5, 96, 40, True, False, 2),
    (5, 240, 40, True, False, 1),
    (5, 240, 40, True, False, 1),
    (5, 120, 48, True, False, 1),
    (5, 144, 48, True, False, 1),
    (5, 288, 96, True, False, 2),
    (5, 576, 96, True, False, 1),
    (5, 576, 96, True, False, 1),
)
MOBILENET_STEM, MOBILENET_END, MOBILENET_HIDDEN = 16, 576, 1024
EFFICIENT_STAGES = (
    # kernel, channels inside for each one of the input, channels of the result, blocks, stride
    (3, 1, 16, 1, 1),
    (3, 6, 24, 2, 2),
    (5, 6, 40, 2, 2),
    (3, 6, 80, 3, 2),
    (5, 6, 112, 3, 1),
    (5, 6, 192, 4, 2),
    (3, 6, 320, 1, 1),
)
EFFICIENT_STEM, EFFICIENT_END = 32, 1280
SQUEEZE = 4
"""Channels of a map for each one of its squeezed vector, rounded to eight."""
CLASSES = 1000
SIDE = 224
SPREAD = 40
"""Standard deviation of a layer's codes before its ReLU."""
IMAGE_DEVIATION = 74.0
"""Standard deviation of codes drawn evenly from -128..127."""
WEIGHT_DEVIATION = 73.3
"""Standard deviation of integers drawn evenly from -127..127."""
RELU_SHARE = 0.7
"""Root mean square of the upper half of a bell, for each one of the bell."""
POOL_SHARE = 1.6
"""Root mean square of the largest of nine such values, for each one of the bell."""
RELU_ZERO = -128
LARGEST_BIAS = 1000


@dataclass(frozen=True)
class Activation:
    """A tensor between layers.

    Parameters
    ----------
    name : str
    shape : tuple of int
    scale : float
        Real value of a code's step.
    size : float
        Root mean square of the real values, about.
    zero_point : int
    """

    name: str
    shape: tuple[int, ...]
    scale: float
    size: float
    zero_point: int = RELU_ZERO


class RandomNetwork:
    """A network, layer by layer; the codes keep their spread from layer to layer.

    Parameters
    ----------
    description : str
        For the file.
    seed : int
    side : int
        Rows and columns of the image.

    Members
    -------
    image : Activation
    weights : int
        How many there are so far.
    """

    def __init__(self, description: str, seed: int, side: int) -> None:
        self._writer = TfliteWriter(description=description)
        self._generator = np.random.default_rng(seed)
        self.image = Activation("image", (1, side, side, 3), 1.0, IMAGE_DEVIATION, zero_point=0)
        self._declare(self.image)
        self.weights = 0

    def _declare(self, x: Activation) -> Activation:
        self._writer.tensor(x.name, x.shape, scale=x.scale, zero_point=x.zero_point)
        return x

    def _constants(
        self, name: str, shape: tuple[int, ...], x: Activation, result: Activation
    ) -> list[str]:
        """Weights whose sums have the wanted spread, and a bias."""
        outputs = result.shape[-1]
        inputs = int(np.prod(shape)) // outputs
        scale = SPREAD * result.scale / (x.size * WEIGHT_DEVIATION * np.sqrt(inputs))
        weights = self._generator.integers(-127, 128, shape, dtype=np.int8)
        bias = self._generator.integers(-LARGEST_BIAS, LARGEST_BIAS + 1, outputs, dtype=np.int32)
        self.weights += weights.size
        bias_scale = scale * x.scale
        return [
            self._writer.tensor(f"{name}/weights", shape, scale=scale, data=weights),
            self._writer.tensor(f"{name}/bias", (outputs,), "int32", scale=bias_scale, data=bias),
        ]

    def _weighted(
        self,
        operator: Operator,
        x: Activation,
        name: str,
        shape: tuple[int, ...],
        result: Activation,
    ) -> Activation:
        """A layer with weights."""
        constants = self._constants(name, shape, x, result)
        self._declare(result)
        self._writer.add(operator, [x.name, *constants], [result.name])
        return result

    def convolution(
        self, x: Activation, outputs: int, kernel: int = 3, stride: int = 1, *, relu: bool = True
    ) -> Activation:
        """A square kernel, with padding."""
        name = f"convolution_{self.weights}"
        _, height, width, channels = x.shape
        shape = 1, -(-height // stride), -(-width // stride), outputs
        operator = Conv2D(stride=(stride, stride), activation="RELU" if relu else "NONE")
        result = _bell(name, shape, relu)
        return self._weighted(operator, x, name, (outputs, kernel, kernel, channels), result)

    def depthwise(self, x: Activation, kernel: int, stride: int, *, relu: bool) -> Activation:
        """A square kernel per channel, with padding."""
        name = f"depthwise_{self.weights}"
        _, height, width, channels = x.shape
        shape = 1, -(-height // stride), -(-width // stride), channels
        operator = DepthwiseConv2D(stride=(stride, stride), activation="RELU" if relu else "NONE")
        result = _bell(name, shape, relu)
        return self._weighted(operator, x, name, (1, kernel, kernel, channels), result)

    def gate(self, x: Activation, inner: int, *, relu: bool = True) -> Activation:
        """Squeeze and excitation: each channel times a number that all their means decide."""
        channels = x.shape[3]
        squeezed = self.convolution(self.mean(x, keep_dimensions=True), inner, kernel=1, relu=relu)
        squeezed = squeezed if relu else self.silu(squeezed)
        name = f"convolution_{self.weights}"
        narrow = Activation(name, (1, 1, 1, channels), 1 / 16, SPREAD / 16, zero_point=0)
        weights = (channels, 1, 1, inner)
        excited = self._weighted(Conv2D(), squeezed, name, weights, narrow)
        number = Activation(f"gate_{self.weights}", excited.shape, 1 / 256, 0.5)
        self._writer.add(Logistic(), [excited.name], [self._declare(number).name])
        # sigmoids of a bell around 0 are a half, on average
        name, scale, size = f"product_{self.weights}", x.scale / 2, x.size / 2
        result = Activation(name, x.shape, scale, size, x.zero_point)
        self._writer.add(Mul(), [x.name, number.name], [self._declare(result).name])
        return result

    def hard_swish(self, x: Activation) -> Activation:
        """Applies HardSwish to a bell of both signs: nearly its upper half is left."""
        result = Activation(f"hard_swish_{x.name}", x.shape, x.scale, RELU_SHARE * x.size)
        self._writer.add(HardSwish(), [x.name], [self._declare(result).name])
        return result

    def silu(self, x: Activation) -> Activation:
        """A map of both signs times its sigmoids: nearly its upper half."""
        sigmoid = Activation(f"sigmoid_{x.name}", x.shape, 1 / 256, 0.5)
        self._writer.add(Logistic(), [x.name], [self._declare(sigmoid).name])
        result = Activation(f"silu_{x.name}", x.shape, x.scale, RELU_SHARE * x.size)
        self._writer.add(Mul(), [x.name, sigmoid.name], [self._declare(result).name])
        return result

    def fully_connected(self, x: Activation, outputs: int, *, relu: bool = True) -> Activation:
        """Every input to every output."""
        name = f"fully_connected_{self.weights}"
        operator = FullyConnected(activation="RELU" if relu else "NONE")
        result = _bell(name, (1, outputs), relu)
        return self._weighted(operator, x, name, (outputs, x.shape[1]), result)

    def pool(self, x: Activation, window: int = 2) -> Activation:
        """The largest of some places, every second row and column."""
        _, height, width, channels = x.shape
        shape = 1, -(-height // 2), -(-width // 2), channels
        size = x.size if window == 2 else POOL_SHARE * x.size / RELU_SHARE
        result = self._declare(Activation(f"pool_{self.weights}", shape, x.scale, size))
        padding = "VALID" if window == 2 else "SAME"
        operator = MaxPool2D(window=(window, window), stride=(2, 2), padding=padding)
        self._writer.add(operator, [x.name], [result.name])
        return result

    def add(self, x: Activation, y: Activation, *, relu: bool = True) -> Activation:
        """The sum; ``y`` has both signs, and without ReLU ``x`` as well."""
        size = float(np.hypot(x.size, y.size))
        name, scale = f"sum_{self.weights}", size / SPREAD
        # where x has one sign, little of the sum is below 0
        size *= RELU_SHARE if relu and x.zero_point != RELU_ZERO else 1
        zero_point = RELU_ZERO if relu else 0
        result = self._declare(Activation(name, x.shape, scale, size, zero_point))
        operator = Add(activation="RELU" if relu else "NONE")
        self._writer.add(operator, [x.name, y.name], [result.name])
        return result

    def mean(self, x: Activation, *, keep_dimensions: bool = False) -> Activation:
        """Averages all places of each channel."""
        axes = f"axes_{self.weights}"
        self._writer.tensor(axes, (2,), "int32", data=np.array([1, 2], np.int32))
        shape = (1, *((1, 1) if keep_dimensions else ()), x.shape[3])
        made = Activation(f"mean_{self.weights}", shape, x.scale, x.size, x.zero_point)
        result = self._declare(made)
        self._writer.add(Mean(keep_dimensions=keep_dimensions), [x.name, axes], [result.name])
        return result

    def flatten(self, x: Activation) -> Activation:
        """All of a picture as one row."""
        shape = 1, int(np.prod(x.shape))
        result = self._declare(Activation("flat", shape, x.scale, x.size))
        self._writer.add(Reshape(shape=shape), [x.name], [result.name])
        return result

    def to_bytes(self, result: Activation) -> bytes:
        """The file."""
        return self._writer.to_bytes([self.image.name], [result.name])


def _bell(name: str, shape: tuple[int, ...], relu: bool) -> Activation:
    """Sums of many products: a bell, or its upper half."""
    if relu:
        return Activation(name, shape, 1.0, SPREAD * RELU_SHARE)
    return Activation(name, shape, 1.0, SPREAD, zero_point=0)


@dataclass(frozen=True)
class Made:
    """A network's file, and how many weights it has."""

    data: bytes
    weights: int


def make_vgg16(seed: int = 1, side: int = SIDE) -> Made:
    """All 16 layers with weights; the side is a multiple of 32."""
    network = RandomNetwork("VGG-16 with random weights", seed, side)
    x = network.image
    for block in VGG_BLOCKS:
        for channels in block:
            x = network.convolution(x, channels)
        x = network.pool(x)
    x = network.flatten(x)
    for _ in range(2):
        x = network.fully_connected(x, VGG_HIDDEN)
    x = network.fully_connected(x, CLASSES, relu=False)
    return Made(network.to_bytes(x), network.weights)


def make_resnet50(seed: int = 1, side: int = SIDE, width: int = RESNET_WIDTH) -> Made:
    """All 54 layers with weights; ``width``: channels of the first one."""
    network = RandomNetwork("ResNet-50 with random weights", seed, side)
    x = network.pool(network.convolution(network.image, width, kernel=7, stride=2), window=3)
    for stage, blocks in enumerate(RESNET_BLOCKS):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            x = _bottleneck(network, x, width << stage, stride, projects=not block)
    x = network.fully_connected(network.mean(x), CLASSES, relu=False)
    return Made(network.to_bytes(x), network.weights)


def _bottleneck(
    network: RandomNetwork, x: Activation, channels: int, stride: int, *, projects: bool
) -> Activation:
    """1x1, 3x3 and 1x1, and a shortcut around them: a 1x1 convolution, or nothing."""
    wide = BOTTLENECK * channels
    shortcut = x
    if projects:
        shortcut = network.convolution(x, wide, kernel=1, stride=stride, relu=False)
    inner = network.convolution(x, channels, kernel=1)
    inner = network.convolution(inner, channels, stride=stride)
    return network.add(shortcut, network.convolution(inner, wide, kernel=1, relu=False))


def make_mobilenet_v3_small(
    seed: int = 1, side: int = SIDE, blocks: int = len(MOBILENET_BLOCKS)
) -> Made:
    """The first ``blocks`` of 11 blocks, and the layers around them."""
    network = RandomNetwork("MobileNetV3-small with random weights", seed, side)
    x = network.convolution(network.image, MOBILENET_STEM, stride=2, relu=False)
    x = network.hard_swish(x)
    for kernel, inner, outputs, has_gate, relu, stride in MOBILENET_BLOCKS[:blocks]:
        shortcut = x
        x = network.convolution(x, inner, kernel=1, relu=relu)
        x = x if relu else network.hard_swish(x)
        x = network.depthwise(x, kernel, stride, relu=relu)
        x = x if relu else network.hard_swish(x)
        x = network.gate(x, _squeezed(inner)) if has_gate else x
        x = network.convolution(x, outputs, kernel=1, relu=False)
        if shortcut.shape == x.shape:
            x = network.add(shortcut, x, relu=False)
    x = network.hard_swish(network.convolution(x, MOBILENET_END, kernel=1, relu=False))
    x = network.mean(x, keep_dimensions=True)
    x = network.hard_swish(network.convolution(x, MOBILENET_HIDDEN, kernel=1, relu=False))
    x = network.fully_connected(network.flatten(x), CLASSES, relu=False)
    return Made(network.to_bytes(x), network.weights)


def make_efficientnet_b0(
    seed: int = 1, side: int = SIDE, stages: int = len(EFFICIENT_STAGES)
) -> Made:
    """The first ``stages`` of 7 stages, and the layers around them."""
    network = RandomNetwork("EfficientNet-B0 with random weights", seed, side)
    x = network.convolution(network.image, EFFICIENT_STEM, stride=2, relu=False)
    x = network.silu(x)
    for kernel, factor, outputs, blocks, first_stride in EFFICIENT_STAGES[:stages]:
        for block in range(blocks):
            shortcut, channels = x, x.shape[3]
            if factor > 1:
                x = network.convolution(x, factor * channels, kernel=1, relu=False)
                x = network.silu(x)
            x = network.depthwise(x, kernel, 1 if block else first_stride, relu=False)
            x = network.gate(network.silu(x), channels // SQUEEZE, relu=False)
            x = network.convolution(x, outputs, kernel=1, relu=False)
            if shortcut.shape == x.shape:
                x = network.add(shortcut, x, relu=False)
    x = network.silu(network.convolution(x, EFFICIENT_END, kernel=1, relu=False))
    x = network.fully_connected(network.mean(x), CLASSES, relu=False)
    return Made(network.to_bytes(x), network.weights)


def _squeezed(channels: int) -> int:
    """A quarter, rounded to a multiple of eight, but not by more than a tenth downwards."""
    rounded = max(8, (channels // SQUEEZE + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * channels / SQUEEZE else rounded


def make_chain(seed: int = 1, side: int = 32) -> Made:
    """Five convolutions, one after the other, and a layer of ten classes."""
    network = RandomNetwork("a chain of convolutions with random weights", seed, side)
    x = network.convolution(network.image, 16, stride=2)
    x = network.convolution(x, 32, stride=2)
    x = network.convolution(network.convolution(x, 32), 48)
    x = network.convolution(network.pool(x), 40)
    x = network.fully_connected(network.mean(x), 10, relu=False)
    return Made(network.to_bytes(x), network.weights)


NETWORKS: dict[str, Callable[[int, int], Made]] = {
    "vgg16": make_vgg16,
    "resnet50": make_resnet50,
    "mobilenet-v3-small": make_mobilenet_v3_small,
    "efficientnet-b0": make_efficientnet_b0,
    "chain": make_chain,
}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description="Writes a large network with random weights, as int8 TensorFlow Lite."
    )
    parser.add_argument("network", choices=NETWORKS)
    parser.add_argument("path", type=Path, help="where to write the .tflite file")
    parser.add_argument("--seed", type=int, default=1, help="of the weights")
    parser.add_argument("--side", type=int, default=SIDE, help="of the image, a multiple of 32")
    arguments = parser.parse_args()
    if arguments.side < 32 or arguments.side % 32:
        parser.error(f"--side must be a multiple of 32, not {arguments.side}")
    made = NETWORKS[arguments.network](arguments.seed, arguments.side)
    arguments.path.write_bytes(made.data)
    print(f"{arguments.path}: {made.weights:,} weights, {len(made.data):,} bytes")


if __name__ == "__main__":
    main()
