"""Every operator that the host runs, by the graph's name: a node's attributes for its kernel."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...graph import Graph, Node, Quantization, Tensor
from ...operators import Family
from ..table import TFLM, Kernel, Operands
from . import binary, elementwise, matrix, pooling, rearrange, resize
from .activation import activation_table, softmax
from .log_softmax import log_softmax
from .real import REAL_OPERATORS, compute


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


def _binary(kernel: Callable[..., np.ndarray], *, activated: bool = True) -> Kernel:
    def run_binary(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
        options = (node.attributes["activation"],) if activated else ()
        return kernel(*operands, _described(node, graph, 2), *options)

    return run_binary


def _choice(kernel: Callable[[Any, Any], np.ndarray]) -> Kernel:
    return lambda node, graph, operands: kernel(*operands)


def _reduction(kernel: Callable[..., np.ndarray]) -> Kernel:
    def run_reduction(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
        return kernel(operands[0], *_described(node, graph, 1), node.attributes)

    return run_reduction


def _matmul(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    (a, b), (first, second, output) = operands, _described(node, graph, 2)
    return binary.matmul(
        a,
        b,
        (first, second, output),
        transpose_a=node.attributes.get("transpose_a", False),
        transpose_b=node.attributes.get("transpose_b", False),
    )


def _reshape(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    return operands[0].reshape(len(operands[0]), *node.attributes["shape"][1:])


def _attributes(kernel: Callable[..., np.ndarray], *keys: str) -> Kernel:
    """A kernel of one array that takes some attributes, or all of them as one mapping."""

    def run_unary(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
        options = [node.attributes[key] for key in keys] or [node.attributes]
        return kernel(operands[0], *options)

    return run_unary


def _concatenation(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    described = _described(node, graph, len(node.inputs))
    # a constant has no batch of its own
    count = max(len(operand) for operand in operands)
    rank = len(described[-1].shape)
    arrays = [ranked(repeated(operand, count), rank) for operand in operands]
    return rearrange.concatenate(arrays, described, node.attributes["axis"])


def _pack(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    count = max(len(operand) for operand in operands)
    arrays = [repeated(operand, count) for operand in operands]
    packed = rearrange.pack(arrays, node.attributes["axis"])
    return packed.reshape(count, *graph.tensors[node.outputs[0]].shape[1:])


def _transpose(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    turned = rearrange.transpose(operands[0], node.attributes["permutation"])
    # the batch of 1 may have become an axis elsewhere
    return turned.reshape(len(turned), *graph.tensors[node.outputs[0]].shape[1:])


def ranked(array: np.ndarray, rank: int) -> np.ndarray:
    """With axes of one element behind the batch."""
    return array.reshape(len(array), *(1,) * (rank - array.ndim), *array.shape[1:])


def repeated(array: np.ndarray, count: int) -> np.ndarray:
    """A constant, which has no batch of its own, with one."""
    return array if len(array) == count else np.repeat(array, count, axis=0)


def _extreme(*, largest: bool) -> Kernel:
    def run_extreme(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
        output = graph.tensors[node.outputs[0]]
        return pooling.reduce_extreme(operands[0], output, node.attributes, largest=largest)

    return run_extreme


def _place(*, largest: bool) -> Kernel:
    def run_place(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
        output, axis = graph.tensors[node.outputs[0]], node.attributes["axis"]
        return pooling.arg_extreme(operands[0], output, axis, largest=largest)

    return run_place


def _softmax(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    source, _ = _described(node, graph, 1)
    return softmax(operands[0], _quantization(source), node.attributes["beta"])


def _log_softmax(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    return log_softmax(operands[0], _quantization(graph.tensors[node.inputs[0]]))


def _quantize(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    source, output = _described(node, graph, 1)
    return elementwise.quantize(operands[0], source, output)


def _dequantize(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    return elementwise.dequantize(operands[0], graph.tensors[node.inputs[0]])


def _table(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    """A function of one code."""
    source, output = map(_quantization, _described(node, graph, 1))
    table = activation_table(node.operator, source, output, node.attributes)
    return table[operands[0].astype(np.int64) + 128]


def _lookup(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    x, table = operands
    return table[x.astype(np.int64) + 128]


def _of_either(kernel: Kernel) -> Kernel:
    """The kernel of an operator that has codes, or float32 numbers, on both sides."""

    def run_either(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
        if graph.tensors[node.outputs[0]].dtype == "float32":
            return compute(node, graph, operands)
        return kernel(node, graph, operands)

    return run_either


def _with_real(kernel: Kernel, operator: str) -> Kernel:
    return _of_either(kernel) if operator in REAL_OPERATORS else kernel


_CODES: Mapping[str, Kernel] = {
    "conv2d": _layer(matrix.conv2d),
    "depthwise_conv2d": _layer(matrix.depthwise_conv2d),
    "transpose_conv2d": _layer(matrix.transpose_conv2d),
    "fully_connected": _layer(matrix.fully_connected),
    "add": _binary(elementwise.add),
    "sub": _binary(binary.sub),
    "mul": _binary(binary.mul),
    "squared_difference": _binary(binary.squared_difference, activated=False),
    "prelu": _binary(binary.prelu, activated=False),
    "maximum": _choice(np.maximum),
    "minimum": _choice(np.minimum),
    "matmul": _matmul,
    "mean": _reduction(pooling.mean),
    "reduce_sum": _reduction(pooling.reduce_sum),
    "reduce_max": _extreme(largest=True),
    "reduce_min": _extreme(largest=False),
    "arg_max": _place(largest=True),
    "arg_min": _place(largest=False),
    "reshape": _reshape,
    "concatenation": _concatenation,
    "pack": _pack,
    "slice": _attributes(rearrange.take_slice),
    "transpose": _transpose,
    "pad": _attributes(rearrange.pad, "padding", "value"),
    "mirror_pad": _attributes(rearrange.mirror_pad, "padding", "mode"),
    "space_to_depth": _attributes(rearrange.space_to_depth, "block"),
    "depth_to_space": _attributes(rearrange.depth_to_space, "block"),
    "resize_nearest": _attributes(resize.resize_nearest),
    "resize_bilinear": _attributes(resize.resize_bilinear),
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "quantize": _quantize,
    "dequantize": _dequantize,
    "lookup": _lookup,
    "tile": lambda node, graph, operands: np.tile(operands[0], node.attributes["repeats"]),
}
"""By the graph's names, on codes."""

TFLM.update({operator: _with_real(kernel, operator) for operator, kernel in _CODES.items()})
TFLM["div"] = compute
TFLM[Family.UNARY] = _of_either(_table)
