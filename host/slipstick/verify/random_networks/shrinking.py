"""Makes a failing recipe smaller, as long as it still fails."""

import dataclasses
import time
from collections.abc import Callable, Iterator

from .layers import Layer, RecipeError
from .recipes import Recipe

MOST_TRIALS = 600
"""Smaller recipes that are tried at most."""

MOST_SECONDS = 90.0
"""Time after which the smallest recipe so far is taken."""


def shrink(recipe: Recipe, fails: Callable[[Recipe], bool]) -> Recipe:
    """Returns the smallest recipe that is found for which ``fails`` is still true.

    Parameters
    ----------
    recipe : Recipe
        One that fails.
    fails : callable
        May raise RecipeError for what describes no network.
    """
    trials, end = 0, time.monotonic() + MOST_SECONDS
    improved = True
    while improved:
        improved = False
        for smaller in _smaller(recipe):
            trials += 1
            if trials > MOST_TRIALS or time.monotonic() > end:
                return recipe
            if _still_fails(smaller, fails):
                recipe, improved = smaller, True
                break
    return recipe


def _still_fails(recipe: Recipe, fails: Callable[[Recipe], bool]) -> bool:
    try:
        return fails(recipe)
    except RecipeError:
        return False


def _smaller(recipe: Recipe) -> Iterator[Recipe]:
    """Smaller recipes, those that leave out most first."""
    last = len(recipe.layers)
    if recipe.images > 1:
        yield dataclasses.replace(recipe, images=1)
    if len(recipe.outputs) > 1:
        for output in recipe.outputs:
            yield dataclasses.replace(recipe, outputs=(output,)).used()
    for end in range(1, last):
        yield dataclasses.replace(recipe, outputs=(end,)).used()
    for start in range(last - 1, 0, -1):
        yield from _from(recipe, start)
    for number in range(last):
        if last > 1:
            yield recipe.without(number).used()
    for number, layer in enumerate(recipe.layers):
        for smaller in _smaller_layers(layer):
            yield recipe.changed(number, smaller)
    for axis in range(1, len(recipe.shape)):
        size = recipe.shape[axis]
        for less in dict.fromkeys((1, size // 2, size - 1)):
            if 0 < less < size:
                shape = (*recipe.shape[:axis], less, *recipe.shape[axis + 1 :])
                yield dataclasses.replace(recipe, shape=shape)


def _from(recipe: Recipe, start: int) -> Iterator[Recipe]:
    """The layers behind a tensor, if they read nothing before it: that is the input now."""
    behind = recipe.layers[start:]
    if any(source < start for layer in behind for source in layer.sources):
        return
    layers = tuple(
        dataclasses.replace(layer, sources=tuple(source - start for source in layer.sources))
        for layer in behind
    )
    try:
        shape = recipe.shapes()[start]
    except RecipeError:
        return
    outputs = tuple(output - start for output in recipe.outputs if output > start)
    if shape[0] == 1 and len(shape) > 1 and outputs:
        yield dataclasses.replace(
            recipe, shape=shape, codes=recipe.codes_of(start), layers=layers, outputs=outputs
        )


_PLAIN = {
    "activation": "none",
    "pattern": "one",
    "per_channel": False,
    "bias": False,
    "sparse": False,
    "extreme": False,
    "stride": (1, 1),
    "dilation": (1, 1),
    "padding": "VALID",
    "groups": 1,
    "multiplier": 1,
}
"""The plainest value of a parameter."""


def _smaller_layers(layer: Layer) -> Iterator[Layer]:
    own = layer.parameters
    for name, plain in _PLAIN.items():
        if name in own and own[name] != plain:
            yield layer.replace(**{name: plain})
    if "kernel" in own:
        y, x = own["kernel"]
        for kernel in ((1, 1), (y, 1), (1, x), (y - 1, x), (y, x - 1)):
            if min(kernel) > 0 and kernel != (y, x):
                yield layer.replace(kernel=kernel)
    if own.get("filters", 1) > 1:
        for filters in (1, own["filters"] // 2, own["filters"] - 1):
            yield layer.replace(filters=filters)
    if "amounts" in own:
        for place in range(4):
            if own["amounts"][place]:
                less = list(own["amounts"])
                less[place] -= 1
                yield layer.replace(amounts=tuple(less))
