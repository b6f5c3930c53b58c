"""Addition, and conversions between types and scales."""

import numpy as np
from slipstick_rtl.numbers.rounding import clamp

from ...graph import Tensor
from .activation import rescale
from .scaling import (
    CODES,
    activation_range,
    add_parameters,
    add_tables,
    multiply_by_quantized_multiplier,
    scalar,
)


def add(
    a: np.ndarray, b: np.ndarray, tensors: tuple[Tensor, Tensor, Tensor], activation: str
) -> np.ndarray:
    """The sum of two int8 arrays, broadcast, in the output's scale.

    Parameters
    ----------
    a, b : arrays of int8
    tensors : (a, b, output)
        Whose quantisation counts.
    activation : str

    Returns
    -------
    array of int8
    """
    quantizations = [tensor.quantization for tensor in tensors]
    if any(quantization is None for quantization in quantizations):
        raise ValueError("the tensors of an ADD must be quantised")
    first, second, output = (item for item in quantizations if item is not None)
    parameters = add_parameters(first, second, output)
    tables = add_tables(first, second, output)
    total = tables[0][a.astype(np.int64) + 128] + tables[1][b.astype(np.int64) + 128]
    value = multiply_by_quantized_multiplier(total, parameters.multiplier, parameters.shift)
    scale, zero_point = scalar(output)
    return clamp(value, zero_point, *activation_range(activation, scale, zero_point))


def quantize(x: np.ndarray, source: Tensor, output: Tensor) -> np.ndarray:
    """float32, or codes of another scale or type, as codes of the output; ties away from zero.

    What C leaves open is fixed here: NaN, as of the logarithm of a negative number, is the lowest
    code, and what is beyond 32 bits clamps like any large number.
    """
    target = scalar(output.quantization)
    if source.dtype != "float32":
        value = rescale(
            x.astype(np.int64), scalar(source.quantization), target, "none", output.dtype
        )
        return value.astype(output.dtype)
    # beyond float32 the quotient is infinite, and clamps like any large one
    with np.errstate(over="ignore"):
        real = x.astype(np.float32) / np.float32(target[0])
    value = np.copysign(np.floor(np.abs(real).astype(np.float64) + 0.5), real) + target[1]
    value = np.nan_to_num(value, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
    return np.clip(value, *CODES[output.dtype]).astype(output.dtype)


def dequantize(x: np.ndarray, source: Tensor) -> np.ndarray:
    """Codes as float32."""
    scale, zero_point = scalar(source.quantization)
    return (scale * (x.astype(np.int64) - zero_point)).astype(np.float32)
