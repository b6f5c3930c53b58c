"""Adds a layer to an .onnx file: as an operator of codes, or as a float operator."""

from collections.abc import Callable, Mapping

import numpy as np

from ...operators import Pooling, Unary, find
from .layers import Layer, Shape
from .onnx_graph import MICROSOFT, OnnxGraph, channels_first


def _convolved(file: OnnxGraph, layer: Layer, sources: list[Shape], made: Shape) -> None:
    parts, bias = file.weights(layer, sources, made)
    inputs = [*file.names(layer), *file.source_codes(layer), *parts, *file.codes(layer.codes)]
    groups = sources[0][3] if layer.kind == "depthwise_conv2d" else layer.parameters["groups"]
    options = file.window(layer, sources[0])
    file.node("QLinearConv", [*inputs, *([bias] if bias else [])], group=groups, **options)


def _connected(file: OnnxGraph, layer: Layer, sources: list[Shape], made: Shape) -> None:
    parts, bias = file.weights(layer, sources, made)
    x = file.flat(layer, sources[0])
    inputs = [x, *file.source_codes(layer), *parts, bias, *file.codes(layer.codes)]
    file.node("QGemm", inputs, domain=MICROSOFT, transB=1)


def _joined(operator: str) -> Callable[[OnnxGraph, Layer, list[Shape], Shape], None]:
    def add(file: OnnxGraph, layer: Layer, sources: list[Shape], made: Shape) -> None:
        inputs = []
        for number, name in enumerate(file.names(layer)):
            inputs += [name, *file.source_codes(layer, number)]
        file.node(operator, [*inputs, *file.codes(layer.codes)], domain=MICROSOFT)

    return add


def _of_one(operator: str, *names: str) -> Callable[[OnnxGraph, Layer, list[Shape], Shape], None]:
    def add(file: OnnxGraph, layer: Layer, sources: list[Shape], made: Shape) -> None:
        inputs = [*file.names(layer), *file.source_codes(layer), *file.codes(layer.codes)]
        options = {name: layer.parameters[name] for name in names}
        file.node(operator, inputs, domain=MICROSOFT, **options)

    return add


def _averaged(file: OnnxGraph, layer: Layer, sources: list[Shape], made: Shape) -> None:
    inputs = [*file.names(layer), *file.source_codes(layer), *file.codes(layer.codes)]
    options = file.window(layer, sources[0], dilated=False)
    kernel = layer.parameters["kernel"]
    file.node("QLinearAveragePool", inputs, domain=MICROSOFT, kernel_shape=kernel, **options)


def _picked(file: OnnxGraph, layer: Layer, sources: list[Shape], made: Shape) -> None:
    options = file.window(layer, sources[0], dilated=False)
    kernel = layer.parameters["kernel"]
    file.node(onnx_name(layer.kind), file.names(layer), kernel_shape=kernel, **options)


def _concatenated(file: OnnxGraph, layer: Layer, sources: list[Shape], made: Shape) -> None:
    inputs = file.codes(layer.codes)
    for number, name in enumerate(file.names(layer)):
        inputs += [name, *file.source_codes(layer, number)]
    axis = layer.parameters["axis"]
    axis = {1: 2, 2: 3, 3: 1}[axis] if len(sources[0]) == 4 else axis
    file.node("QLinearConcat", inputs, domain=MICROSOFT, axis=axis)


def _padded(file: OnnxGraph, layer: Layer, sources: list[Shape], made: Shape) -> None:
    top, bottom, left, right = layer.parameters["amounts"]
    pads = file.constant([0, 0, top, left, 0, 0, bottom, right], "int64")
    value = file.source_codes(layer)[1]
    file.node("Pad", [*file.names(layer), pads, value])


def _sliced(file: OnnxGraph, layer: Layer, sources: list[Shape], made: Shape) -> None:
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


def _reshaped(file: OnnxGraph, layer: Layer, sources: list[Shape], made: Shape) -> None:
    shape = file.constant(channels_first(made), "int64")
    file.node("Reshape", [*file.names(layer), shape])


def _resized(file: OnnxGraph, layer: Layer, sources: list[Shape], made: Shape) -> None:
    scales = file.constant([1, 1, *layer.parameters["factors"]], "float32")
    file.node(
        "Resize",
        [*file.names(layer), "", scales],
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )


