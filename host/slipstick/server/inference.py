"""Defines an inference as both protocols have it: what is asked for, and what comes back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..program.steps import TensorDescription
from ..runtime.feeds import dequantise
from .datatypes import BYTES, datatype_of


@dataclass(frozen=True, kw_only=True)
class RequestedOutput:
    """An output that a client asks for.

    Parameters
    ----------
    name : str
    classes : int
        0: the tensor itself; else so many of the best classes, as text ``score:class``.
    is_binary : bool
        Over REST: as bytes behind the JSON.
    """

    name: str
    classes: int = 0
    is_binary: bool = False


@dataclass(frozen=True, kw_only=True)
class InferenceRequest:
    """Holds an inference that a client asks for.

    Parameters
    ----------
    id : str
        Comes back with the response.
    inputs : mapping of array by name
        As the client sent them.
    outputs : tuple of RequestedOutput
        Empty: all.
    real_outputs : bool
        Quantised outputs come back as real numbers, FP32.
    binary_outputs : bool
        Over REST: outputs that do not say otherwise are bytes.
    """

    id: str = ""
    inputs: Mapping[str, np.ndarray] = field(default_factory=dict)
    outputs: tuple[RequestedOutput, ...] = ()
    real_outputs: bool = False
    binary_outputs: bool = False


@dataclass(frozen=True, kw_only=True)
class OutputTensor:
    """An output of a response; strings are bytes in an array of objects."""

    name: str
    array: np.ndarray
    is_binary: bool = False

    @property
    def datatype(self) -> str:
        """The protocol's name of its type."""
        return BYTES if self.array.dtype.kind == "O" else datatype_of(self.array.dtype.name)


def output_tensor(
    wanted: RequestedOutput, codes: np.ndarray, described: TensorDescription, *, real: bool
) -> OutputTensor:
    """Returns an output in the form that the client asks for.

    Parameters
    ----------
    wanted : RequestedOutput
    codes : array, (images, ...)
        As the session gives it.
    described : TensorDescription
    real : bool
        As real numbers.
    """
    array = codes
    if wanted.classes:
        array = _classified(codes, described, wanted.classes)
    elif real and described.scale is not None:
        array = dequantise(codes, described).astype(np.float32)
    return OutputTensor(name=wanted.name, array=array, is_binary=wanted.is_binary)


def best_classes(
    codes: np.ndarray, described: TensorDescription, count: int
) -> list[tuple[int, float]]:
    """Returns the best classes of one image with their scores; equal ones in the classes' order."""
    values = dequantise(codes.reshape(-1), described)
    best = np.argsort(-values, kind="stable")[:count]
    return [(int(each), float(values[each])) for each in best]


def _classified(codes: np.ndarray, described: TensorDescription, count: int) -> np.ndarray:
    rows = [
        [f"{score:.6g}:{number}".encode() for number, score in best_classes(each, described, count)]
        for each in codes
    ]
    result = np.empty((len(rows), len(rows[0]) if rows else 0), object)
    for row, strings in enumerate(rows):
        result[row, :] = strings
    return result


JsonObject = dict[str, Any]
