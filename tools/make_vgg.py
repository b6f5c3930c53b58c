"""Writes VGG-16 with random weights, 138 million of them, as an int8 TensorFlow Lite network.

``python tools/make_vgg.py vgg16.tflite``: a network that fits no chip, to try compilers on. The
layers are those of Simonyan and Zisserman, "Very deep convolutional networks for large-scale image
recognition", 2015, configuration D; codes keep their spread from layer to layer.
"""

import argparse
from pathlib import Path

import numpy as np
from slipstick.writers.tflite import TfliteWriter
from slipstick.writers.tflite_operators import Conv2D, FullyConnected, MaxPool2D, Reshape

BLOCKS = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
"""Channels of the convolutions before each pool."""
HIDDEN, CLASSES = 4096, 1000
SIDE = 224
SPREAD = 40
"""Standard deviation of a layer's codes before its ReLU."""
WEIGHT_DEVIATION = 73.3
"""Of integers drawn evenly from -127..127."""
RELU_ZERO = -128
LARGEST_BIAS = 1000


class Vgg:
    """The network, layer behind layer; the scale of every activation is 1.

    Parameters
    ----------
    seed : int
    side : int
        Rows and columns of the image, a multiple of 32.
    """

    def __init__(self, seed: int, side: int) -> None:
        self._writer = TfliteWriter(description="VGG-16 with random weights")
        self._generator = np.random.default_rng(seed)
        self._shape: tuple[int, ...] = (1, side, side, 3)
        self._last = self._writer.tensor("image", self._shape, scale=1.0, zero_point=0)
        self.weights = 0

    def _activation(self, name: str, shape: tuple[int, ...], zero_point: int) -> str:
        self._shape = shape
        return self._writer.tensor(name, shape, scale=1.0, zero_point=zero_point)

    def _constants(self, name: str, shape: tuple[int, ...], deviation: float) -> list[str]:
        """Weights whose sums have the wanted spread, and a bias."""
        inputs = int(np.prod(shape[1:]))
        scale = SPREAD / (deviation * WEIGHT_DEVIATION * np.sqrt(inputs))
        weights = self._generator.integers(-127, 128, shape, dtype=np.int8)
        bias = self._generator.integers(-LARGEST_BIAS, LARGEST_BIAS + 1, shape[0], dtype=np.int32)
        self.weights += weights.size
        return [
            self._writer.tensor(f"{name}/weights", shape, scale=scale, data=weights),
            self._writer.tensor(f"{name}/bias", shape[:1], "int32", scale=scale, data=bias),
        ]

    def _deviation(self) -> float:
        """What the next layer's inputs deviate by: an image's, or the upper half of a bell."""
        return 74.0 if self._last == "image" else SPREAD * 0.7

    def convolution(self, outputs: int) -> None:
        """3x3, with ReLU."""
        name = f"convolution_{self.weights}"
        constants = self._constants(name, (outputs, 3, 3, self._shape[3]), self._deviation())
        result = self._activation(name, (*self._shape[:3], outputs), RELU_ZERO)
        self._writer.add(Conv2D(activation="RELU"), [self._last, *constants], [result])
        self._last = result

    def pool(self) -> None:
        """The largest of 2x2."""
        _, height, width, channels = self._shape
        name = f"pool_{self.weights}"
        result = self._activation(name, (1, height // 2, width // 2, channels), RELU_ZERO)
        self._writer.add(MaxPool2D(window=(2, 2), stride=(2, 2)), [self._last], [result])
        self._last = result

    def flatten(self) -> None:
        """All of a picture as one row."""
        shape = (1, int(np.prod(self._shape)))
        result = self._activation("flat", shape, RELU_ZERO)
        self._writer.add(Reshape(shape=shape), [self._last], [result])
        self._last = result

    def fully_connected(self, outputs: int, activation: str) -> None:
        """Every input to every output."""
        name = f"fully_connected_{self.weights}"
        constants = self._constants(name, (outputs, self._shape[1]), self._deviation())
        zero_point = RELU_ZERO if activation == "RELU" else 0
        result = self._activation(name, (1, outputs), zero_point)
        self._writer.add(FullyConnected(activation=activation), [self._last, *constants], [result])
        self._last = result

    def to_bytes(self) -> bytes:
        """The file."""
        return self._writer.to_bytes(["image"], [self._last])


def make(seed: int = 1, side: int = SIDE) -> Vgg:
    """All 16 layers with weights."""
    network = Vgg(seed, side)
    for block in BLOCKS:
        for channels in block:
            network.convolution(channels)
        network.pool()
    network.flatten()
    for outputs, activation in ((HIDDEN, "RELU"), (HIDDEN, "RELU"), (CLASSES, "NONE")):
        network.fully_connected(outputs, activation)
    return network


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description="Writes VGG-16 with random weights, as int8 TensorFlow Lite."
    )
    parser.add_argument("path", type=Path, help="where to write the .tflite file")
    parser.add_argument("--seed", type=int, default=1, help="of the weights")
    parser.add_argument("--side", type=int, default=SIDE, help="of the image, a multiple of 32")
    arguments = parser.parse_args()
    if arguments.side < 32 or arguments.side % 32:
        parser.error(f"--side must be a multiple of 32, not {arguments.side}")
    network = make(arguments.seed, arguments.side)
    data = network.to_bytes()
    arguments.path.write_bytes(data)
    print(f"{arguments.path}: {network.weights:,} weights, {len(data):,} bytes")


if __name__ == "__main__":
    main()
