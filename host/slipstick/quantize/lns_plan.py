"""Chooses the tensors of a float ONNX network that get logarithmic codes, and layers' weights."""

from dataclasses import dataclass, field
from typing import Any

from ..operators import FUNCTIONS, onnx_pooling

LAYERS = ("Conv", "Gemm", "MatMul")
_AFFINE = ("Add", "Sub", "Mul", "Div", "BatchNormalization")
_CLAMPS = ("Relu", "Clip")
_MOVES = (
    *("Dropout", "Flatten", "Identity", "GlobalMaxPool", "Reshape", "Slice", "Squeeze"),
    *("Split", "Transpose", "Unsqueeze"),
)
"""Operators whose outputs have the codes of their inputs."""
_CODED = (*LAYERS, *_AFFINE, "Sum", "Concat", "GlobalAveragePool", "ReduceMean", "PRelu")
"""Operators whose outputs get codes of their own, beside functions of one number and pooling; what
others give out stays float32."""


def _moves(operator: str) -> bool:
    return operator in _MOVES or operator in onnx_pooling(moves_codes=True)


def _is_coded(operator: str) -> bool:
    if operator in FUNCTIONS:
        return FUNCTIONS[operator].quantized
    return operator in _CODED or operator in onnx_pooling(moves_codes=False)


@dataclass
class Plan:
    """Describes what of a network gets codes.

    Parameters
    ----------
    coded : list of str
        Tensors with codes and scales of their own, in the order in which they are computed.
    like : dict
        Tensors that have the codes of one of those: its name by theirs.
    layers : dict
        Layers whose weights get codes: the tensor with codes of its own whose codes a layer takes,
        by what it gives out.
    ends : dict
        What those of them give out whose results nothing else is computed with: its axis of output
        channels by its name.
    """

    coded: list[str] = field(default_factory=list)
    like: dict[str, str] = field(default_factory=dict)
    layers: dict[str, str] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)


def plan(graph: Any) -> Plan:
    """Chooses the tensors of a float graph that get codes, and the layers whose weights do."""
    made, affine = Plan(), set[str]()
    constants = {item.name for item in graph.initializer}
    for item in graph.input:
        if item.name not in constants:
            made.coded.append(item.name)
            made.like[item.name] = item.name
    for node in graph.node:
        source, output = node.input[0] if node.input else "", node.output[0]
        rest = [name for name in node.input[1:] if name]
        if not node.input or all(name in constants for name in node.input if name):
            constants.update(node.output)
        elif _moves(node.op_type) and source in made.like:
            made.like.update(dict.fromkeys(node.output, made.like[source]))
        elif node.op_type in LAYERS and rest and rest[0] in constants and source in made.like:
            made.layers[output] = made.like[source]
            made.ends[output] = 1 if node.op_type == "Conv" else -1
            affine.add(output)
        elif node.op_type in _AFFINE and set(node.input) & affine:
            if sum(name not in constants for name in node.input if name) == 1:
                affine.add(output)
                for name in node.input:
                    made.ends.pop(name, None)
        if _is_coded(node.op_type) and not _waits(graph, output, affine, constants):
            made.coded.append(output)
            made.like[output] = output
    return made


def _waits(graph: Any, name: str, affine: set[str], constants: set[str]) -> bool:
    """Tells whether what reads a tensor is computed with it: it never stands in memory itself."""
    readers = [node for node in graph.node if name in node.input]
    if name in constants or len(readers) != 1 or any(name == item.name for item in graph.output):
        return name in constants
    (reader,) = readers
    if reader.op_type in _CLAMPS:
        return reader.input[0] == name
    others = [item for item in reader.input if item and item != name]
    return name in affine and reader.op_type in _AFFINE and all(o in constants for o in others)
