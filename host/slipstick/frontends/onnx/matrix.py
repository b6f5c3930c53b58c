"""MatMul and Gemm, and the integer operators that are one."""

import dataclasses
import math

import numpy as np

from .convolutions import as_integers, operand, result
from .dynamic import integer_operand
from .elementwise import combine, part
from .layers import Layer, bias_values, coded_weights, quantised, real_layer
from .moves import moved
from .operator import Operator
from .unbatched import ranked, with_shape
from .values import Activation, Coded, Constant, Pending, Result, Shape, Value, shape_of


def product(
    operator: Operator,
    a: Value,
    b: Value,
    bias: np.ndarray | None = None,
    exact: np.ndarray | None = None,
) -> Pending:
    """a times b, matrices in the last two axes, plus a bias along the last.

    Parameters
    ----------
    operator : Operator
    a, b : Value
    bias : array of float64 or None
        Real numbers.
    exact : array of int64 or None
        The bias in units of the sums instead.
    """
    shape, second = _product_shape(operator, a, b), _own_shape(operator, b)
    constant = isinstance(b, Constant | Coded) and len(second) == 2
    if not constant or isinstance(a, Constant | Coded):
        if bias is not None or exact is not None:
            operator.refuse("a bias wants the second matrix to be a constant")
        return _of_activations(operator, (a, b), shape)
    assert isinstance(b, Constant | Coded)
    outputs = second[1]
    numbers = np.zeros(outputs) if bias is None else bias
    attributes = {"keep_dimensions": len(shape) > 2}
    x = quantised(operator, a)
    coded = coded_weights(b, 1) if isinstance(b, Coded) else None
    if x is None or coded is None:
        if exact is not None:
            operator.refuse("the first matrix must be codes, and the second one's scales along N")
        source = operator.builder.natural(operator.builder.real(a))
        operands = (b.array.T, numbers)
        return real_layer(operator, "fully_connected", source, operands, attributes, shape)
    codes, scale, zero_point = coded
    if x.layout == "flattened":
        codes = _as_it_lies(codes, x.picture)
    else:
        x = operator.builder.natural(x)
    layer = Layer(
        operator,
        "fully_connected",
        x,
        codes,
        scale,
        zero_point,
        numbers,
        attributes,
        shape,
        exact,
    )
    return layer.pending()


def _product_shape(operator: Operator, a: Value, b: Value) -> Shape:
    first, second = _own_shape(operator, a), _own_shape(operator, b)
    if len(first) < 2 or len(second) < 2 or first[-1] != second[-2]:
        operator.refuse(f"matrices of {first} and {second} must fit together")
    try:
        leading = np.broadcast_shapes(first[:-2], second[:-2])
    except ValueError:
        operator.reject(f"matrices of {first} and {second} must broadcast together")
    return (*(1,) * operator.lead, *leading, first[-2], second[-1])


def _as_it_lies(codes: np.ndarray, picture: Shape) -> np.ndarray:
    """Weights O x I, with the inputs in the order in which a flattened picture lies there."""
    _, channels, *sizes = picture
    height, width = (1, *sizes)[-2:]
    laid = codes.reshape(len(codes), channels, height, width).transpose(0, 2, 3, 1)
    return laid.reshape(len(codes), -1)


def _own_shape(operator: Operator, value: Value) -> Shape:
    """ONNX's shape, without an axis in front that the graph alone has."""
    constant = isinstance(value, Constant | Coded)
    return shape_of(value)[0 if constant else operator.lead :]


def _of_activations(operator: Operator, values: tuple[Value, Value], shape: Shape) -> Pending:
    builder = operator.builder
    ranks = [len(shape_of(value)) for value in values if not isinstance(value, Constant | Coded)]
    if not operator.lead and (len(set(ranks)) > 1 or min(ranks, default=3) < 3):
        operator.refuse(f"computed matrices must have as many dimensions, at least 3, not {ranks}")

    def emit(wanted: Result) -> Activation:
        names = []
        for value, letter in zip(values, "ab", strict=True):
            if isinstance(value, Constant | Coded):
                names.append(builder.real_constant(f"{operator.name}/{letter}", value))
                continue
            activation = builder.natural(builder.real(value))
            if len(activation.shape) < len(shape):
                activation = ranked(operator, activation, shape)
            names.append(activation.tensor)
        made = builder.tensor(wanted.name, shape, wanted.dtype, wanted.quantization)
        attributes: dict[str, object] = {}
        if wanted.clamp is not None:
            attributes["clamp"] = wanted.clamp
        builder.node(operator.name, "matmul", (names[0], names[1]), made, attributes)
        return Activation(made, shape)

    return Pending(operator.output, shape, emit, channel_axis=len(shape) - 1)


def _turned(operator: Operator, value: Value, index: int) -> Value:
    """The matrix of input ``index`` the other way round."""
    if isinstance(value, Coded):
        axis = None if value.axis is None else 1 - value.axis
        return dataclasses.replace(value, codes=value.codes.T, axis=axis)
    if isinstance(value, Constant):
        return Constant(value.array.T)
    shape = shape_of(value)
    attribute, name = ("transB" if index else "transA"), operator.input_names[index]
    if not operator.lead:
        operator.refuse(f"{attribute} must be 0 where the matrix's rows are the batch, not 1")
    turned = (*shape[:-2], shape[-1], shape[-2])
    builder, permutation = operator.builder, (0, 2, 1)

    def move(activation: Activation, made: str) -> Activation:
        source = builder.natural(activation)
        made = builder.like(source.tensor, made, turned)
        given = {"permutation": permutation}
        builder.node(f"{operator.name}/turned", "transpose", (source.tensor,), made, given)
        return Activation(made, turned)

    return moved(operator, value, move, turned, f"{name}/turned")


