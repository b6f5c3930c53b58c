"""Writes the tables of a TFLite file, however wrong they are, as a flatbuffer."""

from collections.abc import Mapping, Sequence
from typing import Any

import flatbuffers
import numpy as np
import tflite

from ...frontends.tflite.options import fields_of
from ...frontends.tflite.reader import IDENTIFIER, SCHEMA_VERSION, RawModel, RawOperator, RawTensor

TYPES: Mapping[str, int] = {
    name.lower(): number for name, number in vars(tflite.TensorType).items() if name.isupper()
}
CODES: Mapping[str, int] = {
    name: number for name, number in vars(tflite.BuiltinOperator).items() if name.isupper()
}
_NO_SCALES = np.zeros(0, np.float32), np.zeros(0, np.int64)


def tensor(
    shape: Sequence[int],
    dtype: str = "int8",
    scale: float | Sequence[float] | None = None,
    zero_point: int = 0,
    data: Any = None,
) -> RawTensor:
    """A tensor of a file; its index and its name are given by ``network``."""
    scales, points = _NO_SCALES
    if scale is not None:
        scales = np.atleast_1d(np.array(scale, np.float32))
        points = np.full(len(scales), zero_point, np.int64)
    contents = None if data is None else np.frombuffer(np.array(data, dtype).tobytes(), np.uint8)
    return RawTensor(0, "", tuple(shape), (), dtype, scales, points, 0, contents, "")


def network(operator: str, options: Mapping[str, Any], *tensors: RawTensor) -> RawModel:
    """A network of one operator, which writes the last tensor and reads the others."""
    named = tuple(
        RawTensor(**{**vars(item), "index": index, "name": f"t{index}"})
        for index, item in enumerate(tensors)
    )
    last = len(named) - 1
    inputs = tuple(item.index for item in named[:-1] if item.data is None)
    one = RawOperator(0, operator, tuple(range(last)), (last,), dict(options))
    return RawModel(named, (one,), inputs, (last,))


def write_model(model: RawModel) -> bytes:
    """The file; what the schema cannot hold is cut to what it can."""
    builder = flatbuffers.Builder(1024)
    names = list(dict.fromkeys(operator.name for operator in model.operators))
    buffers = [_buffer(builder, b"")]
    tensors = []
    for item in model.tensors:
        if item.data is not None:
            buffers.append(_buffer(builder, bytes(item.data)))
        tensors.append(_tensor(builder, item, 0 if item.data is None else len(buffers) - 1))
    operators = [_operator(builder, item, names.index(item.name)) for item in model.operators]
    codes = [_code(builder, name) for name in names]
    parts = {
        "Tensors": _tables(builder, tensors),
        "Operators": _tables(builder, operators),
        "Inputs": _vector(builder, model.inputs, np.int32),
        "Outputs": _vector(builder, model.outputs, np.int32),
    }
    subgraphs = _tables(builder, [_table(builder, "SubGraph", parts)])
    whole = {
        "Version": SCHEMA_VERSION,
        "OperatorCodes": _tables(builder, codes),
        "Subgraphs": subgraphs,
        "Buffers": _tables(builder, buffers),
    }
    builder.Finish(_table(builder, "Model", whole), IDENTIFIER)
    return bytes(builder.Output())


def _table(builder: flatbuffers.Builder, kind: str, fields: Mapping[str, Any]) -> int:
    getattr(tflite, f"{kind}Start")(builder)
    for name, value in fields.items():
        getattr(tflite, f"{kind}Add{name}")(builder, value)
    return getattr(tflite, f"{kind}End")(builder)


def _vector(builder: flatbuffers.Builder, values: Any, kind: Any) -> int:
    if kind is np.float32:
        array = np.asarray(values, np.float64)
    else:
        limits = np.iinfo(kind)
        array = np.array([min(max(int(v), int(limits.min)), int(limits.max)) for v in values], kind)
    with np.errstate(all="ignore"):
        return builder.CreateNumpyVector(array.astype(kind))


def _tables(builder: flatbuffers.Builder, offsets: Sequence[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return builder.EndVector()


def _buffer(builder: flatbuffers.Builder, data: bytes) -> int:
    if not data:
        return _table(builder, "Buffer", {})
    # TensorFlow Lite reads constants in place, on a border of 16 bytes
    builder.StartVector(1, len(data), 16)
    builder.head -= len(data)
    builder.Bytes[builder.head : builder.head + len(data)] = data
    return _table(builder, "Buffer", {"Data": builder.EndVector()})


def _tensor(builder: flatbuffers.Builder, item: RawTensor, buffer: int) -> int:
    fields: dict[str, Any] = {"Type": TYPES[item.dtype], "Buffer": buffer}
    fields["Shape"] = _vector(builder, item.shape, np.int32)
    if item.signature:
        fields["ShapeSignature"] = _vector(builder, item.signature, np.int32)
    fields["Name"] = builder.CreateString(item.name)
    if len(item.scales) or len(item.zero_points):
        parts = {
            "Scale": _vector(builder, item.scales, np.float32),
            "ZeroPoint": _vector(builder, item.zero_points, np.int64),
            "QuantizedDimension": max(min(item.axis, (1 << 31) - 1), -(1 << 31)),
        }
        fields["Quantization"] = _table(builder, "QuantizationParameters", parts)
    return _table(builder, "Tensor", fields)


def _operator(builder: flatbuffers.Builder, item: RawOperator, code: int) -> int:
    fields: dict[str, Any] = {
        "OpcodeIndex": code,
        "Inputs": _vector(builder, item.inputs, np.int32),
        "Outputs": _vector(builder, item.outputs, np.int32),
    }
    read = fields_of(item.name)
    if read is not None:
        kind, known = read
        given = {name: item.options[name] for name in known if name in item.options}
        fields["BuiltinOptions"] = _table(builder, kind, given)
        fields["BuiltinOptionsType"] = getattr(tflite.BuiltinOptions, kind)
    return _table(builder, "Operator", fields)


def _code(builder: flatbuffers.Builder, name: str) -> int:
    number = CODES.get(name, CODES["CUSTOM"])
    return _table(
        builder,
        "OperatorCode",
        {"BuiltinCode": number, "DeprecatedBuiltinCode": min(number, 127), "Version": 1},
    )
