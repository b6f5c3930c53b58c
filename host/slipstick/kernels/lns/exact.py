"""Computes logarithmic layers without an array's own errors: the nearest codes, exactly.

An array rounds each product's antilogarithm, cuts off what lies below 20 bits, and looks at the
first bits of a sum only; what follows from its inputs exactly is often another code, by one.
"""

import numpy as np

from ...graph import Graph, Node
from ..onnx import layers as onnx_layers
from ..onnx import pooling as onnx_pooling
from ..onnx.scaling import code_range
from ..table import Operands
from ..tflite.scaling import scalar
from .codes import arithmetic_of, decode, encode, meanings
from .layers import layer_scale
from .registry import without_codes

_LAYERS = ("conv2d", "depthwise_conv2d", "fully_connected")


def exact(node: Node, graph: Graph, operands: Operands) -> np.ndarray | None:
    """The codes, int8, of a layer, a sum or a mean; None of what is exact anyway, or has no codes.

    Parameters
    ----------
    node, graph
        Of logarithmic codes.
    operands : sequence
        All inputs, constants too, as kernels take them.
    """
    names = [name for name in (*node.inputs[:2], node.outputs[0]) if name]
    coded = all(graph.tensors[name].quantization is not None for name in names)
    if node.operator not in (*_LAYERS, "add", "average_pool2d", "mean") or not coded:
        return None
    arithmetic, output = arithmetic_of(graph.semantics), graph.tensors[node.outputs[0]]
    assert arithmetic is not None
    reals = _layer if node.operator in _LAYERS else _mean
    value = _add(node, graph, operands) if node.operator == "add" else reals(node, graph, operands)
    codes = encode(value, scalar(output.quantization)[0], arithmetic)
    return np.clip(codes, *code_range(node.attributes)).astype(np.int8)


def _real(codes: np.ndarray, name: str, graph: Graph) -> np.ndarray:
    arithmetic, tensor = arithmetic_of(graph.semantics), graph.tensors[name]
    assert arithmetic is not None
    return decode(codes, scalar(tensor.quantization)[0], arithmetic)


def _layer(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    arithmetic = arithmetic_of(graph.semantics)
    assert arithmetic is not None
    (x, weights, bias), output = (*operands, None)[:3], graph.tensors[node.outputs[0]]
    assert x is not None and weights is not None
    source, described = (graph.tensors[name] for name in node.inputs[:2])
    # beside the scales: they are one a channel
    pixels, kernel = (meanings(arithmetic)[part.astype(np.int64) + 128] for part in (x, weights))
    attributes = dict(node.attributes)
    if node.operator == "fully_connected":
        sums = (pixels.reshape(-1, kernel.shape[1]) @ kernel.T).reshape(len(x), *output.shape[1:])
    else:
        if node.operator == "depthwise_conv2d":
            attributes["groups"] = x.shape[3]
            kernel = kernel.transpose(3, 1, 2, 0)
        sums = onnx_layers.real_conv2d(pixels, kernel, None, output, attributes)
    units = sums / arithmetic.unit + (0 if bias is None else bias)
    return units * layer_scale(source, described, arithmetic)


def _add(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    a, b = (_real(codes, name, graph) for codes, name in zip(operands, node.inputs, strict=True))
    return a - b if node.attributes.get("negate") else a + b


def _mean(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    source, output = (graph.tensors[name] for name in (node.inputs[0], node.outputs[0]))
    real = _real(operands[0], node.inputs[0], graph)
    if node.operator == "mean":
        value = real.mean(axis=tuple(node.attributes["axes"]))
        return value.reshape(len(real), *output.shape[1:])
    plain = (without_codes(source), without_codes(output))
    return onnx_pooling.average_pool2d(real, *plain, node.attributes)
