"""Writes a trained network as .tflite."""

import math
from collections.abc import Callable

import numpy as np

from ...errors import UnsupportedError
from ...writers.tflite import TfliteWriter
from ...writers.tflite_operators import (
    Add,
    AveragePool2D,
    Conv2D,
    DepthwiseConv2D,
    FullyConnected,
    MaxPool2D,
    Mean,
    Operator,
    Pad,
    Quantize,
    Reshape,
    Softmax,
)
from ..network import INPUT, Kind, Layer
from .trained import (
    Names,
    TrainedNetwork,
    bias_codes,
    code_steps,
    is_dense,
    is_flat,
    is_global,
    meanings,
    weight_scale,
)


def write_tflite(trained: TrainedNetwork) -> bytes:
    """The bytes of a .tflite file: int8 codes with zero point 0, one scale per tensor.

    Scales of layers are powers of two, and so are the factors of their sums. The input is as the
    interface has it; pictures are N x H x W x C. Averages of a whole picture are MEAN, which has a
    scale of its own.

    Raises
    ------
    UnsupportedError
        If a maximum has a padding that the format has not.
    """
    return _Writer(trained).run()


class _Writer:
    def __init__(self, trained: TrainedNetwork) -> None:
        self._trained, self._network = trained, trained.network
        self._writer = TfliteWriter(description="trained by Slipstick")
        interface = trained.interface
        self._names = Names(interface.input, interface.output)
        self._meanings = meanings(
            trained, float(np.float32(interface.image_scale)), rescaled_averages=False
        )
        self._tensors: dict[str, str] = {}
        """The file's tensors, by the training's."""

    def run(self) -> bytes:
        interface, network = self._trained.interface, self._network
        self._tensors[INPUT] = self._images()
        handlers: dict[Kind, Callable[[Layer], None]] = {
            Kind.CONVOLUTION: self._convolution,
            Kind.DEPTHWISE: self._convolution,
            Kind.ADD: self._add,
            Kind.MAX_POOL: self._maximum,
            Kind.AVERAGE_POOL: self._average,
            Kind.FLATTEN: self._flatten,
        }
        for layer in network.layers:
            handlers[layer.kind](layer)
        if interface.softmax:
            classes = (1, network.classes)
            self._writer.tensor(interface.output, classes, scale=1 / 256, zero_point=-128)
            logits = self._tensors[network.layers[-1].name]
            self._writer.add(Softmax(), [logits], [interface.output])
        return self._writer.to_bytes([interface.input], [interface.output])

    def _images(self) -> str:
        """Declares the input; returns the int8 codes of images, N x H x W x C."""
        interface, writer = self._trained.interface, self._writer
        picture = (1, *self._network.shape)
        shape = picture if interface.channels_first else interface.shape
        name = writer.tensor(
            interface.input,
            shape,
            interface.dtype,
            scale=interface.scale,
            zero_point=interface.zero_point or 0,
        )
        for scale, zero_point in code_steps(interface):
            made = self._names.new("images/codes")
            writer.tensor(made, shape, scale=scale, zero_point=zero_point)
            writer.add(Quantize(), [name], [made])
            name = made
        return name if shape == picture else self._reshaped(name, picture, self._scale(INPUT))

    def _scale(self, name: str) -> float:
        return self._meanings[name].scale

    def _shape(self, name: str) -> tuple[int, ...]:
        height, width, channels = self._network.shapes[name]
        return (1, channels) if is_flat(self._network, name) else (1, height, width, channels)

    def _declare(self, layer: Layer) -> str:
        """The tensor of a layer's output."""
        interface = self._trained.interface
        last = layer.name == self._network.layers[-1].name
        name = interface.output if last and not interface.softmax else self._names.new(layer.name)
        shape = (1, self._network.classes) if last else self._shape(layer.name)
        self._tensors[layer.name] = self._writer.tensor(name, shape, scale=self._scale(layer.name))
        return name

    def _reshaped(self, source: str, shape: tuple[int, ...], scale: float) -> str:
        writer = self._writer
        made = writer.tensor(self._names.new(f"{source}/reshaped"), shape, scale=scale)
        sizes = self._constant(f"{made}/shape", np.array(shape))
        writer.add(Reshape(shape=shape), [source, sizes], [made])
        return made

    def _constant(self, name: str, values: np.ndarray) -> str:
        return self._writer.tensor(
            self._names.new(name), values.shape, "int32", data=values.astype(np.int32)
        )

    def _convolution(self, layer: Layer) -> None:
        codes = self._trained.layers[layer.name]
        source = self._meanings[layer.inputs[0]]
        activation = "RELU" if layer.relu else "NONE"
        weights, scale = codes.weights, np.float32(weight_scale(codes, source))
        options = {"stride": layer.stride, "activation": activation}
        if is_dense(self._network, layer):
            weights = weights.reshape(len(weights), -1)
            operator: Operator = FullyConnected(activation=activation)
            read = self._row(layer.inputs[0])
        else:
            read, padding = self._padded(layer)
            kind = DepthwiseConv2D if layer.kind is Kind.DEPTHWISE else Conv2D
            operator = kind(padding=padding, **options)
        name = self._writer.tensor(
            self._names.new(f"{layer.name}/weights"), weights.shape, scale=scale, data=weights
        )
        bias = self._writer.tensor(
            self._names.new(f"{layer.name}/bias"),
            codes.bias.shape,
            "int32",
            scale=np.float32(source.scale) * scale,
            data=self._bias(layer),
        )
        self._writer.add(operator, [read, name, bias], [self._declare(layer)])

    def _bias(self, layer: Layer) -> np.ndarray:
        """A layer's biases; behind a ReLU they make good what the second rounding adds.

        The format's runtimes halve a sum first and round that up: of n >= 2 bits to be dropped,
        what they make of a sum above 0 is (sum + 1 + 2^(n - 1)) >> n. With a bias less by 1 they
        differ from the training in ties alone.
        """
        codes, source = self._trained.layers[layer.name], self._meanings[layer.inputs[0]]
        bias = bias_codes(codes, source)
        dropped = np.log2(self._meanings[layer.name].unit / source.unit) - codes.exponent
        # LARGEST_SUM is the least, too: there is room for one less
        return bias - 1 if layer.relu and round(dropped) >= 2 else bias

    def _row(self, name: str) -> str:
        """A tensor as a row of numbers."""
        size = math.prod(self._network.shapes[name])
        if is_flat(self._network, name):
            return self._tensors[name]
        return self._reshaped(self._tensors[name], (1, size), self._scale(name))

    def _padded(self, layer: Layer) -> tuple[str, str]:
        """Returns the tensor that a window reads, and the format's padding.

        A padding that the format lacks becomes a PAD before the window.
        """
        name, padding = self._tensors[layer.inputs[0]], self._padding(layer)
        if padding is not None:
            return name, padding
        if layer.kind is Kind.MAX_POOL and not self._is_positive(layer.inputs[0]):
            raise UnsupportedError(
                f"layer {layer.name!r}: maxima of negative numbers must have padding SAME or VALID"
                f" in a .tflite file, not {layer.padding}; write an .onnx file"
            )
        top, bottom, left, right = layer.padding
        height, width, channels = self._network.shapes[layer.inputs[0]]
        shape = (1, height + top + bottom, width + left + right, channels)
        made = self._writer.tensor(
            self._names.new(f"{layer.name}/padded"), shape, scale=self._scale(layer.inputs[0])
        )
        amounts = np.array([(0, 0), (top, bottom), (left, right), (0, 0)])
        paddings = self._constant(f"{layer.name}/paddings", amounts)
        self._writer.add(Pad(), [name, paddings], [made])
        return made, "VALID"

    def _is_positive(self, name: str) -> bool:
        """Tells whether no code of a tensor is below 0, the value that a PAD adds."""
        layer = self._network.by_name.get(name)
        if layer is None or layer.relu:
            return layer is not None
        return not layer.learns and all(map(self._is_positive, layer.inputs))

    def _padding(self, layer: Layer) -> str | None:
        """SAME or VALID if it is one of them."""
        if not any(layer.padding):
            return "VALID"
        wanted: list[int] = []
        sizes = self._network.shapes[layer.inputs[0]][:2]
        for size, kernel, stride in zip(sizes, layer.kernel, layer.stride, strict=True):
            total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
            wanted += [total // 2, total - total // 2]
        return "SAME" if layer.padding == tuple(wanted) else None

    def _add(self, layer: Layer) -> None:
        operator = Add(activation="RELU" if layer.relu else "NONE")
        inputs = [self._tensors[name] for name in layer.inputs]
        self._writer.add(operator, inputs, [self._declare(layer)])

    def _maximum(self, layer: Layer) -> None:
        read, padding = self._padded(layer)
        operator = MaxPool2D(window=layer.kernel, stride=layer.stride, padding=padding)
        self._writer.add(operator, [read], [self._declare(layer)])

    def _average(self, layer: Layer) -> None:
        read = self._tensors[layer.inputs[0]]
        if is_global(self._network, layer):
            axes = self._constant(f"{layer.name}/axes", np.array([1, 2]))
            self._writer.add(Mean(keep_dimensions=True), [read, axes], [self._declare(layer)])
            return
        if any(layer.padding):
            raise UnsupportedError(f"layer {layer.name!r}: averages must have no padding")
        operator = AveragePool2D(window=layer.kernel, stride=layer.stride)
        self._writer.add(operator, [read], [self._declare(layer)])

    def _flatten(self, layer: Layer) -> None:
        read = self._tensors[layer.inputs[0]]
        shape = self._shape(layer.name)
        sizes = self._constant(f"{layer.name}/shape", np.array(shape))
        self._writer.add(Reshape(shape=shape), [read, sizes], [self._declare(layer)])
