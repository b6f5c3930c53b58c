"""Small TFLite networks of one operator each, of every operator that the front-end reads."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...frontends.tflite.reader import RawModel, RawTensor
from ...operators import TFLITE, Pooling, Unary
from .tflite_tables import network, tensor

_SCALE, _ZERO = 0.1, 3
_PLAIN = {"FusedActivationFunction": 0}
_WINDOW = {"Padding": 0, "StrideH": 1, "StrideW": 1, **_PLAIN}


def _codes(*shape: int) -> RawTensor:
    return tensor(shape, "int8", _SCALE, _ZERO)


def _whole(values: Any) -> RawTensor:
    array = np.array(values, np.int32)
    return tensor(array.shape, "int32", data=array)


def _weights(shape: tuple[int, ...], scales: Any = 0.01) -> RawTensor:
    values = np.random.default_rng(sum(shape)).integers(-127, 128, shape)
    return tensor(shape, "int8", scales, data=values)


def _bias(count: int, scale: Any = 0.001) -> RawTensor:
    return tensor((count,), "int32", scale, data=np.arange(count) * 100)


def _layers() -> Iterator[RawModel]:
    dilated = {"DilationHFactor": 1, "DilationWFactor": 1}
    x, y = _codes(1, 5, 4, 2), _codes(1, 5, 4, 3)
    yield network("CONV_2D", {**_WINDOW, **dilated}, x, _weights((3, 3, 2, 2)), _bias(3), y)
    channels = _weights((3, 1, 1, 2), [0.01, 0.02, 0.03])
    biases = _bias(3, [0.001, 0.002, 0.003])
    yield network("CONV_2D", {**_WINDOW, **dilated}, x, channels, biases, y)
    depthwise = {**_WINDOW, **dilated, "DepthMultiplier": 2}
    filters, four = _weights((1, 3, 3, 4)), _codes(1, 5, 4, 4)
    yield network("DEPTHWISE_CONV_2D", depthwise, x, filters, _bias(4), four)
    turned = {**_WINDOW, "StrideH": 2, "StrideW": 2}
    sizes, kernel, wide = _whole([1, 8, 8, 2]), _weights((2, 3, 3, 2)), _codes(1, 8, 8, 2)
    yield network("TRANSPOSE_CONV", turned, sizes, kernel, _codes(1, 4, 4, 2), wide)
    connected = {**_PLAIN, "WeightsFormat": 0, "KeepNumDims": False}
    weights = _weights((3, 6))
    yield network("FULLY_CONNECTED", connected, _codes(1, 6), weights, _bias(3), _codes(1, 3))
    matrices = {"AdjX": False, "AdjY": False}
    yield network("BATCH_MATMUL", matrices, _codes(1, 2, 3), _codes(1, 3, 4), _codes(1, 2, 4))


def _arithmetic() -> Iterator[RawModel]:
    x, small = _codes(1, 3, 3, 2), _codes(1, 1, 1, 2)
    for name in ("ADD", "SUB", "MUL"):
        yield network(name, _PLAIN, x, x, x)
        yield network(name, _PLAIN, x, small, x)
    yield network("ADD", _PLAIN, x, _weights((1, 1, 1, 2), 0.1), x)
    for name in ("SQUARED_DIFFERENCE", "MAXIMUM", "MINIMUM"):
        yield network(name, {}, x, x, x)
    yield network("PRELU", {}, x, _weights((1, 1, 2), 0.01), x)
    special = {"ABS": (_codes(1, 4), tensor((1, 4), "int8", _SCALE, 0))}
    special["RSQRT"] = (tensor((1, 4), "int8", _SCALE, -128), _codes(1, 4))
    for code, record in TFLITE.items():
        if isinstance(record, Unary) and record.tflite is not None and record.tabulated:
            y = tensor(x.shape, "int8", *record.tflite.result) if record.tflite.result else x
            options = {field: 0.1 for field in record.tflite.fields.values()}
            yield network(code, options, *special.get(code, (x, y)))
    five = tensor((1, 5), "int8", 1 / 16, 127)
    yield network("LOG_SOFTMAX", {}, _codes(1, 5), five)
    yield network("SOFTMAX", {"Beta": 1.0}, _codes(1, 5), tensor((1, 5), "int8", 1 / 256, -128))
    real = tensor((1, 4, 2), "float32")
    yield network("QUANTIZE", {}, real, _codes(1, 4, 2))
    yield network("QUANTIZE", {}, tensor((1, 4, 2), "uint8", 0.2, 128), _codes(1, 4, 2))
    yield network("DEQUANTIZE", {}, _codes(1, 4, 2), real)


def _real() -> Iterator[RawModel]:
    """Operators that the front-end reads of float32 numbers only."""
    x = tensor((1, 4, 2), "float32")
    for code, record in TFLITE.items():
        if isinstance(record, Unary) and not record.tabulated:
            yield network(code, {}, x, x)
    yield network("DIV", _PLAIN, x, x, x)


def _pools_and_reductions() -> Iterator[RawModel]:
    x = _codes(1, 5, 4, 2)
    pool = {**_WINDOW, "FilterHeight": 2, "FilterWidth": 3}
    for code, record in TFLITE.items():
        if isinstance(record, Pooling):
            yield network(code, pool, x, x)
    for name in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"):
        yield network(name, {"KeepDims": False}, x, _whole([1, 2]), _codes(1, 2))
    for name in ("ARG_MAX", "ARG_MIN"):
        yield network(name, {}, x, _whole(3), tensor((1, 5, 4), "int32"))


def _moves() -> Iterator[RawModel]:
    x, half = _codes(1, 4, 4, 2), _codes(1, 2, 4, 2)
    yield network("RESHAPE", {}, x, _whole([1, 32]), _codes(1, 32))
    yield network("TILE", {}, half, _whole([1, 2, 1, 1]), x)
    yield network("SQUEEZE", {}, _codes(1, 1, 4), _codes(1, 4))
    yield network("EXPAND_DIMS", {}, _codes(1, 4), _whole(1), _codes(1, 1, 4))
    yield network("CONCATENATION", {"Axis": 1, **_PLAIN}, half, half, x)
    yield network(
        "PACK", {"Axis": 1, "ValuesCount": 2}, _codes(1, 4), _codes(1, 4), _codes(1, 2, 4)
    )
    yield network("TRANSPOSE", {}, x, _whole([0, 2, 3, 1]), _codes(1, 4, 2, 4))
    pads = _whole([[0, 0], [1, 2], [0, 1], [0, 0]])
    yield network("PAD", {}, x, pads, _codes(1, 7, 5, 2))
    yield network(
        "PADV2", {}, x, pads, tensor((1,), "int8", _SCALE, _ZERO, [7]), _codes(1, 7, 5, 2)
    )
    yield network("MIRROR_PAD", {"Mode": 0}, x, pads, _codes(1, 7, 5, 2))
    yield network("SPACE_TO_DEPTH", {"BlockSize": 2}, x, _codes(1, 2, 2, 8))
    yield network("DEPTH_TO_SPACE", {"BlockSize": 2}, _codes(1, 2, 2, 8), x)
    corners = {"AlignCorners": False, "HalfPixelCenters": True}
    for name in ("RESIZE_NEAREST_NEIGHBOR", "RESIZE_BILINEAR"):
        yield network(name, corners, x, _whole([8, 6]), _codes(1, 8, 6, 2))
    places = _whole([0, 1, 0, 0]), _whole([1, 2, 4, 2])
    yield network("SLICE", {}, x, *places, half)
    masks = dict.fromkeys(("BeginMask", "EndMask", "EllipsisMask", "NewAxisMask"), 0)
    masks |= {"ShrinkAxisMask": 0, "Offset": False}
    ends = _whole([1, 3, 4, 2])
    yield network("STRIDED_SLICE", masks, x, places[0], ends, _whole([1, 1, 1, 1]), half)
    yield network("UNPACK", {"Axis": 1, "Num": 1}, _codes(1, 1, 4), _codes(1, 4))
    yield network("SPLIT", {}, _whole(1), half, half)
    yield network("SPLIT_V", {}, half, _whole([2]), _whole(1), half)


def tflite_networks() -> list[RawModel]:
    """One network at least of each operator."""
    return [*_layers(), *_arithmetic(), *_real(), *_pools_and_reductions(), *_moves()]
