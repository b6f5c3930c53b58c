"""Draws the parameters of one layer: windows, channels, scales."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...operators import Family, entry
from .layer_values import PATTERNS
from .layers import RecipeError, Shape

Parameters = dict[str, Any]

ACTIVATIONS = ("none", "none", "relu", "relu6", "relu_n1_to_1")


@dataclass(frozen=True)
class Taste:
    """Describes how large and how long a network is, drawn once per network.

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


def draw_taste(rng: np.random.Generator) -> Taste:
    """Draws how large and how long a network is."""
    heavy = bool(rng.random() < 0.12)
    return Taste(
        layers=int(rng.integers(1, 8)),
        side=int(rng.choice([4, 8, 40, 40] if heavy else [4, 9, 9, 14, 20, 40])),
        channels=int(rng.choice([48, 70] if heavy else [8, 12, 20, 34, 70])),
        heavy=heavy,
    )


class LayerDrawer:
    """Draws parameters, given the shape of a layer's first source.

    Parameters
    ----------
    rng : Generator
    taste : Taste
    """

    def __init__(self, rng: np.random.Generator, taste: Taste) -> None:
        self._rng, self._taste = rng, taste

    def chance(self, share: float) -> bool:
        return bool(self._rng.random() < share)

    def integer(self, low: int, high: int) -> int:
        return int(self._rng.integers(low, high + 1))

    def channels(self) -> int:
        """Any number, but multiples of 4 and of 8 more often than others."""
        most = self._taste.channels
        step = int(self._rng.choice([1, 1, 4, 8]))
        low = most // 2 if self._taste.heavy else 1
        return max(1, self.integer(low, most) // step * step)

    def parameters(self, kind: str, shape: Shape) -> Parameters:
        """Draws what a kind of layer needs, weights apart; RecipeError if it cannot be there."""
        return (entry(_DRAWN, kind) or _nothing)(self, shape)

    def weighted(self, kind: str, shape: Shape, own: Parameters) -> Parameters:
        """Draws the parameters of weights, factors and biases; see ``layer_values``."""
        amplitude = int(self._rng.choice([1, 3, 12, 127, 127, 127]))
        products = math.prod(own.get("kernel", (1, 1))) * shape[-1] / own.get("groups", 1)
        if kind == "depthwise_conv2d":
            products = math.prod(own["kernel"])
        # sums spread over the codes where factors are near this
        middle = math.log2(60 / (74 * max(amplitude * 0.6, 0.8) * math.sqrt(products)))
        wide = self.chance(0.1)
        factor = middle + self._rng.uniform(-12, 4) if wide else middle + self._rng.uniform(-2, 2)
        if self.chance(0.2):
            # above 1 for some channels, below for others: they are rounded in different ways
            factor = self._rng.uniform(-1, 1)
        per_channel = self.chance(0.75)
        return {
            "amplitude": amplitude,
            "factor": float(factor),
            "per_channel": per_channel,
            "pattern": str(self._rng.choice(PATTERNS)) if per_channel else "one",
            "spread": float(self._rng.choice([0.5, 1, 2, 4, 8], p=[0.3, 0.3, 0.2, 0.15, 0.05])),
            "bias": self.chance(0.8),
            "sparse": self.chance(0.1),
            "extreme": self.chance(0.05),
        }

    def _kernel(self, shape: Shape) -> tuple[int, int]:
        """1 x 1 to 7 x 7, odd and even; small ones more often."""
        most = int(self._rng.choice([1, 2, 3, 3, 3, 5, 7]))
        kernel = self.integer(1, most), self.integer(1, most)
        return (kernel[0], kernel[0]) if self.chance(0.5) else kernel

    def _slide(self, shape: Shape, *, dilated: bool) -> Parameters:
        """Kernel, stride, dilation and padding of a window over a picture."""
        if len(shape) != 4:
            raise RecipeError("a window needs a picture")
        dilation = (1, 1)
        if dilated and self.chance(0.25):
            dilation = self.integer(1, 3), self.integer(1, 3)
        stride = (1, 1)
        if self.chance(0.35):
            stride = self.integer(1, 3), self.integer(1, 3)
            # TensorFlow Lite's converter makes equal ones mostly
            stride = (stride[0], stride[0]) if self.chance(0.5) else stride
        padding = "SAME" if self.chance(0.6) else "VALID"
        kernel = self._kernel(shape)
        return {"kernel": kernel, "stride": stride, "dilation": dilation, "padding": padding}

    def conv2d(self, shape: Shape) -> Parameters:
        """A convolution, a fifth of them with groups."""
        own = self._slide(shape, dilated=True)
        groups, filters = 1, self.channels()
        divisors = [n for n in range(2, shape[3] + 1) if shape[3] % n == 0]
        if divisors and self.chance(0.2):
            groups = int(self._rng.choice(divisors))
            filters = groups * self.integer(1, max(1, self._taste.channels // groups))
        return {**own, "groups": groups, "filters": filters, "activation": self._activation()}

    def depthwise(self, shape: Shape) -> Parameters:
        """A depthwise convolution; a depth multiplier of 1 three times of four."""
        own = self._slide(shape, dilated=True)
        multiplier = 1 if self.chance(0.75) else self.integer(2, 4)
        return {**own, "multiplier": multiplier, "activation": self._activation()}

    def transposed(self, shape: Shape) -> Parameters:
        """A transposed convolution."""
        side = self.integer(1, 3)
        stride = (side, side) if self.chance(0.8) else (side, self.integer(1, 3))
        own = {"kernel": self._kernel(shape), "stride": stride}
        padding = "SAME" if self.chance(0.5) else "VALID"
        return {**own, "padding": padding, "filters": self.channels(), "groups": 1}

    def connected(self, shape: Shape) -> Parameters:
        """A fully connected layer."""
        filters = self.integer(1, 700) if self._taste.heavy else self.channels()
        keeps = len(shape) > 2 and self.chance(0.3)
        return {"filters": filters, "keep_dimensions": keeps, "activation": self._activation()}

    def joined(self, shape: Shape) -> Parameters:
        """A sum or difference, with an activation."""
        return {"activation": self._activation()}

    def pooled(self, shape: Shape) -> Parameters:
        """A pool."""
        own = self._slide(shape, dilated=False)
        if len(shape) == 4 and self.chance(0.15):
            own |= {"kernel": shape[1:3], "padding": "VALID", "stride": (1, 1)}
        return {**own, "activation": self._activation()}

    def reduced(self, shape: Shape) -> Parameters:
        """A mean, or largest, over height and width; now and then over other axes."""
        if len(shape) != 4:
            raise RecipeError("a reduction needs a picture")
        choices = [(1, 2), (1, 2), (1, 2), (3,), (1,), (2,), (1, 2, 3)]
        axes = choices[self.integer(0, len(choices) - 1)]
        keeps = self.chance(0.5) or axes == (1, 2, 3)
        return {"axes": axes, "keep_dimensions": keeps}

    def padded(self, shape: Shape) -> Parameters:
        """Up to three rows and columns at each side."""
        return {
            "amounts": tuple(self.integer(0, 3) for _ in range(4)),
            "mode": str(self._rng.choice(["REFLECT", "SYMMETRIC"])),
        }

    def concatenated(self, shape: Shape) -> Parameters:
        """Along the channels mostly."""
        axis = len(shape) - 1 if self.chance(0.7) else self.integer(1, len(shape) - 1)
        return {"axis": axis}

    def sliced(self, shape: Shape) -> Parameters:
        """A box of the picture; now and then every second row or column."""
        starts, steps, sizes = [0], [1], [1]
        for size in shape[1:]:
            start = self.integer(0, size - 1) if self.chance(0.6) else 0
            step = 2 if self.chance(0.15) else 1
            most = -(-(size - start) // step)
            starts.append(start)
            steps.append(step)
            sizes.append(self.integer(1, most) if self.chance(0.7) else most)
        return {"starts": tuple(starts), "steps": tuple(steps), "sizes": tuple(sizes)}

    def resized(self, shape: Shape) -> Parameters:
        """Repeats rows and columns."""
        return {"factors": (self.integer(1, 3), self.integer(1, 3))}

    def blocked(self, shape: Shape) -> Parameters:
        """Blocks of pixels."""
        return {"block": self.integer(2, 3)}

    def reshaped(self, shape: Shape) -> Parameters:
        """Flat, or another picture of as many elements."""
        if len(shape) != 4 or self.chance(0.5):
            return {"shape": None}
        rest = shape[1] * shape[2]
        rows = int(self._rng.choice([n for n in range(1, rest + 1) if rest % n == 0]))
        return {"shape": (1, rows, rest // rows, shape[3])}

    def leaky(self, shape: Shape) -> Parameters:
        """The slope below zero."""
        return {"alpha": float(np.float32(self._rng.uniform(0, 0.6)))}

    def _activation(self) -> str:
        return str(self._rng.choice(ACTIVATIONS))


def _nothing(drawer: LayerDrawer, shape: Shape) -> Parameters:
    return {}


_DRAWN: dict[str | Family, Callable[[LayerDrawer, Shape], Parameters]] = {
    "conv2d": LayerDrawer.conv2d,
    "depthwise_conv2d": LayerDrawer.depthwise,
    "transpose_conv2d": LayerDrawer.transposed,
    "fully_connected": LayerDrawer.connected,
    "add": LayerDrawer.joined,
    "sub": LayerDrawer.joined,
    "mul": LayerDrawer.joined,
    Family.POOLING: LayerDrawer.pooled,
    "mean": LayerDrawer.reduced,
    "reduce_max": LayerDrawer.reduced,
    "pad": LayerDrawer.padded,
    "mirror_pad": LayerDrawer.padded,
    "concatenation": LayerDrawer.concatenated,
    "slice": LayerDrawer.sliced,
    "resize_nearest": LayerDrawer.resized,
    "space_to_depth": LayerDrawer.blocked,
    "depth_to_space": LayerDrawer.blocked,
    "reshape": LayerDrawer.reshaped,
    "leaky_relu": LayerDrawer.leaky,
    "prelu": LayerDrawer.leaky,
}
