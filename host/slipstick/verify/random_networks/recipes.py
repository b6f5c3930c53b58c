"""Recipes: random networks as plain data that can be drawn, written as a file, and made smaller."""

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Shape = tuple[int, ...]
Codes = tuple[float, int]
"""Scale and zero point of a tensor of int8 codes."""

FACTOR_RANGE = (-30, 24)
"""Requantisation factors are drawn between these powers of two."""


class RecipeError(ValueError):
    """A recipe does not describe a network: a window leaves the picture, shapes do not fit."""


@dataclass(frozen=True)
class Layer:
    """One operator, which makes one tensor.

    Parameters
    ----------
    kind : str
        A key of ``SHAPES``.
    sources : tuple of int
        Tensors that it reads: 0 is the network's input, k the result of layer k - 1.
    seed : int
        Its weights and bias are drawn from it, so they do not depend on other layers.
    codes : (float, int)
        Scale and zero point of its result. Operators that keep codes repeat their source's.
    parameters : mapping
        What the kind needs: sizes as int or (y, x), names as str.
    """

    kind: str
    sources: tuple[int, ...]
    seed: int
    codes: Codes
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def replace(self, **changes: Any) -> "Layer":
        """Returns a copy with other parameters."""
        return dataclasses.replace(self, parameters={**self.parameters, **changes})


@dataclass(frozen=True)
class Recipe:
    """A network: an input, layers in order, and the tensors that are outputs.

    Parameters
    ----------
    seed : int
        Its input codes are drawn from it.
    shape : tuple of int
        The input's, (1, height, width, channels) or (1, features).
    codes : (float, int)
    layers : tuple of Layer
    outputs : tuple of int
        Tensors, counted as in ``Layer.sources``.
    images : int
        Inputs that the network is run on, as one batch.
    dtype, form : str
        Of an .onnx file: "int8" or "uint8" codes; "qoperator" for operators of codes, "qdq" for
        float operators between conversions.
    """

    seed: int
    shape: Shape
    codes: Codes
    layers: tuple[Layer, ...]
    outputs: tuple[int, ...]
    images: int = 1
    dtype: str = "int8"
    form: str = "qoperator"

    def shapes(self) -> list[Shape]:
        """Returns the shape of every tensor; RecipeError if the layers do not fit together."""
        shapes = [self.shape]
        for layer in self.layers:
            if max(layer.sources) >= len(shapes):
                raise RecipeError(f"{layer.kind} reads a tensor that is made later")
            made = SHAPES[layer.kind](layer, [shapes[source] for source in layer.sources])
            if min(made) < 1:
                raise RecipeError(f"{layer.kind} makes {made}")
            shapes.append(made)
        return shapes

    def codes_of(self, tensor: int) -> Codes:
        """Returns scale and zero point of a tensor."""
        return self.layers[tensor - 1].codes if tensor else self.codes

    def changed(self, number: int, layer: Layer) -> "Recipe":
        """Returns a copy with another layer in the place of one."""
        layers = (*self.layers[:number], layer, *self.layers[number + 1 :])
        return dataclasses.replace(self, layers=layers)

    def without(self, number: int) -> "Recipe":
        """Returns a copy without a layer: its readers read its first source instead."""
        source = self.layers[number].sources[0]

        def moved(tensor: int) -> int:
            tensor = source if tensor == number + 1 else tensor
            return tensor - 1 if tensor > number else tensor

        layers = tuple(
            dataclasses.replace(layer, sources=tuple(map(moved, layer.sources)))
            for place, layer in enumerate(self.layers)
            if place != number
        )
        outputs = tuple(dict.fromkeys(map(moved, self.outputs)))
        return dataclasses.replace(self, layers=layers, outputs=outputs or (len(layers),))

    def used(self) -> "Recipe":
        """Returns a copy without the layers that no output depends on."""
        recipe = self
        while True:
            read = {source for layer in recipe.layers for source in layer.sources}
            unused = [
                number
                for number in range(len(recipe.layers))
                if number + 1 not in read and number + 1 not in recipe.outputs
            ]
            if not unused:
                return recipe
            recipe = recipe.without(unused[-1])

    def macs(self) -> int:
        """Returns the multiply-accumulates of one inference, of layers that have weights."""
        shapes = self.shapes()
        total = 0
        for layer, made in zip(self.layers, shapes[1:], strict=True):
            total += math.prod(made) * weights_per_output(layer, shapes[layer.sources[0]])
        return total


def weights_per_output(layer: Layer, source: Shape) -> int:
    """Returns the products in one result of a layer, 0 if it has no weights."""
    own = layer.parameters
    match layer.kind:
        case "conv2d":
            return math.prod(own["kernel"]) * source[-1] // own["groups"]
        case "depthwise_conv2d":
            return math.prod(own["kernel"])
        case "transpose_conv2d":
            return math.prod(own["kernel"]) * source[-1]
        case "fully_connected":
            return source[-1] if own["keep_dimensions"] else math.prod(source)
    return 0


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


SHAPES: dict[str, Callable[[Layer, list[Shape]], Shape]] = {
    "conv2d": _convolved,
    "depthwise_conv2d": _depthwise,
    "transpose_conv2d": _transposed,
    "fully_connected": _connected,
    "add": _joined,
    "sub": _joined,
    "mul": _joined,
    "squared_difference": _joined,
    "maximum": _joined,
    "minimum": _joined,
    "average_pool2d": _pooled,
    "max_pool2d": _pooled,
    "mean": _reduced,
    "reduce_max": _reduced,
    "relu": _same,
    "relu6": _same,
    "logistic": _same,
    "tanh": _same,
    "hard_swish": _same,
    "leaky_relu": _same,
    "elu": _same,
    "prelu": _same,
    "abs": _same,
    "quantize": _same,
    "softmax": _same,
    "pad": _padded,
    "mirror_pad": _padded,
    "concatenation": _concatenated,
    "slice": _sliced,
    "resize_nearest": _resized,
    "space_to_depth": _to_depth,
    "depth_to_space": _to_space,
    "reshape": _reshaped,
}
"""The shape that each kind of layer makes of its sources' shapes."""

KEEPS_CODES = frozenset(
    {
        "max_pool2d",
        "average_pool2d",
        "reduce_max",
        # tflm copies codes, so that only one quantisation has a meaning for it and for us
        "relu6",
        "maximum",
        "minimum",
        "pad",
        "mirror_pad",
        "concatenation",
        "slice",
        "resize_nearest",
        "space_to_depth",
        "depth_to_space",
        "reshape",
    }
)
"""Kinds whose result has the codes of their source."""

WEIGHTED = frozenset({"conv2d", "depthwise_conv2d", "transpose_conv2d", "fully_connected"})
"""Kinds that have weights and requantise sums of products."""


def walk(recipe: Recipe) -> Iterator[tuple[int, Layer, list[Shape], Shape]]:
    """Returns every layer's number, itself, its sources' shapes and its own."""
    shapes = recipe.shapes()
    for number, layer in enumerate(recipe.layers):
        yield number, layer, [shapes[source] for source in layer.sources], shapes[number + 1]
