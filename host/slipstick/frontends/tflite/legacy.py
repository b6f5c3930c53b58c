"""Networks of uint8 codes, as TensorFlow 1 wrote them: the same integers as int8, 128 lower."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from ...errors import UnsupportedError
from ...graph import Node, Quantization, Tensor
from ..files import quoted
from .reader import RawModel, RawOperator

OFFSET = 128
"""Number that code and zero point lose: their difference, the real number, stays."""

_CONVERSIONS = ("QUANTIZE", "DEQUANTIZE")


def legacy_tensors(model: RawModel) -> frozenset[int]:
    """The uint8 tensors that operators compute with: all but those that are only converted."""
    used = {
        index
        for operator in model.operators
        if operator.name not in _CONVERSIONS
        for index in (*operator.inputs, *operator.outputs)
    }
    return frozenset(i for i in used if i >= 0 and model.tensors[i].dtype == "uint8")


def check_types(operator: RawOperator, model: RawModel, names: Sequence[str], label: str) -> bool:
    """Tells whether an operator computes with uint8 codes.

    Raises
    ------
    UnsupportedError
        If some of its tensors are int8 and some uint8.
    """
    if operator.name in _CONVERSIONS:
        return False
    roles = [(f"input {place}", index) for place, index in enumerate(operator.inputs)]
    roles += [("output", index) for index in operator.outputs]
    wanted = ""
    for role, index in roles:
        dtype = model.tensors[index].dtype if index >= 0 else ""
        if dtype in ("int8", "uint8"):
            wanted = wanted or dtype
            if dtype != wanted:
                raise UnsupportedError(
                    f"{label}: {role} {quoted(names[index])} must be {wanted}, and is {dtype}"
                )
    return wanted == "uint8"


def lowered(tensor: Tensor, name: str) -> Tensor:
    """A uint8 tensor as int8, under a name."""
    quantization, data = tensor.quantization, tensor.data
    if quantization is not None:
        points = quantization.zero_point - OFFSET
        quantization = Quantization(quantization.scale, points, quantization.axis)
    if data is not None:
        data = (data.astype(np.int16) - OFFSET).astype(np.int8)
    return dataclasses.replace(
        tensor, name=name, dtype="int8", quantization=quantization, data=data
    )


def conversion(name: str, source: Tensor, result: Tensor) -> Node:
    """The node between a network's uint8 input or output and its int8 twin."""
    return Node(name, "quantize", (source.name,), (result.name,), {})
