"""Reads a float ONNX network for training, and writes it back with its new weights."""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ...errors import UnsupportedError
from ...quantize import FloatNetwork
from ...quantize.lns_plan import Plan, plan
from ..network import INPUT, FloatParameters, Initial, Kind, Layer, TrainingNetwork, shapes_of

_POOLS = {
    "MaxPool": Kind.MAX_POOL,
    "AveragePool": Kind.AVERAGE_POOL,
    "GlobalAveragePool": Kind.AVERAGE_POOL,
}
_ROWS = ("Flatten", "Reshape")
_SAME = ("Identity", "Dropout")


@dataclass(frozen=True)
class _Place:
    """Describes where a layer's parameters are in the file.

    Parameters
    ----------
    weights, bias : str
        Names of constants.
    turned : bool
        Whether a matrix is inputs x outputs.
    picture : (height, width, channels) or None
        Of what a matrix's inputs are, channel by channel; None of a convolution.
    deep : bool
        Whether a convolution is depthwise.
    """

    weights: str
    bias: str
    turned: bool = False
    picture: tuple[int, int, int] | None = None
    deep: bool = False

    def read(self, constants: Mapping[str, Any]) -> FloatParameters:
        """As training has them."""
        weights = numpy_helper.to_array(constants[self.weights]).astype(np.float32)
        bias = numpy_helper.to_array(constants[self.bias]).astype(np.float32).reshape(-1)
        if self.picture is None:
            axes = (1, 2, 3, 0) if self.deep else (0, 2, 3, 1)
            return FloatParameters(weights.transpose(axes).copy(), bias)
        rows = weights.T if self.turned else weights
        height, width, channels = self.picture
        laid = rows.reshape(-1, channels, height, width).transpose(0, 2, 3, 1)
        return FloatParameters(laid.reshape(len(rows), 1, 1, -1).copy(), bias)

    def write(self, constants: Mapping[str, Any], parameters: FloatParameters) -> None:
        """Puts parameters into the file's constants."""
        weights = parameters.weights
        if self.picture is None:
            laid = weights.transpose((3, 0, 1, 2) if self.deep else (0, 3, 1, 2))
        else:
            height, width, channels = self.picture
            laid = weights.reshape(-1, height, width, channels).transpose(0, 3, 1, 2)
            laid = laid.reshape(len(weights), -1)
            laid = laid.T if self.turned else laid
        for name, array in ((self.weights, laid), (self.bias, parameters.bias)):
            shape = tuple(constants[name].dims)
            array = np.ascontiguousarray(array, np.float32).reshape(shape)
            constants[name].CopyFrom(numpy_helper.from_array(array, name))


class NetworkFile:
    """A float ONNX network that is trained.

    Parameters
    ----------
    path : path
        Batch normalisation is put into the weights, as for quantising.

    Members
    -------
    shape : tuple of int
        Of the input, with a batch of 1, as the file has it.
    network : TrainingNetwork
        Layers are named as the file's tensors that they give out.
    initial : mapping of FloatParameters
    coded : frozenset of str
        Layers whose outputs are rounded where the network is quantised.

    Raises
    ------
    ModelError
        If the file is no ONNX network, or contradicts itself.
    UnsupportedError
        If it is quantised already, or holds what cannot be trained.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        source = FloatNetwork(path)
        self.shape, self.input = source.shape, source.input
        self._model = source.prepared()
        self._plan = plan(self._model.graph)
        reader = _Reader(self._model, self._plan, os.fspath(path), source.shape)
        self.network = reader.run(source.input)
        self._places = reader.places
        self.coded = frozenset(self.network.by_name).intersection(self._plan.coded)
        constants = {item.name: item for item in self._model.graph.initializer}
        self.initial: Initial = {
            name: place.read(constants) for name, place in self._places.items()
        }

    @property
    def planned(self) -> Plan:
        """Returns the plan: which tensors of the file get codes where it is quantised."""
        return self._plan

    def weights_name(self, layer: str) -> str:
        """The name of a layer's weights in the file."""
        return self._places[layer].weights

    def with_parameters(self, parameters: Initial) -> Any:
        """The float network with other weights, a ModelProto."""
        made = onnx.ModelProto()
        made.CopyFrom(self._model)
        constants = {item.name: item for item in made.graph.initializer}
        for name, place in self._places.items():
            place.write(constants, parameters[name])
        return made

    def images(self, numbers: np.ndarray) -> np.ndarray:
        """Returns the file's inputs as training has them: (count, height, width, channels)."""
        if len(self.shape) == 4:
            return numbers.transpose(0, 2, 3, 1)
        return numbers.reshape(len(numbers), 1, 1, -1)

    def numbers(self, images: np.ndarray) -> np.ndarray:
        """Training's images as the file takes them, float32."""
        if len(self.shape) == 4:
            images = images.transpose(0, 3, 1, 2)
        return np.ascontiguousarray(images, np.float32).reshape(-1, *self.shape[1:])


