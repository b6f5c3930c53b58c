"""Constant folding: nodes whose inputs are all known, run by ``onnx.reference``, within bounds."""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from ...errors import ModelError
from .operator import Operator
from .values import Coded, Constant, shape_of

_BROADCASTING = ("Add", "Sub", "Mul", "Div", "Pow", "Equal", "Greater", "Less", "And", "Or", "Mod")
_KEEPING = (
    ("Abs", "Cast", "Ceil", "Clip", "Erf", "Exp", "Floor", "Identity", "Log", "Neg", "Not")
    + ("Reciprocal", "Relu", "Round", "Sigmoid", "Sign", "Sqrt", "Tanh", "Dropout")
    + ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Split")
    + ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum")
)
_JOINING = ("Concat", "Max", "Min", "Where")
_MADE = ("ConstantOfShape", "Expand", "Tile", "Range", "Gather", "MatMul")
_MOVING = ("Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze")
FOLDED = (*_BROADCASTING, *_KEEPING, *_JOINING, *_MADE)
"""Operators whose results are computed once where all that they read is known."""


def fold(operator: Operator) -> Sequence[Constant | Coded] | None:
    """A node's outputs, None if it must be run at each inference.

    Raises
    ------
    ModelError
        If its inputs do not suit it, or the result would be absurdly large.
    """
    values = [value for value in operator.inputs if value is not None]
    if operator.operator not in FOLDED or not all(
        isinstance(value, Constant | Coded) for value in values
    ):
        return None
    moved = _moved_codes(operator)
    if moved is not None:
        return moved
    arrays = [
        value.array if isinstance(value, Constant | Coded) else np.zeros(0) for value in values
    ]
    elements, builder = _elements(operator, arrays), operator.builder
    # numbers take four bytes as a rule; what they take in truth is counted below
    if 4 * elements > builder.foldable:
        operator.reject(
            f"constants must make at most {builder.foldable // 4} more elements of each other, not"
            f" {elements}"
        )
    made = _run(operator)
    builder.foldable -= sum(array.nbytes for array in made)
    return [Constant(array) for array in made]


def _moved_codes(operator: Operator) -> list[Constant | Coded] | None:
    """Codes stay codes where they are only moved."""
    value = operator.inputs[0] if operator.inputs else None
    if not isinstance(value, Coded) or operator.operator not in _MOVING:
        return None
    axis = value.axis
    if axis is not None:
        if operator.operator != "Transpose":
            return None
        rank = value.codes.ndim
        permutation = operator.integers("perm", tuple(reversed(range(rank))))
        if sorted(permutation) != list(range(rank)):
            operator.reject(f"perm must order {rank} axes, not {permutation}")
        axis = permutation.index(axis)
    plain = dataclasses.replace(operator, inputs=(Constant(value.codes), *operator.inputs[1:]))
    (codes,) = _run(plain)
    return [dataclasses.replace(value, codes=codes, axis=axis)]


def _elements(operator: Operator, arrays: list[np.ndarray]) -> int:
    """At most how many elements the result has."""
    kind, sizes = operator.operator, [array.size for array in arrays]
    try:
        if kind in ("ConstantOfShape", "Expand", "Tile"):
            wanted = [abs(int(item)) for item in arrays[-1].ravel()[:64]]
            if kind == "ConstantOfShape":
                return math.prod(wanted)
            return max(1, sizes[0]) * math.prod(max(1, item) for item in wanted)
        if kind == "Range":
            start, limit, delta = (float(array.reshape(-1)[0]) for array in arrays)
            return math.ceil(abs((limit - start) / delta))
        if kind == "Gather":
            return sizes[0] * max(1, sizes[1])
        if kind == "MatMul":
            return max(1, sizes[0]) * max(1, sizes[1])
        if kind in _BROADCASTING or kind in ("Max", "Min", "Where"):
            return math.prod(np.broadcast_shapes(*(array.shape for array in arrays)))
    except (ValueError, IndexError, ZeroDivisionError, OverflowError) as error:
        operator.reject(f"its constants do not suit it: {error}")
    return sum(sizes)


def _run(operator: Operator) -> list[np.ndarray]:
    # takes a third of a second to import, and few networks need it
    from onnx import helper, reference

    names = list(operator.input_names)
    feeds = {
        name: value.array
        for name, value in zip(names, operator.inputs, strict=True)
        if isinstance(value, Constant | Coded)
    }
    try:
        node = helper.make_node(
            operator.operator, names, list(operator.outputs), **operator.attributes
        )
        opsets = [helper.make_opsetid("", operator.opset)]
        graph = helper.make_graph(
            [node],
            "constants",
            [
                helper.make_tensor_value_info(
                    name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
                )
                for name, array in feeds.items()
            ],
            [helper.make_empty_tensor_value_info(name) for name in operator.outputs],
        )
        model = helper.make_model(graph, opset_imports=opsets)
        with np.errstate(all="ignore"):
            made = reference.ReferenceEvaluator(model).run(None, feeds)
    except Exception as error:
        # anything may be wrong with a damaged file's attributes
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ModelError(f"{operator.label}: its constants do not suit it: {reason}") from None
    arrays = [np.asarray(array) for array in (made if isinstance(made, list) else [])]
    if any(array.dtype.kind not in "fiub" for array in arrays):
        operator.refuse("constants must be numbers")
    return arrays


def shape_constant(operator: Operator) -> Constant:
    """Shape: known, as shapes are complete; the batch counts as 1."""
    operator.require_inputs(1, 1)
    shape = shape_of(operator.value(0))[operator.lead :]
    start = operator.integer("start", 0)
    end = operator.integer("end", len(shape))
    return Constant(np.array(shape[start:end], np.int64))


def constant(operator: Operator) -> Constant:
    """Constant."""
    operator.require_inputs(0, 0)
    if len(operator.attributes) != 1:
        operator.reject(f"attributes must be one, not {tuple(operator.attributes)}")
    ((name, value),) = operator.attributes.items()
    if name == "value" and isinstance(value, np.ndarray):
        return Constant(value)
    kinds = {"value_float": "f4", "value_floats": "f4", "value_int": "i8", "value_ints": "i8"}
    if name not in kinds:
        operator.refuse(f"attribute must be value or one of {tuple(kinds)}, not {name}")
    try:
        return Constant(np.array(value, kinds[name]))
    except (ValueError, TypeError, OverflowError):
        operator.reject(f"{name} must be numbers, not {value!r:.40}")
