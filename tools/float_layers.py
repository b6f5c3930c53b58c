"""Float networks as lists of layers, run with NumPy: what calibration and comparison stand on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from slipstick.writers import tflite_operators as ops

INPUT = "image"
"""The name under which layers read the network's input."""


@dataclass(frozen=True)
class FloatLayer:
    """One operator with float weights; the tensor that it writes has the layer's name.

    Parameters
    ----------
    name : str
    operator : Operator
        Its options are those of the TensorFlow Lite operator that the layer becomes.
    inputs : tuple of str
        Layers that it reads, or ``INPUT``.
    weights : array of float32, optional
        Convolution OHWI, depthwise 1HWO, fully connected OI.
    bias : array of float32, shape (channels,), optional
    """

    name: str
    operator: ops.Operator
    inputs: tuple[str, ...]
    weights: np.ndarray | None = None
    bias: np.ndarray | None = None


def run_float(layers: Sequence[FloatLayer], x: np.ndarray) -> dict[str, np.ndarray]:
    """Runs a network.

    Parameters
    ----------
    layers : sequence of FloatLayer
        In an order in which they can run.
    x : array of float32, shape (images, height, width, channels)

    Returns
    -------
    dict of array
        Every activation by the name of its layer, and the input.

    Raises
    ------
    ValueError
        If an operator is not one that is known here, or a layer lacks its weights.
    """
    activations = {INPUT: x}
    for layer in layers:
        activations[layer.name] = _run_layer(layer, activations)
    return activations


def _run_layer(layer: FloatLayer, activations: Mapping[str, np.ndarray]) -> np.ndarray:
    x = activations[layer.inputs[0]]
    match layer.operator:
        case ops.DepthwiseConv2D() as conv:
            return _activate(_depthwise(layer, conv, x), conv.activation)
        case ops.Conv2D() as conv:
            weights, bias = _parameters(layer)
            window = weights.shape[1], weights.shape[2]
            windows = _windows(x, window, conv.stride, conv.padding, 0)
            sums = np.tensordot(windows, weights, axes=((3, 4, 5), (3, 1, 2))) + bias
            return _activate(sums, conv.activation)
        case ops.FullyConnected() as dense:
            weights, bias = _parameters(layer)
            return _activate(x.reshape(len(x), -1) @ weights.T + bias, dense.activation)
        case ops.Add() as addition:
            return _activate(x + activations[layer.inputs[1]], addition.activation)
        case ops.MaxPool2D() as pool:
            windows = _windows(x, pool.window, pool.stride, pool.padding, np.nan)
            return _activate(np.nanmax(windows, axis=(4, 5)), pool.activation)
        case ops.AveragePool2D() as pool:
            windows = _windows(x, pool.window, pool.stride, pool.padding, np.nan)
            return _activate(np.nanmean(windows, axis=(4, 5)), pool.activation)
        case ops.Reshape() as reshape:
            return x.reshape(len(x), *reshape.shape[1:])
        case ops.Softmax() as softmax:
            power = np.exp(softmax.beta * (x - x.max(axis=-1, keepdims=True)))
            return power / power.sum(axis=-1, keepdims=True)
        case other:
            raise ValueError(f"layer {layer.name}: no float arithmetic for {other.code}")


def _depthwise(layer: FloatLayer, conv: ops.DepthwiseConv2D, x: np.ndarray) -> np.ndarray:
    weights, bias = _parameters(layer)
    _, height, width, channels = weights.shape
    windows = _windows(x, (height, width), conv.stride, conv.padding, 0)
    taps = weights.reshape(height, width, x.shape[3], conv.multiplier)
    sums = np.einsum("nyxcij,ijcm->nyxcm", windows, taps)
    return sums.reshape(*sums.shape[:3], channels) + bias


def _parameters(layer: FloatLayer) -> tuple[np.ndarray, np.ndarray]:
    if layer.weights is None or layer.bias is None:
        raise ValueError(f"layer {layer.name}: {layer.operator.code} needs weights and bias")
    return layer.weights, layer.bias


def _windows(
    x: np.ndarray, window: tuple[int, int], stride: tuple[int, int], padding: str, fill: float
) -> np.ndarray:
    """Views of shape (images, rows, columns, channels, window y, window x)."""
    borders = [(0, 0)]
    for size, taps, step in zip(x.shape[1:3], window, stride, strict=True):
        total = max((-(-size // step) - 1) * step + taps - size, 0) if padding == "SAME" else 0
        # TensorFlow Lite puts the odd one below and to the right
        borders.append((total // 2, total - total // 2))
    padded = np.pad(x, [*borders, (0, 0)], constant_values=fill)
    return sliding_window_view(padded, window, axis=(1, 2))[:, :: stride[0], :: stride[1]]


def _activate(x: np.ndarray, activation: str) -> np.ndarray:
    low, high = {
        "NONE": (-np.inf, np.inf),
        "RELU": (0, np.inf),
        "RELU6": (0, 6),
        "RELU_N1_TO_1": (-1, 1),
    }[activation]
    return np.clip(x, low, high)
