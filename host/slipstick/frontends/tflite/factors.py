"""Scales that the reference's 32-bit arithmetic can hold: others are refused by name.

A factor above 1 is a shift to the left before a product, and what it shifts must stay within 32
bits; so must the codes between which an activation clamps. Beyond that the reference overflows,
and what it makes is neither arithmetic nor the same on every machine.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...graph import Tensor
from ...kernels.tflite.activation import EXPONENT_BITS, INPUT_BITS
from ...kernels.tflite.binary import DIFFERENCE_LEFT_SHIFT
from ...kernels.tflite.matrix import centred_weights
from ...kernels.tflite.scaling import mantissa_and_shift, quantize_value
from ...operators import Unary, find
from ..files import quoted
from .operator import Operator, single

LIMIT = 1 << 31

_SWISH_SCALES = (2.0**-22, 2.0**24)
_SWISH_RATIO = 512
"""HARD_SWISH's input scales, and output scales in input scales, that 16 bits hold."""

_RSQRT_SHIFTS = (-11, 30)
"""RSQRT lowers a root by 20 places less than the factor's shift."""


@dataclass(frozen=True)
class Factor:
    """A factor by which integers are multiplied.

    Parameters
    ----------
    real : float
    largest : int
        Of the integers, without sign.
    tensors : tuple of Tensor
        Whose scales make it.
    """

    real: float
    largest: int
    tensors: tuple[Tensor, ...]

    @property
    def fits(self) -> bool:
        """Tells whether nothing overflows: a product in 32 bits begins with the shift."""
        return self.largest << max(mantissa_and_shift(self.real)[1], 0) < LIMIT


def check_factors(operator: Operator, kind: str, attributes: Mapping[str, Any]) -> None:
    """Refuses scales whose arithmetic the reference cannot do.

    Parameters
    ----------
    operator : Operator
        Its tensors were checked to have scales.
    kind : str
        The node that it becomes.
    attributes : mapping
        The node's.
    """
    if operator.output.dtype == "float32":
        # what the converter left in real numbers has no factor
        return
    if kind in _SPECIAL:
        _SPECIAL[kind](operator, attributes)
    _check_bounds(operator, kind, attributes)
    record = find(kind)
    clamps = isinstance(record, Unary) and record.clamp is not None
    factors = _rescaled if clamps else _FACTORS.get(kind)
    for factor in factors(operator, attributes) if factors else ():
        if not factor.fits:
            operator.refuse(
                f"{_scales(factor.tensors)} make a factor of {factor.real:g}: with what it"
                f" multiplies, up to {factor.largest}, it must stay below 2^31"
            )


def _scales(tensors: tuple[Tensor, ...]) -> str:
    parts = [f"{_largest_scale(tensor):g} of {quoted(tensor.name)}" for tensor in tensors]
    return f"scales {', '.join(parts[:-1])} and {parts[-1]}"


def _largest_scale(tensor: Tensor) -> float:
    return 1.0 if tensor.quantization is None else float(tensor.quantization.scale.max())


def _check_bounds(operator: Operator, kind: str, attributes: Mapping[str, Any]) -> None:
    activation = attributes.get("activation", kind)
    record = find(activation)
    clamp = record.clamp if isinstance(record, Unary) else None
    # the code of 0 is the zero point
    for bound in filter(None, clamp or ()):
        scale, zero_point = single(operator.output)
        if not abs(quantize_value(bound, scale, zero_point)) < LIMIT:
            operator.refuse(
                f"scale {scale:g} of {quoted(operator.output.name)} makes the code of"
                f" {bound:g}, to which {activation} clamps, leave 32 bits"
            )


def _reach(tensor: Tensor) -> int:
    """The largest distance of a code from the zero point."""
    zero_point = single(tensor)[1]
    if tensor.data is not None:
        return int(np.abs(tensor.data.astype(np.int64) - zero_point).max())
    return max(127 - zero_point, zero_point + 128)


def _inputs(operator: Operator, count: int) -> tuple[Tensor, ...]:
    """The first inputs, and the output."""
    return (*(operator.operand(index) for index in range(count)), operator.output)


def _layer(axis: int, source: int = 0) -> Callable[[Operator, Mapping[str, Any]], Iterator[Factor]]:
    """The factors of the output channels, along an axis of the weights, and their sums."""

    def factors(operator: Operator, attributes: Mapping[str, Any]) -> Iterator[Factor]:
        x, weights, output = operator.activation(source), operator.inputs[1], operator.output
        assert weights is not None and weights.data is not None
        assert weights.quantization is not None
        scale, zero_point = single(x)
        centred = np.moveaxis(centred_weights(weights.data, weights, axis), axis, 0)
        rows = centred.reshape(len(centred), -1).astype(np.int64)
        above, below = np.maximum(rows, 0).sum(axis=1), np.minimum(rows, 0).sum(axis=1)
        low, high = -128 - zero_point, 127 - zero_point
        bias = operator.inputs[source + 2 - (source > 0)] if _has_bias(operator, source) else None
        offset = 0 if bias is None or bias.data is None else bias.data.astype(np.int64).ravel()
        largest = np.maximum(
            abs(above * high + below * low + offset), abs(above * low + below * high + offset)
        )
        reals = scale * weights.quantization.scale / single(output)[0]
        for real, most in zip(np.broadcast_to(reals, largest.shape), largest, strict=True):
            yield Factor(float(real), int(most), (x, weights, output))

    return factors


def _has_bias(operator: Operator, source: int) -> bool:
    return len(operator.inputs) > source + 2 - (source > 0)


