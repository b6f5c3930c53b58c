"""The operators of a graph of logarithmic codes, by the graph's names."""

import dataclasses
from collections.abc import Sequence

import numpy as np
from slipstick_rtl.numbers.lns.array_arithmetic import ArrayArithmetic

from ...graph import Graph, Node, Tensor
from ...operators import find
from ..onnx.scaling import code_range, same_codes
from ..table import LNS, ONNX, Kernel, Operands
from ..tflite.scaling import scalar
from . import layers as log_layers
from .codes import arithmetic_of, decode, encode


def _arithmetic(graph: Graph) -> ArrayArithmetic:
    arithmetic = arithmetic_of(graph.semantics)
    assert arithmetic is not None
    return arithmetic


def to_real(x: np.ndarray, tensor: Tensor, arithmetic: ArrayArithmetic) -> np.ndarray:
    """Codes as float32; what has no codes stays what it is."""
    if tensor.quantization is None:
        return x
    return decode(x, scalar(tensor.quantization)[0], arithmetic).astype(np.float32)


def without_codes(tensor: Tensor) -> Tensor:
    """The tensor of the same numbers without codes."""
    if tensor.quantization is None:
        return tensor
    return dataclasses.replace(tensor, dtype="float32", quantization=None)


def in_float(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    """A node between real numbers, in float32, however its operands and its result are coded."""
    arithmetic = _arithmetic(graph)
    described = [graph.tensors[name] if name else None for name in node.inputs]
    reals = [
        value if tensor is None or value is None else to_real(value, tensor, arithmetic)
        for value, tensor in zip(operands, described, strict=True)
    ]
    names = {*node.inputs, *node.outputs} - {""}
    tensors = {**graph.tensors, **{name: without_codes(graph.tensors[name]) for name in names}}
    value = ONNX[node.operator](node, graph.replace(tensors=tensors), reals)
    output = graph.tensors[node.outputs[0]]
    if output.quantization is None:
        return value
    codes = encode(value, scalar(output.quantization)[0], arithmetic)
    return np.clip(codes, *code_range(node.attributes)).astype(np.int8)


def _described(node: Node, graph: Graph) -> list[Tensor]:
    """The node's first two inputs that are there, and its output."""
    return [graph.tensors[name] for name in (*node.inputs[:2], node.outputs[0]) if name]


def _coded(tensors: Sequence[Tensor]) -> bool:
    return all(tensor.quantization is not None for tensor in tensors)


def layer_sums(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    """Computes the sums of a layer of codes, int32, before its bias."""
    arithmetic, output = _arithmetic(graph), graph.tensors[node.outputs[0]]
    x, weights = operands[:2]
    assert x is not None and weights is not None
    if node.operator == "fully_connected":
        return log_layers.sum_fully_connected(x, weights, output, arithmetic)
    depthwise = node.operator == "depthwise_conv2d"
    kernel = log_layers.sum_depthwise_conv2d if depthwise else log_layers.sum_conv2d
    return kernel(x, weights, output, node.attributes, arithmetic)


def _layer(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    source, weights, output = _described(node, graph)
    if not _coded((source, weights)):
        return in_float(node, graph, operands)
    sums, bias = layer_sums(node, graph, operands), operands[2] if len(operands) > 2 else None
    tensors = (source, weights, output)
    return log_layers.finish_layer(sums, bias, tensors, node.attributes, _arithmetic(graph))


def _add(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    a, b, output = tensors = _described(node, graph)
    if not _coded(tensors):
        return in_float(node, graph, operands)
    codes = (operands[0], operands[1])
    return log_layers.add(*codes, (a, b, output), node.attributes, _arithmetic(graph))


def _mean(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    source, output = tensors = _described(node, graph)
    if not _coded(tensors):
        return in_float(node, graph, operands)
    kernel = log_layers.mean if node.operator == "mean" else log_layers.average_pool2d
    return kernel(operands[0], source, output, node.attributes, _arithmetic(graph))


def _concatenation(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    *sources, output = (graph.tensors[name] for name in (*node.inputs, node.outputs[0]))
    if all(same_codes(source, output) for source in sources):
        return ONNX["concatenation"](node, graph, operands)
    return in_float(node, graph, operands)


LNS.update(dict.fromkeys(("conv2d", "depthwise_conv2d", "fully_connected"), _layer))
LNS.update(dict.fromkeys(("average_pool2d", "dilated_average_pool2d", "mean"), _mean))
LNS.update({"add": _add, "concatenation": _concatenation})


def lns_kernel(operator: str) -> Kernel | None:
    """Returns an operator's kernel: its own, ONNX's for codes that move or are compared (they lie
    in the order of their numbers), or ONNX's in float32; None if ONNX has none either."""
    if operator not in ONNX or operator in LNS:
        return LNS.get(operator)
    return ONNX[operator] if find(operator).moves_codes else in_float
