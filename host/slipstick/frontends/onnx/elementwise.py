"""Sums, products and the like of two tensors."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .convolutions import operand, result
from .dynamic import overall_ranked
from .functions import apply
from .operator import Operator
from .unbatched import own_pictures, ranked, rewrapped
from .values import (
    Activation,
    Coded,
    Codes,
    Constant,
    Overall,
    Pending,
    Real,
    Result,
    Shape,
    Value,
    shape_of,
)

_ARITHMETIC: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "pow": np.power,
    "minimum": np.minimum,
    "maximum": np.maximum,
}


def arithmetic(kind: str) -> Callable[[Operator], Value]:
    """An operator of two tensors that broadcast."""

    def handle(operator: Operator) -> Value:
        operator.require_inputs(2, 2)
        return combine(operator, kind, operator.value(0), operator.value(1))

    return handle


def extreme(kind: str) -> Callable[[Operator], Value]:
    """Max or Min of any number of tensors."""

    def handle(operator: Operator) -> Value:
        operator.require_inputs(1, 64)
        value = operator.value(0)
        for index in range(1, len(operator.inputs)):
            value = combine(operator, kind, part(operator, value), operator.value(index))
        return value

    return handle


def part(operator: Operator, value: Value) -> Value:
    """A value that is a step on the way to the operator's output, under a name of its own."""
    if isinstance(value, Pending) and value.name == operator.output:
        return dataclasses.replace(value, name=f"{value.name}/part", made={})
    return value


def combine(operator: Operator, kind: str, a: Value, b: Value, offset: str = "") -> Value:
    """Two values, element by element; ``offset`` as the attribute of ADD."""
    if all(isinstance(value, Constant | Coded | Overall) for value in (a, b)):
        return _overall(operator, kind, (a, b))
    shape = operator.broadcast(a, b)
    return (
        _of_codes(operator, kind, a, b)
        or _folded(operator, kind, a, b)
        or _node(operator, kind, (a, b), shape, offset)
    )


def _overall(operator: Operator, kind: str, values: tuple[Value, Value]) -> Overall:
    """Combines two tensors that have no batch, such as computed scales."""
    try:
        shape = np.broadcast_shapes(*map(shape_of, values))
    except ValueError:
        operator.reject("inputs must broadcast together")
    builder, names = operator.builder, []
    for index, value in enumerate(values):
        if isinstance(value, Overall):
            if value.dtype != "float32":
                operator.refuse(f"{operator.what(index)} must be float, not {value.dtype}")
            names.append(overall_ranked(operator, value, len(shape) + 1).tensor)
            continue
        assert isinstance(value, Constant | Coded)
        array = value.array.astype(np.float32)
        laid = array.reshape((1,) * (len(shape) + 1 - array.ndim) + array.shape)
        names.append(builder.constant(f"{operator.name}/operand{index}", laid))
    made = builder.tensor(operator.output, (1, *shape), "float32")
    attributes = {"negate": True} if kind == "sub" else {}
    graph_kind = "add" if kind == "sub" else kind
    builder.node(operator.name, graph_kind, (names[0], names[1]), made, attributes)
    return Overall(Activation(made, (1, *shape)), shape, "float32")


def _based(operator: Operator, value: Value, other: Value) -> Value:
    """A function of another tensor's codes, where it and the other operand both are one."""
    derived = operator.builder.derived
    if not isinstance(value, Real) or not isinstance(other, Real):
        return value
    base, codes = derived.get(value.activation.tensor, (None, None))
    rival = derived.get(other.activation.tensor, (other.activation, None))[0]
    if base is None or codes is None or value.activation == other.activation or base != rival:
        return value
    return Real(base, value.values[codes.astype(np.int64) + 128], False)


