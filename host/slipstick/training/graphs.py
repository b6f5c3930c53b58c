"""Makes a network for training of a front-end's graph of int8 codes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import UnsupportedError
from ..graph import Graph, Node, Tensor
from .network import INPUT, FloatParameters, Kind, Layer, TrainingNetwork

USUAL_LARGEST = 7.5
"""Real magnitude that activations and logits are brought to: learning rates are for such."""

_PRODUCTS = {
    "conv2d": Kind.CONVOLUTION,
    "depthwise_conv2d": Kind.DEPTHWISE,
    "fully_connected": Kind.CONVOLUTION,
}
_POOLS = {"max_pool2d": Kind.MAX_POOL, "average_pool2d": Kind.AVERAGE_POOL}
_AT_BORDERS = ("quantize", "dequantize", "softmax", "reshape", "transpose")
_BEFORE_LAYERS = (*_AT_BORDERS, "lookup")


@dataclass(frozen=True)
class ImportedNetwork:
    """A network of a file, ready to be trained.

    Parameters
    ----------
    network : TrainingNetwork
    initial : mapping of FloatParameters
        Real weights, such that images are codes of 2^-7.
    zero_point : int
        Of the file's codes of images.
    halved : bool
        Whether codes of images are half of the file's less its zero point, to fit a byte.
    codes : str
        The graph's tensor that holds the file's codes of images.
    """

    network: TrainingNetwork
    initial: Mapping[str, FloatParameters]
    zero_point: int
    halved: bool
    codes: str

    def images(self, codes: np.ndarray) -> np.ndarray:
        """The file's codes (int8) as a training's: less the zero point, halved (rounded down)."""
        centred = codes.astype(np.int16) - self.zero_point
        return np.clip(centred >> int(self.halved), -127, 127).astype(np.int8)


def import_graph(graph: Graph) -> ImportedNetwork:
    """A network for training, with the graph's weights as real numbers.

    Codes become real by the graph's scales. Every layer is scaled so that its largest output is
    ``USUAL_LARGEST`` as far as the graph's scales tell, which changes no class: ReLU, maxima and
    sums keep a positive factor. Softmax at the end is left out.

    Raises
    ------
    UnsupportedError
        If it holds an operator that cannot be trained, or reads its input otherwise than by layers
        with weights.
    """
    return _Importer(graph).run()


class _Importer:
    def __init__(self, graph: Graph) -> None:
        if len(graph.inputs) != 1 or len(graph.outputs) != 1:
            raise UnsupportedError(f"{graph.name} must have one input and one output to be trained")
        self._graph = graph
        self._names: dict[str, str] = {}
        """Names in the training of the graph's tensors."""
        self._layers: list[Layer] = []
        self._nodes: dict[str, Node] = {}
        self._group: dict[str, str] = {}
        self._gain: dict[str, float] = {}
        """Ratio of a training's tensor to the graph's real one, before its group's factor."""
        self._pads: dict[str, tuple[int, ...]] = {}
        """Padding of the graph's tensors that are another one with a border: (top, bottom, ...)."""

    def run(self) -> ImportedNetwork:
        first = self._first_codes()
        self._names[first.name] = INPUT
        self._group[INPUT], self._gain[INPUT] = INPUT, 1.0
        for node in self._graph.nodes:
            if not all(self._names.get(name) for name in node.inputs[:1]):
                # before the first codes
                continue
            self._take(node)
        quantization = first.quantization
        assert quantization is not None
        zero = int(quantization.zero_point[0])
        halved = max(abs(-127 - zero), abs(127 - zero)) > 127
        unit = float(quantization.scale[0]) * (2 if halved else 1)
        try:
            shape = first.shape[1], first.shape[2], first.shape[3]
            network = TrainingNetwork(self._graph.name, shape, tuple(self._layers))
        except (ValueError, IndexError) as error:
            raise UnsupportedError(f"{self._graph.name} cannot be trained: {error}") from None
        return ImportedNetwork(network, self._parameters(unit * 128), zero, halved, first.name)

    def _first_codes(self) -> Tensor:
        """The first tensor that is int8 and NHWC."""
        graph, name = self._graph, self._graph.inputs[0]
        while True:
            readers = graph.consumers(name)
            moved = len(readers) == 1 and readers[0].operator in _BEFORE_LAYERS
            if not moved:
                break
            name = readers[0].outputs[0]
        tensor = graph.tensors[name]
        if tensor.dtype != "int8" or tensor.quantization is None or len(tensor.shape) != 4:
            raise UnsupportedError(f"{graph.name} must take images as int8 to be trained")
        return tensor

    def _take(self, node: Node) -> None:
        output = node.outputs[0]
        source = self._names[node.inputs[0]]
        if node.operator in ("dequantize", "quantize", "softmax"):
            if self._graph.outputs[0] not in self._downstream(output):
                raise self._refusal(node, "must be at the end")
            self._names[output] = source
            return
        if node.operator == "pad":
            self._pads[output] = self._border(node)
            self._names[output] = source
            return
        layer = self._layer(node, f"layer{len(self._layers) + 1}")
        self._layers.append(layer)
        self._names[output], self._nodes[layer.name] = layer.name, node
        if layer.learns:
            self._group[layer.name], self._gain[layer.name] = layer.name, 1.0
            return
        if INPUT in layer.inputs:
            raise self._refusal(node, "must not read the images")
        groups = {self._group[name] for name in layer.inputs}
        for name, group in self._group.items():
            if group in groups:
                self._group[name] = self._group[layer.inputs[0]]
        self._group[layer.name] = self._group[layer.inputs[0]]
        self._gain[layer.name] = self._gain[layer.inputs[0]]
        if layer.kind is Kind.ADD and len({self._gain[name] for name in layer.inputs}) > 1:
            raise self._refusal(node, "must not add averages of windows to what is none")
        if layer.kind is Kind.AVERAGE_POOL:
            count = layer.kernel[0] * layer.kernel[1]
            self._gain[layer.name] *= count / (1 << (count - 1).bit_length())

    def _border(self, node: Node) -> tuple[int, ...]:
        """Returns the border that a PAD adds to pictures.

        Refuses it unless the windows behind it may have that as their padding.
        """
        amounts = [tuple(map(int, pair)) for pair in node.attributes["padding"]]
        quantization = self._graph.tensors[node.outputs[0]].quantization
        zero = None if quantization is None else int(quantization.zero_point[0])
        if len(amounts) != 4 or any(amounts[0] + amounts[3]) or node.attributes["value"] != zero:
            raise self._refusal(node, "must add a border of 0 to pictures")
        for reader in self._graph.consumers(node.outputs[0]):
            source = next((x for x in self._layers if x.name == self._names[node.inputs[0]]), None)
            positive = reader.operator == "max_pool2d" and source is not None and source.relu
            if reader.operator not in ("conv2d", "depthwise_conv2d") and not positive:
                raise self._refusal(node, f"must not be read by {reader.operator}")
        return amounts[1] + amounts[2]

    def _padding(self, node: Node) -> tuple[int, int, int, int]:
        """A window's padding, with the border of what it reads."""
        border = self._pads.get(node.inputs[0], (0, 0, 0, 0))
        top, bottom, left, right = (
            own + more for own, more in zip(node.attributes["padding"], border, strict=True)
        )
        return top, bottom, left, right

    def _downstream(self, name: str) -> set[str]:
        found, waiting = {name}, [name]
        while waiting:
            for node in self._graph.consumers(waiting.pop()):
                if node.operator not in _AT_BORDERS:
                    return set()
                waiting += node.outputs
                found.update(node.outputs)
        return found

    def _layer(self, node: Node, name: str) -> Layer:
        given: dict[str, Any] = dict(node.attributes)
        inputs = (self._names[node.inputs[0]],)
        if given.get("dilation", (1, 1)) != (1, 1) or given.get("groups", 1) != 1:
            raise self._refusal(node, "must have dilation 1 and one group")
        if node.operator in _PRODUCTS:
            relu = self._relu(node)
            shape = self._graph.tensors[node.inputs[1]].shape
            if node.operator == "fully_connected":
                return Layer(name, Kind.CONVOLUTION, inputs, shape[0], relu=relu)
            if given.get("multiplier", 1) != 1:
                raise self._refusal(node, "must have one output per channel")
            kind = _PRODUCTS[node.operator]
            outputs = shape[0] if kind is Kind.CONVOLUTION else 0
            kernel, stride = (shape[1], shape[2]), given["stride"]
            return Layer(name, kind, inputs, outputs, kernel, stride, self._padding(node), relu)
        if node.operator in _POOLS:
            if given.get("activation", "none") != "none":
                raise self._refusal(node, "must have no activation")
            if node.operator == "average_pool2d" and any(given["padding"]):
                raise self._refusal(node, "must have no padding")
            kind, window = _POOLS[node.operator], given["window"]
            return Layer(name, kind, inputs, 0, window, given["stride"], self._padding(node))
        if node.operator == "mean" and tuple(given["axes"]) == (1, 2):
            height, width = self._graph.tensors[node.inputs[0]].shape[1:3]
            return Layer(name, Kind.AVERAGE_POOL, inputs, 0, (height, width), (height, width))
        if node.operator == "add" and all(self._names.get(other) for other in node.inputs):
            both = self._names[node.inputs[0]], self._names[node.inputs[1]]
            return Layer(name, Kind.ADD, both, relu=self._relu(node))
        if node.operator == "reshape" and len(given["shape"]) == 2:
            return Layer(name, Kind.FLATTEN, inputs)
        raise self._refusal(node, "cannot be trained")

    def _relu(self, node: Node) -> bool:
        """By the activation, or by codes that begin at 0, or are cut there."""
        activation = node.attributes.get("activation", "none")
        if activation not in ("none", "relu"):
            raise self._refusal(node, f"must have no activation or a ReLU, not {activation}")
        quantization = self._graph.tensors[node.outputs[0]].quantization
        zero = None if quantization is None else int(quantization.zero_point[0])
        lowest = node.attributes.get("clamp", (None,))[0]
        return activation == "relu" or zero == -128 or (zero is not None and lowest == zero)

    def _refusal(self, node: Node, rule: str) -> UnsupportedError:
        return UnsupportedError(f"{self._graph.name}: {node.operator} {node.name!r} {rule}")

    def _parameters(self, image_unit: float) -> dict[str, FloatParameters]:
        factors = self._factors()
        factors[INPUT] = 1 / image_unit
        found = {}
        for layer in self._layers:
            if not layer.learns:
                continue
            node, before = self._nodes[layer.name], layer.inputs[0]
            entering = factors[self._group[before]] * self._gain[before]
            leaving = factors[self._group[layer.name]]
            weights, bias = self._real(node)
            if node.operator == "fully_connected":
                weights = weights.reshape(len(weights), 1, 1, -1)
            found[layer.name] = FloatParameters(
                (weights * (leaving / entering)).astype(np.float32),
                (bias * leaving).astype(np.float32),
            )
        return found

    def _factors(self) -> dict[str, float]:
        """Computes each tensor group's factor, so that its largest number is the usual one."""
        largest: dict[str, float] = {}
        for layer in self._layers:
            tensor = self._graph.tensors[self._nodes[layer.name].outputs[0]]
            if tensor.quantization is None:
                continue
            zero = int(tensor.quantization.zero_point[0])
            real = float(tensor.quantization.scale[0]) * max(127 - zero, zero + 128)
            group = self._group[layer.name]
            largest[group] = max(largest.get(group, 0.0), real)
        return {group: USUAL_LARGEST / real for group, real in largest.items()}

    def _real(self, node: Node) -> tuple[np.ndarray, np.ndarray]:
        """Weights and bias as float64."""
        tensors = self._graph.tensors
        source, weights = tensors[node.inputs[0]], tensors[node.inputs[1]]
        if weights.data is None or weights.quantization is None or source.quantization is None:
            raise self._refusal(node, "must have constant weights of int8")
        scales = weights.quantization.scale
        axis = 3 if node.operator == "depthwise_conv2d" else 0
        shape = [1] * weights.data.ndim
        shape[axis] = -1
        zero = weights.quantization.zero_point.reshape(shape)
        real = (weights.data.astype(np.float64) - zero) * scales.reshape(shape)
        channels = weights.shape[axis]
        if len(node.inputs) < 3 or not node.inputs[2]:
            return real, np.zeros(channels)
        bias = tensors[node.inputs[2]].data
        if bias is None:
            raise self._refusal(node, "must have a constant bias")
        return real, bias.astype(np.float64) * float(source.quantization.scale[0]) * scales