def _gemm_operands(operator: Operator, a: Value, b: Value) -> tuple[Value, Value]:
    """The matrices, turned if they must be."""
    shapes = _own_shape(operator, a), _own_shape(operator, b)
    if any(len(shape) != 2 for shape in shapes):
        operator.reject(f"matrices must have 2 dimensions, not {shapes[0]} and {shapes[1]}")
    if operator.integer("transA", 0):
        a = _turned(operator, a, 0)
    if operator.integer("transB", 0):
        b = _turned(operator, b, 3 if len(operator.inputs) > 5 else 1)
    return a, b


def gemm(operator: Operator) -> Value:
    """Gemm: alpha A B + beta C."""
    operator.require_inputs(2, 3)
    a, b = _gemm_operands(operator, operator.value(0), operator.value(1))
    alpha, beta = operator.number("alpha", 1.0), operator.number("beta", 1.0)
    c = operator.value(2) if operator.has(2) and beta else None
    outputs = shape_of(b)[-1]
    row = isinstance(c, Constant | Coded) and (shape_of(c) or (1,))[-1] in (math.prod(shape_of(c)),)
    fits = c is None or row and math.prod(shape_of(c)) in (1, outputs)
    if isinstance(b, Constant | Coded) and fits:
        bias = None if c is None else bias_values(operator, c, outputs) * beta
        if alpha == 1:
            return product(operator, a, b, bias)
        scaled = product(operator, a, b)
        offset = np.zeros(1) if bias is None else bias
        changed = scaled.affine and scaled.affine(np.array([alpha]), offset)
        if changed:
            return changed
    made: Value = part(operator, product(operator, a, b))
    if alpha != 1:
        made = combine(operator, "mul", made, Constant(np.array(alpha, np.float32)))
    if c is None:
        return made
    if beta != 1:
        c = combine(operator, "mul", c, Constant(np.array(beta, np.float32)))
    return combine(operator, "add", part(operator, made), part(operator, c))


def matmul(operator: Operator) -> Value:
    """MatMul; a vector is a matrix of one row, or column."""
    operator.require_inputs(2, 2)
    a, b = operator.value(0), operator.value(1)
    vectors = [len(_own_shape(operator, value)) == 1 for value in (a, b)]
    if not any(vectors):
        return product(operator, a, b)
    for value, vector in zip((a, b), vectors, strict=True):
        if vector and not operator.lead and not isinstance(value, Constant | Coded):
            operator.refuse(f"a matrix of the batch must have 2 dimensions, not {shape_of(value)}")
    inner = dataclasses.replace(operator, outputs=(f"{operator.output}/matrix",))
    if vectors[0]:
        a = with_shape(inner, a, (*shape_of(a)[:-1], 1, shape_of(a)[-1]), f"{operator.output}/a")
    if vectors[1]:
        b = with_shape(inner, b, (*shape_of(b), 1), f"{operator.output}/b")
    made = product(inner, a, b)
    shape = list(made.shape)
    if vectors[1]:
        del shape[-1]
    if vectors[0]:
        del shape[-1 if vectors[1] else -2]
    return with_shape(operator, made, tuple(shape), operator.output)


def qlinear_matmul(operator: Operator) -> Value:
    """QLinearMatMul."""
    operator.require_inputs(8, 8)
    return result(operator, product(operator, operand(operator, 0), operand(operator, 3)), 6)


def matmul_integer(operator: Operator) -> Value:
    """MatMulInteger: the sums themselves."""
    operator.require_inputs(2, 4)
    a, b = integer_operand(operator, 0, 2), integer_operand(operator, 1, 3)
    return as_integers(product(operator, a, b))


def qgemm(operator: Operator) -> Value:
    """com.microsoft.QGemm: Gemm of codes; without an output scale the result is float."""
    operator.require_inputs(6, 9)
    weights = operand(operator, 3, axis=0 if operator.integer("transB", 0) else 1)
    a, b = _gemm_operands(operator, operand(operator, 0), weights)
    outputs = shape_of(b)[1]
    exact = None
    if operator.has(6):
        exact = operator.constant(6).reshape(-1).astype(np.int64)
        if exact.size not in (1, outputs):
            operator.refuse(f"C must be {outputs} numbers, not {exact.size}")
        exact = np.broadcast_to(exact, (outputs,))
    alpha = operator.number("alpha", 1.0)
    pending = product(operator, a, b, exact=exact)
    if alpha != 1:
        # the bias is in units that alpha is part of
        scaled = pending.affine and pending.affine(np.array([alpha]), np.zeros(1))
        if not scaled:
            operator.refuse(f"alpha must be positive, not {alpha}")
        pending = scaled
    return result(operator, pending, 7) if operator.has(7) else pending