def _of_codes(operator: Operator, kind: str, a: Value, b: Value) -> Real | None:
    """A function of the codes of one tensor, where nothing else takes part."""
    a, b = _based(operator, a, b), _based(operator, b, a)
    values = []
    for value, other in ((a, b), (b, a)):
        if isinstance(value, Real):
            values.append(value.values)
        elif (
            isinstance(value, Constant | Coded)
            and math.prod(shape_of(value)) == 1
            and len(shape_of(value)) <= len(shape_of(other))
        ):
            values.append(value.array.astype(np.float32).reshape(()))
        else:
            return None
    reals = [value for value in (a, b) if isinstance(value, Real)]
    if not reals or any(real.activation != reals[0].activation for real in reals):
        return None
    with np.errstate(all="ignore"):
        result = _ARITHMETIC[kind](*values).astype(np.float32)
    return Real(reals[0].activation, result, False)


def _folded(operator: Operator, kind: str, a: Value, b: Value) -> Pending | None:
    """Into the weights and bias of the layer before, where one side is one number a channel."""
    if isinstance(a, Constant | Coded) and kind in ("add", "mul"):
        a, b = b, a
    if not isinstance(a, Pending) or not isinstance(b, Constant | Coded) or a.affine is None:
        return None
    if math.isfinite(a.low) or math.isfinite(a.high):
        return None
    numbers = _by_channel(b.array, a)
    if numbers is None or not np.isfinite(numbers).all():
        return None
    one, zero = np.ones(1), np.zeros(1)
    with np.errstate(divide="ignore"):
        changes = {
            "add": (one, numbers),
            "sub": (one, -numbers),
            "mul": (numbers, zero),
            "div": (1 / numbers, zero),
        }
    if kind not in changes:
        return None
    folded = a.affine(*changes[kind])
    return None if folded is None else dataclasses.replace(folded, name=operator.output)


def _by_channel(array: np.ndarray, pending: Pending) -> np.ndarray | None:
    """Numbers that broadcast along the channels only, as a vector."""
    rank = len(pending.shape)
    if array.ndim > rank:
        return None
    shape = (1,) * (rank - array.ndim) + array.shape
    others = [size for axis, size in enumerate(shape) if axis != pending.channel_axis]
    if any(size != 1 for size in others):
        return None
    return array.astype(np.float64).reshape(-1)


def _node(
    operator: Operator, kind: str, values: tuple[Value, ...], shape: Shape, offset: str
) -> Pending:
    builder = operator.builder
    attributes: dict[str, Any] = {"activation": "none"} if kind in ("add", "sub") else {}
    if kind == "sub":
        attributes["negate"] = True
    if offset and attributes:
        attributes["offset"] = offset

    def emit(wanted: Result) -> Activation:
        computed = {
            index: builder.real(value)
            for index, value in enumerate(values)
            if not isinstance(value, Constant | Coded | Overall)
        }
        inner = own_pictures(operator, computed, shape)
        if inner is None:
            return lay(wanted, computed, shape)
        name = f"{wanted.name}/picture"
        made = lay(dataclasses.replace(wanted, name=name), inner, shape[1:])
        return rewrapped(operator, made, wanted.name, shape)

    def lay(wanted: Result, computed: Mapping[int, Activation], output: Shape) -> Activation:
        names, layout = _operands(operator, values, computed, output)
        n, *rest = output
        laid = (n, *rest[1:], rest[0]) if layout == "picture" else output
        made = builder.tensor(wanted.name, laid, wanted.dtype, wanted.quantization)
        given = attributes if wanted.clamp is None else {**attributes, "clamp": wanted.clamp}
        graph_kind = "add" if kind == "sub" else kind
        builder.node(operator.name, graph_kind, names, made, given)
        return Activation(made, output, layout)

    return Pending(operator.output, shape, emit)


