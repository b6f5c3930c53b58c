"""Writes a recipe as an .onnx file: operators of codes, or float operators between conversions."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from ...frontends.onnx_logarithms import DOMAIN
from ...kernels.log_codes import arithmetic_of, encode, magnitudes
from .layer_values import draw_weights
from .recipes import WEIGHTED, Codes, Layer, Recipe, Shape, walk, weights_per_output

OPSET, IR_VERSION = 21, 10
MICROSOFT = "com.microsoft"

EXACT = "exact"
"""How names of tensors begin whose codes onnxruntime computes without a rounding error."""

_EXACT_KINDS = frozenset(
    {"conv2d", "depthwise_conv2d", "fully_connected", "max_pool2d", "pad", "slice", "reshape"}
    | {"resize_nearest", "quantize"}
)
"""Kinds whose operator of codes sums integers, or moves codes."""

_TYPES = {"int8": TensorProto.INT8, "uint8": TensorProto.UINT8}


def write_onnx(recipe: Recipe) -> bytes:
    """Returns the .onnx file of a recipe.

    Raises
    ------
    RecipeError
        If its layers do not fit together.
    """
    kind = _LogFile if recipe.form.startswith("lns") else _File
    return kind(recipe).to_bytes()


def channels_first(shape: Sequence[int]) -> tuple[int, ...]:
    """Returns a picture's shape as ONNX has it, and others as they are."""
    return (shape[0], shape[3], *shape[1:3]) if len(shape) == 4 else tuple(shape)


class _File:
    """A file under construction."""

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._shift = 128 if recipe.dtype == "uint8" else 0
        self._shapes = recipe.shapes()
        self._names: list[str] = []
        self.begin()
        for number, layer, sources, made in walk(recipe):
            exact = recipe.form == "qoperator" and layer.kind in _EXACT_KINDS
            self._names.append(f"{EXACT}_{number + 1}" if exact else f"t_{number + 1}")
            if self._takes_codes(layer):
                _OF_CODES[layer.kind](self, layer, sources, made)
            else:
                self._between_conversions(layer, sources, made)

    def _takes_codes(self, layer: Layer) -> bool:
        """Whether a layer becomes an operator of codes; in QDQ form only what has no other."""
        if layer.kind not in _OF_CODES:
            return False
        is_float = layer.kind in _REAL or layer.kind in WEIGHTED
        return self._recipe.form == "qoperator" or not is_float

    def begin(self) -> None:
        """Names the input's codes."""
        self._names.append("x")

    def to_bytes(self) -> bytes:
        """Returns the file."""
        shown = [
            (self._names[tensor], channels_first(self._shapes[tensor]))
            for tensor in self._recipe.outputs
        ]
        return self.file(_TYPES[self._recipe.dtype], shown)

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
        shape = _weight_shape(layer, products, channels)
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

    def _between_conversions(self, layer: Layer, sources: list[Shape], made: Shape) -> None:
        reals = [
            self.real(self._names[source], self._recipe.codes_of(source))
            for source in layer.sources
        ]
        if layer.kind in WEIGHTED:
            real = self._real_product(layer, reals[0], sources, made)
        else:
            real = _REAL[layer.kind](self, layer, reals, sources[0])
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


class _LogFile(_File):
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
        shape = _weight_shape(layer, products, channels)
        parts = [self.constant(codes.reshape(shape), "int8"), self.constant(scales, "float32")]
        kernel = self._convert("LogDequantizeLinear", parts, self.spare(), axis=0)
        if drawn.bias is None:
            return kernel, ""
        bias = drawn.bias * drawn.scales * self._recipe.codes_of(layer.sources[0])[0]
        return kernel, self.constant(bias, "float32")


def _weight_shape(layer: Layer, products: int, channels: int) -> tuple[int, ...]:
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


def _convolved(file: _File, layer: Layer, sources: list[Shape], made: Shape) -> None:
    parts, bias = file.weights(layer, sources, made)
    inputs = [*file.names(layer), *file.source_codes(layer), *parts, *file.codes(layer.codes)]
    groups = sources[0][3] if layer.kind == "depthwise_conv2d" else layer.parameters["groups"]
    options = file.window(layer, sources[0])
    file.node("QLinearConv", [*inputs, *([bias] if bias else [])], group=groups, **options)


