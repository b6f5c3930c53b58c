"""Reads a TFLite flatbuffer into plain tables, strictly: bad bytes raise ModelError, nothing else.

Nothing is interpreted here: tensors and operators come as the file has them.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import flatbuffers
import numpy as np
import tflite
from flatbuffers import number_types

from ...errors import ModelError
from ..files import MAXIMUM_OPERANDS, MAXIMUM_RANK, MAXIMUM_TABLES
from .options import NEEDED, Fields, fields_of

IDENTIFIER = b"TFL3"
SCHEMA_VERSION = 3

# what the flatbuffers package raises where an offset points outside the file or at nonsense
_READER_ERRORS = (
    struct.error,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)

_DTYPES: Mapping[int, str] = {
    number: name.lower() for name, number in vars(tflite.TensorType).items() if name.isupper()
}
_OPERATORS: Mapping[int, str] = {
    number: name for name, number in vars(tflite.BuiltinOperator).items() if name.isupper()
}


@dataclass(frozen=True)
class RawTensor:
    """A tensor as the file has it; ``data`` are the buffer's bytes, None for an activation."""

    index: int
    name: str
    shape: tuple[int, ...]
    signature: tuple[int, ...]
    dtype: str
    scales: np.ndarray
    zero_points: np.ndarray
    axis: int
    data: np.ndarray | None
    oddity: str
    """Property that an ordinary tensor does not have ("sparse", ...), or nothing."""
    outside: bool = False
    """True if its bytes are behind the file's tables."""
    variable: bool = False
    """True if it keeps its value between runs."""


@dataclass(frozen=True)
class RawOperator:
    """An operator as the file has it: tensor indices, -1 for an absent input, and its options."""

    index: int
    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Mapping[str, Any]


