"""ONNX's LSTM and GRU in float32, and the LSTM whose products onnxruntime quantises as it runs.

The rule, whatever the order in which a runtime adds: each product of a matrix and a vector is the
float32 nearest to its exact sum (but for float64's error), and so are sigmoid and tanh; all that
joins them is computed in float32.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...graph import Graph, Node
from ...operators import FUNCTIONS
from . import dynamic as onnx_dynamic
from .real import to_real

Product = Callable[[np.ndarray], np.ndarray]
"""A matrix's with each row of (samples, rows, inputs), float32."""

STATES = {"LSTM": 2, "GRU": 1}
"""Number of states that each kind hands on: its hidden state, and an LSTM's cells."""

GATES = {"LSTM": 4, "GRU": 3}


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return FUNCTIONS["Sigmoid"](x)


def _tanh(x: np.ndarray) -> np.ndarray:
    return np.tanh(x.astype(np.float64)).astype(np.float32)


def _real_product(weights: np.ndarray) -> Product:
    """By weights of (outputs, inputs)."""
    matrix = np.ascontiguousarray(weights.T, np.float64)
    return lambda x: (np.ascontiguousarray(x, np.float64) @ matrix).astype(np.float32)


def _coded_product(codes: np.ndarray, scale: np.ndarray, zero_point: int) -> Product:
    """By codes of (inputs, outputs); all rows of a sample are quantised with one scale."""
    matrix = codes.astype(np.float64) - zero_point

    def product(x: np.ndarray) -> np.ndarray:
        scales = onnx_dynamic.scale(x)
        zeros = onnx_dynamic.zero_point(x, scales)
        rows = onnx_dynamic.quantize_by(x, scales, zeros).astype(np.float64)
        rows -= zeros.reshape(-1, 1, 1)
        # whole numbers under 2^53: exact
        sums = (rows @ matrix).astype(np.float32)
        return sums * (scales.reshape(-1, 1, 1).astype(np.float32) * scale)

    return product


def recurrent(
    node: Node, graph: Graph, operands: Sequence[np.ndarray | None]
) -> tuple[np.ndarray, ...]:
    """A sequence, in one direction or both.

    Parameters
    ----------
    node : Node
        Inputs, absent ones "": x (samples, steps, batch, inputs); weights of x and of the hidden
        state, a direction each in front; biases; the first hidden state and cells (samples,
        directions, batch, units); peepholes; if they are codes, scales of both weights.
    graph : Graph
    operands : sequence of arrays

    Returns
    -------
    (hidden states of all steps (samples, steps, directions, batch, units), the last ones, and an
    LSTM's last cells)
    """
    x, weights, back, bias, *states = operands[:6]
    peepholes, *scales = operands[6:9]
    assert x is not None and weights is not None and back is not None
    described = [graph.tensors[name] if name else None for name in node.inputs]
    x = to_real(x, described[0]) if described[0] is not None else x
    kind, units = node.attributes["kind"], node.attributes["units"]
    samples, _, batch, _ = x.shape
    made = []
    for number, reverse in enumerate(node.attributes["reverse"]):
        products = [
            _product(matrix[number], scale, zero, number)
            for matrix, scale, zero in zip(
                (weights, back), scales, node.attributes["zero_points"], strict=True
            )
        ]
        cell = _CELLS[kind](
            products,
            back[number],
            np.zeros(2 * GATES[kind] * units, np.float32) if bias is None else bias[number],
            None if peepholes is None else peepholes[number],
            node.attributes,
        )
        first = [_first(value, number, (samples, batch, units)) for value in states[: STATES[kind]]]
        made.append(_run(cell, x, first, products[0], reverse=reverse))
    steps = np.stack([own[0] for own in made], axis=2)
    last = [np.stack(values, axis=1) for values in zip(*(own[1] for own in made), strict=True)]
    return steps, *last


def _product(matrix: np.ndarray, scale: np.ndarray | None, zero: int, number: int) -> Product:
    if scale is None:
        return _real_product(matrix)
    return _coded_product(matrix, scale[number], zero)


def _first(value: np.ndarray | None, direction: int, shape: tuple[int, int, int]) -> np.ndarray:
    """Returns the values that a state begins with."""
    if value is None:
        return np.zeros(shape, np.float32)
    return np.broadcast_to(value[:, direction], shape).astype(np.float32)


