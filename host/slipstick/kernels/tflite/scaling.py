"""TensorFlow Lite's scale factors as integers: multipliers, clamps, and the tables of ADD."""

import math
from dataclasses import dataclass

import numpy as np
from slipstick_rtl.isa import Rounding
from slipstick_rtl.numbers.rounding import encode_shift, requantize

from ...errors import UnsupportedError
from ...graph import Quantization, Tensor
from ...operators import clamp_of

ADD_LEFT_SHIFT = 20
"""Bits by which ADD raises its operands before it rescales them."""

CODES = {"int8": (-128, 127), "uint8": (0, 255)}
"""The codes of each quantised activation type."""


@dataclass(frozen=True)
class AddParameters:
    """Multipliers of ADD: each operand, 20 bits up, is scaled by its own, the sum by the output's.

    Shifts count like ``quantize_multiplier``'s; none is positive.
    """

    multiplier_a: int
    shift_a: int
    multiplier_b: int
    shift_b: int
    multiplier: int
    shift: int
    left_shift: int = ADD_LEFT_SHIFT


def scalar(quantization: Quantization | None) -> tuple[float, int]:
    """The scale and zero point of a per-tensor quantisation.

    Raises
    ------
    ValueError
        If there is none, or one a channel.
    """
    if quantization is None or len(quantization.scale) != 1:
        count = 0 if quantization is None else len(quantization.scale)
        raise ValueError(f"an activation must have one scale, not {count}")
    return float(quantization.scale[0]), int(quantization.zero_point[0])


def quantize_multiplier(real: float) -> tuple[int, int]:
    """A real factor as (mantissa, shift): real = mantissa / 2^31 x 2^shift.

    The mantissa is 0 or within 2^30..2^31 - 1, the shift within -31..30; a positive one points
    left. Factors below 2^-32 become 0, too large ones the largest.

    Raises
    ------
    ValueError
        If the factor is negative or not finite.
    """
    mantissa, shift = mantissa_and_shift(real)
    if shift < -31:
        return 0, 0
    if shift > 30:
        return (1 << 31) - 1, 30
    return mantissa, shift


def mantissa_and_shift(real: float) -> tuple[int, int]:
    """As ``quantize_multiplier``, with any shift."""
    if not math.isfinite(real) or real < 0:
        raise ValueError(f"a multiplier must be finite and at least 0, not {real}")
    fraction, shift = math.frexp(real)
    # the fraction has 53 bits: halves are exact, and rounding is away from zero
    mantissa = math.floor(fraction * (1 << 31) + 0.5)
    if mantissa == 1 << 31:
        mantissa, shift = mantissa // 2, shift + 1
    return mantissa, shift


def multiply_by_quantized_multiplier(
    value: np.ndarray,
    multiplier: int | np.ndarray,
    shift: int | np.ndarray,
) -> np.ndarray:
    """value x multiplier / 2^31 x 2^shift with TensorFlow Lite's two roundings.

    Parameters
    ----------
    value : array of integers, wrapped at 32 bits
    multiplier, shift : int or arrays, broadcast
        As ``quantize_multiplier`` gives them.

    Returns
    -------
    array of int64
    """
    shift = np.asarray(shift, dtype=np.int64)
    raised = value.astype(np.int64) << np.maximum(shift, 0)
    right = np.maximum(-shift, 0) + encode_shift(Rounding.DOUBLE, 0)
    return requantize(raised, 0, multiplier, right, Rounding.DOUBLE)


def round_away(value: np.floating | float) -> int:
    """The nearest integer, ties away from zero."""
    value = float(value)
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def activation_range(
    activation: str, scale: float, zero_point: int, dtype: str = "int8"
) -> tuple[int, int]:
    """The codes between which a fused activation clamps.

    Raises
    ------
    ValueError
        If the activation or the type is unknown.
    """
    real_low, real_high = clamp_of(activation)
    if dtype not in CODES:
        raise ValueError(f"dtype must be one of {tuple(CODES)}, not {dtype!r}")
    low, high = CODES[dtype]
    if real_low is not None:
        low = max(low, min(high, quantize_value(real_low, scale, zero_point)))
    if real_high is not None:
        high = min(high, max(low, quantize_value(real_high, scale, zero_point)))
    return low, high


def quantize_value(real: float, scale: float, zero_point: int) -> int:
    """The code of a real value, not clamped; divides in float32 as the reference does."""
    return zero_point + round_away(np.float32(real) / np.float32(scale))


def layer_multipliers(
    source: Tensor, weights: Tensor, output: Tensor
) -> tuple[np.ndarray, np.ndarray]:
    """Multiplier and shift of each output channel, or one of each for all.

    Parameters
    ----------
    source, weights, output : Tensor
        Of a conv2d, depthwise_conv2d or fully_connected.

    Returns
    -------
    (multipliers, shifts) : arrays of int64, as long as the weights have scales
    """
    if weights.quantization is None:
        raise ValueError(f"weights {weights.name} must be quantised")
    input_scale, output_scale = scalar(source.quantization)[0], scalar(output.quantization)[0]
    pairs = [
        quantize_multiplier(input_scale * float(scale) / output_scale)
        for scale in weights.quantization.scale
    ]
    multipliers, shifts = zip(*pairs, strict=True)
    return np.array(multipliers, dtype=np.int64), np.array(shifts, dtype=np.int64)


def add_parameters(
    a: Quantization, b: Quantization, output: Quantization, operator: str = "ADD"
) -> AddParameters:
    """Returns the factors that bring two operands to one scale, and their sum to the output's.

    Parameters
    ----------
    a, b, output : Quantization
    operator : str
        For messages.

    Raises
    ------
    UnsupportedError
        If the output's scale is so small that the reference refuses it.
    """
    scale_a, scale_b, scale = (scalar(quantization)[0] for quantization in (a, b, output))
    twice = 2 * max(scale_a, scale_b)
    factor = twice / ((1 << ADD_LEFT_SHIFT) * scale)
    if factor >= 1:
        raise UnsupportedError(
            f"{operator} of scales {scale_a:g} and {scale_b:g} needs an output scale above"
            f" {twice / (1 << ADD_LEFT_SHIFT):g}, not {scale:g}"
        )
    return AddParameters(
        *quantize_multiplier(scale_a / twice),
        *quantize_multiplier(scale_b / twice),
        *quantize_multiplier(factor),
    )


def add_tables(a: Quantization, b: Quantization, output: Quantization) -> np.ndarray:
    """Tabulates what ADD makes of each code of either operand, before it sums.

    ADD is clamp(requantize(tables[0][a + 128] + tables[1][b + 128], 0, m, s) + zero_point), with m
    and s the output's multiplier and shift of ``add_parameters``.

    Returns
    -------
    array of int32, 2 x 256
    """
    parameters = add_parameters(a, b, output)
    codes = np.arange(-128, 128, dtype=np.int64)
    tables = [
        multiply_by_quantized_multiplier(
            (codes - scalar(quantization)[1]) << ADD_LEFT_SHIFT, multiplier, shift
        )
        for quantization, multiplier, shift in (
            (a, parameters.multiplier_a, parameters.shift_a),
            (b, parameters.multiplier_b, parameters.shift_b),
        )
    ]
    return np.stack(tables).astype(np.int32)
