"""The layers of recipes: one operator each, as plain data."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Shape = tuple[int, ...]
Codes = tuple[float, int]
"""Scale and zero point of a tensor of int8 codes."""


class RecipeError(ValueError):
    """A recipe does not describe a network: a window leaves the picture, shapes do not fit."""


@dataclass(frozen=True)
class Layer:
    """One operator, which makes one tensor.

    Parameters
    ----------
    kind : str
        The operator, by the graph's name.
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
