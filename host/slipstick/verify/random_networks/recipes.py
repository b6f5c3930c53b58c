"""Recipes: random networks as plain data that can be drawn, written as a file, and made smaller."""

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass

from .layers import Codes, Layer, RecipeError, Shape, weights_per_output
from .shapes import made_shape


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
            made = made_shape(layer, [shapes[source] for source in layer.sources])
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


def walk(recipe: Recipe) -> Iterator[tuple[int, Layer, list[Shape], Shape]]:
    """Returns every layer's number, itself, its sources' shapes and its own."""
    shapes = recipe.shapes()
    for number, layer in enumerate(recipe.layers):
        yield number, layer, [shapes[source] for source in layer.sources], shapes[number + 1]
