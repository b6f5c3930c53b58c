"""ONNX's rule for codes, in its runtimes' arithmetic: float32.

A sum times a float32 factor is rounded to float32, and that to an integer, ties to even both times.
The 31-bit multipliers of the hardware hold a float32's 24 bits exactly; its FLOAT mode does both
roundings.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...graph import Quantization, Tensor
from ..tflite.scaling import CODES, quantize_multiplier, scalar

MOST_TABLE_BITS = 24
"""Fraction bits of the tables of ``add``, at most."""


def code_range(attributes: Mapping[str, Any], dtype: str = "int8") -> tuple[int, int]:
    """The codes between which a node clamps: its ``clamp``, or all."""
    low, high = attributes.get("clamp") or CODES[dtype]
    return int(low), int(high)


def same_codes(a: Tensor, b: Tensor) -> bool:
    """Tells whether equal codes of two tensors mean equal numbers."""
    if a.quantization is None or b.quantization is None:
        return a.quantization is b.quantization
    return scalar(a.quantization) == scalar(b.quantization)


def layer_factors(source: Tensor, weights: Tensor, output: Tensor) -> np.ndarray:
    """Each output channel's factor from sums to codes, or one for all; float32."""
    if weights.quantization is None:
        raise ValueError(f"weights {weights.name} must be quantised")
    product = np.float32(scalar(source.quantization)[0]) * weights.quantization.scale.astype(
        np.float32
    )
    return product / np.float32(scalar(output.quantization)[0])


def factor_parts(factors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Factors as (mantissas, shifts) of mantissa / 2^31 x 2^shift; int64."""
    pairs = [quantize_multiplier(float(factor)) for factor in factors.reshape(-1)]
    mantissas, shifts = zip(*pairs, strict=True)
    return np.array(mantissas, np.int64), np.array(shifts, np.int64)


def round_float(
    sums: np.ndarray, mantissas: np.ndarray | int, shifts: np.ndarray | int
) -> np.ndarray:
    """Sums, wrapped at 32 bits, times factors, rounded to float32, that to integers; int64."""
    product = sums.astype(np.int32).astype(np.int64) * mantissas
    # the cast rounds once, ties to even; the power of two changes no digit
    return np.rint(np.ldexp(product.astype(np.float32), np.subtract(shifts, 31))).astype(np.int64)


def to_codes(
    sums: np.ndarray, factors: np.ndarray, output: Tensor, attributes: Mapping[str, Any]
) -> np.ndarray:
    """Sums as codes of the output."""
    zero_point = scalar(output.quantization)[1]
    value = round_float(sums, *factor_parts(factors)) + zero_point
    return np.clip(value, *code_range(attributes, output.dtype)).astype(output.dtype)


def average_factor(source: Quantization, output: Quantization, count: int) -> np.float32:
    """The factor from a sum of codes to the code of their mean: that of onnxruntime's operators of
    codes, for means of real numbers as well, whose float32 sums depend on the machine."""
    return np.float32(scalar(source)[0]) / (np.float32(scalar(output)[0]) * np.float32(count))


@dataclass(frozen=True, eq=False)
class AddTables:
    """ADD as round((tables[0][a + 128] + tables[1][b + 128]) / 2^bits) + zero_point.

    The sum is rounded to float32, and that to an integer, as in ``round_float``.

    Parameters
    ----------
    tables : array of int32, 2 x 256
    bits : int
        Fraction bits, -6 to ``MOST_TABLE_BITS``.
    zero_point : int
        Where the tables hold it, it is added before the rounding: 0, or -128 of raised codes.
    """

    tables: np.ndarray
    bits: int
    zero_point: int


def add_tables(quantizations: tuple[Quantization, ...], attributes: Mapping[str, Any]) -> AddTables:
    """The tables of ADD or SUB of two quantised operands.

    Parameters
    ----------
    quantizations : (a, b, output)
    attributes : mapping
        With ``offset`` "before" the zero point is added before the rounding, else behind it: of
        codes that lie halfway, the even one is another. "before of uint8": all codes and zero
        points are 128 more, which float32 notices. With ``negate`` it is a - b.
    """
    a, b, (scale, zero_point) = (scalar(item) for item in quantizations)
    signs = (1, -1 if attributes.get("negate") else 1)
    before = attributes.get("offset", "")
    raised = 128 if before == "before of uint8" else 0
    if before:
        exact = _fused_terms((a, b), signs, (scale, zero_point), raised)
    else:
        # the operands as a runtime has them, in float32
        codes = np.arange(-128, 128)
        exact = np.stack(
            [
                sign * (np.float32(own) * (codes - zero).astype(np.float32)).astype(np.float64)
                for sign, (own, zero) in zip(signs, (a, b), strict=True)
            ]
        )
        exact /= scale
    # what is beyond saturates, whatever the other operand is
    exact = np.clip(exact, -(1 << 34), 1 << 34)
    largest = float(np.abs(exact).max(axis=1).sum())
    bits = min(MOST_TABLE_BITS, 30 - max(0, math.frexp(largest)[1]))
    tables = np.rint(np.ldexp(exact, bits)).astype(np.int32)
    return AddTables(tables, bits, -raised if before else zero_point)


def _fused_terms(
    operands: tuple[tuple[float, int], ...],
    signs: tuple[int, int],
    output: tuple[float, int],
    raised: int,
) -> np.ndarray:
    """Tabulates what QLinearAdd sums, as onnxruntime does on x86: fma(a, A, fma(b, B, C)).

    A and B are the ratios of the scales; C is all zero points' part. A fused multiply-add rounds
    once, to float32; the outer one does so to the sum of these tables.
    """
    scale, zero_point = output
    (first, zero_a), (second, zero_b) = operands
    ratio_a, ratio_b = (
        np.float64(sign * np.float32(own) / np.float32(scale))
        for sign, own in zip(signs, (first, second), strict=True)
    )
    zeros = np.float32(ratio_a * (zero_a + raised) + np.float32(ratio_b * (zero_b + raised)))
    codes = np.arange(-128, 128) + raised
    fixed = np.float64(np.float32(zero_point + raised) - zeros)
    return np.stack([codes * ratio_a, (codes * ratio_b + fixed).astype(np.float32)])


def add_codes(
    a: np.ndarray, b: np.ndarray, tables: AddTables, clamp: tuple[int, int]
) -> np.ndarray:
    """ADD of int8 codes by its tables."""
    total = tables.tables[0][a.astype(np.int64) + 128] + tables.tables[1][b.astype(np.int64) + 128]
    value = round_float(total, 1 << 30, 1 - tables.bits) + tables.zero_point
    return np.clip(value, *clamp).astype(np.int8)
