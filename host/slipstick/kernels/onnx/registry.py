"""The operators of a graph with ONNX's semantics, by the graph's names."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...graph import Graph, Node, Tensor
from ...operators import FUNCTIONS
from ..table import ONNX, TFLM, Kernel, Operands
from ..tflite import matrix
from ..tflite.registry import ranked, repeated
from . import dynamic as onnx_dynamic
from . import layers as onnx_layers
from . import pooling as onnx_pooling
from . import real as onnx_real
from . import rearrange as onnx_rearrange
from .real import from_real, to_real
from .scaling import add_codes, add_tables, code_range, same_codes


def _tensors(node: Node, graph: Graph) -> list[Tensor]:
    """The node's inputs that are there, and its output."""
    return [graph.tensors[name] for name in (*node.inputs, node.outputs[0]) if name]


def _convolution(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    x, weights, bias = operands[0], operands[1], operands[2] if len(operands) > 2 else None
    source, described, *_, output = _tensors(node, graph)
    if described.quantization is None:
        turned = node.operator == "transpose_conv2d"
        layer = onnx_layers.real_transpose_conv2d if turned else onnx_layers.real_conv2d
        value = layer(to_real(x, source), weights, bias, output, node.attributes)
        return from_real(value, output, node.attributes)
    tensors = (source, described, output)
    sums = onnx_layers.SUMS[node.operator](x, weights, tensors, node.attributes)
    return onnx_layers.finish_layer(sums, bias, tensors, node.attributes)


def _fully_connected(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    x, weights, bias = operands[0], operands[1], operands[2] if len(operands) > 2 else None
    source, described, *_, output = _tensors(node, graph)
    if described.quantization is None:
        rows = to_real(x, source).reshape(len(x), -1, weights.shape[1]).astype(np.float64)
        value = (rows @ weights.T.astype(np.float64)).reshape(len(x), *output.shape[1:])
        return from_real(value if bias is None else value + bias, output, node.attributes)
    tensors = (source, described, output)
    sums = matrix.sum_fully_connected(x, weights, tensors)
    return onnx_layers.finish_layer(sums, bias, tensors, node.attributes)


def _matmul(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    a, b, output = _tensors(node, graph)
    return onnx_layers.matmul(operands[0], operands[1], (a, b, output), node.attributes)


def _mean(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    source, output = _tensors(node, graph)
    return onnx_pooling.mean(operands[0], source, output, node.attributes)


def _real(function: Callable[..., np.ndarray]) -> Kernel:
    """A function of float32 operands and the node's attributes."""

    def run_real(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
        *sources, output = _tensors(node, graph)
        given = [value for value in operands if value is not None]
        reals = [to_real(value, tensor) for value, tensor in zip(given, sources, strict=True)]
        with np.errstate(all="ignore"):
            value = function(*reals, node.attributes)
        return from_real(value, output, node.attributes)

    return run_real


def _sum(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    a, b, output = _tensors(node, graph)
    quantizations = (a.quantization, b.quantization, output.quantization)
    present = tuple(item for item in quantizations if item is not None)
    if len(present) == 3 and {a.dtype, b.dtype, output.dtype} == {"int8"}:
        tables = add_tables(present, node.attributes)
        return add_codes(operands[0], operands[1], tables, code_range(node.attributes))
    negate = node.attributes.get("negate")
    return _real(lambda a, b, _: a - b if negate else a + b)(node, graph, operands)


def _lookup(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    return operands[1][operands[0].astype(np.int64) + 128]


def _concatenation(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    *sources, output = _tensors(node, graph)
    count = max(map(len, operands))
    parts = []
    for value, tensor in zip(operands, sources, strict=True):
        whole = ranked(repeated(value, count), len(output.shape))
        same = tensor.dtype == output.dtype and same_codes(tensor, output)
        parts.append(whole if same else from_real(to_real(whole, tensor), output, {}))
    return np.concatenate(parts, axis=node.attributes["axis"])


def _normalize(
    x: np.ndarray, scale: np.ndarray, *rest: np.ndarray | Mapping[str, Any]
) -> np.ndarray:
    *bias, attributes = rest
    assert isinstance(attributes, Mapping)
    shift = bias[0] if bias and isinstance(bias[0], np.ndarray) else None
    axes, epsilon = tuple(attributes["axes"]), attributes["epsilon"]
    centred = attributes.get("centred", True)
    return onnx_real.layer_normalization(x, scale, shift, axes, epsilon, centred=centred)


def _dynamic_scale(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    return onnx_dynamic.scale(to_real(operands[0], graph.tensors[node.inputs[0]]))


def _dynamic_zero_point(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    x = to_real(operands[0], graph.tensors[node.inputs[0]])
    return onnx_dynamic.zero_point(x, operands[1])


def _quantize_by(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    x = to_real(operands[0], graph.tensors[node.inputs[0]])
    return onnx_dynamic.quantize_by(x, *operands[1:])


def _dequantize_by(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    return onnx_dynamic.dequantize_by(*operands)


def _einsum(*operands: np.ndarray | Mapping[str, Any]) -> np.ndarray:
    attributes = operands[-1]
    assert isinstance(attributes, Mapping)
    reals = [np.asarray(operand, np.float64) for operand in operands[:-1]]
    return np.einsum(attributes["equation"], *reals, optimize=True)


def _resize(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    source, output = graph.tensors[node.inputs[0]], graph.tensors[node.outputs[0]]
    if "codes" in node.attributes:
        shift = np.float32(node.attributes["codes"])
        codes = operands[0].astype(np.float32) + shift
        mixed = np.trunc(onnx_rearrange.resize(codes, *operands[1:], node.attributes))
        return (mixed - shift).astype(output.dtype)
    real = to_real(operands[0], source)
    value = onnx_rearrange.resize(real, *operands[1:], node.attributes)
    return from_real(value, output, node.attributes)


def _gather(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    return onnx_rearrange.gather(operands[0], operands[1], node.attributes["axis"])


def _place(*, largest: bool) -> Kernel:
    def run_place(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
        output = graph.tensors[node.outputs[0]]
        place = onnx_rearrange.arg_extreme(operands[0], node.attributes, largest=largest)
        return place.astype(output.dtype).reshape(len(place), *output.shape[1:])

    return run_place


def _blocks(kernel: Callable[[np.ndarray, int], np.ndarray]) -> Kernel:
    return lambda node, graph, operands: kernel(operands[0], node.attributes["block"])


def _pick(operators: tuple[str, ...]) -> dict[str, Kernel]:
    return {operator: TFLM[operator] for operator in operators}


_KERNELS: Mapping[str, Kernel] = {
    **dict.fromkeys(onnx_layers.SUMS, _convolution),
    # these move codes, whatever they mean
    **_pick(("reshape", "slice", "transpose", "pad", "mirror_pad", "depth_to_space")),
    **_pick(("space_to_depth", "reduce_max", "reduce_min", "pack", "resize_nearest")),
    "arg_max": _place(largest=True),
    "arg_min": _place(largest=False),
    "edge_pad": lambda node, graph, operands: np.pad(
        operands[0], node.attributes["padding"], mode="edge"
    ),
    "einsum": _real(_einsum),
    "expand": lambda node, graph, operands: onnx_rearrange.expand(
        operands[0], graph.tensors[node.outputs[0]].shape
    ),
    "gather": _gather,
    "tile": lambda node, graph, operands: np.tile(operands[0], node.attributes["repeats"]),
    "where": _real(lambda condition, a, b, _: np.where(condition != 0, a, b)),
    "pixel_shuffle": _blocks(onnx_rearrange.pixel_shuffle),
    "pixel_unshuffle": _blocks(onnx_rearrange.pixel_unshuffle),
    "reduce": _real(onnx_real.reduce),
    "resize": _resize,
    "dynamic_scale": _dynamic_scale,
    "dynamic_zero_point": _dynamic_zero_point,
    "quantize_by": _quantize_by,
    "dequantize_by": _dequantize_by,
    "fully_connected": _fully_connected,
    "matmul": _matmul,
    "add": _sum,
    "mul": _real(lambda a, b, _: a * b),
    "div": _real(lambda a, b, _: a / b),
    "maximum": _real(lambda a, b, _: np.maximum(a, b)),
    "minimum": _real(lambda a, b, _: np.minimum(a, b)),
    "prelu": _real(lambda x, slope, _: np.where(x < 0, x * slope, x)),
    "mean": _mean,
    "concatenation": _concatenation,
    "softmax": _real(lambda x, attributes: onnx_real.softmax(x, attributes["axis"])),
    "log_softmax": _real(lambda x, attributes: onnx_real.log_softmax(x, attributes["axis"])),
    "layer_normalization": _real(_normalize),
    "lookup": _lookup,
    "function": _real(lambda x, attributes: FUNCTIONS[attributes["function"]](x, attributes)),
    "pow": _real(lambda a, b, _: np.power(a, b)),
    "quantize": _real(lambda x, _: x),
    "dequantize": _real(lambda x, _: x),
}
"""Kernels of ONNX that the host runs, beside pooling; what is not quantised is float32."""

ONNX.update(_KERNELS)
