"""Codes of a logarithmic array: what they mean, and which is nearest to a real number."""

from functools import cache

import numpy as np
from slipstick_rtl.numbers.lns.array_arithmetic import ArrayArithmetic
from slipstick_rtl.numbers.lns.formats import Lns


@cache
def arithmetic_of(semantics: str) -> ArrayArithmetic | None:
    """The arithmetic of a graph's or a program's ``semantics``; None if it is no logarithmic one.

    ValueError if it is one that no array has.
    """
    return ArrayArithmetic(Lns.parse(semantics)) if semantics.startswith("lns") else None


@cache
def magnitudes(arithmetic: ArrayArithmetic) -> np.ndarray:
    """Lists what 0, 1, ..., the largest code mean beside the scale; float64.

    0 means 0, each other code 2^(code / 2^F).
    """
    lns = arithmetic.lns
    values = np.exp2(np.arange(lns.largest_code + 1) / (1 << lns.fraction_bits))
    values[0] = 0
    values.setflags(write=False)
    return values


@cache
def meanings(arithmetic: ArrayArithmetic) -> np.ndarray:
    """Lists what the bytes -128, ..., 127 mean beside the scale; float64.

    Bytes beyond the codes mean what the end codes mean.
    """
    largest = arithmetic.lns.largest_code
    codes = np.clip(np.arange(-128, 128), -largest, largest)
    values = np.sign(codes) * magnitudes(arithmetic)[np.abs(codes)]
    values.setflags(write=False)
    return values


def decode(codes: np.ndarray, scale: float | np.ndarray, arithmetic: ArrayArithmetic) -> np.ndarray:
    """The real numbers that codes stand for, float64; scales broadcast."""
    return meanings(arithmetic)[codes.astype(np.int64) + 128] * scale


def encode(real: np.ndarray, scale: float | np.ndarray, arithmetic: ArrayArithmetic) -> np.ndarray:
    """The codes, int8, whose meanings are nearest to real numbers; of two, the one nearer to 0.

    Beyond the largest code's meaning it is that one, infinite numbers included. NaN becomes 0.
    """
    values = magnitudes(arithmetic)
    limits = (values[1:] + values[:-1]) / 2
    with np.errstate(over="ignore"):
        quotient = np.nan_to_num(np.asarray(real, np.float64) / scale, nan=0.0)
    codes = np.searchsorted(limits, np.abs(quotient))
    return (np.sign(quotient) * codes).astype(np.int8)
