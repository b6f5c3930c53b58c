"""TensorFlow Lite's integer LSTM: int8 activations and weights, int16 gates and cells.

Gates are added up with 12 bits behind the point, and come out of sigmoid and tanh with 15.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from ...graph import Graph, Node, Quantization, Tensor
from .scaling import (
    layer_multipliers,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    scalar,
)

GATES = ("input", "forget", "cell", "output")
"""The order of weights and biases among the node's inputs."""

GATE_SCALE = 2.0**-12
"""Scale of a gate's sum."""
UNIT_SCALE = 2.0**-15
"""Scale of what sigmoid and tanh give."""

LOW, HIGH = -(1 << 15), (1 << 15) - 1
_STEP = 1 / 24
"""The table's: a gate's sum x 3 has its whole numbers 9 bits up."""

_GATE = Quantization(np.array([GATE_SCALE]), np.zeros(1, np.int64))


@cache
def sigmoid_table() -> np.ndarray:
    """65,536 x sigmoid(i / 24), and half of what a chord to the next entry would lack, rounded."""
    sigmoid = 1 / (1 + np.exp(-np.arange(256) * _STEP))
    bend = sigmoid * (1 - sigmoid) * (2 * sigmoid - 1)
    table = np.floor(65536 * (sigmoid + bend * _STEP**2 / 16) + 0.5).astype(np.int64)
    # behind it all is saturated
    table[-1] = 65535
    return table


def _interpolate(magnitude: np.ndarray, bits: int, largest: int) -> np.ndarray:
    """The table between its entries, ``bits`` bits behind the point; ``largest`` behind its end."""
    table, whole = sigmoid_table(), magnitude >> bits
    at = np.minimum(whole, 254)
    part = magnitude & (1 << bits) - 1
    between = (table[at] << bits) + part * (table[at + 1] - table[at])
    return np.where(whole >= 255, largest, between)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """Computes sigmoid of int16 with 12 bits behind the point; the result, int64, has 15."""
    x = x.astype(np.int64) * 3
    made = _interpolate(np.abs(x), 9, 0x7FFF << 10)
    made = np.where(x >= 0, made + (1 << 9), (1 << 25) - made + (1 << 9) - 1)
    return made >> 10


def tanh(x: np.ndarray, power: int) -> np.ndarray:
    """Computes tanh of int16 meaning x 2^power; the result, int64, has 15 bits behind the point."""
    places = 12 + power
    x = x.astype(np.int64) * 3
    if places >= 0:
        x <<= places
    else:
        x = x + (1 << -places - 1) >> -places
    made = _interpolate(np.abs(x), 8, 0xFFFF << 8)
    made = np.where(x >= 0, made - (1 << 23) + (1 << 7), -made + (1 << 23) + (1 << 7) - 1)
    return made >> 8


def _saturate(x: np.ndarray) -> np.ndarray:
    return np.clip(x, LOW, HIGH)


@dataclass(frozen=True)
class _Sum:
    """A product of a matrix and a vector, rescaled to a gate's sum."""

    weights: np.ndarray
    zero_point: int
    multiplier: np.ndarray
    shift: np.ndarray

    @classmethod
    def of(cls, source: Tensor, weights: Tensor, data: np.ndarray) -> "_Sum":
        gate = Tensor("gate", (), "int16", _GATE)
        factors = layer_multipliers(source, weights, gate)
        return cls(data.astype(np.int64), scalar(source.quantization)[1], *factors)

    def __call__(self, x: np.ndarray, bias: np.ndarray | int = 0) -> np.ndarray:
        sums = (x.astype(np.int64) - self.zero_point) @ self.weights.T + bias
        return _saturate(multiply_by_quantized_multiplier(sums, self.multiplier, self.shift))


def lstm(node: Node, graph: Graph, operands: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """A sequence, from what hidden state and cells hold.

    Parameters
    ----------
    node : Node
        Inputs: x (batch, steps, inputs), hidden state and cells (batch, units); weights of x, one
        each of ``GATES``, and of the hidden state; biases.
    graph : Graph
    operands : sequence of arrays

    Returns
    -------
    (hidden states of all steps, the last one, the last cells)
    """
    x, hidden, cells, *constants = operands
    described = [graph.tensors[name] for name in node.inputs]
    sums = [
        (
            _Sum.of(described[0], described[3 + gate], constants[gate]),
            _Sum.of(described[1], described[7 + gate], constants[4 + gate]),
            constants[8 + gate].astype(np.int64),
        )
        for gate in range(len(GATES))
    ]
    step = _Step(described[1], described[2], int(node.attributes["clip"]))
    cells = cells.astype(np.int64)
    made = []
    for at in range(x.shape[1]):
        gates = [_saturate(own(x[:, at], bias) + back(hidden)) for own, back, bias in sums]
        hidden, cells = step(gates, cells)
        made.append(hidden)
    return np.stack(made, axis=1), hidden, cells.astype(np.int16)


class _Step:
    """Hidden state and cells of one step, from the gates' sums.

    Parameters
    ----------
    hidden, cells : Tensor
    clip : int
        The largest magnitude of a cell, 0: none.
    """

    def __init__(self, hidden: Tensor, cells: Tensor, clip: int) -> None:
        scale, self._zero_point = scalar(hidden.quantization)
        cell_scale, _ = scalar(cells.quantization)
        self._power = round(math.log2(cell_scale))
        self._clip = clip
        self._forgetting = quantize_multiplier(UNIT_SCALE * cell_scale / cell_scale)
        self._adding = quantize_multiplier(UNIT_SCALE * UNIT_SCALE / cell_scale)
        self._giving = quantize_multiplier(UNIT_SCALE * UNIT_SCALE / scale)

    def __call__(
        self, gates: Sequence[np.ndarray], cells: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        let_in, keep, new, let_out = gates
        product = multiply_by_quantized_multiplier
        kept = _saturate(product(sigmoid(keep) * cells, *self._forgetting))
        added = _saturate(product(sigmoid(let_in) * tanh(new, -12), *self._adding))
        cells = _saturate(kept + added)
        if self._clip > 0:
            cells = np.clip(cells, -self._clip, self._clip)
        given = product(tanh(cells, self._power) * sigmoid(let_out), *self._giving)
        hidden = np.clip(given + self._zero_point, -128, 127).astype(np.int8)
        return hidden, cells
