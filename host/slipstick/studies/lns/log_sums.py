"""Networks whose layers sum in logarithms, emulated bit for bit by the compiled golden model."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from slipstick_rtl.numbers.lns.formats import Lns
from slipstick_rtl.numbers.lns.unit.arithmetic import Operation

from ... import kernels
from ...errors import UnsupportedError
from ...graph import Graph, Node
from ...kernels.tflite.matrix import pad_image, tap
from .emulation import Emulation

if TYPE_CHECKING:
    from slipstick_sim.golden.lns_compiled import CompiledAnswers

TILE_ROWS = 16
"""Products that a column sums up before its sum is added to the accumulator's."""

HEADROOM = 2.0
"""Times the largest sum of the calibration that still is within the format."""

_LAYERS = ("conv2d", "fully_connected")


@dataclass(frozen=True)
class Spans:
    """The largest magnitudes of a layer in the calibration.

    Parameters
    ----------
    activation : float
    sums : array (outputs,)
        Bias included.
    """

    activation: float
    sums: np.ndarray


class LogSumEmulation(Emulation):
    """As its base, but convolutions and fully connected layers multiply and add in the format.

    A layer's operands and sums share the format, and products are those of
    :class:`slipstick_rtl.numbers.lns.unit.arithmetic.LnsArithmetic`, so that activations and
    weights must lie as much below the largest number as their products' sum is above them. That
    distance is shared by both: shifts of codes, which cost accuracy only where the range ends. Of a
    column the products are added from the first row to the last, ``TILE_ROWS`` of them; their sum
    is added
    to the accumulator's, which begins as the bias.
    """

    def __init__(self, *arguments: Any) -> None:
        self._spans: dict[str, Spans] = {}
        super().__init__(*arguments)

    def _apply(
        self, node: Node, graph: Graph, operands: Sequence[np.ndarray], lns: Lns | None
    ) -> list[np.ndarray]:
        if lns is not None and node.operator in _LAYERS:
            return [self._layer(node, graph, operands[0], lns)]
        results = kernels.run(node, graph, operands)
        if node.operator in _LAYERS:
            sums = np.abs(results[0]).reshape(-1, results[0].shape[-1]).max(axis=0)
            self._spans[node.outputs[0]] = Spans(float(np.abs(operands[0]).max()) or 1.0, sums)
        return results

    def _layer(self, node: Node, graph: Graph, x: np.ndarray, lns: Lns) -> np.ndarray:
        output = graph.tensors[node.outputs[0]]
        weights, *rest = (graph.tensors[name].data for name in node.inputs[1:])
        assert weights is not None
        columns = _columns(x, weights.shape, output.shape, node)
        rows = weights.reshape(len(weights), -1)
        bias = rest[0] if rest and rest[0] is not None else np.zeros(len(rows))
        sums = sum_in_logarithms(columns, rows, bias, self._spans[node.outputs[0]], lns)
        return sums.T.reshape(len(x), *output.shape[1:])


def _columns(
    x: np.ndarray, kernel: Sequence[int], shape: tuple[int, ...], node: Node
) -> np.ndarray:
    """Gathers the inputs of each output's products, (products, outputs of all images).

    They have the order of the weights.
    """
    if node.operator == "fully_connected":
        return np.ascontiguousarray(x.reshape(-1, kernel[1]).T)
    attributes = node.attributes
    if attributes["groups"] != 1:
        raise UnsupportedError(f"{node.outputs[0]} must be a convolution without groups")
    padded, dilation = pad_image(x, attributes["padding"], 0), attributes["dilation"]
    taps = [
        tap(padded, (y * dilation[0], column * dilation[1]), attributes["stride"], shape[1:3])
        for y, column in np.ndindex(*kernel[1:3])
    ]
    return np.ascontiguousarray(np.concatenate(taps, axis=-1).reshape(-1, len(taps) * kernel[3]).T)


def sum_in_logarithms(
    columns: np.ndarray, weights: np.ndarray, bias: np.ndarray, spans: Spans, lns: Lns
) -> np.ndarray:
    """bias + weights @ columns as real numbers, float32, (outputs, ...), computed in the format.

    Parameters
    ----------
    columns : array (products, ...)
    weights : array (outputs, products)
    bias : array (outputs,)
    spans : Spans
    lns : Lns
    """
    from slipstick_sim.golden.lns_training import Elementwise, InnerProducts

    steps = 1 << lns.fraction_bits
    tops = np.abs(weights).max(axis=1)
    tops = np.where(tops > 0, tops, 1)
    largest = np.maximum(spans.sums, 1e-6 * spans.activation * tops) * HEADROOM
    # by how many ulps products of the largest operands are to lie below the square of the largest
    room = lns.largest + np.rint(np.log2(largest / (spans.activation * tops)) * steps)
    of_activations = int(np.clip(np.rint(np.mean(room) / 2), 0, lns.largest))
    of_weights = np.maximum(room - of_activations, 0)[:, None]
    codes = _encoded(columns, spans.activation, lns.largest - of_activations, lns)
    weight_codes = _encoded(weights, tops[:, None], lns.largest - of_weights, lns)
    # what the largest exponent of a sum means
    shift = 2 * lns.largest - of_activations - of_weights
    unit = spans.activation * tops[:, None] * np.exp2(-shift / steps)
    answers = _answers(lns)
    bias_codes = _encoded(bias[:, None], unit, 0, lns)
    total = np.repeat(bias_codes, columns.shape[1], axis=1)
    for first in range(0, len(columns), TILE_ROWS):
        part = slice(first, first + TILE_ROWS)
        request = InnerProducts(weight_codes[:, part], codes[part], 0, compensated=False)
        column = answers.inner_products(request)
        total, _ = answers(Elementwise(Operation.ADD, total, column))
    exponent = np.abs(total) + lns.zero
    magnitude = np.where(total == 0, 0, np.exp2(exponent / steps))
    return (np.sign(total) * magnitude * unit).astype(np.float32)


def _encoded(real: np.ndarray, top: Any, exponent: Any, lns: Lns) -> np.ndarray:
    """Ordered codes of real numbers whose exponent is ``exponent`` where they are ``top``."""
    with np.errstate(divide="ignore"):
        below = np.log2(np.abs(real.astype(np.float64)) / top) * (1 << lns.fraction_bits)
    magnitude = np.rint(np.maximum(below, -(1 << 30)) + exponent) - lns.zero
    return (np.sign(real) * np.clip(magnitude, 0, lns.largest_code)).astype(np.int32)


@cache
def _answers(lns: Lns) -> "CompiledAnswers":
    from slipstick_sim.golden.lns_compiled import CompiledAnswers

    return CompiledAnswers(lns)
