"""Draws recipes of random networks from a seed."""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...operators import Family, find
from .layer_drawing import LayerDrawer, Parameters, draw_taste
from .layers import Codes, Layer, RecipeError, Shape, weights_per_output
from .recipes import Recipe, walk

MOST_ELEMENTS = 24_000
"""Elements of a tensor: larger ones only cost time."""

MOST_HEAVY_ELEMENTS = 120_000
"""The same, of heavy networks: some are larger than the memory of the default target."""

MOST_MACS = 4_000_000
"""Multiply-accumulates of a network, for the same reason."""

BRIMMING = 0.04
"""Share of networks that exceed the memory for weights by their small layers only."""

MOST_BRIMMING_MACS = 80_000_000
"""Multiply-accumulates of those: every weight is used at all pixels."""

SEPARABLE = 0.06
"""Share of steps that append a depthwise and a pointwise convolution together."""

MOBILE = 0.12
"""Share of networks that begin with a wide picture and such a pair of layers, of few channels."""

MOST_FILTERS = 4096
"""Most filters of a fully connected layer that fills the memory."""


@dataclass(frozen=True)
class Dialect:
    """Describes how the layers of a kind of file are drawn.

    Parameters
    ----------
    kinds : mapping of float by str
        How often each kind of layer is drawn.
    fixed_codes : mapping of (scale, zero point) by kind
        Of results that have no others.
    adapt : callable
        Changes a layer's parameters to those that the file can hold, given its kind, its source's
        shape and a source of random numbers.
    files : callable
        Draws the fields of a recipe that say which file it becomes.
    """

    kinds: dict[str, float]
    fixed_codes: dict[str, Codes]
    adapt: Callable[[str, Shape, Parameters, np.random.Generator], Parameters]
    files: Callable[[np.random.Generator], dict[str, str]]


