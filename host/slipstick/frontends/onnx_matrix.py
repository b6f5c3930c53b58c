"""MatMul and Gemm, and the integer operators that are one."""

import numpy as np

from .onnx_convolutions import as_integers, integer_operand, operand, result
from .onnx_layers import Layer, bias_values, coded_weights, quantised, real_layer
from .onnx_operator import Operator
from .onnx_values import Activation, Coded, Constant, Pending, Result, Shape, Value, shape_of


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
    first, second = shape_of(a), shape_of(b)
    if len(first) < 2 or len(second) < 2 or first[-1] != second[-2]:
        operator.refuse(f"matrices of {first} and {second} must fit together")
    try:
        leading = np.broadcast_shapes(first[:-2], second[:-2])
    except ValueError:
        operator.reject(f"matrices of {first} and {second} must broadcast together")
    shape = (*leading, first[-2], second[-1])
    constant = isinstance(b, Constant | Coded) and len(second) == 2
    if not constant or isinstance(a, Constant | Coded):
        if bias is not None or exact is not None:
            operator.refuse("a bias wants the second matrix to be a constant")
        return _of_activations(operator, a, b, shape)
    assert isinstance(b, Constant | Coded)
    outputs = second[1]
    numbers = np.zeros(outputs) if bias is None else bias
    attributes = {"keep_dimensions": len(first) > 2}
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
        # inputs in the order in which a picture lies there
        _, channels, *sizes = x.picture
        height, width = (1, *sizes)[-2:]
        laid = codes.reshape(outputs, channels, height, width).transpose(0, 2, 3, 1)
        codes = laid.reshape(outputs, -1)
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


def _of_activations(operator: Operator, a: Value, b: Value, shape: Shape) -> Pending:
    builder = operator.builder

    def emit(wanted: Result) -> Activation:
        names = []
        for value, letter in ((a, "a"), (b, "b")):
            if isinstance(value, Constant | Coded):
                names.append(builder.real_constant(f"{operator.name}/{letter}", value))
            else:
                names.append(builder.natural(builder.real(value)).tensor)
        made = builder.tensor(wanted.name, shape, wanted.dtype, wanted.quantization)
        attributes = {} if wanted.clamp is None else {"clamp": wanted.clamp}
        builder.node(operator.name, "matmul", (names[0], names[1]), made, attributes)
        return Activation(made, shape)

    return Pending(operator.output, shape, emit, channel_axis=len(shape) - 1)


def _transposed(value: Value) -> Value:
    """A constant matrix the other way round."""
    if isinstance(value, Coded):
        axis = None if value.axis is None else 1 - value.axis
        return Coded(value.codes.T, value.scale, value.zero_point, axis)
    assert isinstance(value, Constant)
    return Constant(value.array.T)


def _gemm_operands(operator: Operator, a: Value, b: Value) -> tuple[Value, Value]:
    """The matrices, the second one turned if it must be."""
    operator.require("transA", operator.integer("transA", 0), (0,))
    if len(shape_of(a)) != 2 or len(shape_of(b)) != 2:
        operator.reject(f"matrices must have 2 dimensions, not {shape_of(a)} and {shape_of(b)}")
    if operator.integer("transB", 0):
        if not isinstance(b, Constant | Coded):
            operator.refuse("transB must be 0 where the second matrix is computed, not 1")
        b = _transposed(b)
    return a, b


def gemm(operator: Operator) -> Value:
    """Gemm: alpha A B + beta C."""
    operator.require_inputs(2, 3)
    a, b = _gemm_operands(operator, operator.value(0), operator.value(1))
    alpha, beta = operator.number("alpha", 1.0), operator.number("beta", 1.0)
    outputs = shape_of(b)[1]
    c = operator.value(2) if operator.has(2) else None
    bias = None if c is None or beta == 0 else bias_values(operator, c, outputs) * beta
    if alpha == 1:
        return product(operator, a, b, bias)
    scaled = product(operator, a, b)
    changed = None
    if scaled.affine is not None:
        offset = np.zeros(1) if bias is None else bias
        changed = scaled.affine(np.array([alpha]), offset)
    if changed is None:
        operator.refuse(f"alpha must be 1, or positive with constant weights, not {alpha}")
    return changed


def matmul(operator: Operator) -> Value:
    """MatMul."""
    operator.require_inputs(2, 2)
    return product(operator, operator.value(0), operator.value(1))


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
