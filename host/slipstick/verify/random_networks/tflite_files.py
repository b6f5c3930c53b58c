"""Writes a recipe as a .tflite file."""

from collections.abc import Callable

import numpy as np

from ...operators import OPERATORS, Pooling, Unary, find
from ...writers import tflite_functions as functions
from ...writers import tflite_moves as moves
from ...writers import tflite_operators as basic
from ...writers.tflite import TfliteWriter
from ...writers.tflite_operators import Operator
from .layer_values import draw_codes, draw_weights
from .layers import Layer, Shape, weights_per_output
from .recipes import Recipe, walk


def write_tflite(recipe: Recipe) -> bytes:
    """Returns the .tflite file of a recipe.

    Raises
    ------
    RecipeError
        If its layers do not fit together.
    """
    return _File(recipe).to_bytes()


class _File:
    """A file under construction: tensor k of the recipe is called ``tk``."""

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._writer = TfliteWriter()
        self._activation("t0", recipe.shape, 0)
        for number, layer, sources, made in walk(recipe):
            self._add(number, layer, sources, made)

    def to_bytes(self) -> bytes:
        return self._writer.to_bytes(["t0"], [f"t{number}" for number in self._recipe.outputs])

    def _activation(self, name: str, shape: Shape, tensor: int) -> str:
        scale, point = self._recipe.codes_of(tensor)
        return self._writer.tensor(name, shape, scale=scale, zero_point=point)

    def _integers(self, name: str, values: object) -> str:
        data = np.array(values, np.int32)
        return self._writer.tensor(name, data.shape, "int32", data=data)

    def _add(self, number: int, layer: Layer, sources: list[Shape], made: Shape) -> None:
        inputs = [f"t{source}" for source in layer.sources]
        output = self._activation(f"t{number + 1}", made, number + 1)
        prefix = f"c{number + 1}"
        if layer.kind in _WEIGHT_SHAPES:
            inputs = self._weighted(prefix, layer, sources[0], made)
        elif layer.kind in _CONSTANTS:
            constants = _CONSTANTS[layer.kind](layer, sources[0], made)
            inputs += [
                self._integers(f"{prefix}_{place}", each) for place, each in enumerate(constants)
            ]
        elif layer.kind == "prelu":
            inputs.append(self._slopes(prefix, layer, sources[0]))
        self._writer.add(_operator(layer, made), inputs, [output])

    def _weighted(self, prefix: str, layer: Layer, source: Shape, made: Shape) -> list[str]:
        """Declares weights and bias; returns the operator's inputs."""
        products, channels = weights_per_output(layer, source), made[-1]
        weights = draw_weights(layer, channels, products, self._recipe.codes_of(layer.sources[0]))
        shape, axis = _WEIGHT_SHAPES[layer.kind](layer, source, made)
        codes = weights.codes.reshape(channels, *(n for i, n in enumerate(shape) if i != axis))
        own = self._writer.tensor(
            f"{prefix}_weights",
            shape,
            scale=weights.scales,
            axis=axis if len(weights.scales) > 1 else None,
            data=np.moveaxis(codes, 0, axis),
        )
        x = f"t{layer.sources[0]}"
        inputs = [x, own]
        if layer.kind == "transpose_conv2d":
            inputs = [self._integers(f"{prefix}_shape", made), own, x]
        if weights.bias is not None:
            scale = weights.scales * self._recipe.codes_of(layer.sources[0])[0]
            inputs.append(
                self._writer.tensor(
                    f"{prefix}_bias",
                    weights.bias.shape,
                    "int32",
                    scale=scale,
                    axis=0 if len(scale) > 1 else None,
                    data=weights.bias,
                )
            )
        return inputs

    def _slopes(self, prefix: str, layer: Layer, source: Shape) -> str:
        rng = np.random.default_rng(layer.seed)
        shape = (*(1 for _ in source[:-1]), source[-1])
        scale = max(layer.parameters["alpha"], 0.01) / 64
        return self._writer.tensor(
            f"{prefix}_slopes", shape, scale=scale, data=draw_codes(shape, rng)
        )


