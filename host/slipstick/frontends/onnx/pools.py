"""Pooling, means and softmax."""

import math
from collections.abc import Callable
from typing import Any

from ...operators import Pooling
from ...operators.pooling import AVERAGE_POOL2D
from .builder import picture_shape
from .convolutions import operand, result
from .functions import require_monotone
from .moves import moved
from .operator import Operator
from .reductions import reduced_axes
from .values import Activation, Pending, Real, Result, Shape, Value, shape_of
from .windows import Windows, windows

PICTURE_AXES = {3: {0: 0, 1: 3, 2: 2}, 4: {0: 0, 1: 3, 2: 1, 3: 2}}
"""Axes of a picture, by the tensor's rank and by ONNX's axes."""


def pooling(record: Pooling) -> Callable[[Operator], Value]:
    """A pooling operator: of codes or what grows with them if it picks one, else of numbers."""

    def handle(operator: Operator) -> Value:
        operator.require_inputs(1, 1)
        if record.moves_codes:
            return _picked(operator, record)
        return _computed(operator, record, operator.value(0))

    return handle


def _picked(operator: Operator, record: Pooling) -> Value:
    attributes = _attributes(operator, record)
    if len(operator.outputs) > 1:
        operator.refuse(f"outputs must be 1, without indices, not {len(operator.outputs)}")
    value = operator.value(0)
    if isinstance(value, Real):
        require_monotone(operator, value)
    shape = shape_of(value)
    slide = windows(operator, shape, None)
    output = (*shape[:2], *slide.sizes)
    attributes |= {**slide.attributes(), "window": slide.kernel}
    kind = _kind(operator, record, slide, attributes)
    _check_inside(operator, slide.kernel, slide.padding)
    builder = operator.builder

    def move(activation: Activation, name: str) -> Activation:
        source = builder.picture(activation)
        made = builder.like(source.tensor, name, picture_shape(output))
        builder.node(operator.name, kind, (source.tensor,), made, attributes)
        return Activation(made, output, "picture")

    return moved(operator, value, move, output)


def _attributes(operator: Operator, record: Pooling) -> dict[str, Any]:
    """The attributes that an operator has beside its window's."""
    given = {
        name: operator.integer(name, default) for name, default in record.onnx_attributes.items()
    }
    if "storage_order" in given:
        operator.require("storage_order", given.pop("storage_order"), (0,))
    return given


def _kind(operator: Operator, record: Pooling, slide: Windows, attributes: dict[str, Any]) -> str:
    """The graph's operator: one that the host alone knows, if the windows have gaps."""
    if slide.dilation == (1, 1):
        return record.name
    if not record.dilated:
        operator.refuse(f"dilations must be 1, not {slide.dilation}")
    attributes["dilation"] = slide.dilation
    return record.dilated


def _check_inside(operator: Operator, window: Shape, padding: Shape) -> None:
    """Every window must hold something of the input."""
    for size, pads in zip(window, (padding[:2], padding[2:]), strict=True):
        if max(pads) >= size:
            operator.refuse(f"pads must be less than the window of {size}, not {pads}")


def _computed(operator: Operator, record: Pooling, value: Value) -> Pending:
    shape = shape_of(value)
    slide = windows(operator, shape, None)
    if slide.dilation != (1, 1) and any(slide.padding):
        operator.refuse(f"pads must be 0 where dilations are {slide.dilation}, not {slide.padding}")
    _check_inside(operator, slide.kernel, slide.padding)
    attributes = _attributes(operator, record)
    attributes |= {**slide.attributes(), "window": slide.kernel}
    if "count_include_pad" in attributes:
        every = attributes.pop("count_include_pad")
        attributes["counted"] = slide.declared if every else (0, 0, 0, 0)
    kind = _kind(operator, record, slide, attributes)
    output = (*shape[:2], *slide.sizes)
    builder = operator.builder

    def emit(wanted: Result) -> Activation:
        source = builder.picture(builder.real(value))
        laid = picture_shape(output)
        made = builder.tensor(wanted.name, laid, wanted.dtype, wanted.quantization)
        given = dict(attributes)
        if wanted.clamp is not None:
            given["clamp"] = wanted.clamp
        builder.node(operator.name, kind, (source.tensor,), made, given)
        return Activation(made, output, "picture")

    return Pending(operator.output, output, emit)


