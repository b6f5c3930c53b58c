"""Checks the attributes of nodes, so that no kernel meets what it was not written for."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ModelError
from ..graph import Node, Tensor
from ..operators import find

LARGEST_ELEMENTS = 1 << 26
"""Most elements of what a kernel makes on the way, padded or repeated."""
_LARGEST = 1 << 31
_MOST_ITEMS = 1 << 12

Rule = tuple[str, Callable[[Any], bool]]
"""In words, and as a test."""


def _whole(value: Any, low: int = -_LARGEST, high: int = _LARGEST) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value < high


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _several(test: Callable[[Any], bool], count: int | None = None) -> Callable[[Any], bool]:
    return lambda value: (
        isinstance(value, tuple) and count in (None, len(value)) and all(map(test, value))
    )


def _positive(value: Any) -> bool:
    return _whole(value, 1, 1 << 24)


def _natural(value: Any) -> bool:
    return _whole(value, 0, 1 << 24)


_FLAG: Rule = "true or false", lambda value: isinstance(value, bool)
_REAL: Rule = "a number", _number
_TEXT: Rule = "a word", lambda value: isinstance(value, str) and len(value) <= 256
_WHOLE: Rule = "a whole number", _whole
_POSITIVE: Rule = "a whole number from 1 on", _positive
_PAIR: Rule = "two whole numbers from 1 on", _several(_positive, 2)
_LIST: Rule = "a list of whole numbers", _several(_whole)
_NATURALS: Rule = "a list of whole numbers from 0 on", _several(_natural)
_BORDERS: Rule = (
    "whole numbers from 0 on, or a pair of them an axis",
    lambda value: _several(_natural)(value) or _several(_several(_natural, 2))(value),
)

RULES: Mapping[str, Rule] = {
    "activation": _TEXT,
    "align_corners": _FLAG,
    "alpha": _REAL,
    "approximate": _TEXT,
    "axes": _NATURALS,
    "axis": _WHOLE,
    "beta": _REAL,
    "block": _POSITIVE,
    "centred": _FLAG,
    "clamp": ("two whole numbers", _several(lambda value: _whole(value, -256, 256), 2)),
    "codes": _REAL,
    "counted": _NATURALS,
    "dilation": _PAIR,
    "epsilon": _REAL,
    "equation": _TEXT,
    "float32": _TEXT,
    "function": _TEXT,
    "gamma": _REAL,
    "groups": _POSITIVE,
    "half_pixel_centers": _FLAG,
    "high": _REAL,
    "keep_dimensions": _FLAG,
    "last": _FLAG,
    "low": _REAL,
    "mode": _TEXT,
    "multiplier": _POSITIVE,
    "negate": _FLAG,
    "offset": _TEXT,
    "outside": _REAL,
    "padding": _BORDERS,
    "permutation": _NATURALS,
    "repeats": _NATURALS,
    "shape": _NATURALS,
    "size": _PAIR,
    "sizes": _NATURALS,
    "starts": _LIST,
    "steps": _LIST,
    "stride": _PAIR,
    "ties": _TEXT,
    "transpose_a": _FLAG,
    "transpose_b": _FLAG,
    "value": _REAL,
    "whole": _FLAG,
    "window": _PAIR,
}
"""By the attribute's name: it means the same wherever it stands."""


def check_node(node: Node, tensors: Mapping[str, Tensor]) -> None:
    """Checks a node of a stranger's program before its kernel sees it.

    Parameters
    ----------
    node : Node
    tensors : mapping of Tensor by name
        All that it names are there.

    Raises
    ------
    ModelError
        If an attribute is not of its kind, or the kernel would make something far larger than what
        the tensors hold.
    """
    for name, value in node.attributes.items():
        rule = RULES.get(name)
        if rule is not None and not rule[1](value):
            raise ModelError(f"attribute {name} must be {rule[0]}, not {value!r:.60}")
        if _items(value) > _MOST_ITEMS:
            raise ModelError(f"attribute {name} must hold at most {_MOST_ITEMS} numbers")
    sources = [tensors[name] for name in node.inputs if name]
    output = tensors[node.outputs[0]]
    for axis in (*node.attributes.get("axes", ()), node.attributes.get("axis", 0)):
        rank = max(len(sources[0].shape), len(output.shape)) if sources else 0
        if not -rank <= axis < max(rank, 1):
            raise ModelError(f"axis must be within {-rank}..{rank - 1}, not {axis}")
    _check_sizes(node, sources, output)


