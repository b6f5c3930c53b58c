"""Operators that reshape, transpose, join and cut."""

import dataclasses
import math

import numpy as np

from .convolutions import operand, result
from .moves import moved
from .operator import Operator
from .pools import PICTURE_AXES
from .values import (
    Activation,
    Coded,
    Codes,
    Constant,
    Float,
    Pending,
    Result,
    Shape,
    Value,
    dtype_of,
    shape_of,
)


def _reshaped(operator: Operator, shape: Shape) -> Value:
    value = operator.value(0)
    if math.prod(shape) != math.prod(shape_of(value)) or min(shape, default=1) < 0:
        operator.reject(f"the output {shape} must hold as much as the input {shape_of(value)}")
    if shape == shape_of(value):
        return value
    builder = operator.builder

    def move(activation: Activation, name: str) -> Activation:
        return builder.reshaped(activation, name, shape, operator.name)

    return moved(operator, value, move, shape)


def reshape(operator: Operator) -> Value:
    """Reshape to a constant shape; a batch that the file fixes counts as 1."""
    operator.require_inputs(2, 2)
    lead = operator.lead
    old, wanted = shape_of(operator.value(0))[lead:], list(operator.constant_integers(1))
    copies = not operator.integer("allowzero", 0)
    for axis, size in enumerate(wanted):
        if size == 0 and copies:
            if axis >= len(old):
                operator.reject(f"size {axis} must be one of the input's {old}, not 0")
            wanted[axis] = old[axis]
    batch = operator.builder.batch
    if batch > 1 and wanted and wanted[0] == 1:
        operator.refuse(f"the batch of {batch} must stay in front, not become 1")
    if -1 not in wanted and wanted and batch > 1 and wanted[0] == batch:
        wanted[0] = 1
    if wanted.count(-1) > 1:
        operator.reject(f"at most one size must be -1, not {tuple(wanted)}")
    if -1 in wanted:
        rest = -math.prod(wanted)
        if rest <= 0 or math.prod(old) % rest:
            operator.reject(f"sizes {tuple(wanted)} must divide the input {old}")
        wanted[wanted.index(-1)] = math.prod(old) // rest
    return _reshaped(operator, (*(1,) * lead, *wanted))


def flatten(operator: Operator) -> Value:
    """Flatten to two dimensions."""
    operator.require_inputs(1, 1)
    lead = operator.lead
    shape = shape_of(operator.value(0))[lead:]
    axis = operator.integer("axis", 1)
    if not -len(shape) <= axis <= len(shape):
        operator.reject(f"axis must be within {-len(shape)}..{len(shape)}, not {axis}")
    axis = axis + len(shape) if axis < 0 else axis
    if not axis and operator.builder.batch > 1:
        operator.refuse(f"axis must leave out 0, a batch of {operator.builder.batch}")
    sizes = (math.prod(shape[:axis]), math.prod(shape[axis:]))
    return _reshaped(operator, (*(1,) * lead, *sizes))


def _axes(operator: Operator, rank: int) -> tuple[int, ...]:
    """The axes of Squeeze and Unsqueeze; to opset 12 they are an attribute."""
    listed = operator.integers("axes", ())
    if operator.has(1):
        listed = operator.constant_integers(1)
    return tuple(sorted({operator.axis(axis, rank) for axis in listed}))


def squeeze(operator: Operator) -> Value:
    """Squeeze: without axes of one."""
    operator.require_inputs(1, 2)
    shape = shape_of(operator.value(0))
    axes = _axes(operator, len(shape))
    axes = axes or tuple(axis for axis, size in enumerate(shape) if axis and size == 1)
    if any(shape[axis] != 1 for axis in axes):
        operator.reject(f"axes {axes} of {shape} must have one element")
    return _reshaped(operator, tuple(s for axis, s in enumerate(shape) if axis not in axes))


def unsqueeze(operator: Operator) -> Value:
    """Unsqueeze: with more axes of one."""
    operator.require_inputs(1, 2)
    shape = shape_of(operator.value(0))
    count = len(operator.constant_integers(1) if operator.has(1) else operator.integers("axes", ()))
    axes = _axes(operator, len(shape) + count)
    if len(axes) < count:
        operator.reject(f"axes must be {count} different ones, not {axes}")
    if 0 in axes and operator.builder.batch > 1:
        operator.refuse(f"axes must leave out 0, a batch of {operator.builder.batch}")
    rest = iter(shape)
    return _reshaped(
        operator,
        tuple(1 if axis in axes else next(rest) for axis in range(len(shape) + len(axes))),
    )


def transpose(operator: Operator) -> Value:
    """Transpose that leaves the batch where it is."""
    operator.require_inputs(1, 1)
    value = operator.value(0)
    shape = shape_of(value)
    lead = operator.lead
    own = len(shape) - lead
    permutation = operator.integers("perm", tuple(reversed(range(own))))
    if sorted(permutation) != list(range(own)):
        operator.reject(f"perm must order {own} axes, not {permutation}")
    permutation = (*range(lead), *(axis + lead for axis in permutation))
    if permutation and permutation[0] != 0:
        operator.refuse(f"perm must leave axis 0, the batch, in front, not {permutation}")
    output = tuple(shape[axis] for axis in permutation)
    builder = operator.builder

    def move(activation: Activation, name: str) -> Activation:
        if activation.layout == "picture" and len(shape) == 4 and permutation == (0, 2, 3, 1):
            # a picture lies like that already
            return Activation(activation.tensor, output)
        if activation.layout == "natural" and permutation == (0, 3, 1, 2):
            return Activation(activation.tensor, output, "picture")
        source = builder.natural(activation)
        made = builder.like(source.tensor, name, output)
        given = {"permutation": permutation}
        builder.node(operator.name, "transpose", (source.tensor,), made, given)
        return Activation(made, output)

    return moved(operator, value, move, output)


