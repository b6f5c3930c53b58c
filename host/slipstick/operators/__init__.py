"""One record per operator of the graph: what code for several operators asks of one.

A table of a higher layer has an entry per operator, or one for a whole ``Family``; ``entry`` finds
either. So a new operator of a family needs its record, and what is its own, and nothing else.
"""

from collections.abc import Iterator, Mapping
from typing import TypeVar

from . import activations, binary, functions, layers, movement, others, reductions
from . import pooling as poolings
from .record import Attributes, Family, OnnxForm, Operator, Pooling, Tflite, Unary

Entry = TypeVar("Entry")

OPERATORS: dict[str, Operator] = {}
"""Every operator of the graph, by its name."""

FUNCTIONS: dict[str, Unary] = {}
"""Functions of one number, by ONNX's names."""

TFLITE: dict[str, Unary | Pooling] = {}
"""Functions of one number and pooling operators, by their names in TensorFlow Lite's schema."""


def register(operator: Operator) -> None:
    """Makes an operator known to all layers.

    Raises
    ------
    ValueError
        If there is another operator of that name, or of one of its names in files.
    """
    onnx = operator.onnx if isinstance(operator, Unary) else ""
    tflite = operator.tflite if isinstance(operator, Unary | Pooling) else None
    if operator.name in OPERATORS or onnx in FUNCTIONS or tflite and tflite.code in TFLITE:
        raise ValueError(f"operator {operator.name!r}, or its name in a file, is there already")
    OPERATORS[operator.name] = operator
    if isinstance(operator, Unary | Pooling) and tflite is not None:
        TFLITE[tflite.code] = operator
    if isinstance(operator, Unary) and onnx:
        FUNCTIONS[onnx] = operator
    if isinstance(operator, Pooling) and operator.dilated:
        register(poolings.dilated(operator))


def find(name: str) -> Operator:
    """Returns the operator of a name; one of which nothing is known, if there is none."""
    return OPERATORS.get(name) or Operator(name=name, family=Family.OTHER, doc="")


def entry(table: Mapping[str | Family, Entry], name: str) -> Entry | None:
    """Returns the entry of an operator in a table, else that of its family, else None."""
    if name in table:
        return table[name]
    operator = OPERATORS.get(name)
    return None if operator is None else table.get(operator.family)


def unary_operators() -> Iterator[Unary]:
    """Returns the functions of one number."""
    return (operator for operator in OPERATORS.values() if isinstance(operator, Unary))


def pooling_operators() -> Iterator[Pooling]:
    """Returns the pooling operators."""
    return (operator for operator in OPERATORS.values() if isinstance(operator, Pooling))


def onnx_pooling(*, moves_codes: bool) -> set[str]:
    """Returns ONNX's names of the pooling operators that pick a code, or of those that compute."""
    return {
        each.onnx for each in pooling_operators() if each.onnx and each.moves_codes is moves_codes
    }


def clamp_of(activation: str) -> tuple[float | None, float | None]:
    """Returns the bounds between which a fused activation clamps, None for no bound.

    Raises
    ------
    ValueError
        If it is neither "none" nor a function that clamps.
    """
    operator = OPERATORS.get(activation)
    if isinstance(operator, Unary) and operator.clamp is not None:
        return operator.clamp
    if activation != "none":
        known = ("none", *(each.name for each in unary_operators() if each.clamp is not None))
        raise ValueError(f"activation must be one of {known}, not {activation!r}")
    return None, None


for _module in (layers, binary, poolings, reductions, activations, movement, functions, others):
    for _operator in _module.OPERATORS:
        register(_operator)

__all__ = [
    "Attributes",
    "clamp_of",
    "FUNCTIONS",
    "OPERATORS",
    "TFLITE",
    "Family",
    "OnnxForm",
    "Operator",
    "Pooling",
    "Tflite",
    "Unary",
    "entry",
    "find",
    "onnx_pooling",
    "pooling_operators",
    "register",
    "unary_operators",
]
