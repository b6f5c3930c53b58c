"""Evens out weights across channels, so that one power of two fits a whole layer."""

from collections.abc import Mapping

import numpy as np

from .network import FloatParameters, Kind, Layer, TrainingNetwork

ROUNDS = 20
"""More change little: each round visits every pair of layers once."""

_PASSING = (Kind.MAX_POOL, Kind.AVERAGE_POOL)


def equalise(
    network: TrainingNetwork, initial: Mapping[str, FloatParameters]
) -> dict[str, FloatParameters]:
    """The same function with weights of more even channels.

    A channel behind a ReLU may be divided by any positive factor if the next layer multiplies it
    again: the factor is such that the channel's largest weights before and behind are equal (M.
    Nagel et al., "Data-free quantization through weight equalization and bias correction", 2019).

    Parameters
    ----------
    network : TrainingNetwork
    initial : mapping of FloatParameters

    Returns
    -------
    dict of FloatParameters
    """
    found = {
        name: FloatParameters(each.weights.astype(np.float64), each.bias.astype(np.float64))
        for name, each in initial.items()
    }
    pairs = [(layer, _reader(network, layer)) for layer in network.learning if layer.relu]
    for _ in range(ROUNDS):
        for first, second in pairs:
            if second is not None:
                _even_out(found, first, second)
    return {
        name: FloatParameters(each.weights.astype(np.float32), each.bias.astype(np.float32))
        for name, each in found.items()
    }


def _reader(network: TrainingNetwork, layer: Layer) -> Layer | None:
    """The one layer with weights that reads another, through pools; None if there are more."""
    while True:
        readers = [other for other in network.layers if layer.name in other.inputs]
        if len(readers) != 1:
            return None
        layer = readers[0]
        if layer.learns:
            return layer
        if layer.kind not in _PASSING:
            return None


def _even_out(found: dict[str, FloatParameters], first: Layer, second: Layer) -> None:
    axis = 3 if first.kind is Kind.DEPTHWISE else 0
    before, behind = found[first.name], found[second.name]
    others = tuple(place for place in range(4) if place != axis)
    leaving = np.abs(before.weights).max(axis=others)
    entering = np.abs(behind.weights).max(axis=(0, 1, 2))
    factor = np.sqrt(np.maximum(leaving, 1e-9) / np.maximum(entering, 1e-9))
    factor /= np.exp(np.log(factor).mean())
    shape = [1, 1, 1, 1]
    shape[axis] = -1
    found[first.name] = FloatParameters(
        before.weights / factor.reshape(shape), before.bias / factor
    )
    found[second.name] = FloatParameters(behind.weights * factor, behind.bias)