def _run(
    cell: "_Cell", x: np.ndarray, state: list[np.ndarray], product: Product, *, reverse: bool
) -> tuple[np.ndarray, list[np.ndarray]]:
    samples, steps, batch, width = x.shape
    x = x[:, ::-1] if reverse else x
    sums = product(np.ascontiguousarray(x).reshape(samples, steps * batch, width))
    sums = sums.reshape(samples, steps, batch, -1)
    made = []
    for at in range(steps):
        state = cell.step(sums[:, at], state)
        made.append(state[0])
    shown = np.stack(made[::-1] if reverse else made, axis=1)
    return shown, state


class _Cell:
    """One step of a kind of network.

    Parameters
    ----------
    products : sequence of Product
        By the weights of x, and of the hidden state.
    back : array
        The latter weights themselves.
    bias : array
        Of both, one after the other.
    peepholes : array or None
    attributes : mapping
    """

    def __init__(
        self,
        products: Sequence[Product],
        back: np.ndarray,
        bias: np.ndarray,
        peepholes: np.ndarray | None,
        attributes: Any,
    ) -> None:
        self._back, self._units = products[1], int(attributes["units"])
        self._own_bias, self._back_bias = np.split(bias.astype(np.float32), 2)
        self._limit = np.float32(attributes["clip"]) if attributes["clip"] else None
        self._prepare(back, peepholes, attributes)

    def _prepare(self, back: np.ndarray, peepholes: np.ndarray | None, attributes: Any) -> None:
        raise NotImplementedError

    def step(self, sums: np.ndarray, state: list[np.ndarray]) -> list[np.ndarray]:
        """The state after a step whose x gives these sums."""
        raise NotImplementedError

    def _clip(self, x: np.ndarray) -> np.ndarray:
        return x if self._limit is None else np.clip(x, -self._limit, self._limit)


class _LstmCell(_Cell):
    def _prepare(self, back: np.ndarray, peepholes: np.ndarray | None, attributes: Any) -> None:
        parts = np.zeros(3 * self._units, np.float32) if peepholes is None else peepholes
        self._peep_in, self._peep_out, self._peep_keep = np.split(parts.astype(np.float32), 3)
        self._coupled = bool(attributes["input_forget"])
        self._bias = self._own_bias + self._back_bias

    def step(self, sums: np.ndarray, state: list[np.ndarray]) -> list[np.ndarray]:
        hidden, cells = state
        biases = np.split(self._bias, 4)
        let_in, let_out, keep, new = np.split(sums + self._back(hidden), 4, axis=-1)
        let_in = _sigmoid(self._clip(let_in + self._peep_in * cells + biases[0]))
        if self._coupled:
            keep = np.float32(1) - let_in
        else:
            keep = _sigmoid(self._clip(keep + self._peep_keep * cells + biases[2]))
        new = _tanh(self._clip(new + biases[3]))
        cells = keep * cells + let_in * new
        let_out = _sigmoid(self._clip(let_out + self._peep_out * cells + biases[1]))
        # as onnxruntime has it: cells are not clipped
        return [let_out * _tanh(cells), cells]


class _GruCell(_Cell):
    def _prepare(self, back: np.ndarray, peepholes: np.ndarray | None, attributes: Any) -> None:
        self._linear = bool(attributes["linear_before_reset"])
        self._gates = _real_product(back[: 2 * self._units])
        self._new = _real_product(back[2 * self._units :])

    def step(self, sums: np.ndarray, state: list[np.ndarray]) -> list[np.ndarray]:
        (hidden,) = state
        units = self._units
        bias = self._own_bias[: 2 * units] + self._back_bias[: 2 * units]
        gates = _sigmoid(self._clip(sums[..., : 2 * units] + self._gates(hidden) + bias))
        update, reset = np.split(gates, 2, axis=-1)
        own, back = self._own_bias[2 * units :], self._back_bias[2 * units :]
        new = sums[..., 2 * units :]
        if self._linear:
            new = new + reset * (self._new(hidden) + back) + own
        else:
            new = new + self._new(reset * hidden) + (own + back)
        new = _tanh(self._clip(new))
        return [(np.float32(1) - update) * new + update * hidden]


_CELLS: dict[str, type[_Cell]] = {"LSTM": _LstmCell, "GRU": _GruCell}
