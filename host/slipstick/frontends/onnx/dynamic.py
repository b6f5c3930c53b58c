"""QuantizeLinear and its like; codes of several or computed scales, which the host scales."""

import numpy as np

from ...kernels.tflite.scaling import CODES
from .operator import SCALES, Operator
from .quantization import SHIFT, dequantize, quantize
from .values import Activation, Coded, Codes, Constant, Float, Overall, Shape, Value, shape_of

Scale = np.ndarray | Overall
"""float32, that broadcasts with the codes; or computed, one for all."""


def dynamic_quantize_linear(operator: Operator) -> list[Value]:
    """DynamicQuantizeLinear: uint8 codes, their scale and zero point.

    A batch has one scale in ONNX; here each of its pictures has its own.
    """
    operator.require_inputs(1, 1)
    if operator.builder.batch > 1:
        operator.refuse(f"the batch must be 1, not {operator.builder.batch}")
    builder, name = operator.builder, operator.name
    x = builder.real(operator.value(0))
    names = (*operator.outputs, "", "")[:3]
    scale = builder.tensor(names[1] or f"{name}/scale", (1,), "float32")
    builder.node(f"{name}/scale", "dynamic_scale", (x.tensor,), scale, {})
    zero = builder.tensor(names[2] or f"{name}/zero", (1,), "int8")
    builder.node(f"{name}/zero", "dynamic_zero_point", (x.tensor, scale), zero, {})
    parts = [
        Overall(Activation(scale, (1,)), (), "float32"),
        Overall(Activation(zero, (1,)), (), "uint8"),
    ]
    return [_coded(operator, x, (parts[0], parts[1]), "uint8", names[0]), *parts]


def quantize_by(
    operator: Operator, value: Value, by: tuple[Scale, Scale], dtype: str, name: str
) -> Codes:
    """Real numbers as codes without a meaning of their own.

    Parameters
    ----------
    operator : Operator
    value : Value
    by : (scale, zero point)
        Zero points in the codes' own type.
    dtype : str
        The codes' type.
    name : str
        ONNX's, of the result.
    """
    return _coded(operator, operator.builder.real(value), by, dtype, name)


def _coded(
    operator: Operator, x: Activation, by: tuple[Scale, Scale], dtype: str, name: str
) -> Codes:
    builder = operator.builder
    x = x if _one_for_all(by) else builder.natural(x)
    shape = builder.tensors[x.tensor].shape
    made = builder.tensor(name, shape, "int8")
    inputs = (x.tensor, *_parts(operator, by, dtype, len(shape)))
    builder.node(operator.name, "quantize_by", inputs, made, {})
    activation = Activation(made, x.shape, x.layout, x.picture)
    builder.note(name, activation, dtype)
    return Codes(activation, dtype)


def _one_for_all(by: tuple[Scale, Scale]) -> bool:
    """Tells whether the layout of what is scaled does not matter."""
    return all(isinstance(part, Overall) or part.size == 1 for part in by)


def dequantize_by(operator: Operator, value: Codes, by: tuple[Scale, Scale], name: str) -> Float:
    """Codes as real numbers; parameters are as for ``quantize_by``."""
    builder, x = operator.builder, value.activation
    x = x if _one_for_all(by) else builder.natural(x)
    shape = builder.tensors[x.tensor].shape
    made = builder.tensor(name, shape, "float32")
    inputs = (x.tensor, *_parts(operator, by, value.dtype, len(shape)))
    builder.node(operator.name, "dequantize_by", inputs, made, {})
    return Float(Activation(made, x.shape, x.layout, x.picture))


def _parts(operator: Operator, by: tuple[Scale, Scale], dtype: str, rank: int) -> tuple[str, str]:
    """Scale and zero point as tensors of the graph that broadcast with the codes."""
    scale, zero = by
    if not isinstance(scale, Overall):
        scale = scale.astype(np.float32)
    if isinstance(zero, Overall):
        if zero.dtype != dtype:
            operator.reject(f"the zero point must be {dtype}, not {zero.dtype}")
    else:
        zero = zero.astype(np.int32) - SHIFT[dtype]
    return _part(operator, scale, "scale", rank), _part(operator, zero, "zero", rank)


def _part(operator: Operator, part: Scale, what: str, rank: int) -> str:
    builder = operator.builder
    if isinstance(part, Overall):
        return overall_ranked(operator, part, rank).tensor
    array = part.reshape((1,) * (rank - part.ndim) + part.shape)
    return builder.constant(f"{operator.name}/{what}", array)


def overall_ranked(operator: Operator, value: Overall, rank: int) -> Activation:
    """Laid so that it broadcasts with a tensor of the graph that has a batch."""
    builder, activation = operator.builder, value.activation
    own = value.shape[1:] if len(value.shape) == rank and value.shape[0] == 1 else value.shape
    if rank <= len(own):
        operator.refuse(f"what has no batch, {value.shape}, must have fewer dimensions than {rank}")
    shape = (1,) * (rank - len(own)) + own
    if shape == activation.shape:
        return activation
    name = f"{activation.tensor}/ranked"
    return builder.reshaped(activation, name, shape, f"{operator.name}/shape")