def _operands(
    operator: Operator,
    values: tuple[Value, ...],
    computed: Mapping[int, Activation],
    shape: Shape,
) -> tuple[tuple[str, ...], str]:
    """All operands as tensors of the graph in one layout, and that layout."""
    builder = operator.builder
    whole = all(len(activation.shape) == 4 for activation in computed.values())
    pictures = any(activation.layout == "picture" for activation in computed.values())
    layout = "picture" if whole and pictures and len(shape) == 4 else "natural"
    names = []
    for index, value in enumerate(values):
        if isinstance(value, Constant | Coded):
            array = value.array.astype(np.float32)
            array = array.reshape((1,) * (len(shape) - array.ndim) + array.shape)
            if layout == "picture":
                array = array.transpose(0, 2, 3, 1)
            names.append(builder.constant(f"{operator.name}/operand{index}", array))
            continue
        if isinstance(value, Overall):
            activation = overall_ranked(operator, value, len(shape))
        else:
            activation = computed[index]
        if len(activation.shape) != len(shape):
            activation = ranked(operator, activation, shape)
        laid = builder.picture if layout == "picture" else builder.natural
        names.append(laid(activation).tensor)
    return tuple(names), layout


def where(operator: Operator) -> Value:
    """The operator Where, by a constant condition."""
    operator.require_inputs(3, 3)
    return _chosen(operator, operator.value(1), operator.value(2))


def qlinear_where(operator: Operator) -> Value:
    """com.microsoft.QLinearWhere, by a constant condition."""
    operator.require_inputs(9, 9)
    return result(operator, _chosen(operator, operand(operator, 1), operand(operator, 4)), 7)


def _chosen(operator: Operator, a: Value, b: Value) -> Value:
    condition = Constant(operator.constant(0) != 0)
    if isinstance(a, Constant | Coded) and isinstance(b, Constant | Coded):
        operator.refuse("one input must be computed, and all are constants")
    shape = operator.broadcast(condition, a, b)
    return _node(operator, "where", (condition, a, b), shape, "")


def mean(operator: Operator) -> Value:
    """Mean of any number of tensors."""
    total = extreme("add")(operator)
    share = Constant(np.array(1 / len(operator.inputs), np.float32))
    return combine(operator, "mul", part(operator, total), share)


def batch_normalization(operator: Operator) -> Value:
    """BatchNormalization with constant statistics: one factor and one offset a channel."""
    operator.require_inputs(5, 5)
    operator.require("training_mode", operator.integer("training_mode", 0), (0,))
    value = operator.value(0)
    shape = shape_of(value)
    if len(shape) < 2:
        operator.reject(f"the input must have channels, not shape {shape}")
    scale, bias, mean, variance = (
        operator.constant(index).astype(np.float64) for index in range(1, 5)
    )
    for index, array in enumerate((scale, bias, mean, variance), 1):
        if array.shape != (shape[1],):
            operator.reject(f"{operator.what(index)} must be {shape[1]} numbers, not {array.shape}")
    epsilon = operator.number("epsilon", 1e-5)
    if not (variance + epsilon > 0).all():
        operator.reject("the variance must be positive")
    factor = scale / np.sqrt(variance + epsilon)
    column = (shape[1], *(1,) * (len(shape) - 2))
    offset = Constant((bias - mean * factor).astype(np.float32).reshape(column))
    scaled = combine(operator, "mul", value, Constant(factor.astype(np.float32).reshape(column)))
    return combine(operator, "add", part(operator, scaled), offset)


def prelu(operator: Operator) -> Value:
    """PRelu: one slope for all is LeakyRelu."""
    operator.require_inputs(2, 2)
    value, slope = operator.value(0), operator.constant(1)
    if slope.size == 1:
        alpha = float(slope.ravel()[0])
        return apply(operator, value, "LeakyRelu", {"alpha": alpha})
    shape = shape_of(value)
    if operator.broadcast(value, Constant(slope)) != shape:
        operator.reject(f"slopes of {slope.shape} must broadcast to {shape}")
    return _node(operator, "prelu", (value, Constant(slope)), shape, "")


def qlinear_binary(kind: str) -> Callable[[Operator], Value]:
    """com.microsoft.QLinearAdd and QLinearMul."""

    def handle(operator: Operator) -> Value:
        operator.require_inputs(7, 8)
        a, b = operand(operator, 0), operand(operator, 3)
        codes = operator.value(0)
        raised = isinstance(codes, Codes) and codes.dtype == "uint8"
        offset = "before of uint8" if raised else "before"
        return result(operator, combine(operator, kind, a, b, offset), 6)

    return handle
