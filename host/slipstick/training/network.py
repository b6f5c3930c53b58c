"""A network as training sees it: layers in an order in which they can run."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np


class Kind(StrEnum):
    """Kind of a layer's operation."""

    CONVOLUTION = "convolution"
    DEPTHWISE = "depthwise"
    ADD = "add"
    MAX_POOL = "max_pool"
    AVERAGE_POOL = "average_pool"
    FLATTEN = "flatten"


LEARNING = (Kind.CONVOLUTION, Kind.DEPTHWISE)
"""Kinds that have weights and biases."""

INPUT = "input"
"""The name of the images."""


@dataclass(frozen=True)
class Layer:
    """A layer; its output is a tensor of its name.

    Parameters
    ----------
    name : str
    kind : Kind
    inputs : tuple of str
        Names of layers before it, or ``INPUT``: one, or two to add.
    outputs : int
        Channels of a convolution's output; 0 for the other kinds.
    kernel, stride : (y, x)
    padding : (top, bottom, left, right)
    relu : bool
        Behind a convolution, depthwise convolution or addition.
    """

    name: str
    kind: Kind
    inputs: tuple[str, ...]
    outputs: int = 0
    kernel: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    relu: bool = False

    @property
    def learns(self) -> bool:
        """Tells whether it has weights and biases."""
        return self.kind in LEARNING


@dataclass(frozen=True)
class TrainingNetwork:
    """Layers in topological order; the last one's output is the logits, 1 x 1 pixels of classes.

    A layer that is fully connected is a convolution of 1 x 1 pixels behind ``FLATTEN``. An average
    is the sum of its window by the power of two at or above its count (the next layer's weights
    have the rest).

    Parameters
    ----------
    name : str
    shape : (height, width, channels)
        Of an image.
    layers : tuple of Layer

    Raises
    ------
    ValueError
        If layers have one name, read what is not before them, or do not fit one another.
    """

    name: str
    shape: tuple[int, int, int]
    layers: tuple[Layer, ...]

    def __post_init__(self) -> None:
        if not self.layers:
            raise ValueError("a network must have at least one layer, not 0")
        rows, columns, _ = self.shapes[self.layers[-1].name]
        if (rows, columns) != (1, 1) or self.layers[-1].relu:
            raise ValueError(
                f"{self.name}: the last layer must give logits of one pixel, without ReLU, not"
                f" {rows} x {columns}"
            )

    @cached_property
    def shapes(self) -> Mapping[str, tuple[int, int, int]]:
        """Height, width and channels of every tensor."""
        return shapes_of(self.shape, self.layers)

    @cached_property
    def by_name(self) -> Mapping[str, Layer]:
        """Layers by their names."""
        return {layer.name: layer for layer in self.layers}

    @property
    def learning(self) -> tuple[Layer, ...]:
        """The layers that have weights."""
        return tuple(layer for layer in self.layers if layer.learns)

    @property
    def classes(self) -> int:
        """Counts the logits."""
        return self.shapes[self.layers[-1].name][2]

    def weight_shape(self, layer: Layer) -> tuple[int, int, int, int]:
        """(O, kernel height, kernel width, I), or (1, height, width, C) of a depthwise layer."""
        channels = self.shapes[layer.inputs[0]][2]
        if layer.kind is Kind.DEPTHWISE:
            return (1, *layer.kernel, channels)
        return (layer.outputs, *layer.kernel, channels)

    def last_learning(self, count: int) -> tuple[str, ...]:
        """Names of the last layers that have weights.

        Raises
        ------
        ValueError
            If there are fewer.
        """
        names = tuple(layer.name for layer in self.learning)
        if not 1 <= count <= len(names):
            raise ValueError(f"layers that learn must be 1 to {len(names)}, not {count}")
        return names[-count:]


def shapes_of(
    shape: tuple[int, int, int], layers: Iterable[Layer]
) -> dict[str, tuple[int, int, int]]:
    """Height, width and channels of images and of every layer's output, by name.

    Raises
    ------
    ValueError
        If layers have one name, read what is not before them, or do not fit one another.
    """
    shapes = {INPUT: shape}
    for layer in layers:
        if layer.name in shapes:
            raise ValueError(f"layers must have names of their own, not two {layer.name!r}")
        for name in layer.inputs:
            if name not in shapes:
                raise ValueError(f"layer {layer.name!r} must read a layer before, not {name!r}")
        shapes[layer.name] = _output_shape(layer, [shapes[name] for name in layer.inputs])
    return shapes


def _output_shape(layer: Layer, inputs: list[tuple[int, int, int]]) -> tuple[int, int, int]:
    wanted = 2 if layer.kind is Kind.ADD else 1
    if len(inputs) != wanted:
        raise ValueError(f"layer {layer.name!r} must read {wanted} tensors, not {len(inputs)}")
    height, width, channels = inputs[0]
    if layer.kind is Kind.ADD:
        if inputs[0] != inputs[1]:
            raise ValueError(f"layer {layer.name!r} must add equal shapes, not {inputs}")
        return inputs[0]
    if layer.relu and not layer.learns:
        raise ValueError(f"layer {layer.name!r}: {layer.kind} must have no ReLU")
    if layer.kind is Kind.FLATTEN:
        return 1, 1, height * width * channels
    top, bottom, left, right = layer.padding
    rows = (height + top + bottom - layer.kernel[0]) // layer.stride[0] + 1
    columns = (width + left + right - layer.kernel[1]) // layer.stride[1] + 1
    if min(rows, columns) < 1:
        raise ValueError(f"layer {layer.name!r}: {layer.kernel} must fit {height} x {width}")
    if layer.kind is Kind.CONVOLUTION:
        if layer.outputs < 1:
            raise ValueError(f"layer {layer.name!r} must have output channels, not 0")
        return rows, columns, layer.outputs
    return rows, columns, channels


@dataclass(frozen=True)
class FloatParameters:
    """A layer's weights and biases as real numbers.

    Parameters
    ----------
    weights : array of float32
        Of ``TrainingNetwork.weight_shape``.
    bias : array of float32, (channels,)
    """

    weights: np.ndarray
    bias: np.ndarray


Initial = Mapping[str, FloatParameters]
"""By the layers' names."""


def initial_parameters(network: TrainingNetwork, seed: int) -> dict[str, FloatParameters]:
    """Random first weights: normal, of variance 2 / fan-in, cut at 3 standard deviations.

    There is no normalisation of batches. So that residual branches do not add up, the convolution
    before an addition begins at half of that (H. Zhang et al., "Fixup initialization", 2019, begins
    it at 0).
    """
    generator = np.random.default_rng([seed, 0])
    adding = {name for layer in network.layers if layer.kind is Kind.ADD for name in layer.inputs}
    found = {}
    for layer in network.learning:
        shape = network.weight_shape(layer)
        deviation = math.sqrt(
            2 / math.prod(shape[1:3] if layer.kind is Kind.DEPTHWISE else shape[1:])
        )
        values = np.clip(generator.standard_normal(shape), -3, 3) * deviation
        if layer.name in adding and not layer.relu and layer.kernel != (1, 1):
            values *= 0.5
        channels = shape[3] if layer.kind is Kind.DEPTHWISE else shape[0]
        found[layer.name] = FloatParameters(
            values.astype(np.float32), np.zeros(channels, np.float32)
        )
    return found