def _rescaled(operator: Operator, attributes: Mapping[str, Any]) -> Iterator[Factor]:
    x, output = operator.activation(0, ("int8", "uint8", "float32")), operator.output
    if x.quantization is None:
        return
    # distances of uint8 codes are those of int8 ones
    yield Factor(single(x)[0] / single(output)[0], 255, (x, output))


def _leaky_relu(operator: Operator, attributes: Mapping[str, Any]) -> Iterator[Factor]:
    for factor in _rescaled(operator, attributes):
        yield factor
        slope = abs(float(np.float32(attributes["alpha"])))
        yield Factor(slope * factor.real, factor.largest, factor.tensors)


def _prelu(operator: Operator, attributes: Mapping[str, Any]) -> Iterator[Factor]:
    x, alpha, output = tensors = _inputs(operator, 2)
    real = single(x)[0] / single(output)[0]
    yield Factor(real, _reach(x), (x, output))
    yield Factor(real * single(alpha)[0], _reach(x) * _reach(alpha), tensors)


def _product(operator: Operator, attributes: Mapping[str, Any]) -> Iterator[Factor]:
    a, b, output = tensors = _inputs(operator, 2)
    real = single(a)[0] * single(b)[0] / single(output)[0]
    columns = a.shape[-2 if attributes.get("transpose_a") else -1]
    terms = columns if "transpose_a" in attributes else 1
    yield Factor(real, terms * _reach(a) * _reach(b), tensors)


def _squared_difference(operator: Operator, attributes: Mapping[str, Any]) -> Iterator[Factor]:
    a, b, output = tensors = _inputs(operator, 2)
    twice = 2 * max(single(a)[0], single(b)[0])
    raised = [_reach(each) * single(each)[0] / twice + 1 for each in (a, b)]
    largest = math.ceil((sum(raised) * (1 << DIFFERENCE_LEFT_SHIFT)) ** 2)
    yield Factor(
        twice * twice / ((1 << 2 * DIFFERENCE_LEFT_SHIFT) * single(output)[0]), largest, tensors
    )


def _reduced(operator: Operator, attributes: Mapping[str, Any]) -> Iterator[Factor]:
    x, output = operator.activation(0), operator.output
    count = math.prod(x.shape[axis] for axis in attributes["axes"])
    yield Factor(single(x)[0] / single(output)[0], count * _reach(x), (x, output))


def _check_sigmoid(operator: Operator, attributes: Mapping[str, Any]) -> None:
    """The input is raised to ``INPUT_BITS`` integer bits: by 0 to 30 places."""
    x = operator.activation(0)
    low, high = 2.0 ** (INPUT_BITS - 32), 2.0 ** (INPUT_BITS - 1)
    if not low <= single(x)[0] < high:
        operator.refuse(
            f"scale {single(x)[0]:g} of {quoted(x.name)} must be at least {low:g} and below"
            f" {high:g}, as the reference's 32 bits hold no other"
        )


def _check_exponential(operator: Operator, attributes: Mapping[str, Any]) -> None:
    """The input is raised to ``EXPONENT_BITS`` integer bits, never lowered."""
    x = operator.activation(0)
    beta, lowest = attributes.get("beta", 1.0), 2.0 ** (EXPONENT_BITS - 31)
    if not float(np.float32(beta)) * single(x)[0] > lowest:
        operator.refuse(
            f"scale {single(x)[0]:g} of {quoted(x.name)}, times beta {beta:g}, must be above"
            f" {lowest:g}: the reference stops there"
        )


def _check_hard_swish(operator: Operator, attributes: Mapping[str, Any]) -> None:
    x, output = operator.activation(0), operator.output
    scale, result = single(x)[0], single(output)[0]
    low, high = _SWISH_SCALES
    if not low <= scale < high or result > _SWISH_RATIO * scale:
        operator.refuse(
            f"scale {scale:g} of {quoted(x.name)} must be at least {low:g} and below {high:g}, and"
            f" {result:g} of {quoted(output.name)} at most {_SWISH_RATIO} times it: the"
            " reference's 16 bits hold no other"
        )


def _check_rsqrt(operator: Operator, attributes: Mapping[str, Any]) -> None:
    x, output = operator.activation(0), operator.output
    real = 1 / (math.sqrt(single(x)[0]) * single(output)[0])
    low, high = _RSQRT_SHIFTS
    if not low <= mantissa_and_shift(real)[1] <= high:
        operator.refuse(
            f"{_scales((x, output))} make a factor of {real:g}, which must be at least"
            f" {2.0 ** (low - 1):g} and below {2.0**high:g}"
        )


_SPECIAL: Mapping[str, Callable[[Operator, Mapping[str, Any]], None]] = {
    "logistic": _check_sigmoid,
    "tanh": _check_sigmoid,
    "softmax": _check_exponential,
    "log_softmax": _check_exponential,
    "hard_swish": _check_hard_swish,
    "rsqrt": _check_rsqrt,
}
_FACTORS: Mapping[str, Callable[[Operator, Mapping[str, Any]], Iterator[Factor]]] = {
    "conv2d": _layer(0),
    "depthwise_conv2d": _layer(3),
    "transpose_conv2d": _layer(0, source=2),
    "fully_connected": _layer(0),
    "mul": _product,
    "matmul": _product,
    "squared_difference": _squared_difference,
    "prelu": _prelu,
    "mean": _reduced,
    "reduce_sum": _reduced,
    "leaky_relu": _leaky_relu,
    **dict.fromkeys(("elu", "abs", "quantize"), _rescaled),
}
