"""A training step in logarithmic arithmetic: a network of two layers, forward, backward, update.

The step asks for every operation by yielding it and is sent the result, so that whoever drives it
chooses what computes: NumPy's golden model, kernels compiled with numba, or simulated gateware.
All numbers are ordered codes of one format, and the order of every sum is that of its index.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from slipstick_rtl.numbers.lns.formats import Lns
from slipstick_rtl.numbers.lns.unit.arithmetic import LnsArithmetic, Operation
from slipstick_rtl.numbers.lns.unit.conversions import from_float, to_fixed

LOGIT_PLACES = 12
"""Binary places of logits in the exponential."""

_LOG2_E_PLACES = 14
_LOG2_E = round(np.log2(np.e) * (1 << _LOG2_E_PLACES))


@dataclass(frozen=True)
class Elementwise:
    """An operation of arrays that are broadcast; answered by (value, rest)."""

    operation: Operation
    a: Any
    b: Any = 0
    c: Any = 0


@dataclass(frozen=True)
class InnerProducts:
    """start + a @ b, summed in the order of the inner index; answered by an array (m, n).

    Parameters
    ----------
    a : array (m, k)
    b : array (k, n)
    start : array, broadcast to (m, n)
    compensated : bool
        Each sum is a chain of compensated additions, in which products that are 0 have no part.
    """

    a: Any
    b: Any
    start: Any
    compensated: bool


Request = Elementwise | InnerProducts
Steps = Generator[Request, Any, Any]


@dataclass(frozen=True)
class Rules:
    """Describes how a network is trained.

    Parameters
    ----------
    lns : Lns
    rate : float
        Learning rate.
    batch : int
        Images; gradients are means over it.
    compensated : bool
        Sums of products and updates of weights keep what rounding loses.
    complemented : bool
        The output error of the true class is minus the sum of the others, not p - 1, which
        vanishes when p rounds to 1.
    """

    lns: Lns
    rate: float
    batch: int
    compensated: bool = False
    complemented: bool = False


@dataclass
class Network:
    """Ordered codes, int32: weights (inputs, hidden) and (hidden, classes), biases, and what the
    updates of each owe."""

    weights_1: np.ndarray
    bias_1: np.ndarray
    weights_2: np.ndarray
    bias_2: np.ndarray
    rest_weights_1: np.ndarray
    rest_bias_1: np.ndarray
    rest_weights_2: np.ndarray
    rest_bias_2: np.ndarray

    @classmethod
    def of(cls, lns: Lns, weights_1: np.ndarray, weights_2: np.ndarray) -> "Network":
        """With these weights, given as floats, and biases of 0."""
        first, second = from_float(lns, weights_1), from_float(lns, weights_2)
        biases = [np.zeros(weights.shape[1], np.int32) for weights in (first, second)]
        values = [first, biases[0], second, biases[1]]
        return cls(*values, *(np.zeros_like(value) for value in values))

    def arrays(self) -> dict[str, np.ndarray]:
        """All of them by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def expand(request: InnerProducts) -> Steps:
    """The same by elementwise operations."""
    a, b = np.asarray(request.a), np.asarray(request.b)
    total = np.broadcast_to(request.start, (a.shape[0], b.shape[1])).astype(np.int32)
    rest = np.zeros_like(total)
    for k in range(a.shape[1]):
        product, _ = yield Elementwise(Operation.MULTIPLY, a[:, k, None], b[None, k, :])
        if request.compensated:
            new, owed = yield Elementwise(Operation.COMPENSATED_ADD, total, product, rest)
            total = np.where(product == 0, total, new)
            rest = np.where(product == 0, rest, owed)
        else:
            total, _ = yield Elementwise(Operation.ADD, total, product)
    return total


def forward(rules: Rules, network: Network, images: np.ndarray) -> Steps:
    """The hidden layer's and the output's codes of images (batch, inputs)."""
    keep = rules.compensated
    hidden = yield InnerProducts(images, network.weights_1, network.bias_1, keep)
    hidden = np.maximum(hidden, 0)
    logits = yield InnerProducts(hidden, network.weights_2, network.bias_2, keep)
    return hidden, logits


