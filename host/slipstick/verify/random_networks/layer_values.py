"""Draws the numbers of a recipe's layers: weights, scales per channel, biases and inputs."""

from typing import NamedTuple

import numpy as np

from .layers import Codes, Layer, Shape
from .recipes import Recipe

LARGEST_BIAS = 1 << 20
"""Biases stay below this magnitude; sums then stay far from the ends of 32 bits."""

SMALLEST_SCALE, LARGEST_SCALE = 1e-12, 1e6
"""Scales of weights stay between these: beyond them a file is refused, which is another test."""

PATTERNS = ("one", "random", "ramp", "alternating", "first", "last", "blocks", "few")
"""Patterns of requantisation factors over a layer's channels; see ``factor_exponents``."""


class Weights(NamedTuple):
    """The constants of a layer.

    Parameters
    ----------
    codes : array of int8, (channels, products per result)
    scales : array of float64, 1 or channels long
    bias : array of int32, or None
    """

    codes: np.ndarray
    scales: np.ndarray
    bias: np.ndarray | None


def factor_exponents(layer: Layer, channels: int, rng: np.random.Generator) -> np.ndarray:
    """Returns the power of two of each channel's requantisation factor.

    ``pattern`` says how they differ, by up to ``spread`` powers of two: not at all, randomly, as a
    ramp, by turns, the first or the last channel alone, in blocks of four, or a few at random.
    """
    own = layer.parameters
    spread, number = own["spread"], np.arange(channels)
    offsets = {
        "one": lambda: np.zeros(channels),
        "random": lambda: rng.uniform(-spread, spread, channels),
        "ramp": lambda: spread * (2 * number / max(channels - 1, 1) - 1),
        "alternating": lambda: np.where(number % 2, spread, -spread),
        "first": lambda: np.where(number == 0, spread, -spread / 4),
        "last": lambda: np.where(number == channels - 1, spread, -spread / 4),
        "blocks": lambda: np.where(number // 4 % 2, spread, -spread / 2),
        "few": lambda: np.where(rng.random(channels) < 0.15, spread, 0.0),
    }[own["pattern"]]()
    return np.asarray(own["factor"] + offsets, np.float64)


def draw_weights(layer: Layer, channels: int, products: int, source: Codes) -> Weights:
    """Draws the constants of a layer with so many output channels and products per result."""
    own, rng = layer.parameters, np.random.default_rng(layer.seed)
    exponents = factor_exponents(layer, channels, rng)
    scales = 2.0**exponents * layer.codes[0] / source[0]
    scales = np.clip(scales, SMALLEST_SCALE, LARGEST_SCALE)
    scales = scales if own["per_channel"] else scales[:1]
    largest = own["amplitude"]
    codes = rng.integers(-largest, largest, (channels, products), endpoint=True)
    if own.get("sparse"):
        codes *= rng.random(codes.shape) < 0.3
    if own.get("extreme"):
        codes = np.where(codes < 0, -largest, largest)
    bias = None
    if own["bias"]:
        width = np.clip(100 * 2.0**-exponents, 1, LARGEST_BIAS)
        bias = np.round(rng.uniform(-width, width)).astype(np.int32)
    return Weights(codes.astype(np.int8), scales, bias)


def draw_codes(shape: Shape, rng: np.random.Generator) -> np.ndarray:
    """Draws int8 codes over the whole range; at times only the ends of it, or few values."""
    kind = rng.random()
    if kind < 0.15:
        return rng.choice(np.array([-128, 127]), shape).astype(np.int8)
    if kind < 0.25:
        return rng.integers(-3, 3, shape).astype(np.int8)
    return rng.integers(-128, 128, shape).astype(np.int8)


def draw_inputs(recipe: Recipe) -> np.ndarray:
    """Draws the batch of inputs that a recipe is run on, int8, (images, ...)."""
    rng = np.random.default_rng([recipe.seed, 1])
    return draw_codes((recipe.images, *recipe.shape[1:]), rng)
