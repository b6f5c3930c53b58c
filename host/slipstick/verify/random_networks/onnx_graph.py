"""The parts of an .onnx file under construction: nodes, constants, names."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from ...frontends.onnx.lns import DOMAIN
from .layer_values import draw_weights
from .layers import Codes, Layer, Shape, weights_per_output
from .recipes import Recipe

OPSET, IR_VERSION = 21, 10
MICROSOFT = "com.microsoft"

TYPES = {"int8": TensorProto.INT8, "uint8": TensorProto.UINT8}


def channels_first(shape: Sequence[int]) -> tuple[int, ...]:
    """Returns a picture's shape as ONNX has it, and others as they are."""
    return (shape[0], shape[3], *shape[1:3]) if len(shape) == 4 else tuple(shape)


class OnnxGraph:
    """The nodes and constants of a file whose layers are added one after the other.

    Parameters
    ----------
    recipe : Recipe
    """

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._shift = 128 if recipe.dtype == "uint8" else 0
        self._shapes = recipe.shapes()
        self._names: list[str] = []

    def to_bytes(self) -> bytes:
        """Returns the file."""
        shown = [
            (self._names[tensor], channels_first(self._shapes[tensor]))
            for tensor in self._recipe.outputs
        ]
        return self.file(TYPES[self._recipe.dtype], shown)

    def file(self, kind: int, shown: Sequence[tuple[str, tuple[int, ...]]]) -> bytes:
        """Returns the file, whose inputs and outputs are of one type."""
        x = helper.make_tensor_value_info("x", kind, channels_first(self._recipe.shape))
        outputs = [helper.make_tensor_value_info(name, kind, shape) for name, shape in shown]
        graph = helper.make_graph(self._nodes, "random", [x], outputs, self._constants)
        domains = [
            helper.make_opsetid(domain, version)
            for domain, version in (("", OPSET), (MICROSOFT, 1), (DOMAIN, 1))
        ]
        model = helper.make_model(graph, opset_imports=domains, ir_version=IR_VERSION)
        return model.SerializeToString()

    @property
    def output(self) -> str:
        """The name of the tensor that is being made."""
        return self._names[-1]

    def names(self, layer: Layer) -> list[str]:
        """Returns the names of a layer's sources."""
        return [self._names[source] for source in layer.sources]

    def constant(self, values: Any, dtype: str) -> str:
        """Adds a constant and returns its name."""
        name = f"c_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.asarray(values, dtype), name))
        return name

    def codes(self, codes: Codes) -> list[str]:
        """Adds scale and zero point of an activation."""
        scale, point = codes
        return [
            self.constant(scale, "float32"),
            self.constant(point + self._shift, self._recipe.dtype),
        ]

    def source_codes(self, layer: Layer, number: int = 0) -> list[str]:
        """Adds scale and zero point of a layer's source."""
        return self.codes(self._recipe.codes_of(layer.sources[number]))

    def node(self, operator: str, inputs: Sequence[str], output: str = "", **options: Any) -> str:
        """Adds a node and returns its output, by default the tensor that is being made."""
        output = output or self.output
        name = f"{operator}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, inputs, [output], name, **options))
        return output

    def spare(self) -> str:
        """Returns a name for a tensor within a layer."""
        return f"s_{len(self._nodes)}"

    def weights(self, layer: Layer, sources: list[Shape], made: Shape) -> tuple[list[str], str]:
        """Adds codes, scale and zero point of the weights, and the bias, "" without one."""
        products, channels = weights_per_output(layer, sources[0]), made[-1]
        drawn = draw_weights(layer, channels, products, self._recipe.codes_of(layer.sources[0]))
        shape = weight_shape(layer, products, channels)
        kept = drawn.scales if len(drawn.scales) > 1 else drawn.scales[0]
        codes = drawn.codes.reshape(shape).astype(np.int16) + self._shift
        if layer.kind == "transpose_conv2d":
            # ONNX has their input channels first
            codes = codes.swapaxes(0, 1)
        parts = [
            self.constant(codes, self._recipe.dtype),
            self.constant(kept, "float32"),
            self.constant(np.full(np.shape(kept), self._shift), self._recipe.dtype),
        ]
        bias = "" if drawn.bias is None else self.constant(drawn.bias, "int32")
        return parts, bias

    def window(self, layer: Layer, source: Shape, *, dilated: bool = True) -> dict[str, Any]:
        """Returns ONNX's attributes of a window."""
        own = layer.parameters
        options = {"strides": own["stride"], "pads": _pads(layer, source)}
        if dilated and "dilation" in own:
            options["dilations"] = own["dilation"]
        return options

    def flat(self, layer: Layer, source: Shape) -> str:
        """Adds a Flatten where a source is no row."""
        (x,) = self.names(layer)
        return x if len(source) == 2 else self.node("Flatten", [x], self.spare(), axis=1)

    def real(self, name: str, codes: Codes) -> str:
        """Adds the conversion of codes to real numbers."""
        return self.node("DequantizeLinear", [name, *self.codes(codes)], self.spare())

    def quantised(self, real: str, codes: Codes) -> None:
        """Adds the conversion of real numbers to the codes that are being made."""
        self.node("QuantizeLinear", [real, *self.codes(codes)])

    def product_constants(self, layer: Layer, sources: list[Shape], made: Shape) -> tuple[str, str]:
        """Adds weights and bias, as real numbers behind conversions; a bias of "" is none."""
        parts, bias = self.weights(layer, sources, made)
        axis = 1 if layer.kind == "transpose_conv2d" else 0
        kernel = self.node("DequantizeLinear", parts, self.spare(), axis=axis)
        if bias:
            source = self._recipe.codes_of(layer.sources[0])
            # the scales do not depend on how many products there are
            scales = draw_weights(layer, made[-1], 1, source).scales * source[0]
            kept = scales if len(scales) > 1 else scales[0]
            inputs = [bias, self.constant(kept, "float32")]
            bias = self.node("DequantizeLinear", inputs, self.spare(), axis=0)
        return kernel, bias


def weight_shape(layer: Layer, products: int, channels: int) -> tuple[int, ...]:
    if layer.kind == "fully_connected":
        return channels, products
    kernel = layer.parameters["kernel"]
    return channels, products // (kernel[0] * kernel[1]), *kernel


def _pads(layer: Layer, source: Shape) -> list[int]:
    """ONNX's pads (top, left, bottom, right) of a window; SAME puts the odd one behind."""
    own = layer.parameters
    if own["padding"] == "VALID":
        return [0, 0, 0, 0]
    if own["padding"] != "SAME":
        top, bottom, left, right = own["padding"]
        return [top, left, bottom, right]
    before, behind = [], []
    for axis in range(2):
        size, step = source[1 + axis], own["stride"][axis]
        extent = (own["kernel"][axis] - 1) * own.get("dilation", (1, 1))[axis] + 1
        total = max((-(-size // step) - 1) * step + extent - size, 0)
        before.append(total // 2)
        behind.append(total - total // 2)
    return [*before, *behind]