_WEIGHT_SHAPES: dict[str, Callable[[Layer, Shape, Shape], tuple[Shape, int]]] = {
    "conv2d": lambda layer, source, made: (
        (made[3], *layer.parameters["kernel"], source[3] // layer.parameters["groups"]),
        0,
    ),
    "depthwise_conv2d": lambda layer, source, made: (
        (1, *layer.parameters["kernel"], made[3]),
        3,
    ),
    "transpose_conv2d": lambda layer, source, made: (
        (made[3], *layer.parameters["kernel"], source[3]),
        0,
    ),
    "fully_connected": lambda layer, source, made: (
        (made[-1], weights_per_output(layer, source)),
        0,
    ),
}
"""Shape of the weights, and their channel axis."""


def _paddings(layer: Layer, source: Shape, made: Shape) -> list[object]:
    top, bottom, left, right = layer.parameters["amounts"]
    return [[[0, 0], [top, bottom], [left, right], [0, 0]]]


def _box(layer: Layer, source: Shape, made: Shape) -> list[object]:
    own = layer.parameters
    ends = [
        start + (count - 1) * step + 1
        for start, step, count in zip(own["starts"], own["steps"], own["sizes"], strict=True)
    ]
    return [own["starts"], ends, own["steps"]]


_CONSTANTS: dict[str, Callable[[Layer, Shape, Shape], list[object]]] = {
    "mean": lambda layer, source, made: [layer.parameters["axes"]],
    "reduce_max": lambda layer, source, made: [layer.parameters["axes"]],
    "pad": _paddings,
    "mirror_pad": _paddings,
    "slice": _box,
    "resize_nearest": lambda layer, source, made: [made[1:3]],
    "reshape": lambda layer, source, made: [made],
}
"""Constants of int32 behind an operator's activations."""


def _operator(layer: Layer, made: Shape) -> Operator:
    own = layer.parameters
    activation = str(own.get("activation", "none")).upper()
    window = {name: own[name] for name in ("stride", "padding") if name in own}
    match layer.kind:
        case "conv2d":
            return basic.Conv2D(**window, dilation=own["dilation"], activation=activation)
        case "depthwise_conv2d":
            return basic.DepthwiseConv2D(
                **window,
                dilation=own["dilation"],
                activation=activation,
                multiplier=own["multiplier"],
            )
        case "transpose_conv2d":
            return moves.TransposeConv(**window)
        case "fully_connected":
            return basic.FullyConnected(
                activation=activation, keep_dimensions=own["keep_dimensions"]
            )
        case "add" | "sub" | "mul":
            kinds = {"add": basic.Add, "sub": functions.Sub, "mul": functions.Mul}
            return kinds[layer.kind](activation=activation)
        case "mean":
            return basic.Mean(keep_dimensions=own["keep_dimensions"])
        case "reduce_max":
            return functions.ReduceMax(keep_dimensions=own["keep_dimensions"])
        case "mirror_pad":
            return moves.MirrorPad(mode=own["mode"])
        case "concatenation":
            return moves.Concatenation(axis=own["axis"])
        case "space_to_depth" | "depth_to_space":
            kind = moves.SpaceToDepth if layer.kind == "space_to_depth" else moves.DepthToSpace
            return kind(block=own["block"])
        case "reshape":
            return basic.Reshape(shape=made)
    record = find(layer.kind)
    if isinstance(record, Pooling):
        return basic.pool2d(record, window=own["kernel"], **window, activation=activation)
    if isinstance(record, Unary):
        return basic.function(record, **own)
    return _PLAIN[layer.kind]()


_PLAIN: dict[str, Callable[[], Operator]] = {
    "squared_difference": functions.SquaredDifference,
    "maximum": functions.Maximum,
    "minimum": functions.Minimum,
    "prelu": functions.Prelu,
    "quantize": basic.Quantize,
    "softmax": basic.Softmax,
    "pad": basic.Pad,
    "slice": moves.StridedSlice,
    "resize_nearest": moves.ResizeNearest,
}
"""Operators without options."""


def tflite_kinds() -> dict[str, float]:
    """Returns how often each operator is drawn for a .tflite file."""
    return {
        record.name: record.share
        for record in OPERATORS.values()
        if record.share and (not isinstance(record, Unary | Pooling) or record.tflite)
    }
