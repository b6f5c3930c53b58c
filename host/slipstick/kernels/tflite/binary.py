"""SUB, MUL, MAXIMUM, MINIMUM, SQUARED_DIFFERENCE and PRELU: two operands that broadcast."""

import numpy as np
from slipstick_rtl.numbers.rounding import clamp

from ...graph import Quantization, Tensor
from .scaling import (
    AddParameters,
    activation_range,
    add_parameters,
    add_tables,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    scalar,
)

DIFFERENCE_LEFT_SHIFT = 7
"""Bits by which SQUARED_DIFFERENCE raises its operands: their square stays within 32 bits."""

Tensors = tuple[Tensor, Tensor, Tensor]
"""Both operands' and the output's, whose quantisation counts."""


def sub_parameters(a: Quantization, b: Quantization, output: Quantization) -> AddParameters:
    """Returns the factors of SUB: those of ADD; UnsupportedError as ``add_parameters``."""
    return add_parameters(a, b, output, "SUB")


def sub_tables(a: Quantization, b: Quantization, output: Quantization) -> np.ndarray:
    """Returns ``add_tables`` with the second one negative: SUB is the sum of their entries."""
    sub_parameters(a, b, output)
    return add_tables(a, b, output) * np.array([[1], [-1]], np.int32)


def sub(a: np.ndarray, b: np.ndarray, tensors: Tensors, activation: str) -> np.ndarray:
    """a - b in the output's scale.

    Parameters
    ----------
    a, b : arrays of int8
    tensors : (a, b, output)
    activation : str
    """
    first, second, output = _quantizations(tensors)
    tables, parameters = sub_tables(first, second, output), sub_parameters(first, second, output)
    total = tables[0][a.astype(np.int64) + 128] + tables[1][b.astype(np.int64) + 128]
    value = multiply_by_quantized_multiplier(total, parameters.multiplier, parameters.shift)
    return _clamped(value, output, activation)


def mul(a: np.ndarray, b: np.ndarray, tensors: Tensors, activation: str) -> np.ndarray:
    """a x b in the output's scale; parameters as for ``sub``."""
    first, second, output = _quantizations(tensors)
    (scale_a, zero_a), (scale_b, zero_b) = scalar(first), scalar(second)
    multiplier, shift = quantize_multiplier(scale_a * scale_b / scalar(output)[0])
    product = (a.astype(np.int64) - zero_a) * (b.astype(np.int64) - zero_b)
    return _clamped(
        multiply_by_quantized_multiplier(product, multiplier, shift), output, activation
    )


def matmul(
    a: np.ndarray, b: np.ndarray, tensors: Tensors, *, transpose_a: bool, transpose_b: bool
) -> np.ndarray:
    """Products of matrices in the last two axes, the others broadcast, in the output's scale.

    Parameters
    ----------
    a, b : arrays of int8
    tensors : (a, b, output)
    transpose_a, transpose_b : bool
        Whether an operand's last two axes change places first.
    """
    first, second, output = _quantizations(tensors)
    (scale_a, zero_a), (scale_b, zero_b) = scalar(first), scalar(second)
    # sums of products of 9-bit numbers are exact in float64
    left, right = a.astype(np.float64) - zero_a, b.astype(np.float64) - zero_b
    left = left.swapaxes(-1, -2) if transpose_a else left
    right = right.swapaxes(-1, -2) if transpose_b else right
    multiplier, shift = quantize_multiplier(scale_a * scale_b / scalar(output)[0])
    total = (left @ right).astype(np.int64)
    return _clamped(multiply_by_quantized_multiplier(total, multiplier, shift), output, "none")


def squared_difference(a: np.ndarray, b: np.ndarray, tensors: Tensors) -> np.ndarray:
    """(a - b)^2 in the output's scale; parameters as for ``sub``."""
    first, second, output = _quantizations(tensors)
    twice = 2 * max(scalar(first)[0], scalar(second)[0])
    left = DIFFERENCE_LEFT_SHIFT
    raised = []
    for codes, quantization in ((a, first), (b, second)):
        scale, zero_point = scalar(quantization)
        multiplier, shift = quantize_multiplier(scale / twice)
        centred = (codes.astype(np.int64) - zero_point) << left
        raised.append(multiply_by_quantized_multiplier(centred, multiplier, shift))
    # the reference multiplies by the output's scale in float32
    below = float(np.float32(1 << 2 * left) * np.float32(scalar(output)[0]))
    multiplier, shift = quantize_multiplier(twice * twice / below)
    square = (raised[0] - raised[1]) ** 2
    return _clamped(multiply_by_quantized_multiplier(square, multiplier, shift), output, "none")


def prelu(x: np.ndarray, alpha: np.ndarray, tensors: Tensors) -> np.ndarray:
    """x where it is positive, x x alpha where it is not.

    Parameters
    ----------
    x, alpha : arrays of int8
        The second broadcasts to the first.
    tensors : (x, alpha, output)
    """
    source, slope, output = _quantizations(tensors)
    (scale, zero_point), (slope_scale, slope_zero) = scalar(source), scalar(slope)
    centred = x.astype(np.int64) - zero_point
    straight = multiply_by_quantized_multiplier(
        centred, *quantize_multiplier(scale / scalar(output)[0])
    )
    bent = multiply_by_quantized_multiplier(
        centred * (alpha.astype(np.int64) - slope_zero),
        *quantize_multiplier(scale * slope_scale / scalar(output)[0]),
    )
    return _clamped(np.where(centred >= 0, straight, bent), output, "none")


def _quantizations(tensors: Tensors) -> tuple[Quantization, Quantization, Quantization]:
    a, b, output = (tensor.quantization for tensor in tensors)
    if a is None or b is None or output is None:
        raise ValueError(
            f"tensors {', '.join(tensor.name for tensor in tensors)} must be quantised"
        )
    return a, b, output


def _clamped(value: np.ndarray, output: Quantization, activation: str) -> np.ndarray:
    scale, zero_point = scalar(output)
    return clamp(value, zero_point, *activation_range(activation, scale, zero_point))
