"""Layer lists in SCALE-Sim's format, and each of their layers as a network of its own."""

import csv
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import InputError
from ..graph import Graph, Node, Quantization, Tensor

_PRODUCT_HEADER = ["M", "N", "K"]
_SIZES = ("height", "width", "kernel height", "kernel width", "channels", "filters", "stride")
_ACTIVATIONS = Quantization(np.array([0.05]), np.array([3], np.int64))


@dataclass(frozen=True, kw_only=True)
class TopologyLayer:
    """A convolution without padding, or a product of matrices as one with a kernel of 1 x 1.

    Parameters
    ----------
    name : str
    height, width : int
        Of the input, in pixels.
    kernel : (y, x)
    channels, filters : int
        Of the input, and of the output.
    stride : int
        In y and x.

    Raises
    ------
    InputError
        If a size is below 1, or the kernel larger than the input.
    """

    name: str
    height: int
    width: int
    kernel: tuple[int, int]
    channels: int
    filters: int
    stride: int = 1

    def __post_init__(self) -> None:
        sizes = (self.height, self.width, *self.kernel, self.channels, self.filters, self.stride)
        for what, size in zip(_SIZES, sizes, strict=True):
            if size < 1:
                raise InputError(f"layer {self.name}: {what} must be at least 1, not {size}")
        if self.kernel[0] > self.height or self.kernel[1] > self.width:
            raise InputError(
                f"layer {self.name}: its kernel must be within {self.height} x {self.width},"
                f" not {self.kernel[0]} x {self.kernel[1]}"
            )

    @property
    def sides(self) -> tuple[int, int]:
        """Rows and columns of the output; SCALE-Sim rounds up, so a last window may stick out."""
        sides = zip((self.height, self.width), self.kernel, strict=True)
        y, x = (-(-(side - taps) // self.stride) + 1 for side, taps in sides)
        return y, x

    @property
    def pixels(self) -> int:
        """Counts the pixels of the output."""
        return math.prod(self.sides)

    @property
    def reduction(self) -> int:
        """Products summed up for each result."""
        return math.prod(self.kernel) * self.channels

    @property
    def weight_bytes(self) -> int:
        """Counts the bytes of the layer's weights."""
        return self.reduction * self.filters

    @property
    def macs(self) -> int:
        """Multiply-accumulates."""
        return self.pixels * self.reduction * self.filters


def read_topology(path: Path) -> tuple[TopologyLayer, ...]:
    """The layers of a CSV file, in their order.

    Parameters
    ----------
    path : Path
        Its header tells convolutions (sizes of input, kernel, channels, filters, stride) from
        products of matrices (M, N, K); further columns are not read.

    Raises
    ------
    InputError
        If it has no layers, or a line is none; the message names the line.
    OSError
        If it cannot be read.
    """
    with path.open(newline="", encoding="utf-8") as file:
        lines = [[cell.strip() for cell in line] for line in csv.reader(file)]
    products = bool(lines) and lines[0][1:4] == _PRODUCT_HEADER
    layers = []
    for number, line in enumerate(lines[1:], 2):
        if any(line):
            try:
                layers.append(_product(line) if products else _convolution(line))
            except (ValueError, InputError) as error:
                raise InputError(f"{path}, line {number}: {error}") from None
    if not layers:
        raise InputError(f"{path} must hold layers, one a line below its header")
    return tuple(layers)


def _sizes(line: Sequence[str], count: int) -> list[int]:
    if len(line) <= count:
        raise ValueError(f"a layer must have a name and {count} sizes, not {','.join(line)!r}")
    return [int(cell) for cell in line[1 : count + 1]]


def _convolution(line: Sequence[str]) -> TopologyLayer:
    height, width, kernel_y, kernel_x, channels, filters, stride = _sizes(line, len(_SIZES))
    return TopologyLayer(
        name=line[0],
        height=height,
        width=width,
        kernel=(kernel_y, kernel_x),
        channels=channels,
        filters=filters,
        stride=stride,
    )


def _product(line: Sequence[str]) -> TopologyLayer:
    """M vectors of K, each times K x N: pixels in a picture as square as M lets it be."""
    vectors, filters, channels = _sizes(line, len(_PRODUCT_HEADER))
    height = next((n for n in range(math.isqrt(max(vectors, 1)), 1, -1) if vectors % n == 0), 1)
    return TopologyLayer(
        name=line[0],
        height=height,
        width=vectors // height,
        kernel=(1, 1),
        channels=channels,
        filters=filters,
    )


def layer_graph(layer: TopologyLayer, copies: int = 1) -> Graph:
    """Copies of a layer side by side, with seeded random int8 weights, as one network.

    The copies share input and weights, and each has an output of its own. The input is as large as
    the windows reach.
    """
    generator = np.random.default_rng(zlib.crc32(layer.name.encode()))
    places = zip(layer.sides, layer.kernel, strict=True)
    reached = [(side - 1) * layer.stride + taps for side, taps in places]
    shape = (layer.filters, *layer.kernel, layer.channels)
    scales = np.array([1 / (100 * math.sqrt(layer.reduction))])
    tensors = {
        "input": Tensor("input", (1, *reached, layer.channels), "int8", _ACTIVATIONS),
        "weights": Tensor(
            "weights",
            shape,
            "int8",
            Quantization(scales, np.zeros(1, np.int64)),
            generator.integers(-127, 128, shape, np.int8),
        ),
    }
    attributes = {
        "stride": (layer.stride, layer.stride),
        "dilation": (1, 1),
        "padding": (0, 0, 0, 0),
        "groups": 1,
        "activation": "none",
    }
    nodes = []
    for number in range(copies):
        output = f"output_{number}"
        tensors[output] = Tensor(output, (1, *layer.sides, layer.filters), "int8", _ACTIVATIONS)
        inputs = ("input", "weights", "")
        nodes.append(Node(f"{layer.name}_{number}", "conv2d", inputs, (output,), attributes))
    outputs = tuple(node.outputs[0] for node in nodes)
    return Graph(layer.name, ("input",), outputs, tensors, tuple(nodes))
