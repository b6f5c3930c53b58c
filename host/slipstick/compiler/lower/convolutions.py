"""Convolutions, depthwise convolutions and fully connected layers as device operations."""

import dataclasses

import numpy as np

from ...errors import ModelError
from ...graph import Graph, Node
from ...kernels.lns.codes import arithmetic_of
from ...kernels.lns.layers import layer_scale, offsets
from ...kernels.onnx.scaling import code_range, factor_parts, layer_factors
from ...kernels.tflite.matrix import centred_weights
from ...kernels.tflite.scaling import activation_range, layer_multipliers
from ..ir.operations import Convolution, View
from ..ir.requantization import (
    Requantization,
    float_product,
    logarithm,
    requantization,
    rounding_runs,
)
from ..ir.views import HostReason, Views, constant, natural_view, scale_and_zero
from ..mapping.reduction import LARGEST_KERNEL_WIDTH
from .table import lowers

LARGEST_STRIDE = 255
LARGEST_LEFT_SHIFT = 7


def _requantization(node: Node, graph: Graph, views: Views, weights: np.ndarray) -> Requantization:
    """Per-channel factors; the input's zero point times the weights' sums goes into the bias."""
    source, result = views.activation(node.inputs[0]), views.activation(node.outputs[0])
    outputs = len(weights)
    arithmetic = arithmetic_of(graph.semantics)
    if arithmetic is not None:
        scale = layer_scale(source, graph.tensors[node.inputs[1]], arithmetic)
        offset = np.broadcast_to(offsets(scale, result, arithmetic), outputs).copy()
        return logarithm(_bias(node, graph, outputs), offset, code_range(node.attributes))
    in_float = graph.semantics == "onnx"
    tensors = source, graph.tensors[node.inputs[1]], result
    parts = factor_parts(layer_factors(*tensors)) if in_float else layer_multipliers(*tensors)
    multipliers, shifts = (np.broadcast_to(array, outputs).copy() for array in parts)
    if shifts.max() > LARGEST_LEFT_SHIFT:
        raise HostReason(f"a channel's factor reaches 2^{shifts.max()}, beyond the requantiser")
    bias = _bias(node, graph, outputs)
    zero_in = scale_and_zero(source)[1]
    bias -= zero_in * weights.reshape(outputs, -1).astype(np.int64).sum(axis=1)
    worst = bias[np.abs(bias).argmax()]
    if not -(1 << 31) <= worst < 1 << 31:
        raise ModelError(
            f"node {node.name!r}: bias less zero point times weights must be 32 bits, not {worst}"
        )
    scale, zero_out = scale_and_zero(result)
    if in_float:
        return float_product(multipliers, shifts, bias, zero_out, code_range(node.attributes))
    clamp = activation_range(node.attributes["activation"], scale, zero_out)
    values = requantization(multipliers, shifts, bias, zero_out, clamp)
    if rounding_runs(values, outputs, views.configuration.lanes) is None:
        raise HostReason("factors above and below 1 share a slice of channels")
    return values


def _bias(node: Node, graph: Graph, outputs: int) -> np.ndarray:
    """A layer's bias in units of its sums, int64."""
    bias = np.zeros(outputs, np.int64)
    if len(node.inputs) > 2 and node.inputs[2]:
        bias += constant(graph, node.inputs[2], "int32").reshape(-1)
    return bias


def _centred(graph: Graph, name: str, axis: int) -> np.ndarray:
    """Weights less their zero points as int8, or HostReason."""
    weights = centred_weights(constant(graph, name, "int8"), graph.tensors[name], axis)
    if weights.min() < -128 or weights.max() > 127:
        raise HostReason(
            f"its weights less their zero point, {weights.min()}..{weights.max()}, exceed 8 bits"
        )
    return weights.astype(np.int8)


