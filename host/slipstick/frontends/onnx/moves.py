"""Operators that move numbers and change none: what they are to every kind of value."""

import dataclasses
from collections.abc import Callable

from .operator import Operator
from .values import Activation, Codes, Float, Pending, Real, Result, Shape, Value

Move = Callable[[Activation, str], Activation]
"""Moves the numbers of an activation into a new one of some name."""


def moved(operator: Operator, value: Value, move: Move, shape: Shape, output: str = "") -> Value:
    """A computed value, moved; what is not computed yet is computed where it is read."""
    name = output or operator.output
    match value:
        case Codes(activation, dtype):
            made = move(activation, name)
            operator.builder.note(name, made, dtype)
            return Codes(made, dtype)
        case Real(activation, values, linear):
            return Real(move(activation, name), values, linear)
        case Float(activation):
            made = move(activation, name)
            operator.builder.note(name, made, operator.builder.tensors[made.tensor].dtype)
            return Float(made)
        case Pending():
            return _later(operator, value, move, shape, name)
        case _:
            operator.refuse("one input must be computed, and all are constants")


def _later(operator: Operator, value: Pending, move: Move, shape: Shape, name: str) -> Pending:
    def emit(result: Result) -> Activation:
        before = dataclasses.replace(result, name=value.name)
        if result.quantization is None:
            # clamped here, so that the name is that of the whole value
            return move(operator.builder.real(value), result.name)
        return move(operator.builder.emit(value, before), result.name)

    return Pending(name, shape, emit, low=value.low, high=value.high, dtype=value.dtype)
