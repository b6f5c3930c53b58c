"""TensorFlow Lite's operators of float32 numbers: for tables of 256 codes, and for the host.

Sums, products and quotients are float32's, in the reference's order. A transcendental function is
the float32 number nearest to its exact value: C libraries differ from that, and from each other, by
a unit in the last place or two, and NumPy's own float32 functions by the machine.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...graph import Graph, Node
from ...operators import OPERATORS, Attributes, Unary, clamp_of, find

Operands = Sequence[Any]
"""A node's inputs in their order: arrays of float32, and None for an absent one."""

_SIGMOID_LIMITS = (-9.0, 16.619047164916992188)
"""Below the first the reference takes exp(x) for the sigmoid of x, above the second 1."""


def _nearest(function: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    """A function, computed in float64 and rounded once."""
    return function(x.astype(np.float64)).astype(np.float32)


def _exp(x: np.ndarray) -> np.ndarray:
    return _nearest(np.exp, x)


def _logistic(x: np.ndarray, _: Attributes) -> np.ndarray:
    one = np.float32(1)
    low, high = map(np.float32, _SIGMOID_LIMITS)
    return np.select([x > high, x < low], [one, _exp(x)], one / (one + _exp(-x)))


def _hard_swish(x: np.ndarray, _: Attributes) -> np.ndarray:
    return x * np.clip(x + np.float32(3), np.float32(0), np.float32(6)) / np.float32(6)


def _leaky_relu(x: np.ndarray, attributes: Attributes) -> np.ndarray:
    return np.where(x > 0, x, x * np.float32(attributes["alpha"]))


def _rsqrt(x: np.ndarray, _: Attributes) -> np.ndarray:
    return np.float32(1) / np.sqrt(x)


def _clamp(x: np.ndarray, activation: str) -> np.ndarray:
    low, high = clamp_of(activation)
    low, high = -np.inf if low is None else low, np.inf if high is None else high
    return np.minimum(np.maximum(x, np.float32(low)), np.float32(high))


_FUNCTIONS: Mapping[str, Callable[[np.ndarray, Attributes], np.ndarray]] = {
    "hard_swish": _hard_swish,
    "leaky_relu": _leaky_relu,
    "logistic": _logistic,
    "rsqrt": _rsqrt,
}
"""Functions of one number that the reference computes in several steps of float32."""

_JOINED: Mapping[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "add": np.add,
    "div": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "mul": np.multiply,
    "prelu": lambda x, alpha: np.where(x >= 0, x, x * alpha),
    "squared_difference": lambda a, b: (a - b) * (a - b),
    "sub": np.subtract,
}


def is_elementwise(operator: str) -> bool:
    """Tells whether an operator's results depend on the numbers at one place."""
    return operator in _JOINED or isinstance(find(operator), Unary)


def _centred(x: np.ndarray) -> np.ndarray:
    return x - x.max(axis=-1, keepdims=True)


def _sum(x: np.ndarray) -> np.ndarray:
    """Along the last axis, one number after the other as the reference adds them."""
    return np.add.accumulate(x, axis=-1)[..., -1:]


def _softmax(node: Node, x: np.ndarray) -> np.ndarray:
    powers = _exp(_centred(x) * np.float32(node.attributes["beta"]))
    return powers / _sum(powers)


def _log_softmax(node: Node, x: np.ndarray) -> np.ndarray:
    centred = _centred(x)
    return centred - _nearest(np.log, _sum(_exp(centred)))


def _fully_connected(node: Node, operands: Operands, shape: tuple[int, ...]) -> np.ndarray:
    x, weights = operands[:2]
    bias = operands[2] if len(operands) > 2 else None
    rows = x.reshape(-1, weights.shape[1])
    total = np.zeros((len(rows), len(weights)), np.float32)
    for place in range(weights.shape[1]):
        total = total + rows[:, place, None] * weights[:, place]
    total = total if bias is None else total + bias
    return _clamp(total, node.attributes["activation"]).reshape(len(x), *shape[1:])


def _computed(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    x = operands[0]
    match node.operator:
        case "softmax":
            return _softmax(node, x)
        case "log_softmax":
            return _log_softmax(node, x)
        case "fully_connected":
            return _fully_connected(node, operands, graph.tensors[node.outputs[0]].shape)
        case operator if operator in _JOINED:
            value = _JOINED[operator](*operands)
            return _clamp(value, node.attributes.get("activation", "none"))
        case operator if operator in _FUNCTIONS:
            return _FUNCTIONS[operator](x, node.attributes)
        case operator:
            function = OPERATORS[operator]
            assert isinstance(function, Unary)
            return _clamp(x, operator) if function.clamp else function(x, node.attributes)


def compute(node: Node, graph: Graph, operands: Operands) -> np.ndarray:
    """A node of float32 numbers; infinite or NaN where it has no value."""
    with np.errstate(all="ignore"):
        return _computed(node, graph, operands).astype(np.float32)


REAL_OPERATORS = (*_JOINED, "softmax", "log_softmax", "fully_connected")
"""Operators that ``compute`` knows beside functions of one number."""