def identity(operator: Operator) -> Value:
    """Identity, and Dropout, which drops nothing where it does not train."""
    if operator.has(2) and operator.constant(2).any():
        operator.refuse("training_mode must be false, not true")
    return operator.value(0)


def cast(operator: Operator) -> Value:
    """Cast to float32 of the sums of an integer operator, or of other whole numbers."""
    operator.require_inputs(1, 1)
    operator.require("to", operator.integer("to", 0), (1,))
    value = operator.value(0)
    if isinstance(value, Pending):
        return Pending(
            operator.output,
            value.shape,
            value.emit,
            value.low,
            value.high,
            value.affine,
            value.channel_axis,
        )
    if dtype_of(value) != "float32" and not isinstance(value, Float):
        operator.refuse(f"{operator.what(0)} must be float or int32 sums, not {dtype_of(value)}")
    if not isinstance(value, Float):
        return value
    builder, source = operator.builder, value.activation
    described = builder.tensors[source.tensor]
    if described.dtype == "float32":
        return value
    made = builder.tensor(operator.output, described.shape, "float32")
    builder.node(operator.name, "dequantize", (source.tensor,), made, {})
    return Float(dataclasses.replace(source, tensor=made))


def concat(operator: Operator) -> Value:
    """Concat."""
    operator.require_inputs(1, 256)
    return joined(operator, [operator.value(index) for index in range(len(operator.inputs))])


def joined(operator: Operator, values: list[Value]) -> Value:
    """Values behind one another along the attribute's axis."""
    front = (1,) * operator.lead
    shapes = [
        (*front, *shape_of(value)) if isinstance(value, Constant | Coded) else shape_of(value)
        for value in values
    ]
    rank = len(shapes[0])
    axis = operator.axis(operator.integer("axis", 1), rank)
    rests = {(*shape[:axis], *shape[axis + 1 :]) for shape in shapes}
    if len(rests) > 1 or any(len(shape) != rank for shape in shapes):
        operator.reject(f"inputs must be equal but for axis {axis}, not {shapes}")
    if axis == 0:
        operator.refuse("axis must not be 0, the batch")
    total = sum(shape[axis] for shape in shapes)
    output = (*shapes[0][:axis], total, *shapes[0][axis + 1 :])
    codes = [value for value in values if isinstance(value, Codes)]
    if codes and len(codes) < len(values):
        operator.refuse("inputs must all be codes, or all real numbers")

    def emit(wanted: Result) -> Activation:
        return _join(operator, values, output, axis, wanted)

    if not codes:
        return Pending(operator.output, output, emit)
    builder = operator.builder
    meanings = {_meaning(operator, value.activation) for value in codes}
    if len(meanings) > 1:
        operator.refuse(f"codes must all have one scale and zero point, not {len(meanings)}")
    first = builder.tensors[codes[0].activation.tensor]
    made = emit(Result(operator.output, first.dtype, first.quantization))
    builder.note(operator.output, made, codes[0].dtype)
    return Codes(made, codes[0].dtype)


def _meaning(operator: Operator, activation: Activation) -> tuple[float, int] | None:
    quantization = operator.builder.tensors[activation.tensor].quantization
    if quantization is None:
        return None
    return float(quantization.scale[0]), int(quantization.zero_point[0])


def _join(
    operator: Operator, values: list[Value], output: Shape, axis: int, wanted: Result
) -> Activation:
    builder = operator.builder
    computed: list[Activation | None] = []
    for value in values:
        if isinstance(value, Constant | Coded):
            computed.append(None)
        else:
            known = isinstance(value, Codes)
            computed.append(value.activation if known else builder.real(value))
    pictures = any(item is not None and item.layout == "picture" for item in computed)
    picture = pictures and len(output) == 4
    names = []
    for index, (value, item) in enumerate(zip(values, computed, strict=True)):
        if item is not None:
            names.append((builder.picture if picture else builder.natural)(item).tensor)
            continue
        assert isinstance(value, Constant | Coded)
        array = value.array.astype(np.float32).reshape((1,) * operator.lead + shape_of(value))
        laid = array.transpose(0, 2, 3, 1) if picture else array
        names.append(builder.constant(f"{operator.name}/operand{index}", laid))
    n, *rest = output
    shape = (n, *rest[1:], rest[0]) if picture else output
    made = builder.tensor(wanted.name, shape, wanted.dtype, wanted.quantization)
    attributes: dict[str, object] = {"axis": PICTURE_AXES[4][axis] if picture else axis}
    builder.node(operator.name, "concatenation", tuple(names), made, attributes)
    return Activation(made, output, "picture" if picture else "natural")


def qlinear_concat(operator: Operator) -> Value:
    """com.microsoft.QLinearConcat."""
    operator.require_inputs(5, 2 + 3 * 256)
    if (len(operator.inputs) - 2) % 3:
        operator.reject(f"inputs must be 2 and threes, not {len(operator.inputs)}")
    values = [operand(operator, index) for index in range(2, len(operator.inputs), 3)]
    return result(operator, joined(operator, values), 0)
