"""QuantizeLinear and DequantizeLinear: where codes become real numbers and back."""

import numpy as np

from ...graph import Quantization
from ...kernels.lns.codes import encode
from ...kernels.tflite.scaling import CODES
from .builder import Builder, per_tensor
from .operator import Operator
from .values import Activation, Coded, Codes, Constant, Float, Pending, Real, Result, Value

SHIFT = {"uint8": 128, "int8": 0, "int32": 0}
"""Number that is taken from the codes of each type, so that the graph has int8 alone."""


def dequantize(
    operator: Operator, value: Value, scales: np.ndarray, zero_points: np.ndarray, axis: int
) -> Value:
    """Codes as the real numbers that they stand for.

    Parameters
    ----------
    operator : Operator
        Whose errors it raises.
    value : Value
    scales, zero_points : arrays, equally long
        Zero points in the codes' own type.
    axis : int
        Along which they are, if there are several.
    """
    if isinstance(value, Constant | Coded):
        return _dequantize_constant(operator, value.array, scales, zero_points, axis)
    if isinstance(value, Pending) and value.dtype == "int32" and value.affine is not None:
        scaled = value.affine(scales.astype(np.float64), -scales * zero_points.astype(np.float64))
        if scaled is not None:
            return scaled
    if not isinstance(value, Codes):
        operator.refuse("what is dequantised must be int8 or uint8 codes, and is not")
    if zero_points.dtype.name != value.dtype:
        operator.reject(f"the zero point must be {value.dtype}, not {zero_points.dtype}")
    scale, zero_point = one(operator, scales, zero_points)
    return dequantize_computed(operator, value, per_tensor(scale, zero_point))


def dequantize_computed(operator: Operator, value: Codes, quantization: Quantization) -> Real:
    """As ``dequantize``, what is no constant, by a quantisation of the graph's."""
    activation = operator.builder.relabelled(value.activation, quantization)
    return linear(operator.builder, activation, quantization)


def linear(builder: Builder, activation: Activation, quantization: Quantization) -> Real:
    """Returns the real numbers that the codes of an activation mean."""
    return Real(activation, builder.meanings(quantization), True)


def one(operator: Operator, scales: np.ndarray, zero_points: np.ndarray) -> tuple[float, int]:
    """The scale and the zero point, for int8, of an activation."""
    if len(set(scales.tolist())) > 1 or len(set(zero_points.tolist())) > 1:
        operator.refuse(f"a computed tensor must have 1 scale, not {len(scales)}")
    return float(scales[0]), int(zero_points[0]) - SHIFT[zero_points.dtype.name]


def _dequantize_constant(
    operator: Operator,
    array: np.ndarray,
    scales: np.ndarray,
    zero_points: np.ndarray,
    axis: int,
) -> Coded:
    dtype = array.dtype.name
    if dtype not in SHIFT:
        operator.refuse(f"codes must be {', '.join(SHIFT)}, not {dtype}")
    if zero_points.dtype.name != dtype:
        if zero_points.any():
            operator.reject(f"zero points must be {dtype}, not {zero_points.dtype}")
        zero_points = zero_points.astype(dtype)
    several = len(scales) > 1
    if several:
        axis = operator.constant_axis(axis, array.ndim)
        if array.shape[axis] != len(scales):
            operator.reject(f"axis {axis} must have {array.shape[axis]} scales, not {len(scales)}")
    shift = SHIFT[dtype]
    codes = (array.astype(np.int16) - shift).astype(np.int8) if shift else array
    return Coded(codes, scales, zero_points.astype(np.int64) - shift, axis if several else None)


