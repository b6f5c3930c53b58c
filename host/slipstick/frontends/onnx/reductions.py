"""Reductions of some axes: sums and the like, on the host."""

from collections.abc import Callable

from .operator import Operator
from .values import Activation, Pending, Result, Shape, Value, shape_of


def reduced_axes(operator: Operator) -> tuple[Shape, bool]:
    """The axes that an operator reduces, counted from the front, and whether they are kept as 1.

    To opset 12 or 17, as the operator has it, they are an attribute.
    """
    operator.require_inputs(1, 2)
    rank = len(shape_of(operator.value(0)))
    listed = operator.integers("axes", ())
    if operator.has(1):
        listed = operator.constant_integers(1)
    if not listed and not operator.integer("noop_with_empty_axes", 0):
        listed = tuple(range(rank - operator.lead))
    axes = tuple(sorted({operator.axis(axis, rank) for axis in listed}))
    if 0 in axes and operator.operator != "GlobalMaxPool":
        operator.refuse(f"axes must leave out 0, the batch, not {axes}")
    return axes, bool(operator.integer("keepdims", 1))


def reduced_shape(shape: Shape, axes: Shape, *, keep: bool) -> Shape:
    """Returns the shape that is left when axes of a shape are reduced."""
    if keep:
        return tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


def reduction(function: str) -> Callable[[Operator], Value]:
    """ReduceSum and its like; ``function`` as the kernel calls it."""

    def handle(operator: Operator) -> Value:
        axes, keep = reduced_axes(operator)
        value = operator.value(0)
        if not axes and function in ("sum", "product"):
            return value
        return reduced(operator, value, (function, axes, keep), operator.output)

    return handle


def reduced(
    operator: Operator, value: Value, what: tuple[str, Shape, bool], name: str, **options: float
) -> Pending:
    """A reduction of real numbers.

    Parameters
    ----------
    operator : Operator
    value : Value
    what : (function, axes, whether they are kept)
    name : str
        ONNX's, of the result.
    **options
        More of the kernel's attributes.
    """
    function, axes, keep = what
    output = reduced_shape(shape_of(value), axes, keep=keep)
    builder = operator.builder

    def emit(wanted: Result) -> Activation:
        source = builder.natural(builder.real(value))
        made = builder.tensor(wanted.name, output, wanted.dtype, wanted.quantization)
        attributes = {"function": function, "axes": axes, "keep_dimensions": keep, **options}
        if wanted.clamp is not None:
            attributes["clamp"] = wanted.clamp
        builder.node(operator.name, "reduce", (source.tensor,), made, attributes)
        return Activation(made, output)

    return Pending(name, output, emit)