def _connected(file: _File, layer: Layer, sources: list[Shape], made: Shape) -> None:
    parts, bias = file.weights(layer, sources, made)
    x = file.flat(layer, sources[0])
    inputs = [x, *file.source_codes(layer), *parts, bias, *file.codes(layer.codes)]
    file.node("QGemm", inputs, domain=MICROSOFT, transB=1)


def _joined(operator: str) -> Callable[[_File, Layer, list[Shape], Shape], None]:
    def add(file: _File, layer: Layer, sources: list[Shape], made: Shape) -> None:
        inputs = []
        for number, name in enumerate(file.names(layer)):
            inputs += [name, *file.source_codes(layer, number)]
        file.node(operator, [*inputs, *file.codes(layer.codes)], domain=MICROSOFT)

    return add


def _of_one(operator: str, *names: str) -> Callable[[_File, Layer, list[Shape], Shape], None]:
    def add(file: _File, layer: Layer, sources: list[Shape], made: Shape) -> None:
        inputs = [*file.names(layer), *file.source_codes(layer), *file.codes(layer.codes)]
        options = {name: layer.parameters[name] for name in names}
        file.node(operator, inputs, domain=MICROSOFT, **options)

    return add


def _averaged(file: _File, layer: Layer, sources: list[Shape], made: Shape) -> None:
    inputs = [*file.names(layer), *file.source_codes(layer), *file.codes(layer.codes)]
    options = file.window(layer, sources[0], dilated=False)
    kernel = layer.parameters["kernel"]
    file.node("QLinearAveragePool", inputs, domain=MICROSOFT, kernel_shape=kernel, **options)


def _largest(file: _File, layer: Layer, sources: list[Shape], made: Shape) -> None:
    options = file.window(layer, sources[0], dilated=False)
    file.node("MaxPool", file.names(layer), kernel_shape=layer.parameters["kernel"], **options)


def _concatenated(file: _File, layer: Layer, sources: list[Shape], made: Shape) -> None:
    inputs = file.codes(layer.codes)
    for number, name in enumerate(file.names(layer)):
        inputs += [name, *file.source_codes(layer, number)]
    axis = layer.parameters["axis"]
    axis = {1: 2, 2: 3, 3: 1}[axis] if len(sources[0]) == 4 else axis
    file.node("QLinearConcat", inputs, domain=MICROSOFT, axis=axis)


def _padded(file: _File, layer: Layer, sources: list[Shape], made: Shape) -> None:
    top, bottom, left, right = layer.parameters["amounts"]
    pads = file.constant([0, 0, top, left, 0, 0, bottom, right], "int64")
    value = file.source_codes(layer)[1]
    file.node("Pad", [*file.names(layer), pads, value])


def _sliced(file: _File, layer: Layer, sources: list[Shape], made: Shape) -> None:
    own = layer.parameters
    order = [0, 3, 1, 2] if len(sources[0]) == 4 else range(len(sources[0]))
    starts = [own["starts"][axis] for axis in order]
    steps = [own["steps"][axis] for axis in order]
    ends = [
        start + (own["sizes"][axis] - 1) * step + 1
        for axis, start, step in zip(order, starts, steps, strict=True)
    ]
    axes = list(range(len(starts)))
    values = [file.constant(each, "int64") for each in (starts, ends, axes, steps)]
    file.node("Slice", [*file.names(layer), *values])


def _reshaped(file: _File, layer: Layer, sources: list[Shape], made: Shape) -> None:
    shape = file.constant(channels_first(made), "int64")
    file.node("Reshape", [*file.names(layer), shape])


def _resized(file: _File, layer: Layer, sources: list[Shape], made: Shape) -> None:
    scales = file.constant([1, 1, *layer.parameters["factors"]], "float32")
    file.node(
        "Resize",
        [*file.names(layer), "", scales],
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )


