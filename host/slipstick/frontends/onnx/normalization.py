"""Layers that normalise: over the last axes, or over each channel's picture."""

import numpy as np

from .operator import Operator
from .reductions import reduced
from .values import Activation, Pending, Result, Shape, Value, shape_of


def layer_normalization(operator: Operator) -> list[Value]:
    """LayerNormalization over the last axes, with the mean and 1 / deviation, if they are read."""
    operator.require_inputs(2, 3)
    operator.require("stash_type", operator.integer("stash_type", 1), (1,))
    value = operator.value(0)
    shape = shape_of(value)
    axes = _last_axes(operator, shape)
    constants = _constants(operator, shape[axes[0] :])
    made: list[Value] = [_normalized(operator, value, axes, constants, {})]
    epsilon = operator.number("epsilon", 1e-5)
    for function, name in zip(("mean", "scale"), operator.outputs[1:], strict=False):
        made.append(reduced(operator, value, (function, axes, True), name, epsilon=epsilon))
    return made


def rms_normalization(operator: Operator) -> Value:
    """RMSNormalization over the last axes: nothing is subtracted."""
    operator.require_inputs(2, 2)
    operator.require("stash_type", operator.integer("stash_type", 1), (1,))
    value = operator.value(0)
    shape = shape_of(value)
    axes = _last_axes(operator, shape)
    constants = _constants(operator, shape[axes[0] :])
    return _normalized(operator, value, axes, constants, {"centred": False})


def instance_normalization(operator: Operator) -> Value:
    """InstanceNormalization: each channel of each picture by itself."""
    operator.require_inputs(3, 3)
    value = operator.value(0)
    shape = shape_of(value)
    if len(shape) < 3:
        operator.reject(f"the input must have at least 3 dimensions, not shape {shape}")
    column = (shape[1], *(1,) * (len(shape) - 2))
    constants = []
    for index in (1, 2):
        array = operator.constant(index)
        if array.shape != (shape[1],):
            operator.reject(f"{operator.what(index)} must be {shape[1]} numbers, not {array.shape}")
        constants.append(array.reshape(column))
    return _normalized(operator, value, tuple(range(2, len(shape))), constants, {})


def _last_axes(operator: Operator, shape: Shape) -> Shape:
    axis = operator.axis(operator.integer("axis", -1), len(shape))
    if axis == 0:
        operator.refuse("axis must not be 0, the batch")
    return tuple(range(axis, len(shape)))


def _constants(operator: Operator, shape: Shape) -> list[np.ndarray]:
    """Scale and bias."""
    arrays = [operator.constant(1), *([operator.constant(2)] if operator.has(2) else [])]
    for array in arrays:
        try:
            fits = np.broadcast_shapes(shape, array.shape) == shape
        except ValueError:
            fits = False
        if not fits:
            operator.reject(f"scale and bias must broadcast to {shape}, not {array.shape}")
    return arrays


def _normalized(
    operator: Operator,
    value: Value,
    axes: Shape,
    constants: list[np.ndarray],
    options: dict[str, object],
) -> Pending:
    builder, shape = operator.builder, shape_of(value)

    def emit(wanted: Result) -> Activation:
        source = builder.natural(builder.real(value))
        names = [
            builder.constant(f"{operator.name}/{what}", array.astype(np.float32))
            for what, array in zip(("scale", "bias"), constants, strict=False)
        ]
        made = builder.tensor(wanted.name, shape, wanted.dtype, wanted.quantization)
        attributes = {"axes": axes, "epsilon": operator.number("epsilon", 1e-5), **options}
        if wanted.clamp is not None:
            attributes["clamp"] = wanted.clamp
        inputs = (source.tensor, *names)
        builder.node(operator.name, "layer_normalization", inputs, made, attributes)
        return Activation(made, shape)

    return Pending(operator.output, shape, emit)