class Drawer:
    """Draws one network, layer after layer.

    Parameters
    ----------
    seed : int
        The same seed and the same memory give the same recipe.
    dialect : Dialect
    weight_bytes : int
        Memory for weights that heavy networks are to exceed, or nearly fill.
    """

    def __init__(self, seed: int, dialect: Dialect, weight_bytes: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._dialect = dialect
        self._seed = seed
        self._weight_bytes = weight_bytes
        self._taste = draw_taste(self._rng)
        self._layers = LayerDrawer(self._rng, self._taste)

    def draw(self) -> Recipe:
        """Draws the network."""
        if self._layers.chance(BRIMMING):
            brimming = self._brimming()
            if brimming is not None:
                return brimming
        recipe = self._begun(self._input_shape())
        if self._layers.chance(MOBILE):
            sides = self._layers.integer(3, 20), 2 * self._layers.integer(5, 12)
            recipe = self._begun((1, *sides, self._layers.channels()))
            recipe = self._separable(recipe, channels=8, stride=1) or recipe
        for _ in range(self._taste.layers):
            recipe = self._grown(recipe)
        if self._taste.heavy:
            recipe = self._filled(recipe)
        if not recipe.layers:
            recipe = self._with(recipe, "relu", (0,))
        return self._with_outputs(recipe)

    def _begun(self, shape: Shape) -> Recipe:
        """A network without layers yet."""
        return Recipe(
            seed=self._seed,
            shape=shape,
            codes=self._codes(),
            layers=(),
            outputs=(0,),
            images=int(self._rng.choice([1, 1, 1, 2, 5])),
            **self._dialect.files(self._rng),
        )

    def _brimming(self) -> Recipe | None:
        """A convolution that nearly fills the memory for weights, and small layers that exceed it.

        The small ones have few multiply-accumulates: the compiler leaves them out.
        """
        wanted = math.sqrt(self._weight_bytes / 27) * self._rng.uniform(0.6, 1.6)
        channels = max(8, round(wanted / 16) * 16)
        recipe = self._begun((1, self._layers.integer(8, 12), self._layers.integer(8, 12), 3))
        filters = max(1, int(self._weight_bytes * self._rng.uniform(0.94, 1) / (9 * channels)))
        filters = max(filters // 16 * 16, 1) if self._layers.chance(0.8) else filters
        window = {"padding": "SAME", "stride": (1, 1), "dilation": (1, 1), "groups": 1}
        try:
            first = {**window, "kernel": (1, 1), "filters": channels}
            recipe = self._with(recipe, "conv2d", (0,), **first)
            recipe = self._with(recipe, "conv2d", (1,), **window, kernel=(3, 3), filters=filters)
            recipe = self._with(recipe, "mean", (2,), axes=(1, 2), keep_dimensions=False)
            for source in range(3, 3 + self._layers.integer(1, 2)):
                most = max(2, int(0.08 * self._weight_bytes / recipe.shapes()[-1][-1]))
                own = {"filters": self._layers.integer(2, most), "keep_dimensions": False}
                recipe = self._with(recipe, "fully_connected", (source,), **own)
        except RecipeError:
            return None
        return recipe if recipe.macs() <= MOST_BRIMMING_MACS else None

    def _filled(self, recipe: Recipe) -> Recipe:
        """Adds a fully connected layer, so that all weights are about as many as fit, or more."""
        shapes = recipe.shapes()
        share = (
            self._rng.uniform(0.97, 1.1)
            if self._layers.chance(0.4)
            else self._rng.uniform(0.5, 1.6)
        )
        room = self._weight_bytes * share
        for _, layer, sources, made in walk(recipe):
            room -= weights_per_output(layer, sources[0]) * made[-1]
        filters = int(room / math.prod(shapes[-1]))
        if not 1 <= filters <= MOST_FILTERS:
            return recipe
        last = len(recipe.layers)
        filled = self._with(
            recipe, "fully_connected", (last,), filters=filters, keep_dimensions=False
        )
        return filled if self._is_small(filled) else recipe

    def _is_small(self, recipe: Recipe) -> bool:
        most = MOST_HEAVY_ELEMENTS if self._taste.heavy else MOST_ELEMENTS
        elements = max(math.prod(shape) for shape in recipe.shapes())
        return elements <= most and recipe.macs() <= MOST_MACS

    def _input_shape(self) -> Shape:
        if self._layers.chance(0.06):
            return (1, self._layers.integer(1, 400))
        most = self._taste.side
        sides = (self._layers.integer(1, most), self._layers.integer(1, most))
        if self._layers.chance(0.15):
            sides = (1, sides[1]) if self._layers.chance(0.5) else (sides[0], 1)
        shape = (1, *sides, self._layers.channels())
        most = MOST_HEAVY_ELEMENTS if self._taste.heavy else MOST_ELEMENTS
        return shape if math.prod(shape) <= most else (1, 8, 8, 8)

    def _codes(self) -> tuple[float, int]:
        scale = float(np.float32(2.0 ** self._rng.uniform(-8, -1)))
        point = int(self._rng.choice([-128, 0, 127, self._layers.integer(-128, 127)]))
        return scale, point

    def _grown(self, recipe: Recipe) -> Recipe:
        """Adds a layer, or a residual block; the recipe as it is where nothing fits."""
        if self._layers.chance(0.12):
            block = self._residual(recipe)
            if block is not None:
                return block
        if self._layers.chance(SEPARABLE):
            block = self._separable(recipe)
            if block is not None:
                return block
        kinds = list(self._dialect.kinds)
        shares = np.array(list(self._dialect.kinds.values()))
        for _ in range(8):
            kind = str(self._rng.choice(kinds, p=shares / shares.sum()))
            try:
                grown = self._with(recipe, kind, self._sources(recipe, kind))
            except RecipeError:
                continue
            if self._is_small(grown):
                return grown
        return recipe

    def _sources(self, recipe: Recipe, kind: str) -> tuple[int, ...]:
        """The last tensor, now and then an earlier one; a second one of the same shape."""
        last = len(recipe.layers)
        first = self._layers.integer(0, last) if self._layers.chance(0.15) else last
        if find(kind).operands == 1:
            return (first,)
        shapes = recipe.shapes()
        same_codes = find(kind).keeps_codes
        fitting = [
            tensor
            for tensor, shape in enumerate(shapes)
            if len(shape) == len(shapes[first])
            and (not same_codes or recipe.codes_of(tensor) == recipe.codes_of(first))
            and (kind == "concatenation" or shape == shapes[first])
        ]
        return (first, int(self._rng.choice(fitting)))

    def _residual(self, recipe: Recipe) -> Recipe | None:
        """A convolution that keeps the shape, and the sum with its input."""
        last = len(recipe.layers)
        shape = recipe.shapes()[last]
        if len(shape) != 4:
            return None
        kernel = self._layers.integer(1, 3), self._layers.integer(1, 3)
        changes = {"filters": shape[3], "kernel": kernel, "stride": (1, 1), "padding": "SAME"}
        changes |= {"dilation": (1, 1), "groups": 1}
        try:
            grown = self._with(recipe, "conv2d", (last,), **changes)
            grown = self._with(grown, "add", (last + 1, last))
        except RecipeError:
            return None
        return grown if self._is_small(grown) else None

    def _separable(
        self, recipe: Recipe, *, channels: int | None = None, stride: int | None = None
    ) -> Recipe | None:
        """A depthwise convolution of a few channels and a pointwise one, as in mobile networks."""
        last = len(recipe.layers)
        if len(recipe.shapes()[last]) != 4:
            return None
        pointwise: Parameters = {
            "kernel": (1, 1),
            "stride": (1, 1),
            "dilation": (1, 1),
            "groups": 1,
        }
        pointwise["padding"] = "SAME"
        channels = channels or int(self._rng.choice([4, 8, 8, 16, 32]))
        stride = stride or (2 if self._layers.chance(0.4) else 1)
        # what ends in a ReLU mostly has its zero point at the lowest code
        codes = (self._codes()[0], -128) if self._layers.chance(0.6) else None
        depthwise: Parameters = {"kernel": (3, 3), "stride": (stride, stride), "dilation": (1, 1)}
        depthwise |= {"padding": "SAME", "multiplier": 1}
        try:
            grown = self._with(recipe, "conv2d", (last,), codes, **pointwise, filters=channels)
            grown = self._with(grown, "depthwise_conv2d", (last + 1,), **depthwise)
            grown = self._with(grown, "conv2d", (last + 2,), **pointwise)
        except RecipeError:
            return None
        return grown if self._is_small(grown) else None

    def _with(
        self,
        recipe: Recipe,
        kind: str,
        sources: tuple[int, ...],
        codes: Codes | None = None,
        **changes: Any,
    ) -> Recipe:
        """Adds a layer; RecipeError if it does not fit."""
        shape = recipe.shapes()[sources[0]]
        drawn = {**self._layers.parameters(kind, shape), **changes}
        parameters = self._dialect.adapt(kind, shape, drawn, self._rng)
        if find(kind).family is Family.LAYER:
            parameters |= self._layers.weighted(kind, shape, parameters)
        drawn_codes = recipe.codes_of(sources[0]) if find(kind).keeps_codes else self._codes()
        codes = drawn_codes if codes is None else codes
        codes = self._dialect.fixed_codes.get(kind, codes)
        seed = int(self._rng.integers(1 << 31))
        layer = Layer(kind, sources, seed, codes, parameters)
        layers = (*recipe.layers, layer)
        grown = dataclasses.replace(recipe, layers=layers, outputs=(len(layers),))
        grown.shapes()
        return grown

    def _with_outputs(self, recipe: Recipe) -> Recipe:
        """The last tensor is an output, and now and then others are."""
        last = len(recipe.layers)
        more = [number + 1 for number in range(last - 1) if self._layers.chance(0.12)]
        return dataclasses.replace(recipe, outputs=(*more, last)).used()