def _requantised(file: OnnxGraph, layer: Layer, sources: list[Shape], made: Shape) -> None:
    real = file.node(
        "DequantizeLinear", [*file.names(layer), *file.source_codes(layer)], file.spare()
    )
    file.node("QuantizeLinear", [real, *file.codes(layer.codes)])


AddOfCodes = Callable[[OnnxGraph, Layer, list[Shape], Shape], None]

_OF_CODES: Mapping[str, AddOfCodes] = {
    "conv2d": _convolved,
    "depthwise_conv2d": _convolved,
    "fully_connected": _connected,
    "add": _joined("QLinearAdd"),
    "mul": _joined("QLinearMul"),
    "mean": _of_one("QLinearGlobalAveragePool"),
    "average_pool2d": _averaged,
    "logistic": _of_one("QLinearSigmoid"),
    "leaky_relu": _of_one("QLinearLeakyRelu", "alpha"),
    "concatenation": _concatenated,
    "pad": _padded,
    "slice": _sliced,
    "reshape": _reshaped,
    "resize_nearest": _resized,
    "quantize": _requantised,
}
"""Operators of codes, beside pooling that picks one."""


def of_codes(kind: str) -> AddOfCodes | None:
    """Returns what adds a layer as an operator of codes, None if ONNX has none."""
    record = find(kind)
    if isinstance(record, Pooling) and record.moves_codes:
        return _picked
    return _OF_CODES.get(kind)


def _plain(operator: str) -> Callable[[OnnxGraph, Layer, list[str], Shape], str]:
    def add(file: OnnxGraph, layer: Layer, reals: list[str], source: Shape) -> str:
        return file.node(operator, reals, file.spare())

    return add


def _real_pool(file: OnnxGraph, layer: Layer, reals: list[str], source: Shape) -> str:
    options = file.window(layer, source, dilated=False)
    kernel = layer.parameters["kernel"]
    return file.node(onnx_name(layer.kind), reals, file.spare(), kernel_shape=kernel, **options)


def _real_function(file: OnnxGraph, layer: Layer, reals: list[str], source: Shape) -> str:
    record, own = find(layer.kind), layer.parameters
    assert isinstance(record, Unary)
    options = {name: own[name] for name in record.defaults if name in own}
    return file.node(record.onnx, reals, file.spare(), **options)


def onnx_name(kind: str) -> str:
    """Returns ONNX's name of a function of one number or of a pooling operator, else ""."""
    record = find(kind)
    return record.onnx if isinstance(record, Unary | Pooling) else ""


def _real_joined(file: OnnxGraph, layer: Layer, reals: list[str], source: Shape) -> str:
    axis = layer.parameters["axis"]
    axis = {1: 2, 2: 3, 3: 1}[axis] if len(source) == 4 else axis
    return file.node("Concat", reals, file.spare(), axis=axis)


def _real_reshaped(file: OnnxGraph, layer: Layer, reals: list[str], source: Shape) -> str:
    made = layer.parameters["shape"] or (1, int(np.prod(source)))
    shape = file.constant(channels_first(made), "int64")
    return file.node("Reshape", [*reals, shape], file.spare())


AddReal = Callable[[OnnxGraph, Layer, list[str], Shape], str]

_REAL: Mapping[str, AddReal] = {
    "add": _plain("Add"),
    "sub": _plain("Sub"),
    "mul": _plain("Mul"),
    "maximum": _plain("Max"),
    "minimum": _plain("Min"),
    "mean": _plain("GlobalAveragePool"),
    "concatenation": _real_joined,
    "reshape": _real_reshaped,
    "quantize": _plain("Identity"),
}
"""Float operators, beside functions of one number and pooling."""


def real(kind: str) -> AddReal | None:
    """Returns what adds a layer as a float operator, for what has no operator of codes and for the
    QDQ form; None if ONNX has none."""
    record = find(kind)
    if isinstance(record, Unary | Pooling):
        adds = _real_function if isinstance(record, Unary) else _real_pool
        return adds if record.onnx else None
    return _REAL.get(kind)