class _Reader:
    """Layers of a float graph, whose constants are folded and nodes in order."""

    def __init__(self, model: Any, planned: Plan, name: str, shape: tuple[int, ...]) -> None:
        self._graph, self._plan, self._file = model.graph, planned, name
        self._constants = {item.name: item for item in model.graph.initializer}
        self._layers: dict[str, Layer] = {}
        self._names: dict[str, str] = {}
        """Training's tensors by the file's."""
        self._ended = False
        self._shape = shape
        self.places: dict[str, _Place] = {}

    def run(self, source: str) -> TrainingNetwork:
        if len(self._shape) not in (2, 4):
            raise UnsupportedError(
                f"{self._file} must take pictures or rows of numbers to be trained, not"
                f" {self._shape}"
            )
        self._names[source] = INPUT
        for node in self._graph.node:
            self._take(node)
        if [self._names.get(item.name) for item in self._graph.output] != [
            next(reversed(self._layers), None)
        ]:
            raise UnsupportedError(f"{self._file} must have one output, its last layer's")
        try:
            return self._network()
        except ValueError as error:
            raise UnsupportedError(f"{self._file} cannot be trained: {error}") from None

    def _network(self) -> TrainingNetwork:
        layers = tuple(self._layers.values())
        return TrainingNetwork(self._graph.name or "network", self._image, layers)

    @property
    def _image(self) -> tuple[int, int, int]:
        shape = self._shape
        return (shape[2], shape[3], shape[1]) if len(shape) == 4 else (1, 1, shape[1])

    def _take(self, node: Any) -> None:
        given = {item.name: helper.get_attribute_value(item) for item in node.attribute}
        kind, output = node.op_type, node.output[0]
        sources = [name for name in node.input if name in self._names]
        if not sources or self._ended and kind not in _SAME:
            self._refuse(node, "must follow from the input, and nothing must follow a Softmax")
        source = self._names[sources[0]]
        if kind in _SAME or kind == "Softmax":
            self._ended = self._ended or kind == "Softmax"
            self._names[output] = source
        elif kind == "Relu":
            self._relu(node, sources[0], source, output)
        elif kind == "Conv":
            self._convolution(node, given, source)
        elif kind in ("Gemm", "MatMul"):
            self._matrix(node, given, source)
        elif kind == "Add" and len(sources) == 2:
            both = self._names[sources[0]], self._names[sources[1]]
            self._put(Layer(output, Kind.ADD, both))
        elif kind in _ROWS:
            self._put(Layer(output, Kind.FLATTEN, (source,)))
        elif kind in _POOLS:
            self._pool(node, given, source)
        else:
            self._refuse(node, "cannot be trained")

    def _put(self, layer: Layer) -> None:
        self._layers[layer.name] = layer
        self._names[layer.name] = layer.name

    def _relu(self, node: Any, read: str, source: str, output: str) -> None:
        """Behind a layer whose sums never stand in memory; it gives the layer its name."""
        layer = self._layers.get(source)
        kinds = Kind.CONVOLUTION, Kind.DEPTHWISE, Kind.ADD
        coded = read in self._plan.coded
        if layer is None or layer.kind not in kinds or layer.relu or coded:
            self._refuse(node, "must be the only reader of a layer with weights, or of an addition")
        del self._layers[source]
        if source in self.places:
            self.places[output] = self.places.pop(source)
        self._put(replace(layer, name=output, relu=True))

    def _convolution(self, node: Any, given: Mapping[str, Any], source: str) -> None:
        name = node.output[0]
        if node.input[1] not in self._constants or len(self._constants[node.input[1]].dims) != 4:
            self._refuse(node, "must have constant weights of two dimensions")
        outputs, inputs, *kernel = self._constants[node.input[1]].dims
        groups = given.get("group", 1)
        deep = inputs == 1 and 1 < groups == outputs == self._shapes()[source][2]
        if (groups != 1 and not deep) or any(size != 1 for size in given.get("dilations", ())):
            self._refuse(node, "must have no dilation, and one group or as many as channels")
        weights, bias = self._own(node, 1, "weights"), self._bias(node, outputs)
        self.places[name] = _Place(weights, bias, deep=deep)
        window = self._window(node, given, (kernel[0], kernel[1]), source)
        kind = Kind.DEPTHWISE if deep else Kind.CONVOLUTION
        self._put(Layer(name, kind, (source,), 0 if deep else outputs, *window))

    def _matrix(self, node: Any, given: Mapping[str, Any], source: str) -> None:
        name = node.output[0]
        scaled = any(given.get(item, 1) != 1 for item in ("alpha", "beta"))
        if scaled or given.get("transA") or node.input[1] not in self._constants:
            self._refuse(node, "must multiply by a constant matrix, without factors")
        if node.op_type == "MatMul":
            self._refuse(node, "must be a Gemm, which has a bias")
        turned = not given.get("transB")
        outputs = self._constants[node.input[1]].dims[1 if turned else 0]
        weights, bias = self._own(node, 1, "weights"), self._bias(node, outputs)
        self.places[name] = _Place(weights, bias, turned, self._picture(source))
        self._put(Layer(name, Kind.CONVOLUTION, (source,), outputs))

    def _picture(self, source: str) -> tuple[int, int, int]:
        """Finds a row's shape before it was flattened; its own shape if it was not."""
        layer = self._layers.get(source)
        flat = layer is not None and layer.kind is Kind.FLATTEN
        before = layer.inputs[0] if layer is not None and flat else source
        return self._shapes()[before]

    def _shapes(self) -> Mapping[str, tuple[int, int, int]]:
        """Computes the shapes of the tensors so far."""
        return shapes_of(self._image, self._layers.values())

    def _bias(self, node: Any, outputs: int) -> str:
        """The name of a layer's bias; a layer without one gets zeros."""
        if len(node.input) > 2 and node.input[2]:
            name = node.input[2]
            if name not in self._constants or math.prod(self._constants[name].dims) != outputs:
                self._refuse(node, "must have a constant bias per output")
            return self._own(node, 2, "bias")
        name = f"{node.output[0]}.bias"
        self._add(numpy_helper.from_array(np.zeros(outputs, np.float32), name))
        node.input[2:] = [name]
        return name

    def _own(self, node: Any, index: int, what: str) -> str:
        """The name of a constant that no other layer has: equal ones may have become one."""
        name = node.input[index]
        if any(name in (place.weights, place.bias) for place in self.places.values()):
            copy = numpy_helper.to_array(self._constants[name])
            name = f"{node.output[0]}.{what}"
            self._add(numpy_helper.from_array(copy, name))
            node.input[index] = name
        return name

    def _add(self, constant: Any) -> None:
        self._graph.initializer.append(constant)
        self._constants[constant.name] = self._graph.initializer[-1]

    def _pool(self, node: Any, given: Mapping[str, Any], source: str) -> None:
        kind = _POOLS[node.op_type]
        if given.get("ceil_mode") or any(size != 1 for size in given.get("dilations", ())):
            self._refuse(node, "must have no dilation, and no window beyond the picture")
        if node.op_type == "GlobalAveragePool":
            height, width, _ = self._shapes()[source]
            window: Any = ((height, width), (height, width), (0, 0, 0, 0))
        else:
            kernel = given["kernel_shape"]
            window = self._window(node, given, (kernel[0], kernel[1]), source)
        if kind is Kind.AVERAGE_POOL and any(window[2]):
            self._refuse(node, "must have no padding")
        self._put(Layer(node.output[0], kind, (source,), 0, *window))

    def _window(
        self, node: Any, given: Mapping[str, Any], kernel: tuple[int, int], source: str
    ) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int, int, int]]:
        """Kernel, stride and padding (top, bottom, left, right)."""
        stride = tuple(given.get("strides", (1, 1)))
        named = given.get("auto_pad", b"NOTSET").decode()
        top, left, bottom, right = given.get("pads", (0, 0, 0, 0))
        if named.startswith("SAME"):
            sizes = self._shapes()[source][:2]
            totals = [
                max((-(-size // step) - 1) * step + width - size, 0)
                for size, step, width in zip(sizes, stride, kernel, strict=True)
            ]
            small, large = [total // 2 for total in totals], [-(-total // 2) for total in totals]
            first, last = (small, large) if named == "SAME_UPPER" else (large, small)
            (top, left), (bottom, right) = first, last
        elif named not in ("NOTSET", "VALID"):
            self._refuse(node, f"must not have auto_pad {named}")
        return kernel, (stride[0], stride[1]), (top, bottom, left, right)

    def _refuse(self, node: Any, rule: str) -> NoReturn:
        name = node.name or node.output[0]
        raise UnsupportedError(f"{self._file}: {node.op_type} {name!r} {rule}")
