"""Draws recipes of random networks from a seed."""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .layer_values import PATTERNS
from .recipes import (
    KEEPS_CODES,
    WEIGHTED,
    Codes,
    Layer,
    Recipe,
    RecipeError,
    Shape,
    walk,
    weights_per_output,
)

Parameters = dict[str, Any]

MOST_ELEMENTS = 24_000
"""Elements of a tensor: larger ones only cost time."""

MOST_HEAVY_ELEMENTS = 120_000
"""The same, of heavy networks: some are larger than the memory of the default target."""

MOST_MACS = 4_000_000
"""Multiply-accumulates of a network, for the same reason."""

MOST_FILTERS = 4096
"""Of a fully connected layer that fills the memory."""

ACTIVATIONS = ("none", "none", "relu", "relu6", "relu_n1_to_1")


@dataclass(frozen=True)
class Dialect:
    """How the layers of a kind of file are drawn.

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


@dataclass(frozen=True)
class Taste:
    """How large and how long a network is, drawn once per network.

    Parameters
    ----------
    layers : int
    side, channels : int
        Largest height or width, and largest number of channels, that are drawn.
    heavy : bool
        Layers have many weights: the network is likely to be larger than the chip.
    """

    layers: int
    side: int
    channels: int
    heavy: bool


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
        self._taste = self._draw_taste()

    def draw(self) -> Recipe:
        """Draws the network."""
        recipe = Recipe(
            seed=self._seed,
            shape=self._input_shape(),
            codes=self._codes(),
            layers=(),
            outputs=(0,),
            images=int(self._rng.choice([1, 1, 1, 2, 5])),
            **self._dialect.files(self._rng),
        )
        for _ in range(self._taste.layers):
            recipe = self._grown(recipe)
        if self._taste.heavy:
            recipe = self._filled(recipe)
        if not recipe.layers:
            recipe = self._with(recipe, "relu", (0,))
        return self._with_outputs(recipe)

    def _filled(self, recipe: Recipe) -> Recipe:
        """Adds a fully connected layer, so that all weights are about as many as fit, or more."""
        shapes = recipe.shapes()
        share = self._rng.uniform(0.97, 1.1) if self._chance(0.4) else self._rng.uniform(0.5, 1.6)
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

    def _chance(self, share: float) -> bool:
        return bool(self._rng.random() < share)

    def _integer(self, low: int, high: int) -> int:
        return int(self._rng.integers(low, high + 1))

    def _draw_taste(self) -> Taste:
        heavy = self._chance(0.12)
        return Taste(
            layers=self._integer(1, 7),
            side=int(self._rng.choice([4, 8, 40, 40] if heavy else [4, 9, 9, 14, 20, 40])),
            channels=int(self._rng.choice([48, 70] if heavy else [8, 12, 20, 34, 70])),
            heavy=heavy,
        )

    def _channels(self) -> int:
        """Any number, but multiples of 4 and of 8 more often than others."""
        most = self._taste.channels
        step = int(self._rng.choice([1, 1, 4, 8]))
        low = most // 2 if self._taste.heavy else 1
        return max(1, self._integer(low, most) // step * step)

    def _input_shape(self) -> Shape:
        if self._chance(0.06):
            return (1, self._integer(1, 400))
        most = self._taste.side
        sides = (self._integer(1, most), self._integer(1, most))
        if self._chance(0.15):
            sides = (1, sides[1]) if self._chance(0.5) else (sides[0], 1)
        shape = (1, *sides, self._channels())
        most = MOST_HEAVY_ELEMENTS if self._taste.heavy else MOST_ELEMENTS
        return shape if math.prod(shape) <= most else (1, 8, 8, 8)

    def _codes(self) -> tuple[float, int]:
        scale = float(np.float32(2.0 ** self._rng.uniform(-8, -1)))
        point = int(self._rng.choice([-128, 0, 127, self._integer(-128, 127)]))
        return scale, point

    def _grown(self, recipe: Recipe) -> Recipe:
        """Adds a layer, or a residual block; the recipe as it is where nothing fits."""
        if self._chance(0.12):
            block = self._residual(recipe)
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
        first = self._integer(0, last) if self._chance(0.15) else last
        if kind not in ("add", "sub", "mul", "squared_difference", "maximum", "minimum"):
            if kind != "concatenation":
                return (first,)
        shapes = recipe.shapes()
        same_codes = kind in KEEPS_CODES
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
        kernel = self._integer(1, 3), self._integer(1, 3)
        changes = {"filters": shape[3], "kernel": kernel, "stride": (1, 1), "padding": "SAME"}
        changes |= {"dilation": (1, 1), "groups": 1}
        try:
            grown = self._with(recipe, "conv2d", (last,), **changes)
            grown = self._with(grown, "add", (last + 1, last))
        except RecipeError:
            return None
        return grown if self._is_small(grown) else None

    def _with(self, recipe: Recipe, kind: str, sources: tuple[int, ...], **changes: Any) -> Recipe:
        """Adds a layer; RecipeError if it does not fit."""
        shape = recipe.shapes()[sources[0]]
        drawn = {**_DRAWN.get(kind, _nothing)(self, shape), **changes}
        parameters = self._dialect.adapt(kind, shape, drawn, self._rng)
        if kind in WEIGHTED:
            parameters |= self._weighted(kind, shape, parameters)
        codes = recipe.codes_of(sources[0]) if kind in KEEPS_CODES else self._codes()
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
        more = [number + 1 for number in range(last - 1) if self._chance(0.12)]
        return dataclasses.replace(recipe, outputs=(*more, last)).used()

    def _weighted(self, kind: str, shape: Shape, own: Parameters) -> Parameters:
        """How weights, factors and biases are drawn; see ``layer_values``."""
        amplitude = int(self._rng.choice([1, 3, 12, 127, 127, 127]))
        products = math.prod(own.get("kernel", (1, 1))) * shape[-1] / own.get("groups", 1)
        if kind == "depthwise_conv2d":
            products = math.prod(own["kernel"])
        # sums spread over the codes where factors are near this
        middle = math.log2(60 / (74 * max(amplitude * 0.6, 0.8) * math.sqrt(products)))
        wide = self._chance(0.1)
        factor = middle + self._rng.uniform(-12, 4) if wide else middle + self._rng.uniform(-2, 2)
        if self._chance(0.2):
            # above 1 for some channels, below for others: they are rounded in different ways
            factor = self._rng.uniform(-1, 1)
        per_channel = self._chance(0.75)
        return {
            "amplitude": amplitude,
            "factor": float(factor),
            "per_channel": per_channel,
            "pattern": str(self._rng.choice(PATTERNS)) if per_channel else "one",
            "spread": float(self._rng.choice([0.5, 1, 2, 4, 8], p=[0.3, 0.3, 0.2, 0.15, 0.05])),
            "bias": self._chance(0.8),
            "sparse": self._chance(0.1),
            "extreme": self._chance(0.05),
        }

    def _kernel(self, shape: Shape) -> tuple[int, int]:
        """1 x 1 to 7 x 7, odd and even; small ones more often."""
        most = int(self._rng.choice([1, 2, 3, 3, 3, 5, 7]))
        kernel = self._integer(1, most), self._integer(1, most)
        return (kernel[0], kernel[0]) if self._chance(0.5) else kernel

    def _slide(self, shape: Shape, *, dilated: bool) -> Parameters:
        """Kernel, stride, dilation and padding of a window over a picture."""
        if len(shape) != 4:
            raise RecipeError("a window needs a picture")
        dilation = (1, 1)
        if dilated and self._chance(0.25):
            dilation = self._integer(1, 3), self._integer(1, 3)
        stride = (1, 1)
        if self._chance(0.35):
            stride = self._integer(1, 3), self._integer(1, 3)
            # TensorFlow Lite's converter makes equal ones mostly
            stride = (stride[0], stride[0]) if self._chance(0.5) else stride
        padding = "SAME" if self._chance(0.6) else "VALID"
        kernel = self._kernel(shape)
        return {"kernel": kernel, "stride": stride, "dilation": dilation, "padding": padding}

    def conv2d(self, shape: Shape) -> Parameters:
        """A convolution, a fifth of them with groups."""
        own = self._slide(shape, dilated=True)
        groups, filters = 1, self._channels()
        divisors = [n for n in range(2, shape[3] + 1) if shape[3] % n == 0]
        if divisors and self._chance(0.2):
            groups = int(self._rng.choice(divisors))
            filters = groups * self._integer(1, max(1, self._taste.channels // groups))
        return {**own, "groups": groups, "filters": filters, "activation": self._activation()}

    def depthwise(self, shape: Shape) -> Parameters:
        """A depthwise convolution; a depth multiplier of 1 three times of four."""
        own = self._slide(shape, dilated=True)
        multiplier = 1 if self._chance(0.75) else self._integer(2, 4)
        return {**own, "multiplier": multiplier, "activation": self._activation()}

    def transposed(self, shape: Shape) -> Parameters:
        """A transposed convolution."""
        side = self._integer(1, 3)
        stride = (side, side) if self._chance(0.8) else (side, self._integer(1, 3))
        own = {"kernel": self._kernel(shape), "stride": stride}
        padding = "SAME" if self._chance(0.5) else "VALID"
        return {**own, "padding": padding, "filters": self._channels(), "groups": 1}

    def connected(self, shape: Shape) -> Parameters:
        """A fully connected layer."""
        filters = self._integer(1, 700) if self._taste.heavy else self._channels()
        keeps = len(shape) > 2 and self._chance(0.3)
        return {"filters": filters, "keep_dimensions": keeps, "activation": self._activation()}

    def joined(self, shape: Shape) -> Parameters:
        """A sum or difference, with an activation."""
        return {"activation": self._activation()}

    def pooled(self, shape: Shape) -> Parameters:
        """A pool."""
        own = self._slide(shape, dilated=False)
        if len(shape) == 4 and self._chance(0.15):
            own |= {"kernel": shape[1:3], "padding": "VALID", "stride": (1, 1)}
        return {**own, "activation": self._activation()}

    def reduced(self, shape: Shape) -> Parameters:
        """A mean, or largest, over height and width; now and then over other axes."""
        if len(shape) != 4:
            raise RecipeError("a reduction needs a picture")
        choices = [(1, 2), (1, 2), (1, 2), (3,), (1,), (2,), (1, 2, 3)]
        axes = choices[self._integer(0, len(choices) - 1)]
        keeps = self._chance(0.5) or axes == (1, 2, 3)
        return {"axes": axes, "keep_dimensions": keeps}

    def padded(self, shape: Shape) -> Parameters:
        """Up to three rows and columns at each side."""
        return {
            "amounts": tuple(self._integer(0, 3) for _ in range(4)),
            "mode": str(self._rng.choice(["REFLECT", "SYMMETRIC"])),
        }

    def concatenated(self, shape: Shape) -> Parameters:
        """Along the channels mostly."""
        axis = len(shape) - 1 if self._chance(0.7) else self._integer(1, len(shape) - 1)
        return {"axis": axis}

    def sliced(self, shape: Shape) -> Parameters:
        """A box of the picture; now and then every second row or column."""
        starts, steps, sizes = [0], [1], [1]
        for size in shape[1:]:
            start = self._integer(0, size - 1) if self._chance(0.6) else 0
            step = 2 if self._chance(0.15) else 1
            most = -(-(size - start) // step)
            starts.append(start)
            steps.append(step)
            sizes.append(self._integer(1, most) if self._chance(0.7) else most)
        return {"starts": tuple(starts), "steps": tuple(steps), "sizes": tuple(sizes)}

    def resized(self, shape: Shape) -> Parameters:
        """Repeats rows and columns."""
        return {"factors": (self._integer(1, 3), self._integer(1, 3))}

    def blocked(self, shape: Shape) -> Parameters:
        """Blocks of pixels."""
        return {"block": self._integer(2, 3)}

    def reshaped(self, shape: Shape) -> Parameters:
        """Flat, or another picture of as many elements."""
        if len(shape) != 4 or self._chance(0.5):
            return {"shape": None}
        rest = shape[1] * shape[2]
        rows = int(self._rng.choice([n for n in range(1, rest + 1) if rest % n == 0]))
        return {"shape": (1, rows, rest // rows, shape[3])}

    def leaky(self, shape: Shape) -> Parameters:
        """The slope below zero."""
        return {"alpha": float(np.float32(self._rng.uniform(0, 0.6)))}

    def _activation(self) -> str:
        return str(self._rng.choice(ACTIVATIONS))


def _nothing(drawer: Drawer, shape: Shape) -> Parameters:
    return {}


_DRAWN: dict[str, Callable[[Drawer, Shape], Parameters]] = {
    "conv2d": Drawer.conv2d,
    "depthwise_conv2d": Drawer.depthwise,
    "transpose_conv2d": Drawer.transposed,
    "fully_connected": Drawer.connected,
    "add": Drawer.joined,
    "sub": Drawer.joined,
    "mul": Drawer.joined,
    "average_pool2d": Drawer.pooled,
    "max_pool2d": Drawer.pooled,
    "mean": Drawer.reduced,
    "reduce_max": Drawer.reduced,
    "pad": Drawer.padded,
    "mirror_pad": Drawer.padded,
    "concatenation": Drawer.concatenated,
    "slice": Drawer.sliced,
    "resize_nearest": Drawer.resized,
    "space_to_depth": Drawer.blocked,
    "depth_to_space": Drawer.blocked,
    "reshape": Drawer.reshaped,
    "leaky_relu": Drawer.leaky,
    "prelu": Drawer.leaky,
}