def exponentials(lns: Lns, logits: np.ndarray) -> np.ndarray:
    """Codes of e^(logit - largest) of each row, in fixed point; none is less than the smallest."""
    fixed = to_fixed(lns, logits, LOGIT_PLACES)
    below = (fixed - fixed.max(axis=1, keepdims=True)) * _LOG2_E
    shift = LOGIT_PLACES + _LOG2_E_PLACES - lns.fraction_bits
    exponent = np.maximum((below + (1 << shift - 1)) >> shift, lns.smallest)
    return (exponent - lns.zero).astype(np.int32)


def output_errors(rules: Rules, logits: np.ndarray, labels: np.ndarray) -> Steps:
    """Gradients of the cross-entropy by the logits, softmax(logits) - 1 at the label."""
    powers = exponentials(rules.lns, logits)
    total = yield from _sum(powers)
    shares, _ = yield Elementwise(Operation.DIVIDE, powers, total[:, None])
    true = np.arange(logits.shape[1]) == labels[:, None]
    if rules.complemented:
        others = yield from _sum(np.where(true, 0, shares))
        return np.where(true, -others[:, None], shares)
    one = LnsArithmetic(rules.lns).one
    less, _ = yield Elementwise(Operation.SUBTRACT, shares, one)
    return np.where(true, less, shares)


def _sum(codes: np.ndarray) -> Steps:
    """Sums of rows."""
    total = codes[:, 0]
    for column in range(1, codes.shape[1]):
        total, _ = yield Elementwise(Operation.ADD, total, codes[:, column])
    return total


def training_step(rules: Rules, network: Network, images: np.ndarray, labels: np.ndarray) -> Steps:
    """One batch: changes the network in place and returns nothing."""
    keep, one = rules.compensated, LnsArithmetic(rules.lns).one
    hidden, logits = yield from forward(rules, network, images)
    errors = yield from output_errors(rules, logits, labels)
    back = yield InnerProducts(errors, network.weights_2.T, 0, keep)
    back = np.where(hidden > 0, back, 0)
    ones = np.full((1, len(images)), one, np.int32)
    gradients = {
        "weights_1": (yield InnerProducts(images.T, back, 0, keep)),
        "bias_1": (yield InnerProducts(ones, back, 0, keep))[0],
        "weights_2": (yield InnerProducts(hidden.T, errors, 0, keep)),
        "bias_2": (yield InnerProducts(ones, errors, 0, keep))[0],
    }
    step = from_float(rules.lns, -rules.rate / rules.batch)
    for name, gradient in gradients.items():
        yield from _update(rules, network, name, gradient, step)


def _update(
    rules: Rules, network: Network, name: str, gradient: np.ndarray, step: np.ndarray
) -> Steps:
    """Adds step * gradient to an array; where that is 0, nothing changes."""
    change, _ = yield Elementwise(Operation.MULTIPLY, gradient, step)
    old = getattr(network, name)
    if not rules.compensated:
        new, _ = yield Elementwise(Operation.ADD, old, change)
        setattr(network, name, new)
        return
    rest_name = f"rest_{name}"
    rest = getattr(network, rest_name)
    new, owed = yield Elementwise(Operation.COMPENSATED_ADD, old, change, rest)
    setattr(network, name, np.where(change == 0, old, new))
    setattr(network, rest_name, np.where(change == 0, rest, owed))


def drive(steps: Steps, answer: Callable[[Request], Any]) -> Any:
    """Runs a generator of requests to its end and returns its result."""
    result: Any = None
    while True:
        try:
            request = steps.send(result)
        except StopIteration as end:
            return end.value
        result = answer(request)


class GoldenAnswers:
    """Answers requests by the golden model.

    Parameters
    ----------
    lns : Lns
    """

    def __init__(self, lns: Lns) -> None:
        self._arithmetic = LnsArithmetic(lns)

    def __call__(self, request: Request) -> Any:
        """The request's answer."""
        if isinstance(request, InnerProducts):
            return drive(expand(request), self)
        return self._arithmetic.execute(request.operation, request.a, request.b, request.c)
