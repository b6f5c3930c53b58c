"""LogQuantizeLinear and LogDequantizeLinear, of the domain "slipstick": logarithmic codes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from slipstick_rtl.numbers.lns.array_arithmetic import ArrayArithmetic
from slipstick_rtl.numbers.lns.formats import Lns

from ...errors import UnsupportedError
from ...graph import Quantization
from ...kernels.lns.codes import meanings
from ..files import quoted
from .builder import per_tensor
from .operator import Operator
from .quantization import dequantize_computed, quantize_computed
from .reader import RawNode
from .values import Coded, Codes, Constant, Value

DOMAIN = "slipstick"
ATTRIBUTES = ("axis", "integer_bits", "fraction_bits")

_INT8 = ("ConvInteger", "MatMulInteger", "DynamicQuantizeLinear")
"""Operators of int8 codes, beside those whose names begin with Q."""


def arithmetic_of_nodes(nodes: Sequence[RawNode], model: str) -> ArrayArithmetic | None:
    """The arithmetic of the first node that names one, None if a network has no logarithms.

    Raises
    ------
    UnsupportedError
        If no array has it.
    """
    for node in nodes:
        if node.domain == DOMAIN:
            bits: list[Any] = [node.attributes.get(name) for name in ATTRIBUTES[1:]]
            try:
                return ArrayArithmetic(Lns(*bits))
            except (TypeError, ValueError) as error:
                raise UnsupportedError(
                    f"{model}: {node.operator} (node {node.index} {quoted(node.name)}): {error}"
                ) from None
    return None


def require_logarithms(operator: Operator) -> None:
    """Refuses operators of int8 codes in a network of logarithmic ones, int32 biases aside."""
    kind = operator.operator
    bias = kind == "DequantizeLinear" and isinstance(operator.value(0), Constant | Coded)
    if bias and operator.constant(0).dtype == np.int32:
        return
    if kind in _INT8 or kind == "DequantizeLinear" or kind.startswith("Q"):
        operator.refuse(
            "a network of logarithmic codes must have no int8 ones beside them, and this is"
            f" {kind}: all are LogQuantizeLinear and LogDequantizeLinear's"
        )


def log_quantize_linear(operator: Operator) -> Value:
    """LogQuantizeLinear: the nearest codes of computed real numbers."""
    operator.require_inputs(2, 2)
    _require_format(operator)
    value = operator.value(0)
    if isinstance(value, Constant | Coded):
        operator.refuse(f"{operator.what(0)} must be computed: constants are stored as codes")
    return quantize_computed(operator, value, _one(operator), "int8", operator.output)


def log_dequantize_linear(operator: Operator) -> Value:
    """LogDequantizeLinear: what codes stand for."""
    operator.require_inputs(2, 2)
    arithmetic = _require_format(operator)
    value = operator.value(0)
    if isinstance(value, Constant):
        return _constant(operator, value.array, arithmetic)
    if not isinstance(value, Codes):
        operator.refuse(f"{operator.what(0)} must be logarithmic codes, and is not")
    return dequantize_computed(operator, value, _one(operator))


def _constant(operator: Operator, codes: np.ndarray, arithmetic: ArrayArithmetic) -> Coded:
    largest, scales = arithmetic.lns.largest_code, operator.scales(1)
    if codes.dtype != np.int8:
        operator.refuse(f"codes {operator.what(0)} must be int8, not {codes.dtype}")
    odd = codes[np.abs(codes.astype(np.int16)) > largest]
    if odd.size:
        operator.reject(
            f"codes {operator.what(0)} must be within {-largest}..{largest} with"
            f" {arithmetic.lns.name}, not {odd[0]}"
        )
    axis = None
    if len(scales) > 1:
        axis = operator.constant_axis(operator.integer("axis", 0), codes.ndim)
        if codes.shape[axis] != len(scales):
            operator.reject(f"axis {axis} must have {codes.shape[axis]} scales, not {len(scales)}")
    zero_points = np.zeros(len(scales), np.int64)
    return Coded(codes, scales, zero_points, axis, meanings(arithmetic))


def _one(operator: Operator) -> Quantization:
    """The scale of a computed tensor."""
    scales = operator.scales(1)
    if len(scales) > 1:
        operator.refuse(f"a computed tensor must have 1 scale, not {len(scales)}")
    return per_tensor(float(scales[0]), 0)


def _require_format(operator: Operator) -> ArrayArithmetic:
    arithmetic = operator.builder.arithmetic
    assert arithmetic is not None
    lns = arithmetic.lns
    bits = tuple(operator.integer(name, 0) for name in ATTRIBUTES[1:])
    if bits != (lns.integer_bits, lns.fraction_bits):
        operator.refuse(
            f"integer_bits and fraction_bits must be those of the network's other codes,"
            f" {lns.integer_bits} and {lns.fraction_bits}, not {bits[0]} and {bits[1]}"
        )
    return arithmetic
