"""An int8 network with its real numbers, as float ONNX, to quantise it for another format."""

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from ..errors import UnsupportedError
from ..graph import Graph, Node

IR_VERSION, OPSET = 8, 17


def dequantized(graph: Graph) -> bytes:
    """The file of the network with float32 weights, channels before rows and columns.

    Activations are not rounded in it, so it is not the same function: the codes of its outputs may
    differ by some steps.

    Raises
    ------
    UnsupportedError
        If the network has an operator that is none of ``OPERATORS``.
    """
    return _Writer(graph).model().SerializeToString()


class _Writer:
    """Collects nodes and constants."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._nodes, self._constants = list[Any](), list[Any]()

    def model(self) -> Any:
        """The network."""
        for node in self._graph.nodes:
            if node.operator not in OPERATORS:
                raise UnsupportedError(
                    f"{node.name}: {node.operator} must be one of {', '.join(OPERATORS)} to be"
                    " dequantised"
                )
            OPERATORS[node.operator](self, node)
        graph = helper.make_graph(
            self._nodes,
            self._graph.name,
            [self._value(name) for name in self._graph.inputs],
            [self._value(name) for name in self._graph.outputs],
            self._constants,
        )
        imports = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION)

    def _value(self, name: str) -> Any:
        shape = self._graph.tensors[name].shape
        turned = (shape[0], shape[3], *shape[1:3]) if len(shape) == 4 else shape
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, turned)

    def _real(self, name: str) -> np.ndarray:
        tensor = self._graph.tensors[name]
        assert tensor.data is not None and tensor.quantization is not None
        scale, zero = tensor.quantization.scale, tensor.quantization.zero_point
        if tensor.quantization.axis is not None:
            around = [1] * tensor.data.ndim
            around[tensor.quantization.axis] = -1
            scale, zero = scale.reshape(around), zero.reshape(around)
        return ((tensor.data.astype(np.float64) - zero) * scale).astype(np.float32)

    def _bias(self, node: Node) -> np.ndarray:
        """Its codes have the product of the scales of input and weights."""
        source, weights, bias = (self._graph.tensors[name] for name in node.inputs)
        assert bias.data is not None and source.quantization and weights.quantization
        scale = source.quantization.scale * weights.quantization.scale
        return (bias.data * scale).astype(np.float32)

    def _add(self, operator: str, node: Node, *constants: np.ndarray, **attributes: Any) -> None:
        """A node with the first inputs, constants, and the activation behind it."""
        names = [f"{node.name}/{number}" for number in range(len(constants))]
        for name, values in zip(names, constants, strict=True):
            self._constants.append(numpy_helper.from_array(values, name))
        sources = node.inputs if operator == "Add" else node.inputs[:1]
        (output,) = node.outputs
        rectified = node.attributes.get("activation", "none") == "relu"
        inner = f"{output}/linear" if rectified else output
        self._nodes.append(helper.make_node(operator, [*sources, *names], [inner], **attributes))
        if rectified:
            self._nodes.append(helper.make_node("Relu", [inner], [output]))

    def _window(self, node: Node) -> dict[str, Any]:
        top, bottom, left, right = node.attributes["padding"]
        return {"strides": list(node.attributes["stride"]), "pads": [top, left, bottom, right]}

    def convolution(self, node: Node) -> None:
        """Weights (out, y, x, in), or (1, y, x, channels) of a depthwise one."""
        weights = self._real(node.inputs[1])
        depthwise = node.operator == "depthwise_conv2d"
        turned = weights.transpose(3, 0, 1, 2) if depthwise else weights.transpose(0, 3, 1, 2)
        groups = len(turned) if depthwise else node.attributes["groups"]
        others = {"dilations": list(node.attributes["dilation"]), "group": groups}
        turned = np.ascontiguousarray(turned)
        self._add("Conv", node, turned, self._bias(node), **self._window(node), **others)

    def average(self, node: Node) -> None:
        """Over windows."""
        window = list(node.attributes["window"])
        self._add("AveragePool", node, kernel_shape=window, **self._window(node))

    def reshape(self, node: Node) -> None:
        """Channels come first here, and last in the weights behind: ``matrix`` turns those."""
        self._add("Flatten", node, axis=1)

    def matrix(self, node: Node) -> None:
        """Weights (out, in)."""
        weights = self._real(node.inputs[1])
        before = next((one for one in self._graph.nodes if one.outputs == node.inputs[:1]), None)
        if before is not None and before.operator == "reshape":
            _, height, width, channels = self._graph.tensors[before.inputs[0]].shape
            grid = weights.reshape(len(weights), height, width, channels)
            weights = grid.transpose(0, 3, 1, 2).reshape(weights.shape)
        self._add("Gemm", node, np.ascontiguousarray(weights), self._bias(node), transB=1)

    def addition(self, node: Node) -> None:
        """Writes the sum of two tensors."""
        self._add("Add", node)

    def softmax(self, node: Node) -> None:
        """Over the last axis."""
        self._add("Softmax", node, axis=-1)


OPERATORS: dict[str, Callable[[_Writer, Node], None]] = {
    "conv2d": _Writer.convolution,
    "depthwise_conv2d": _Writer.convolution,
    "fully_connected": _Writer.matrix,
    "add": _Writer.addition,
    "average_pool2d": _Writer.average,
    "reshape": _Writer.reshape,
    "softmax": _Writer.softmax,
}
"""Writers of the operators that can be dequantised."""
