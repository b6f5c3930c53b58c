"""Functions of one number: tables where it is a code, a clamp where that is enough."""

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from ...operators import FUNCTIONS
from .convolutions import operand, result
from .operator import Operator
from .values import Activation, Float, Pending, Real, Result, Value, shape_of


def function(operator: Operator) -> Value:
    """A function of one number by its own name."""
    operator.require_inputs(1, 1)
    given = {}
    for name, default in FUNCTIONS[operator.operator].defaults.items():
        if isinstance(default, str):
            given[name] = operator.text(name, default)
            operator.require(name, given[name], ("none", "tanh"))
        else:
            given[name] = operator.number(name, default)
    if given.get("alpha") == 0 and operator.operator == "Celu":
        operator.reject("alpha must not be 0")
    return apply(operator, operator.value(0), operator.operator, given)


def clip(operator: Operator) -> Value:
    """Clip; to opset 10 its bounds are attributes."""
    operator.require_inputs(1, 3)
    if operator.opset < 11:
        bounds = [operator.number("min", -math.inf) if "min" in operator.attributes else -math.inf]
        bounds += [operator.number("max", math.inf) if "max" in operator.attributes else math.inf]
    else:
        bounds = [-math.inf, math.inf]
        for index in (1, 2):
            if operator.has(index):
                array = operator.constant(index)
                if array.size != 1 or np.isnan(array.astype(np.float64)).any():
                    operator.reject(f"{operator.what(index)} must be one number, not {array.shape}")
                bounds[index - 1] = float(array.ravel()[0])
    limit = float(np.finfo(np.float32).max)
    low, high = (min(max(bound, -limit), limit) for bound in bounds)
    return apply(operator, operator.value(0), "Clip", {"low": low, "high": high})


def apply(operator: Operator, value: Value, name: str, attributes: dict[str, float | str]) -> Value:
    """A function of a value's numbers."""
    if isinstance(value, Real):
        changed = FUNCTIONS[name](value.values, attributes)
        return Real(
            value.activation, changed, value.linear and bool((changed == value.values).all())
        )
    if isinstance(value, Pending) and value.dtype == "float32" and name in ("Relu", "Clip"):
        bounds = (0.0, math.inf) if name == "Relu" else (attributes["low"], attributes["high"])
        low, high = (float(bound) for bound in bounds)
        # the upper bound wins where they cross, as in ONNX
        low, high = min(max(value.low, low), high), min(max(value.high, low), high)
        return dataclasses.replace(
            value, name=operator.output, low=low, high=high, affine=None, made={}
        )
    if not isinstance(value, Pending | Float):
        operator.refuse(f"{operator.what(0)} must be real numbers, and is not")
    builder, shape = operator.builder, shape_of(value)

    def emit(wanted: Result) -> Activation:
        source = builder.real(value)
        laid = builder.tensors[source.tensor].shape
        made = builder.tensor(wanted.name, laid, wanted.dtype, wanted.quantization)
        given = {"function": name, **attributes}
        if wanted.clamp is not None:
            given["clamp"] = wanted.clamp
        builder.node(operator.name, "function", (source.tensor,), made, given)
        return Activation(made, source.shape, source.layout, source.picture)

    return Pending(operator.output, shape, emit)


def qlinear_function(name: str) -> Callable[[Operator], Value]:
    """com.microsoft.QLinearSigmoid and QLinearLeakyRelu."""

    def handle(operator: Operator) -> Value:
        operator.require_inputs(4, 5)
        given = {key: operator.number(key, 0.01) for key in FUNCTIONS[name].defaults}
        return result(operator, apply(operator, operand(operator, 0), name, dict(given)), 3)

    return handle


def require_monotone(operator: Operator, value: Real) -> None:
    """Refuses a function that the largest code need not have the largest number of."""
    if (np.diff(value.values) < 0).any():
        operator.refuse(f"{operator.what(0)} must grow with the codes that it is computed of")
