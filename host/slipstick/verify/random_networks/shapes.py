"""The shape that each kind of layer makes of its sources' shapes."""

import math
from collections.abc import Callable

from ...operators import Family, entry
from .layers import Layer, RecipeError, Shape

LARGEST_SOFTMAX = 4096
"""Numbers of a softmax, below this."""


def window_sides(layer: Layer, source: Shape) -> tuple[int, int]:
    """Returns height and width that a window leaves, with the file's padding.

    ``padding`` is "SAME", "VALID", or (top, bottom, left, right).
    """
    _require(len(source) == 4, f"{layer.kind} needs a picture")
    own = layer.parameters
    sides = []
    for axis in range(2):
        size, step = source[1 + axis], own["stride"][axis]
        extent = (own["kernel"][axis] - 1) * own.get("dilation", (1, 1))[axis] + 1
        if own["padding"] == "SAME":
            sides.append(-(-size // step))
            continue
        if own["padding"] != "VALID":
            before, after = own["padding"][2 * axis : 2 * axis + 2]
            _require(max(before, after) < extent, f"{layer.kind} has windows in padding only")
            size += before + after
        _require(size >= extent, f"the window of {layer.kind} is larger than its input")
        sides.append((size - extent) // step + 1)
    return sides[0], sides[1]


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise RecipeError(message)


def _convolved(layer: Layer, sources: list[Shape]) -> Shape:
    (source,) = sources
    groups = layer.parameters["groups"]
    _require(len(source) == 4, "conv2d needs a picture")
    _require(
        source[3] % groups == layer.parameters["filters"] % groups == 0, "groups do not divide"
    )
    return (1, *window_sides(layer, source), layer.parameters["filters"])


def _depthwise(layer: Layer, sources: list[Shape]) -> Shape:
    sides = window_sides(layer, sources[0])
    return (1, *sides, sources[0][3] * layer.parameters["multiplier"])


def _transposed(layer: Layer, sources: list[Shape]) -> Shape:
    (source,), own = sources, layer.parameters
    _require(len(source) == 4, "transpose_conv2d needs a picture")
    # the smallest picture of which a VALID convolution makes the source, or the largest of SAME
    sides = (
        (size - 1) * step + (kernel if own["padding"] == "VALID" else step)
        for size, step, kernel in zip(source[1:3], own["stride"], own["kernel"], strict=True)
    )
    return (1, *sides, own["filters"])


def _connected(layer: Layer, sources: list[Shape]) -> Shape:
    (source,), own = sources, layer.parameters
    lead = source[:-1] if own["keep_dimensions"] else (1,)
    return (*lead, own["filters"])


def _joined(layer: Layer, sources: list[Shape]) -> Shape:
    first, second = sources
    if layer.parameters.get("broadcast"):
        _require(len(first) == 4, "a broadcast needs a picture")
        return first
    _require(first == second, f"{layer.kind} of {first} and {second}")
    return first


def _pooled(layer: Layer, sources: list[Shape]) -> Shape:
    sides = window_sides(layer, sources[0])
    return (1, *sides, sources[0][3])


def _reduced(layer: Layer, sources: list[Shape]) -> Shape:
    (source,), axes = sources, layer.parameters["axes"]
    _require(max(axes) < len(source), f"{layer.kind} over an axis that is not there")
    if layer.parameters["keep_dimensions"]:
        return tuple(1 if axis in axes else size for axis, size in enumerate(source))
    return tuple(size for axis, size in enumerate(source) if axis not in axes)


def _same(layer: Layer, sources: list[Shape]) -> Shape:
    return sources[0]


def _weighed(layer: Layer, sources: list[Shape]) -> Shape:
    # the sum of that many exponentials is all that tflm's 12 integer bits hold: it stops beyond
    _require(sources[0][-1] < LARGEST_SOFTMAX, "softmax of too many numbers")
    return sources[0]


def _padded(layer: Layer, sources: list[Shape]) -> Shape:
    (source,), amounts = sources, layer.parameters["amounts"]
    _require(len(source) == 4, "pad needs a picture")
    top, bottom, left, right = amounts
    if layer.kind == "mirror_pad":
        room = 0 if layer.parameters["mode"] == "SYMMETRIC" else 1
        _require(max(top, bottom) + room <= source[1], "mirror_pad needs more rows")
        _require(max(left, right) + room <= source[2], "mirror_pad needs more columns")
    return (1, source[1] + top + bottom, source[2] + left + right, source[3])


def _concatenated(layer: Layer, sources: list[Shape]) -> Shape:
    axis = layer.parameters["axis"]
    first = sources[0]
    _require(axis < len(first), "concatenation along an axis that is not there")
    for other in sources[1:]:
        fits = len(other) == len(first) and all(
            a == b for place, (a, b) in enumerate(zip(first, other, strict=True)) if place != axis
        )
        _require(fits, f"concatenation of {sources}")
    total = sum(source[axis] for source in sources)
    return (*first[:axis], total, *first[axis + 1 :])


def _sliced(layer: Layer, sources: list[Shape]) -> Shape:
    (source,), own = sources, layer.parameters
    _require(len(own["starts"]) == len(source), "slice of another rank")
    made = []
    for size, start, step, count in zip(
        source, own["starts"], own["steps"], own["sizes"], strict=True
    ):
        _require(start + (count - 1) * step < size, "slice leaves the picture")
        made.append(count)
    return tuple(made)


def _resized(layer: Layer, sources: list[Shape]) -> Shape:
    (source,), (y, x) = sources, layer.parameters["factors"]
    _require(len(source) == 4, "resize needs a picture")
    return (1, source[1] * y, source[2] * x, source[3])


def _to_depth(layer: Layer, sources: list[Shape]) -> Shape:
    (source,), block = sources, layer.parameters["block"]
    _require(len(source) == 4, "space_to_depth needs a picture")
    _require(source[1] % block == source[2] % block == 0, "blocks do not fill the picture")
    return (1, source[1] // block, source[2] // block, source[3] * block * block)


def _to_space(layer: Layer, sources: list[Shape]) -> Shape:
    (source,), block = sources, layer.parameters["block"]
    _require(len(source) == 4, "depth_to_space needs a picture")
    _require(source[3] % (block * block) == 0, "channels are no blocks")
    return (1, source[1] * block, source[2] * block, source[3] // (block * block))


def _reshaped(layer: Layer, sources: list[Shape]) -> Shape:
    shape: Shape = layer.parameters["shape"] or (1, math.prod(sources[0]))
    _require(math.prod(shape) == math.prod(sources[0]), f"{sources[0]} becomes {shape}")
    return shape


_SHAPES: dict[str | Family, Callable[[Layer, list[Shape]], Shape]] = {
    "conv2d": _convolved,
    "depthwise_conv2d": _depthwise,
    "transpose_conv2d": _transposed,
    "fully_connected": _connected,
    Family.BINARY: _joined,
    Family.POOLING: _pooled,
    "mean": _reduced,
    "reduce_max": _reduced,
    Family.UNARY: _same,
    "prelu": _same,
    "quantize": _same,
    "softmax": _weighed,
    "pad": _padded,
    "mirror_pad": _padded,
    "concatenation": _concatenated,
    "slice": _sliced,
    "resize_nearest": _resized,
    "space_to_depth": _to_depth,
    "depth_to_space": _to_space,
    "reshape": _reshaped,
}
"""By the operator, or its family."""


def made_shape(layer: Layer, sources: list[Shape]) -> Shape:
    """Returns the shape of a layer's result; RecipeError if the sources do not suit it."""
    shape = entry(_SHAPES, layer.kind)
    _require(shape is not None, f"no shape of {layer.kind} is known")
    assert shape is not None
    return shape(layer, sources)