def quantize(
    operator: Operator,
    value: Value,
    scales: np.ndarray,
    zero_points: np.ndarray,
    axis: int,
    name: str,
) -> Value:
    """Real numbers as codes of the zero points' type, ties to even."""
    dtype = zero_points.dtype.name
    if isinstance(value, Constant | Coded):
        return _quantize_constant(operator, value.array, scales, zero_points, axis)
    if dtype not in CODES:
        operator.refuse(f"a computed tensor's codes must be int8 or uint8, not {dtype}")
    scale, zero_point = one(operator, scales, zero_points)
    return quantize_computed(operator, value, per_tensor(scale, zero_point), dtype, name)


def quantize_computed(
    operator: Operator, value: Value, quantization: Quantization, dtype: str, name: str
) -> Codes:
    """As ``quantize``, what is no constant, by a quantisation of the graph's."""
    made = _quantize_computed(operator, value, quantization, name)
    operator.builder.note(name, made, dtype)
    return Codes(made, dtype)


def _quantize_computed(
    operator: Operator, value: Value, quantization: Quantization, name: str
) -> Activation:
    builder = operator.builder
    if isinstance(value, Pending):
        ends = codes_of(builder, np.array([value.low, value.high]), quantization)
        clamp = (int(ends[0]), int(ends[1]))
        every = clamp == (builder.every_code[0], builder.every_code[-1])
        return builder.emit(value, Result(name, "int8", quantization, None if every else clamp))
    if not isinstance(value, Real | Float):
        operator.refuse("what is quantised must be real numbers, and is not")
    source = builder.tensors[value.activation.tensor]
    if isinstance(value, Real):
        codes = codes_of(builder, value.values, quantization)
        old = source.quantization
        same = old is not None and (old.scale[0], old.zero_point[0]) == (
            quantization.scale[0],
            quantization.zero_point[0],
        )
        if same and np.array_equal(codes, builder.every_code):
            return value.activation
        made = builder.tensor(name, source.shape, "int8", quantization)
        table = builder.constant(f"{made}/table", codes)
        builder.node(operator.name, "lookup", (source.name, table), made, {})
        base, inner = builder.derived.get(source.name, (value.activation, np.arange(-128, 128)))
        builder.derived[made] = (base, codes[inner.astype(np.int64) + 128])
    else:
        made = builder.tensor(name, source.shape, "int8", quantization)
        builder.node(operator.name, "quantize", (source.name,), made, {})
    layout, picture = value.activation.layout, value.activation.picture
    return Activation(made, value.activation.shape, layout, picture)


def codes_of(builder: Builder, real: np.ndarray, quantization: Quantization) -> np.ndarray:
    """Real numbers as int8 codes, as a runtime has it in float32; NaN as zero. Or as the nearest
    logarithmic ones."""
    if builder.arithmetic is not None:
        return encode(real, float(quantization.scale[0]), builder.arithmetic)
    with np.errstate(all="ignore"):
        quotient = real.astype(np.float32) / np.float32(quantization.scale[0])
    codes = np.nan_to_num(np.rint(quotient).astype(np.float64), nan=0.0, posinf=1e9, neginf=-1e9)
    return np.clip(codes + quantization.zero_point[0], -128, 127).astype(np.int8)


def _quantize_constant(
    operator: Operator,
    array: np.ndarray,
    scales: np.ndarray,
    zero_points: np.ndarray,
    axis: int,
) -> Constant:
    dtype = zero_points.dtype
    if array.dtype.kind not in "fi" or dtype.name not in CODES:
        operator.refuse(f"a constant must become int8 or uint8, not {array.dtype} {dtype}")
    shape = [1] * array.ndim
    if len(scales) > 1:
        axis = operator.constant_axis(axis, array.ndim)
        if array.shape[axis] != len(scales):
            operator.reject(f"axis {axis} must have {array.shape[axis]} scales, not {len(scales)}")
        shape[axis] = -1
    quotient = array.astype(np.float32) / scales.reshape(shape)
    codes = np.rint(quotient) + zero_points.astype(np.float32).reshape(shape)
    limits = np.iinfo(dtype)
    return Constant(np.clip(np.nan_to_num(codes), limits.min, limits.max).astype(dtype))