def spread(
    operator: Operator, array: np.ndarray, shape: Shape, axis: int, block: int
) -> np.ndarray:
    """Scales or zero points, one an element of an axis or of its blocks, as ONNX lays them.

    Parameters
    ----------
    operator : Operator
    array : array
    shape : tuple of int
        Of what is scaled, without an axis that only the graph has.
    axis : int
    block : int
        Elements in a row that share one; 0: ``array`` is a list along the axis.
    """
    if array.ndim == 0 or not block and array.size == 1:
        return array.reshape((1,) * len(shape))
    axis = operator.constant_axis(axis, len(shape))
    if not block:
        if array.shape != (shape[axis],):
            operator.reject(f"axis {axis} must have {shape[axis]} scales, not {array.shape}")
        return array.reshape([-1 if place == axis else 1 for place in range(len(shape))])
    counts = [-(-size // block) if place == axis else size for place, size in enumerate(shape)]
    if block < 0 or list(array.shape) != counts:
        operator.reject(f"blocks of {block} must have {tuple(counts)} scales, not {array.shape}")
    whole = np.repeat(array, block, axis=axis)
    return whole[tuple(slice(size) for size in shape)]


def _constant_or_computed(operator: Operator, index: int, default: np.ndarray) -> Scale:
    if not operator.has(index):
        return default
    value = operator.value(index)
    return value if isinstance(value, Overall) else operator.constant(index)


def _scales(operator: Operator, shape: Shape, dtype: str) -> tuple[tuple[Scale, Scale], str] | None:
    """Scale and zero point of inputs 1 and 2 with the codes' type, if there are several or they
    are computed; None if they are one of each."""
    block = operator.integer("block_size", 0)
    scale = _constant_or_computed(operator, 1, np.ones(1))
    if not isinstance(scale, Overall):
        if scale.dtype.kind != "f" or not scale.size:
            operator.refuse(f"scales {operator.what(1)} must be float, not {scale.dtype}")
        scale = scale.astype(np.float32) if block else operator.scales(1)
        if not ((scale >= SCALES[0]) & (scale <= SCALES[1])).all():
            operator.refuse(f"scales {operator.what(1)} must be within {SCALES}")
    zero = _constant_or_computed(operator, 2, np.zeros((), dtype))
    one = not block and isinstance(scale, np.ndarray) and len(set(scale.ravel().tolist())) == 1
    if one and isinstance(zero, np.ndarray) and len(set(zero.ravel().tolist())) == 1:
        return None
    dtype = zero.dtype.name if isinstance(zero, np.ndarray) else zero.dtype
    if dtype not in CODES:
        operator.refuse(f"zero points {operator.what(2)} must be int8 or uint8, not {dtype}")
    axis = operator.integer("axis", 1)
    parts = [
        part if isinstance(part, Overall) else spread(operator, part, shape, axis, block)
        for part in (scale, zero)
    ]
    return (parts[0], parts[1]), dtype


def _own_shape(operator: Operator, value: Value) -> Shape:
    return shape_of(value)[0 if isinstance(value, Constant | Coded) else operator.lead :]


def dequantize_linear(operator: Operator) -> Value:
    """DequantizeLinear."""
    operator.require_inputs(2, 3)
    operator.require("output_dtype", operator.integer("output_dtype", 0), (0, 1))
    value = operator.value(0)
    default = value.dtype if isinstance(value, Codes) else "uint8"
    if isinstance(value, Constant) and value.array.dtype.name in SHIFT:
        default = value.array.dtype.name
    block = operator.integer("block_size", 0)
    if isinstance(value, Codes) or block:
        several = _scales(operator, _own_shape(operator, value), default)
        if several is not None:
            by, _ = several
            if isinstance(value, Codes):
                return dequantize_by(operator, value, by, operator.output)
            scale, zero = by
            if isinstance(value, Constant) and not isinstance(scale, Overall):
                assert isinstance(zero, np.ndarray)
                centred = value.array.astype(np.int64) - zero
                return Constant((centred.astype(np.float32) * scale).astype(np.float32))
    scales = operator.scales(1)
    zero_points = operator.zero_points(2, len(scales), default)
    return dequantize(operator, value, scales, zero_points, operator.integer("axis", 1))


def quantize_linear(operator: Operator) -> Value:
    """QuantizeLinear."""
    operator.require_inputs(2, 3)
    operator.require("precision", operator.integer("precision", 0), (0, 1))
    # of TensorProto's types: none given, uint8, int8
    wanted = operator.integer("output_dtype", 0)
    operator.require("output_dtype", wanted, (0, 2, 3))
    default = "int8" if wanted == 3 else "uint8"
    value = operator.value(0)
    if not isinstance(value, Constant | Coded):
        several = _scales(operator, _own_shape(operator, value), default)
        if several is not None:
            return quantize_by(operator, value, *several, operator.output)
    operator.require("block_size", operator.integer("block_size", 0), (0,))
    scales = operator.scales(1)
    zero_points = operator.zero_points(2, len(scales), default)
    axis = operator.integer("axis", 1)
    return quantize(operator, value, scales, zero_points, axis, operator.output)


def integer_operand(operator: Operator, index: int, zero_index: int, axis: int = 1) -> Value:
    """Codes less their zero point, as whole numbers."""
    value = operator.value(index)
    default = value.array.dtype.name if isinstance(value, Constant) else "uint8"
    default = value.dtype if isinstance(value, Codes) else default
    zero = operator.value(zero_index) if operator.has(zero_index) else None
    if isinstance(value, Codes) and isinstance(zero, Overall):
        by = (np.ones((), np.float32), zero)
        return dequantize_by(operator, value, by, f"{operator.output}/centred")
    count = max(1, operator.constant(zero_index).size) if operator.has(zero_index) else 1
    zero_points = operator.zero_points(zero_index, count, default)
    ones = np.ones(count, np.float32)
    if isinstance(value, Codes) and len(set(zero_points.tolist())) > 1:
        shape = _own_shape(operator, value)
        points = spread(operator, zero_points, shape, axis, 0)
        by = (np.ones((), np.float32), points)
        return dequantize_by(operator, value, by, f"{operator.output}/centred")
    return dequantize(operator, value, ones, zero_points, axis)
