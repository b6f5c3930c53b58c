"""Computes the errors of an element's products and sums from the golden models."""

from typing import Any

import numpy as np
from slipstick_rtl.experiments.mixed_arithmetic import LARGEST_ACTIVATION, MixedArithmetic
from slipstick_rtl.experiments.wide_arithmetic import WideArithmetic
from slipstick_rtl.numbers.lns.array_arithmetic import ArrayArithmetic
from slipstick_rtl.numbers.lns.formats import Lns
from slipstick_rtl.numbers.lns.unit.arithmetic import LnsArithmetic
from slipstick_rtl.numbers.lns.unit.gaussian_log_model import exact_minus, exact_plus, reach

from .kinds import LOG, Kind

_PLACES_BELOW = 6
"""Binary places of the sums that are converted, below those that a requantiser looks at."""


def product_errors(arithmetic: ArrayArithmetic) -> dict[str, float]:
    """Computes the errors of products as integers.

    Their antilogarithm is rounded, and small ones are cut off.

    Over all pairs of codes but 0; in ulps of the format. What is cut to 0 has no logarithm: it is
    counted.
    """
    lns = arithmetic.lns
    top = lns.largest_code
    total = np.arange(2, 2 * top + 1)
    first = np.minimum(total - 1, top)
    product = arithmetic.multiply(first, total - first) * arithmetic.unit
    # pairs of codes with this sum
    pairs = np.minimum(total - 1, 2 * top + 1 - total)
    kept = product > 0
    steps = 1 << lns.fraction_bits
    error = np.abs(np.log2(product[kept]) * steps - total[kept])
    return {
        "product_worst_ulp": round(float(error.max()), 3),
        "product_mean_ulp": round(float(np.average(error, weights=pairs[kept])), 3),
        "products_cut_to_zero_percent": round(100 * float(pairs[~kept].sum() / pairs.sum()), 2),
    }


def mixed_product_errors(arithmetic: MixedArithmetic) -> dict[str, float]:
    """Computes the errors of an int8 times every code but 0, as ``product_errors``.

    They are in ulps of the weight's format.
    """
    lns = arithmetic.lns
    activation = np.arange(1, LARGEST_ACTIVATION + 1)[:, None]
    weight = np.arange(1, lns.largest_code + 1)
    steps = 1 << lns.fraction_bits
    product = arithmetic.multiply(activation, weight) * arithmetic.unit
    exact = np.log2(activation) * steps + weight
    kept = product > 0
    error = np.abs(np.log2(product[kept]) * steps - exact[kept])
    return {
        "product_worst_ulp": round(float(error.max()), 3),
        "product_mean_ulp": round(float(error.mean()), 3),
        "products_cut_to_zero_percent": round(100 * float((~kept).mean()), 2),
    }


def conversion_errors(arithmetic: ArrayArithmetic) -> dict[str, float]:
    """Computes the errors of the code that an exact sum becomes, in ulps of the format.

    Every mantissa of an octave is looked at.
    """
    lns = arithmetic.lns
    place = arithmetic.mantissa_bits + _PLACES_BELOW
    sums = np.arange(1 << place, 2 << place)
    # so that all codes are within the format
    offset = arithmetic.offset(2.0 ** (1 - place))
    exact = (np.log2(sums) + 1 - place) * (1 << lns.fraction_bits)
    error = np.abs(arithmetic.requantize(sums, 0, offset) - exact)
    return {
        "sum_worst_ulp": round(float(error.max()), 3),
        "sum_mean_ulp": round(float(error.mean()), 3),
    }


def addition_errors(lns: Lns) -> dict[str, float]:
    """Computes the errors of each addition and subtraction of two codes, in ulps.

    Every distance that matters is looked at.
    """
    gauss = LnsArithmetic(lns).gauss
    distance = np.arange(reach(lns))
    plus = gauss.plus(distance) - exact_plus(distance, lns.fraction_bits)
    minus = gauss.minus(distance[1:]) - exact_minus(distance[1:], lns.fraction_bits)
    error = np.abs(np.concatenate([plus, minus]))
    return {
        "sum_worst_ulp": round(float(error.max()), 3),
        "sum_mean_ulp": round(float(error.mean()), 3),
    }


def errors(kind: Kind) -> dict[str, Any]:
    """Computes the errors of a logarithmic element's products and sums.

    Errors of sums are those of its additions, or of their exact sum as a code.

    Products and sums of int8 are exact.
    """
    lns = kind.log_format
    if kind.sums == LOG:
        # codes are added, and saturate
        return {"product_worst_ulp": 0.0, "product_mean_ulp": 0.0, **addition_errors(lns)}
    if kind.linear_activations:
        # sums become int8 as int8's do
        exact_sum = {"sum_worst_ulp": 0.0, "sum_mean_ulp": 0.0}
        return {**mixed_product_errors(MixedArithmetic(lns)), **exact_sum}
    arithmetic = ArrayArithmetic(lns) if kind.in_core else WideArithmetic(lns)
    return {**product_errors(arithmetic), **conversion_errors(arithmetic)}