def reduced_mean(operator: Operator, value: Value, axes: Shape, keep: bool) -> Pending:
    """The mean over some of ONNX's axes."""
    shape = shape_of(value)
    rank = len(shape)
    if 0 in axes:
        operator.refuse(f"axes must leave out 0, the batch, not {axes}")
    kept = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    short = tuple(size for axis, size in enumerate(shape) if axis not in axes)
    builder = operator.builder

    def emit(wanted: Result) -> Activation:
        source = builder.real(value)
        if rank in (3, 4) and axes == tuple(range(2, rank)):
            source = builder.picture(source)
        picture = source.layout == "picture"
        if not picture:
            source = builder.natural(source)
        own = tuple(PICTURE_AXES[rank][axis] for axis in axes) if picture else axes
        if picture and rank == 3 and 2 in own:
            # a row is a picture of height 1
            own = (1, *own)
        laid = picture_shape(kept) if picture else kept
        name = wanted.name if keep else f"{wanted.name}/kept"
        made = builder.tensor(name, laid, wanted.dtype, wanted.quantization)
        attributes: dict[str, Any] = {"axes": tuple(sorted(own)), "keep_dimensions": True}
        if wanted.clamp is not None:
            attributes["clamp"] = wanted.clamp
        builder.node(operator.name, "mean", (source.tensor,), made, attributes)
        activation = Activation(made, kept, "picture" if picture else "natural")
        if keep:
            return activation
        return builder.reshaped(activation, wanted.name, short, f"{operator.name}/shape")

    return Pending(operator.output, kept if keep else short, emit)


def global_average_pool(operator: Operator) -> Value:
    """GlobalAveragePool."""
    operator.require_inputs(1, 1)
    return _over_sizes(operator, operator.value(0))


def _over_sizes(operator: Operator, value: Value) -> Pending:
    rank = len(shape_of(value))
    if rank not in (3, 4):
        operator.refuse(f"the input must have 3 or 4 dimensions, not shape {shape_of(value)}")
    return reduced_mean(operator, value, tuple(range(2, rank)), True)


def reduce_mean(operator: Operator) -> Value:
    """ReduceMean."""
    axes, keep = reduced_axes(operator)
    value = operator.value(0)
    return reduced_mean(operator, value, axes, keep) if axes else value


def whole_axis(kind: str) -> Callable[[Operator], Value]:
    """Softmax or LogSoftmax; to opset 12 over all axes from the one given on."""

    def handle(operator: Operator) -> Value:
        operator.require_inputs(1, 1)
        return normalized(operator, kind, operator.value(0), operator.opset)

    return handle


def normalized(operator: Operator, kind: str, value: Value, opset: int) -> Pending:
    """Softmax or LogSoftmax of real numbers, as an opset has it."""
    shape = shape_of(value)
    rank = len(shape)
    axis = operator.axis(operator.integer("axis", 1 if opset < 13 else -1), rank)
    # it was one vector of all axes from the given one on
    flat = opset < 13 and math.prod(shape[axis + 1 :]) != 1
    axes = tuple(range(axis, rank)) if flat else (axis,)
    if axis == 0:
        operator.refuse("axis must not be 0, the batch")
    builder = operator.builder

    def emit(wanted: Result) -> Activation:
        source = builder.real(value)
        picture = source.layout == "picture"
        if not picture:
            source = builder.natural(source)
        own = tuple(PICTURE_AXES[rank][axis] for axis in axes) if picture else axes
        laid = builder.tensors[source.tensor].shape
        made = builder.tensor(wanted.name, laid, wanted.dtype, wanted.quantization)
        attributes: dict[str, Any] = {"axis": own if flat else own[0]}
        if wanted.clamp is not None:
            attributes["clamp"] = wanted.clamp
        builder.node(operator.name, kind, (source.tensor,), made, attributes)
        return Activation(made, shape, source.layout)

    return Pending(operator.output, shape, emit)


def qlinear_average_pool(operator: Operator) -> Value:
    """com.microsoft.QLinearAveragePool."""
    operator.require_inputs(4, 5)
    operator.require("channels_last", operator.integer("channels_last", 0), (0,))
    pending = _computed(operator, AVERAGE_POOL2D, operand(operator, 0))
    return result(operator, pending, 3)


def qlinear_global_average_pool(operator: Operator) -> Value:
    """com.microsoft.QLinearGlobalAveragePool."""
    operator.require_inputs(5, 5)
    operator.require("channels_last", operator.integer("channels_last", 0), (0,))
    return result(operator, _over_sizes(operator, operand(operator, 0)), 3)


def qlinear_softmax(operator: Operator) -> Value:
    """com.microsoft.QLinearSoftmax; its attribute says which opset's softmax it is."""
    operator.require_inputs(5, 5)
    opset = operator.integer("opset", operator.opset)
    pending = normalized(operator, "softmax", operand(operator, 0), opset)
    return result(operator, pending, 3)