@dataclass(frozen=True)
class RawSubgraph:
    """A subgraph of a file."""

    tensors: tuple[RawTensor, ...]
    operators: tuple[RawOperator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class RawModel(RawSubgraph):
    """The first subgraph of a file, which is the network, and the others."""

    others: tuple[RawSubgraph, ...] = ()


def read_model(data: bytes, name: str) -> RawModel:
    """The tables of a TFLite file.

    Raises
    ------
    ModelError
        If the bytes are not a TFLite file, or one that contradicts itself.
    """
    if len(data) < 8 or data[4:8] != IDENTIFIER:
        raise ModelError(
            f"{name} must be a TFLite file, with {IDENTIFIER.decode()!r} at byte 4,"
            f" not {data[4:8]!r}"
        )
    try:
        return _read(bytes(data), name)
    except ModelError:
        raise
    except _READER_ERRORS as error:
        raise ModelError(f"{name} is damaged or cut short: {error}") from error


def unique_names(model: RawModel) -> tuple[str, ...]:
    """Each tensor's name in the graph: its own, with its index where another had it before."""
    used: set[str] = set()
    names = []
    for tensor in model.tensors:
        name = tensor.name or f"tensor_{tensor.index}"
        while name in used:
            name = f"{name}_{tensor.index}"
        used.add(name)
        names.append(name)
    return tuple(names)


def _read(data: bytes, name: str) -> RawModel:
    model = tflite.Model.GetRootAs(data, 0)
    if model.Version() != SCHEMA_VERSION:
        raise ModelError(f"{name}: schema version must be {SCHEMA_VERSION}, not {model.Version()}")
    count = _count(model.SubgraphsLength(), "subgraphs", name)
    _count(model.BuffersLength(), "buffers", name)
    made: list[RawSubgraph] = []
    for number in range(count):
        subgraph = model.Subgraphs(number)
        if subgraph is None:
            break
        label = f"{name}: subgraph {number}" if number else name
        made.append(_subgraph(model, subgraph, label, data))
        tables = sum(len(part.tensors) + len(part.operators) for part in made)
        _count(tables, "tensors and operators in all subgraphs", name, 2 * MAXIMUM_TABLES)
    if not made:
        raise ModelError(f"{name} must hold a subgraph, and holds none")
    # strings may share bytes in a forged file: together they must not exceed what files hold
    if sum(len(tensor.name) for part in made for tensor in part.tensors) > 4 * len(data):
        raise ModelError(f"{name}: the tensors' names are longer than the file")
    return RawModel(**vars(made[0]), others=tuple(made[1:]))


def _subgraph(model: Any, subgraph: Any, name: str, data: bytes) -> RawSubgraph:
    tensors = tuple(
        _tensor(model, subgraph.Tensors(index), index, name, data)
        for index in range(_count(subgraph.TensorsLength(), "tensors", name))
    )
    operators = tuple(
        _operator(model, subgraph.Operators(index), index, len(tensors), name)
        for index in range(_count(subgraph.OperatorsLength(), "operators", name))
    )
    inputs = _indices(subgraph.InputsAsNumpy(), len(tensors), f"{name}: an input", optional=False)
    outputs = _indices(
        subgraph.OutputsAsNumpy(), len(tensors), f"{name}: an output", optional=False
    )
    return RawSubgraph(tensors, operators, inputs, outputs)


def _count(length: int, what: str, name: str, limit: int = MAXIMUM_TABLES) -> int:
    if length > limit:
        raise ModelError(f"{name} must hold at most {limit} {what}, not {length}")
    return length


def _values(vector: Any, what: str, limit: int) -> tuple[int, ...]:
    """A vector of integers; the package gives 0 for an absent one."""
    if isinstance(vector, int):
        return ()
    if len(vector) > limit:
        raise ModelError(f"{what} must be at most {limit} long, not {len(vector)}")
    return tuple(vector.tolist())


def _indices(vector: Any, tensors: int, what: str, *, optional: bool) -> tuple[int, ...]:
    indices = _values(vector, f"{what}s", MAXIMUM_OPERANDS)
    for index in indices:
        if not (0 <= index < tensors or optional and index == -1):
            raise ModelError(f"{what} must be one of {tensors} tensors, not tensor {index}")
    return indices


def _tensor(model: Any, table: Any, index: int, model_name: str, data: bytes) -> RawTensor:
    name = (table.Name() or b"").decode("utf-8", "replace")
    what = f"{model_name}: tensor {index}"
    # refused where it is used: files may have tensors that nobody reads
    dtype = _DTYPES.get(table.Type(), f"type {table.Type()}")
    quantization = table.Quantization()
    scales, zero_points, axis = np.zeros(0, np.float32), np.zeros(0, np.int64), 0
    oddity = "sparse" if table.Sparsity() is not None else ""
    if quantization is not None:
        axis = quantization.QuantizedDimension()
        oddity = "quantised in a custom way" if quantization.DetailsType() else oddity
        if quantization.ScaleLength():
            scales = quantization.ScaleAsNumpy()
        if quantization.ZeroPointLength():
            zero_points = quantization.ZeroPointAsNumpy()
    if not 0 <= table.Buffer() < model.BuffersLength():
        raise ModelError(
            f"{what}: buffer must be one of {model.BuffersLength()}, not buffer {table.Buffer()}"
        )
    buffer = model.Buffers(table.Buffer())
    contents = _contents(buffer, data, what)
    return RawTensor(
        index,
        name,
        _values(table.ShapeAsNumpy(), f"{what}: shape", MAXIMUM_RANK),
        _values(table.ShapeSignatureAsNumpy(), f"{what}: shape signature", MAXIMUM_RANK),
        dtype,
        scales,
        zero_points,
        axis,
        contents,
        oddity,
        contents is not None and not buffer.DataLength(),
        bool(table.IsVariable()),
    )


def _contents(buffer: Any, data: bytes, what: str) -> np.ndarray | None:
    """A buffer's bytes, which files over 2 GB have behind their tables."""
    if buffer.DataLength():
        return buffer.DataAsNumpy()
    # 1 stands for a place that is not yet known
    if buffer.Offset() <= 1 or not buffer.Size():
        return None
    end = buffer.Offset() + buffer.Size()
    if end > len(data):
        raise ModelError(
            f"{what}: its buffer, bytes {buffer.Offset()} to {end}, must lie within the file's"
            f" {len(data)}"
        )
    return np.frombuffer(data, np.uint8, buffer.Size(), buffer.Offset())


def _operator(model: Any, table: Any, index: int, tensors: int, model_name: str) -> RawOperator:
    what = f"{model_name}: operator {index}"
    codes = model.OperatorCodesLength()
    if not 0 <= table.OpcodeIndex() < codes:
        raise ModelError(f"{what} must have one of {codes} codes, not code {table.OpcodeIndex()}")
    code = model.OperatorCodes(table.OpcodeIndex())
    # before 2020 there was only the 8-bit field, now it only repeats small numbers
    number = max(_builtin_code(code), code.DeprecatedBuiltinCode())
    name = _OPERATORS.get(number, f"operator code {number}")
    if number == tflite.BuiltinOperator.CUSTOM:
        name = f"CUSTOM {(code.CustomCode() or b'').decode('utf-8', 'replace')!r}"
    fields = fields_of(name)
    return RawOperator(
        index,
        name,
        _indices(table.InputsAsNumpy(), tensors, f"{what}: an input", optional=True),
        _indices(table.OutputsAsNumpy(), tensors, f"{what}: an output", optional=False),
        _options(table, name, fields, what) if fields is not None else {},
    )


def _builtin_code(code: Any) -> int:
    """The 32-bit field: the package gives the 8-bit one for small numbers, and files may leave
    that out."""
    place = code._tab.Offset(10)
    return code._tab.Get(number_types.Int32Flags, code._tab.Pos + place) if place else 0


def _options(table: Any, operator: str, read: Fields, what: str) -> dict[str, Any]:
    kind, fields = read
    options = getattr(tflite, kind)()
    union = table.BuiltinOptions()
    if union is None and not set(fields) & set(NEEDED):
        # what is left out is the schema's default
        builder = flatbuffers.Builder(16)
        builder.StartObject(0)
        builder.Finish(builder.EndObject())
        options = options.GetRootAs(bytes(builder.Output()), 0)
    elif union is None:
        needed = ", ".join(field for field in fields if field in NEEDED)
        raise ModelError(f"{what} ({operator}) must have {kind}, which hold {needed}, and has none")
    elif table.BuiltinOptionsType() != getattr(tflite.BuiltinOptions, kind):
        raise ModelError(
            f"{what} ({operator}) must have {kind} (type {getattr(tflite.BuiltinOptions, kind)}),"
            f" not options of type {table.BuiltinOptionsType()}"
        )
    else:
        options.Init(union.Bytes, union.Pos)
    values = {field: getattr(options, field)() for field in fields}
    return {
        field: value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        for field, value in values.items()
    }
