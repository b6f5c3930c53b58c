"""Writes a recipe as an .onnx file of logarithmic codes."""

from typing import Any

import numpy as np
from onnx import TensorProto

from ...frontends.onnx.lns import DOMAIN
from ...kernels.lns.codes import arithmetic_of, encode, magnitudes
from .layer_values import draw_weights
from .layers import Codes, Layer, Shape, weights_per_output
from .onnx_files import OnnxFile, onnx_kinds
from .onnx_graph import channels_first, weight_shape
from .onnx_nodes import real
from .recipes import Recipe


def write_lns(recipe: Recipe) -> bytes:
    """Returns the file of a recipe whose ``form`` is a number format, such as "lns1+3+4".

    Raises
    ------
    RecipeError
        If its layers do not fit together.
    """
    return _LogFile(recipe).to_bytes()


class _LogFile(OnnxFile):
    """A file of logarithmic codes, between conversions of its own domain.

    Its inputs and outputs are real numbers; codes have no zero point.
    """

    def __init__(self, recipe: Recipe) -> None:
        arithmetic = arithmetic_of(recipe.form)
        assert arithmetic is not None
        self._arithmetic = arithmetic
        lns = arithmetic.lns
        self._bits = {"integer_bits": lns.integer_bits, "fraction_bits": lns.fraction_bits}
        super().__init__(recipe)

    def begin(self) -> None:
        """Adds the conversion of the input."""
        self._names.append("t_0")
        self.quantised("x", self._recipe.codes)

    def to_bytes(self) -> bytes:
        """Returns the file."""
        outputs = []
        for tensor in self._recipe.outputs:
            real = self.real(self._names[tensor], self._recipe.codes_of(tensor))
            outputs.append((real, channels_first(self._shapes[tensor])))
        return self.file(TensorProto.FLOAT, outputs)

    def codes(self, codes: Codes) -> list[str]:
        """Adds the scale of an activation, of which the largest code is 128 steps of int8."""
        return [self.constant(128 * codes[0] / self._largest, "float32")]

    @property
    def _largest(self) -> float:
        return float(magnitudes(self._arithmetic)[-1])

    def real(self, name: str, codes: Codes) -> str:
        """Adds the conversion of codes to real numbers."""
        return self._convert("LogDequantizeLinear", [name, *self.codes(codes)], self.spare())

    def quantised(self, real: str, codes: Codes) -> None:
        """Adds the conversion of real numbers to the codes that are being made."""
        self._convert("LogQuantizeLinear", [real, *self.codes(codes)], self.output)

    def _convert(self, operator: str, inputs: list[str], output: str, **options: Any) -> str:
        return self.node(operator, inputs, output, domain=DOMAIN, **self._bits, **options)

    def product_constants(self, layer: Layer, sources: list[Shape], made: Shape) -> tuple[str, str]:
        """Adds weights and bias; a bias of "" is none."""
        products, channels = weights_per_output(layer, sources[0]), made[-1]
        drawn = draw_weights(layer, channels, products, self._recipe.codes_of(layer.sources[0]))
        real = drawn.codes * np.broadcast_to(drawn.scales, channels)[:, None]
        tops = np.abs(real).max(axis=1)
        scales = (np.where(tops > 0, tops, 1.0) / self._largest).astype(np.float32)
        codes = encode(real, scales[:, None].astype(np.float64), self._arithmetic)
        shape = weight_shape(layer, products, channels)
        parts = [self.constant(codes.reshape(shape), "int8"), self.constant(scales, "float32")]
        kernel = self._convert("LogDequantizeLinear", parts, self.spare(), axis=0)
        if drawn.bias is None:
            return kernel, ""
        bias = drawn.bias * drawn.scales * self._recipe.codes_of(layer.sources[0])[0]
        return kernel, self.constant(bias, "float32")


def lns_kinds() -> dict[str, float]:
    """Returns how often each operator is drawn for a file of logarithmic codes."""
    layers = ("conv2d", "depthwise_conv2d", "fully_connected")
    return {
        kind: share
        for kind, share in onnx_kinds().items()
        if real(kind) is not None or kind in layers
    }
