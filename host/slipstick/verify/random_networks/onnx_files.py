"""Writes a recipe as an .onnx file: operators of codes, or float operators between conversions."""

from typing import Any

from .layers import WEIGHTED, Layer, Shape
from .onnx_graph import OnnxGraph
from .onnx_nodes import OF_CODES, REAL
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
            if self._takes_codes(layer):
                OF_CODES[layer.kind](self, layer, sources, made)
            else:
                self._between_conversions(layer, sources, made)

    def _takes_codes(self, layer: Layer) -> bool:
        """Whether a layer becomes an operator of codes; in QDQ form only what has no other."""
        if layer.kind not in OF_CODES:
            return False
        is_float = layer.kind in REAL or layer.kind in WEIGHTED
        return self._recipe.form == "qoperator" or not is_float

    def begin(self) -> None:
        """Names the input's codes."""
        self._names.append("x")

    def _between_conversions(self, layer: Layer, sources: list[Shape], made: Shape) -> None:
        reals = [
            self.real(self._names[source], self._recipe.codes_of(source))
            for source in layer.sources
        ]
        if layer.kind in WEIGHTED:
            real = self._real_product(layer, reals[0], sources, made)
        else:
            real = REAL[layer.kind](self, layer, reals, sources[0])
        self.quantised(real, layer.codes)

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


ONNX_KINDS = {
    **dict.fromkeys(sorted(OF_CODES.keys() | REAL.keys()), 1.0),
    "conv2d": 14.0,
    "depthwise_conv2d": 8.0,
    "transpose_conv2d": 2.0,
    "fully_connected": 4.0,
    "add": 4.0,
    "max_pool2d": 2.0,
    "average_pool2d": 2.0,
}
"""How often each kind is drawn for an .onnx file."""
