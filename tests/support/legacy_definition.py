"""What TensorFlow Lite defines for uint8 codes, number by number in Python's integers.

tflm refuses such networks, so the reference is the definition itself.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np

Quantized = tuple[float, int]
"""Scale (a float32) and zero point."""


def multiplied(value: int, real: float) -> int:
    """value x real with gemmlowp's doubling high multiply and its rounding shift."""
    fraction, exponent = math.frexp(real)
    mantissa = math.floor(Fraction(fraction) * 2**31 + Fraction(1, 2))
    if mantissa == 1 << 31:
        mantissa, exponent = mantissa // 2, exponent + 1
    product = (value << max(exponent, 0)) * mantissa
    nudge = (1 << 30) if product >= 0 else 1 - (1 << 30)
    high = abs(product + nudge) // (1 << 31) * (1 if product + nudge >= 0 else -1)
    return ties_away(Fraction(high, 1 << max(-exponent, 0)))


def ties_away(value: Fraction) -> int:
    """The nearest integer, ties away from zero."""
    return int(math.copysign(math.floor(abs(value) + Fraction(1, 2)), value))


def code(value: int) -> int:
    """The nearest uint8."""
    return max(0, min(255, value))


def convolution(
    x: np.ndarray,
    weights: np.ndarray,
    bias: np.ndarray,
    scales: tuple[Quantized, Quantized, Quantized],
    attributes: dict[str, Any],
    out: tuple[int, ...],
) -> np.ndarray:
    """CONV_2D of one picture H x W x I, or DEPTHWISE_CONV_2D where a multiplier is given."""
    (scale, zero), (weight_scale, weight_zero), (out_scale, out_zero) = scales
    real = float(np.float32(scale)) * float(np.float32(weight_scale)) / float(np.float32(out_scale))
    multiplier = attributes.get("multiplier")
    result = np.zeros(out[1:], np.uint8)
    for y, column, filter_ in np.ndindex(*out[1:]):
        total = int(bias[filter_])
        for ky, kx in np.ndindex(*weights.shape[1:3]):
            row = y * attributes["stride"][0] + ky * attributes["dilation"][0]
            place = column * attributes["stride"][1] + kx * attributes["dilation"][1]
            row, place = row - attributes["padding"][0], place - attributes["padding"][2]
            if not (0 <= row < x.shape[0] and 0 <= place < x.shape[1]):
                continue
            if multiplier:
                pairs = [(x[row, place, filter_ // multiplier], weights[0, ky, kx, filter_])]
            else:
                pairs = list(zip(x[row, place], weights[filter_, ky, kx], strict=True))
            total += sum((int(a) - zero) * (int(b) - weight_zero) for a, b in pairs)
        result[y, column, filter_] = code(multiplied(total, real) + out_zero)
    return result


def average(x: np.ndarray, attributes: dict[str, Any], out: tuple[int, ...]) -> np.ndarray:
    """AVERAGE_POOL_2D of one picture: (sum + count / 2) / count in C's integers."""
    result = np.zeros(out[1:], np.uint8)
    for y, column, channel in np.ndindex(*out[1:]):
        top = y * attributes["stride"][0] - attributes["padding"][0]
        left = column * attributes["stride"][1] - attributes["padding"][2]
        rows = slice(max(top, 0), top + attributes["window"][0])
        part = x[rows, max(left, 0) : left + attributes["window"][1], channel].astype(int)
        result[y, column, channel] = (int(part.sum()) + part.size // 2) // part.size
    return result


def rescaled(x: np.ndarray, source: Quantized, target: Quantized) -> np.ndarray:
    """What CONCATENATION makes of an operand of another quantisation, in float32."""
    factor = np.float32(source[0]) * (np.float32(1) / np.float32(target[0]))
    bias = np.float32(-source[1]) * factor
    made = [
        code(ties_away(Fraction(float(np.float32(value) * factor + bias))) + target[1])
        for value in x.ravel()
    ]
    return np.array(made, np.uint8).reshape(x.shape)


def bilinear(x: np.ndarray, size: tuple[int, int], *, centers: bool) -> np.ndarray:
    """RESIZE_BILINEAR of one picture, in float32, cut off after half is added."""
    one, half = np.float32(1), np.float32(0.5)
    result = np.zeros((*size, x.shape[2]), np.uint8)
    for place in np.ndindex(*size):
        sides = []
        for at, source, target in zip(place, x.shape[:2], size, strict=True):
            factor = np.float32(source) / np.float32(target)
            real = (np.float32(at) + half) * factor - half if centers else np.float32(at) * factor
            low = max(math.floor(real), 0)
            sides.append((low, min(math.ceil(real), source - 1), np.float32(real - low)))
        (y0, y1, dy), (x0, x1, dx) = sides
        for channel in range(x.shape[2]):
            a, b, c, d = (np.float32(x[y, at, channel]) for y in (y0, y1) for at in (x0, x1))
            total = a * (one - dy) * (one - dx) + c * dy * (one - dx)
            total = total + b * (one - dy) * dx + d * dy * dx
            result[(*place, channel)] = int(total + half)
    return result
