"""Post-training quantisation to int8 in TensorFlow Lite's conventions, in NumPy alone."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from float_layers import INPUT, FloatLayer, run_float
from slipstick.writers import tflite_operators as ops
from slipstick.writers.tflite import TfliteWriter


@dataclass(frozen=True)
class Codes:
    """real = scale x (code - zero_point), code within -128..127."""

    scale: float
    zero_point: int

    def encode(self, real: np.ndarray) -> np.ndarray:
        """Nearest codes, saturated."""
        codes = np.rint(real / self.scale) + self.zero_point
        return np.clip(codes, -128, 127).astype(np.int8)


PROBABILITY = Codes(1 / 256, -128)
"""Codes that TensorFlow Lite demands of a softmax's output."""


def quantize(
    layers: Sequence[FloatLayer], calibration: np.ndarray, input_codes: Codes, description: str
) -> bytes:
    """Quantises a float network: weights per channel, activations by the range that they take.

    Weights are symmetric (per channel; fully connected: one scale), activations asymmetric, biases
    int32 with the scale of the accumulator.

    Parameters
    ----------
    layers : sequence of FloatLayer
        The last one writes the network's output.
    calibration : array of float32, shape (images, height, width, channels)
        Typical inputs.
    input_codes : Codes
        What the network's input codes mean.
    description : str

    Returns
    -------
    bytes
        A .tflite file of batch 1.
    """
    activations = run_float(layers, calibration)
    codes = {INPUT: input_codes}
    writer = TfliteWriter(description=description)
    writer.tensor(
        INPUT,
        (1, *calibration.shape[1:]),
        scale=input_codes.scale,
        zero_point=input_codes.zero_point,
    )
    for layer in layers:
        real = activations[layer.name]
        own = _output_codes(layer, real, codes[layer.inputs[0]])
        codes[layer.name] = own
        shape = (1, *real.shape[1:])
        writer.tensor(layer.name, shape, scale=own.scale, zero_point=own.zero_point)
        constants = _write_constants(writer, layer, codes[layer.inputs[0]].scale)
        writer.add(layer.operator, [*layer.inputs, *constants], [layer.name])
    return writer.to_bytes([INPUT], [layers[-1].name])


def _output_codes(layer: FloatLayer, real: np.ndarray, input_codes: Codes) -> Codes:
    match layer.operator:
        case ops.Softmax():
            return PROBABILITY
        case ops.AveragePool2D() | ops.MaxPool2D() | ops.Reshape():
            return input_codes
        case _:
            return range_codes(float(real.min()), float(real.max()))


def range_codes(low: float, high: float) -> Codes:
    """Codes that span a range and zero, which gets a code exactly, since padding needs it.

    Raises
    ------
    ValueError
        If the range holds nothing but zero.
    """
    low, high = min(low, 0.0), max(high, 0.0)
    if not high > low:
        raise ValueError(f"an activation's range must not be {low}..{high}")
    # the file holds float32: everything else must be computed from the same number
    scale = float(np.float32((high - low) / 255))
    return Codes(scale, int(np.clip(np.rint(-128 - low / scale), -128, 127)))


def _write_constants(writer: TfliteWriter, layer: FloatLayer, input_scale: float) -> list[str]:
    """Declares a layer's weights and bias; returns their names, none for a layer without."""
    if layer.weights is None or layer.bias is None:
        return []
    axis = {"DEPTHWISE_CONV_2D": 3, "CONV_2D": 0}.get(layer.operator.code)
    others = tuple(index for index in range(layer.weights.ndim) if index != axis)
    peaks = np.abs(layer.weights).max(axis=None if axis is None else others, keepdims=True)
    # a channel of zeros may have any scale
    scales = np.where(peaks > 0, peaks / 127, 1.0).astype(np.float32)
    weights = np.clip(np.rint(layer.weights / scales), -127, 127)
    weights_name, bias_name = f"{layer.name}/weights", f"{layer.name}/bias"
    flat = scales.reshape(-1)
    writer.tensor(weights_name, weights.shape, scale=flat, axis=axis, data=weights.astype(np.int8))
    bias_scale = flat.astype(np.float64) * input_scale
    bias = np.rint(layer.bias / bias_scale)
    writer.tensor(
        bias_name,
        bias.shape,
        "int32",
        scale=bias_scale,
        axis=None if axis is None else 0,
        data=bias.astype(np.int32),
    )
    return [weights_name, bias_name]
