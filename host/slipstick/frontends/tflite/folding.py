"""Arithmetic on shapes: operators whose result is known before the network runs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...graph import Tensor
from .operator import INDICES

Arrays = Sequence[np.ndarray]
Fold = Callable[[Arrays, Mapping[str, Any]], np.ndarray]

_LARGEST = 64
"""Elements of a shape, with room to spare."""


def _strided_slice(arrays: Arrays, options: Mapping[str, Any]) -> np.ndarray:
    x, *spans = arrays
    begins, ends, steps = (span.ravel().tolist() for span in spans)
    parts: list[slice | int] = []
    for axis, (begin, end, step) in enumerate(zip(begins, ends, steps, strict=True)):
        if options["ShrinkAxisMask"] >> axis & 1:
            parts.append(begin)
            continue
        first = None if options["BeginMask"] >> axis & 1 else begin
        last = None if options["EndMask"] >> axis & 1 else end
        parts.append(slice(first, last, step))
    if options["EllipsisMask"] or options["NewAxisMask"] or options["Offset"]:
        raise ValueError("a mask that is not read")
    return x[tuple(parts)]


def _gather(arrays: Arrays, options: Mapping[str, Any]) -> np.ndarray:
    if options["BatchDims"]:
        raise ValueError("a batch of gathers")
    return np.take(arrays[0], arrays[1], axis=options["Axis"])


def _product(arrays: Arrays, options: Mapping[str, Any]) -> np.ndarray:
    axes = tuple(arrays[1].ravel().tolist())
    return arrays[0].prod(axis=axes, keepdims=bool(options["KeepDims"]))


_FOLDS: Mapping[str, Fold] = {
    "STRIDED_SLICE": _strided_slice,
    "GATHER": _gather,
    "REDUCE_PROD": _product,
    "PACK": lambda arrays, options: np.stack(arrays, axis=options["Axis"]),
    "CONCATENATION": lambda arrays, options: np.concatenate(arrays, axis=options["Axis"]),
    "ADD": lambda arrays, _: arrays[0] + arrays[1],
    "SUB": lambda arrays, _: arrays[0] - arrays[1],
    "MUL": lambda arrays, _: arrays[0] * arrays[1],
    "CAST": lambda arrays, _: arrays[0],
    "RESHAPE": lambda arrays, _: arrays[0],
    "SQUEEZE": lambda arrays, _: arrays[0],
    "EXPAND_DIMS": lambda arrays, _: arrays[0],
}


FOLDED = ("SHAPE", *_FOLDS)
"""Operators that may be known before the network runs."""


def fold(
    name: str, options: Mapping[str, Any], inputs: Sequence[Tensor | None], output: Tensor
) -> np.ndarray | None:
    """The contents of an operator's output, of its type and shape; None if it must run.

    Parameters
    ----------
    name : str
        By the schema.
    options : mapping
    inputs : sequence of Tensor
        Shapes as the file has them.
    output : Tensor
    """
    tensors = [tensor for tensor in inputs if tensor is not None]
    if output.dtype not in INDICES or len(tensors) != len(inputs):
        return None
    if name == "SHAPE" and len(tensors) == 1:
        made = np.array(tensors[0].shape)
    elif name in _FOLDS and all(_known(tensor) for tensor in tensors):
        arrays = [tensor.data for tensor in tensors if tensor.data is not None]
        try:
            made = np.asarray(_FOLDS[name](arrays, options))
        except (ArithmeticError, LookupError, TypeError, ValueError):
            # whatever is wrong with it, the ordinary way says so
            return None
    else:
        return None
    if made.size != int(np.prod(output.shape)):
        return None
    return made.astype(output.dtype).reshape(output.shape)


def _known(tensor: Tensor) -> bool:
    return tensor.data is not None and tensor.dtype in INDICES and tensor.data.size <= _LARGEST