def _items(value: Any) -> int:
    if isinstance(value, tuple | Mapping):
        parts = value.values() if isinstance(value, Mapping) else value
        return 1 + sum(map(_items, parts))
    return 1


def _check_sizes(node: Node, sources: Sequence[Tensor], output: Tensor) -> None:
    if not sources:
        raise ModelError("inputs must be at least one, there is none")
    given, shape, operator = node.attributes, sources[0].shape, find(node.operator)
    if operator.broadcasts:
        # the batch, 1, broadcasts with whatever constants have there
        try:
            made = np.broadcast_shapes(*(source.shape for source in sources))
        except ValueError:
            made = None
        if made != output.shape:
            shapes = [source.shape for source in sources]
            raise ModelError(f"inputs {shapes} must broadcast to the output {output.shape}")
    elif node.operator in ("pad", "mirror_pad", "edge_pad"):
        pairs = given.get("padding", ())
        ends = [pair for pair in pairs if isinstance(pair, tuple)]
        made = tuple(size + sum(pair) for size, pair in zip(shape, ends, strict=False))
        if len(ends) != len(shape) or made != output.shape:
            raise ModelError(f"padding {pairs!r:.60} must make {output.shape} of {shape}")
    elif node.operator == "tile":
        made = tuple(a * b for a, b in zip(shape, given.get("repeats", ()), strict=False))
        if made != output.shape or len(given.get("repeats", ())) != len(shape):
            raise ModelError(f"repeats must make {output.shape} of {shape}")
    elif node.operator in ("resize_nearest", "resize_bilinear"):
        if len(output.shape) != 4 or given.get("size") != output.shape[1:3]:
            raise ModelError(f"size must be the output's, {output.shape[1:3]}")
    elif node.operator == "einsum":
        _check_labels(str(given.get("equation", "")), sources)
    elif "window" in given or node.operator in ("conv2d", "depthwise_conv2d"):
        _check_window(node, sources, output)


def _check_labels(equation: str, sources: Sequence[Tensor]) -> None:
    """Einsum's largest product on the way has all its labels."""
    sizes: dict[str, int] = {}
    for labels, source in zip(equation.split("->")[0].split(","), sources, strict=False):
        sizes |= dict(zip(labels.strip(), source.shape, strict=False))
    if "." in equation or math.prod(sizes.values()) > LARGEST_ELEMENTS:
        raise ModelError(
            f"equation {equation!r:.60} must have at most {LARGEST_ELEMENTS} products, all its"
            " axes named"
        )


def _check_window(node: Node, sources: Sequence[Tensor], output: Tensor) -> None:
    """The window's places, with the padding that they need, make the output."""
    given, shape = node.attributes, sources[0].shape
    window = given.get("window")
    if window is None and len(sources) > 1 and len(sources[1].shape) == 4:
        window = sources[1].shape[1:3]
    padding, stride = given.get("padding", ()), given.get("stride", (1, 1))
    plain = len(padding) == 4 and not any(isinstance(item, tuple) for item in padding)
    if window is None or not plain or not len(shape) == len(output.shape) == 4:
        raise ModelError(
            "a window needs four sizes of padding, and an input and output of four axes, not"
            f" {padding!r:.60}, {shape} and {output.shape}"
        )
    padded = shape[1] + padding[0] + padding[1], shape[2] + padding[2] + padding[3]
    for size, extent, gap, step, wanted in zip(
        padded, window, given.get("dilation", (1, 1)), stride, output.shape[1:3], strict=True
    ):
        reach = (extent - 1) * gap + 1
        # ONNX's ceil_mode leaves out a last window that lies in padding: one fewer
        places = (size - reach) // step + 1
        if size < reach or wanted not in (places, places - 1):
            raise ModelError(f"windows of {reach} of {size} every {step} must be {wanted} places")
    if math.prod(padded) * shape[3] > LARGEST_ELEMENTS:
        raise ModelError(f"{shape} with padding {padding} must be {LARGEST_ELEMENTS} at most")
