"""Writes a recipe as an .onnx file: operators of codes, or float operators between conversions."""

from typing import Any

from ...operators import OPERATORS, Family, find
from .layers import Layer, Shape
from .onnx_graph import OnnxGraph
from .onnx_nodes import of_codes, real
from .recipes import Recipe, walk


def write_onnx(recipe: Recipe) -> bytes:
    """Returns the .onnx file of a recipe.

    Raises
    ------
    RecipeError
        If its layers do not fit together.
    """
    return OnnxFile(recipe).to_bytes()


class OnnxFile(OnnxGraph):
    """A file of int8 or uint8 codes.

    Parameters
    ----------
    recipe : Recipe
    """

    def __init__(self, recipe: Recipe) -> None:
        super().__init__(recipe)
        self.begin()
        for number, layer, sources, made in walk(recipe):
            self._names.append(f"t_{number + 1}")
            add = of_codes(layer.kind)
            if add is not None and self._takes_codes(layer):
                add(self, layer, sources, made)
            else:
                self._between_conversions(layer, sources, made)

    def _takes_codes(self, layer: Layer) -> bool:
        """Tells whether a layer that can be an operator of codes becomes one.

        In QDQ form it does so only if it has no float operator.
        """
        is_float = real(layer.kind) is not None or _is_product(layer)
        return self._recipe.form == "qoperator" or not is_float

    def begin(self) -> None:
        """Names the input's codes."""
        self._names.append("x")

    def _between_conversions(self, layer: Layer, sources: list[Shape], made: Shape) -> None:
        reals = [
            self.real(self._names[source], self._recipe.codes_of(source))
            for source in layer.sources
        ]
        if _is_product(layer):
            value = self._real_product(layer, reals[0], sources, made)
        else:
            add = real(layer.kind)
            assert add is not None
            value = add(self, layer, reals, sources[0])
        self.quantised(value, layer.codes)

    def _real_product(self, layer: Layer, x: str, sources: list[Shape], made: Shape) -> str:
        kernel, bias = self.product_constants(layer, sources, made)
        inputs = [x, kernel, *([bias] if bias else [])]
        match layer.kind:
            case "fully_connected":
                if len(sources[0]) != 2:
                    inputs[0] = self.node("Flatten", [x], self.spare(), axis=1)
                return self.node("Gemm", inputs, self.spare(), transB=1)
            case "transpose_conv2d":
                options = _transposed_options(layer)
                return self.node("ConvTranspose", inputs, self.spare(), **options)
        groups = sources[0][3] if layer.kind == "depthwise_conv2d" else layer.parameters["groups"]
        options = self.window(layer, sources[0])
        return self.node("Conv", inputs, self.spare(), group=groups, **options)


def _is_product(layer: Layer) -> bool:
    return find(layer.kind).family is Family.LAYER


def _transposed_options(layer: Layer) -> dict[str, Any]:
    own = layer.parameters
    options: dict[str, Any] = {"strides": own["stride"]}
    if own["padding"] == "VALID":
        return options
    pads, more = ([], []), []
    for kernel, step in zip(own["kernel"], own["stride"], strict=True):
        # what the kernel makes beyond stride times the size is cut off, or is zero
        total = kernel - step
        pads[0].append(max(total, 0) // 2)
        pads[1].append(max(total, 0) - max(total, 0) // 2)
        more.append(max(-total, 0))
    return {**options, "pads": [*pads[0], *pads[1]], "output_padding": more}


def onnx_kinds() -> dict[str, float]:
    """Returns how often each operator is drawn for an .onnx file."""
    written = (name for name in OPERATORS if of_codes(name) is not None or real(name) is not None)
    drawn = {name: find(name).share for name in sorted({*written, *_products()})}
    return {name: share for name, share in drawn.items() if share} | {"concatenation": 1.0}


def _products() -> list[str]:
    return [name for name, record in OPERATORS.items() if record.family is Family.LAYER]