def make_scaling(node: Node, graph: Graph, views: Views) -> Convolution:
    """A mul by a constant vector, a factor a channel, as a depthwise convolution of one tap."""
    computed, factors = (node.inputs[0], node.inputs[1])
    if graph.tensors[computed].data is not None:
        computed, factors = factors, computed
    source, result = views.activation(computed), views.activation(node.outputs[0])
    view = natural_view(source)
    vector, data = graph.tensors[factors], constant(graph, factors, "int8")
    if source.shape != result.shape or data.shape[-1] != data.size or data.size != view.channels:
        raise HostReason(f"it joins {source.shape} and {data.shape}, not a factor a channel")
    if vector.quantization is None:
        raise HostReason(f"{factors} has no scale")
    # as weights 1HWO they have a scale and a zero point for all
    shape = (1, 1, 1, data.size)
    weights = dataclasses.replace(vector, shape=shape, data=data.reshape(shape))
    attributes = {
        "stride": (1, 1),
        "dilation": (1, 1),
        "padding": (0, 0, 0, 0),
        "multiplier": 1,
        "activation": node.attributes["activation"],
    }
    layer = Node(node.name, "depthwise_conv2d", (computed, factors, ""), node.outputs, attributes)
    tensors = {**graph.tensors, factors: weights}
    made = make_convolution(layer, graph.replace(tensors=tensors), views)
    return dataclasses.replace(made, node=node)


@lowers("conv2d", "depthwise_conv2d")
def make_convolution(node: Node, graph: Graph, views: Views) -> Convolution:
    """A conv2d or depthwise_conv2d; HostReason if the device cannot."""
    source, result = views.activation(node.inputs[0]), views.activation(node.outputs[0])
    weights = _centred(graph, node.inputs[1], 3 if node.operator == "depthwise_conv2d" else 0)
    view, output = natural_view(source), natural_view(result)
    attributes = node.attributes
    groups = attributes.get("groups", 1)
    if node.operator == "depthwise_conv2d":
        groups = view.channels
        weights = np.moveaxis(weights, 3, 0).transpose(0, 2, 3, 1)
    if weights.shape[3] * groups != view.channels or weights.shape[0] != output.channels:
        raise ModelError(f"node {node.name!r}: weights {weights.shape} do not suit {view}")
    stride, dilation = tuple(attributes["stride"]), tuple(attributes["dilation"])
    top, _, left, _ = attributes["padding"]
    made = Convolution(
        node,
        source.name,
        result.name,
        view,
        output,
        weights.shape[1:3],
        stride,
        dilation,
        (top, left),
        np.ascontiguousarray(weights),
        groups,
        scale_and_zero(source)[1],
        _requantization(node, graph, views, weights),
    )
    _check_limits(made, views.configuration.largest_side)
    views.read(source.name, view)
    return made


def _check_limits(convolution: Convolution, largest_side: int) -> None:
    """HostReason if an instruction's fields do not hold the window."""
    kernel, stride, dilation = convolution.kernel, convolution.stride, convolution.dilation
    wide = kernel[1] > LARGEST_KERNEL_WIDTH and not convolution.covers_rows
    if wide or max(*stride, *dilation) > LARGEST_STRIDE:
        raise HostReason(
            f"kernel {kernel}, stride {stride}, dilation {dilation} exceed an instruction"
            f" ({LARGEST_KERNEL_WIDTH} columns, {LARGEST_STRIDE})"
        )
    view, padding = convolution.input, convolution.padding
    if max(view.height, view.width, *padding) > largest_side:
        raise HostReason(f"{view} exceeds an instruction ({largest_side} rows or columns)")


def _row_view(views: Views, name: str, inputs: int) -> tuple[View, View, tuple[int, int]]:
    """Input view, positions of the output, and the kernel that covers one row of inputs."""
    current = views.current(name)
    if current.elements == inputs:
        return current, View(1, 1, 0), (current.height, current.width)
    if current.channels == inputs:
        return current, View(current.height, current.width, 0), (1, 1)
    if current.width * current.channels == inputs:
        return current, View(current.height, 1, 0), (1, current.width)
    raise HostReason(f"{current} in memory is not rows of {inputs}")


@lowers("fully_connected")
def make_fully_connected(node: Node, graph: Graph, views: Views) -> Convolution:
    """A fully_connected as a convolution whose kernel covers its input."""
    source, result = views.activation(node.inputs[0]), views.activation(node.outputs[0])
    weights = _centred(graph, node.inputs[1], 0)
    outputs, inputs = weights.shape
    view, places, kernel = _row_view(views, source.name, inputs)
    output = View(places.height, places.width, outputs)
    if output.elements != int(np.prod(result.shape)):
        raise ModelError(f"node {node.name!r}: {output} results do not fill {result.shape}")
    requantized = _requantization(node, graph, views, weights)
    views.read(source.name, view)
    shaped = weights.reshape(outputs, *kernel, view.channels)
    return Convolution(
        node, source.name, result.name, view, output, kernel, (1, 1), (1, 1), (0, 0), shaped, 1,
        scale_and_zero(source)[1], requantized,
    )  # fmt: skip