def _requantised(file: _File, layer: Layer, sources: list[Shape], made: Shape) -> None:
    real = file.node(
        "DequantizeLinear", [*file.names(layer), *file.source_codes(layer)], file.spare()
    )
    file.node("QuantizeLinear", [real, *file.codes(layer.codes)])


_OF_CODES: dict[str, Callable[[_File, Layer, list[Shape], Shape], None]] = {
    "conv2d": _convolved,
    "depthwise_conv2d": _convolved,
    "fully_connected": _connected,
    "add": _joined("QLinearAdd"),
    "mul": _joined("QLinearMul"),
    "mean": _of_one("QLinearGlobalAveragePool"),
    "average_pool2d": _averaged,
    "max_pool2d": _largest,
    "logistic": _of_one("QLinearSigmoid"),
    "leaky_relu": _of_one("QLinearLeakyRelu", "alpha"),
    "concatenation": _concatenated,
    "pad": _padded,
    "slice": _sliced,
    "reshape": _reshaped,
    "resize_nearest": _resized,
    "quantize": _requantised,
}
"""Operators of codes."""


def _plain(operator: str) -> Callable[[_File, Layer, list[str], Shape], str]:
    def add(file: _File, layer: Layer, reals: list[str], source: Shape) -> str:
        return file.node(operator, reals, file.spare())

    return add


def _real_pool(operator: str) -> Callable[[_File, Layer, list[str], Shape], str]:
    def add(file: _File, layer: Layer, reals: list[str], source: Shape) -> str:
        options = file.window(layer, source, dilated=False)
        kernel = layer.parameters["kernel"]
        return file.node(operator, reals, file.spare(), kernel_shape=kernel, **options)

    return add


def _real_leaky(file: _File, layer: Layer, reals: list[str], source: Shape) -> str:
    return file.node("LeakyRelu", reals, file.spare(), alpha=layer.parameters["alpha"])


def _real_joined(file: _File, layer: Layer, reals: list[str], source: Shape) -> str:
    axis = layer.parameters["axis"]
    axis = {1: 2, 2: 3, 3: 1}[axis] if len(source) == 4 else axis
    return file.node("Concat", reals, file.spare(), axis=axis)


def _real_reshaped(file: _File, layer: Layer, reals: list[str], source: Shape) -> str:
    made = layer.parameters["shape"] or (1, int(np.prod(source)))
    shape = file.constant(channels_first(made), "int64")
    return file.node("Reshape", [*reals, shape], file.spare())


_REAL: dict[str, Callable[[_File, Layer, list[str], Shape], str]] = {
    "add": _plain("Add"),
    "sub": _plain("Sub"),
    "mul": _plain("Mul"),
    "maximum": _plain("Max"),
    "minimum": _plain("Min"),
    "mean": _plain("GlobalAveragePool"),
    "average_pool2d": _real_pool("AveragePool"),
    "max_pool2d": _real_pool("MaxPool"),
    "relu": _plain("Relu"),
    "logistic": _plain("Sigmoid"),
    "tanh": _plain("Tanh"),
    "hard_swish": _plain("HardSwish"),
    "elu": _plain("Elu"),
    "abs": _plain("Abs"),
    "leaky_relu": _real_leaky,
    "concatenation": _real_joined,
    "reshape": _real_reshaped,
    "quantize": _plain("Identity"),
}
"""Float operators, for what has no operator of codes and for the QDQ form."""

ONNX_KINDS = {
    **dict.fromkeys(sorted(_OF_CODES.keys() | _REAL.keys()), 1.0),
    "conv2d": 14.0,
    "depthwise_conv2d": 8.0,
    "transpose_conv2d": 2.0,
    "fully_connected": 4.0,
    "add": 4.0,
    "max_pool2d": 2.0,
    "average_pool2d": 2.0,
}
"""How often each kind is drawn for an .onnx file."""

LOGARITHMIC_KINDS = {
    kind: share
    for kind, share in ONNX_KINDS.items()
    if kind in _REAL or kind in ("conv2d", "depthwise_conv2d", "fully_connected")
}
"""How often each kind is drawn for a file of logarithmic codes."""
