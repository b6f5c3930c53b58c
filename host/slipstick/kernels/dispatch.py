"""One entry to all kernels: a node of a graph, run on a batch."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import InputError, UnsupportedError
from ..graph import Graph, Node, Quantization, Tensor
from . import elementwise, matrix, pooling
from .activation import activation_table, softmax

Operands = Sequence[Any]
"""A node's inputs in their order: arrays, and None for an absent one."""

Kernel = Callable[[Node, Graph, Operands], np.ndarray]


def run(node: Node, graph: Graph, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Runs one node with the reference's integer semantics.

    Parameters
    ----------
    node : Node
    graph : Graph
        Where the node's tensors are described; constants are taken from there.
    inputs : sequence of arrays
        The node's activations in the order of ``node.inputs``, constants left out. Each has its
        tensor's type, and its shape with a batch of any size in the leading axis.

    Returns
    -------
    list of arrays
        The node's outputs, with the same batch.

    Raises
    ------
    InputError
        If an array is not of its tensor's type and shape, or their number is wrong.
    UnsupportedError
        If there is no kernel for the operator.
    """
    if node.operator not in KERNELS:
        raise UnsupportedError(
            f"node {node.name}: operator must be one of {tuple(KERNELS)}, not {node.operator}"
        )
    return [KERNELS[node.operator](node, graph, _operands(node, graph, inputs))]


def run_graph(graph: Graph, inputs: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """Runs a whole graph and returns every activation by tensor name.

    Parameters and errors are as for ``run``, with the graph's inputs.
    """
    if len(inputs) != len(graph.inputs):
        raise InputError(f"{graph.name} takes {len(graph.inputs)} inputs, not {len(inputs)}")
    values = dict(zip(graph.inputs, inputs, strict=True))
    for node in graph.nodes:
        activations = [values[name] for name in node.inputs if name in values]
        values.update(zip(node.outputs, run(node, graph, activations), strict=True))
    return values


def _operands(node: Node, graph: Graph, inputs: Sequence[np.ndarray]) -> list[Any]:
    names = [name for name in node.inputs if name and graph.tensors[name].data is None]
    if len(names) != len(inputs):
        raise InputError(f"node {node.name} takes {len(names)} activations, not {len(inputs)}")
    for name, value in zip(names, inputs, strict=True):
        tensor = graph.tensors[name]
        if value.dtype != tensor.dtype or value.shape[1:] != tensor.shape[1:]:
            raise InputError(
                f"node {node.name}: {name} must be {tensor.dtype} of shape {tensor.shape} or a"
                f" batch of that, not {value.dtype} of shape {value.shape}"
            )
    queue = iter(inputs)
    constants = [graph.tensors[name].data if name else None for name in node.inputs]
    return [
        next(queue) if name and constant is None else constant
        for name, constant in zip(node.inputs, constants, strict=True)
    ]


def _described(node: Node, graph: Graph, inputs: int) -> tuple[Tensor, ...]:
    """The node's first inputs and its output."""
    return tuple(graph.tensors[name] for name in (*node.inputs[:inputs], node.outputs[0]))


def _quantization(tensor: Tensor) -> Quantization:
    if tensor.quantization is None:
        raise ValueError(f"tensor {tensor.name} must be quantised")
    return tensor.quantization


def _layer(kernel: Callable[..., np.ndarray]) -> Kernel:
    def run_layer(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
        x, weights, bias = (*operands, None)[:3]
        return kernel(x, weights, bias, _described(node, graph, 2), node.attributes)

    return run_layer


def _pool(kernel: Callable[..., np.ndarray]) -> Kernel:
    def run_pool(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
        return kernel(operands[0], graph.tensors[node.outputs[0]], node.attributes)

    return run_pool


def _add(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    (a, b), (first, second, output) = operands, _described(node, graph, 2)
    return elementwise.add(a, b, (first, second, output), node.attributes["activation"])


def _mean(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    source, output = _described(node, graph, 1)
    return pooling.mean(operands[0], source, output, node.attributes)


def _reshape(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    return operands[0].reshape(len(operands[0]), *node.attributes["shape"][1:])


def _pad(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    return elementwise.pad(operands[0], node.attributes["padding"], node.attributes["value"])


def _softmax(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    source, _ = _described(node, graph, 1)
    return softmax(operands[0], _quantization(source), node.attributes["beta"])


def _quantize(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    source, output = _described(node, graph, 1)
    return elementwise.quantize(operands[0], source, output)


def _dequantize(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    return elementwise.dequantize(operands[0], graph.tensors[node.inputs[0]])


def _table(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    source, output = map(_quantization, _described(node, graph, 1))
    return activation_table(node.operator, source, output)[operands[0].astype(np.int64) + 128]


KERNELS: dict[str, Kernel] = {
    "conv2d": _layer(matrix.conv2d),
    "depthwise_conv2d": _layer(matrix.depthwise_conv2d),
    "fully_connected": _layer(matrix.fully_connected),
    "add": _add,
    "average_pool2d": _pool(pooling.average_pool2d),
    "max_pool2d": _pool(pooling.max_pool2d),
    "mean": _mean,
    "reshape": _reshape,
    "pad": _pad,
    "softmax": _softmax,
    "relu": _table,
    "relu6": _table,
    "relu_n1_to_1": _table,
    "logistic": _table,
    "tanh": _table,
    "hard_swish": _table,
    "quantize": _quantize,
    "dequantize": _dequantize,
}
"""The operators that the host runs, by the graph's names."""
