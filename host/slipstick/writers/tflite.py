"""Writes int8 TensorFlow Lite networks: tensors by name, operators from ``tflite_operators``.

Example::

    writer = TfliteWriter()
    writer.tensor("image", (1, 8, 8, 1), scale=1 / 16, zero_point=-128)
    writer.tensor("weights", (4, 3, 3, 1), scale=scales, axis=0, data=weights)
    writer.tensor("bias", (4,), "int32", scale=scales / 16, axis=0, data=bias)
    writer.tensor("features", (1, 8, 8, 4), scale=0.1)
    writer.add(Conv2D(activation="RELU"), ["image", "weights", "bias"], ["features"])
    model = writer.to_bytes(["image"], ["features"])
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import flatbuffers
import numpy as np
import tflite
from numpy.typing import ArrayLike

from .tflite_operators import Field, Operator

SCHEMA_VERSION = 3
IDENTIFIER = b"TFL3"
BUFFER_ALIGNMENT = 16
"""Bytes: TensorFlow Lite reads constants in place and wants them on this border."""

DTYPES = {
    "bool": tflite.TensorType.BOOL,
    "float32": tflite.TensorType.FLOAT32,
    "int8": tflite.TensorType.INT8,
    "int16": tflite.TensorType.INT16,
    "int32": tflite.TensorType.INT32,
    "int64": tflite.TensorType.INT64,
    "resource": tflite.TensorType.RESOURCE,
    "uint8": tflite.TensorType.UINT8,
}


@dataclass(frozen=True)
class _Tensor:
    name: str
    shape: tuple[int, ...]
    dtype: str
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int
    data: bytes
    signature: tuple[int, ...] | None
    variable: bool


@dataclass(frozen=True)
class _Node:
    operator: Operator
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class TfliteWriter:
    """Collects tensors and operators, then packs them into one flatbuffer.

    The same calls give the same bytes.
    """

    def __init__(self, *, description: str = "written by Slipstick") -> None:
        self._description = description
        self._tensors: dict[str, _Tensor] = {}
        self._nodes: list[_Node] = []
        self._subgraphs: list[TfliteWriter] = []

    def subgraph(self) -> "TfliteWriter":
        """A further subgraph of the file, to be filled; they count from 1 in the order of calls."""
        self._subgraphs.append(TfliteWriter())
        return self._subgraphs[-1]

    def tensor(
        self,
        name: str,
        shape: Sequence[int],
        dtype: str = "int8",
        *,
        scale: ArrayLike | None = None,
        zero_point: ArrayLike = 0,
        axis: int | None = None,
        data: ArrayLike | None = None,
        signature: Sequence[int] | None = None,
        variable: bool = False,
    ) -> str:
        """Declares a tensor and returns its name.

        Parameters
        ----------
        name : str
        shape : sequence of int
        dtype : str
            One of ``DTYPES``.
        scale : float or array of float, optional
            One scale, or one a channel along ``axis``; None for a tensor that is not quantised.
        zero_point : int or array of int
            One for all, or as many as scales.
        axis : int, optional
            The channel axis; needed with more than one scale.
        data : array, optional
            Contents of a constant, of this shape, every value representable in ``dtype``.
        signature : sequence of int, optional
            The shape with -1 for dynamic dimensions, as converters write it for a free batch.
        variable : bool
            Whether it keeps its value between runs, as an LSTM's states do.

        Raises
        ------
        ValueError
            If the name is taken, or the parameters do not fit together.
        """
        if not name or name in self._tensors:
            raise ValueError(f"a tensor's name must be new and not empty, not {name!r}")
        if dtype not in DTYPES:
            raise ValueError(f"tensor {name}: dtype must be one of {tuple(DTYPES)}, not {dtype!r}")
        shape = tuple(map(int, shape))
        scales, zero_points = _quantization(name, shape, scale, zero_point, axis)
        self._tensors[name] = _Tensor(
            name,
            shape,
            dtype,
            scales,
            zero_points,
            axis or 0,
            b"" if data is None else _contents(name, shape, dtype, data),
            None if signature is None else tuple(map(int, signature)),
            variable,
        )
        return name

    def add(self, operator: Operator, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        """Appends an operator; operators run in the order in which they are added.

        ``""`` among the inputs stands for an absent optional one.

        Raises
        ------
        ValueError
            If a tensor is not declared.
        """
        self._check_declared(f"{operator.code} reads", [name for name in inputs if name])
        self._check_declared(f"{operator.code} writes", outputs)
        self._nodes.append(_Node(operator, tuple(inputs), tuple(outputs)))

    def to_bytes(self, inputs: Sequence[str], outputs: Sequence[str]) -> bytes:
        """The network as the bytes of a .tflite file.

        Parameters
        ----------
        inputs, outputs : sequence of str
            The network's own inputs and outputs.

        Raises
        ------
        ValueError
            If a tensor is not declared, or an option of an operator is none that TensorFlow Lite
            has.
        """
        self._check_declared("the network reads", inputs)
        self._check_declared("the network writes", outputs)
        builder = flatbuffers.Builder(1 << 16)
        graphs = [self, *self._subgraphs]
        nodes = [node for graph in graphs for node in graph._nodes]
        codes = list(dict.fromkeys((n.operator.code, n.operator.version) for n in nodes))
        # buffer 0 is empty by convention and stands for every tensor without contents
        buffers = [_buffer(builder, b"")]
        places = []
        for number, graph in enumerate(graphs):
            ends = (inputs, outputs) if not number else ((), ())
            places.append(graph._pack(builder, buffers, codes, *ends, number))
        model = _table(
            builder,
            "Model",
            {
                "Version": SCHEMA_VERSION,
                "OperatorCodes": _offsets(builder, [_code(builder, *code) for code in codes]),
                "Subgraphs": _offsets(builder, places),
                "Description": builder.CreateString(self._description),
                "Buffers": _offsets(builder, buffers),
            },
        )
        builder.Finish(model, file_identifier=IDENTIFIER)
        return bytes(builder.Output())

    def _pack(
        self,
        builder: flatbuffers.Builder,
        buffers: list[int],
        codes: Sequence[tuple[str, int]],
        inputs: Sequence[str],
        outputs: Sequence[str],
        number: int,
    ) -> int:
        """Writes this subgraph, and its constants behind the ``buffers`` that are there."""
        constants = [tensor for tensor in self._tensors.values() if tensor.data]
        buffer_of = {tensor.name: len(buffers) + n for n, tensor in enumerate(constants)}
        buffers += [_buffer(builder, t.data) for t in constants]
        index_of: dict[str, int] = {name: index for index, name in enumerate(self._tensors)}
        index_of[""] = -1

        def indices(names: Sequence[str]) -> int:
            return _vector(builder, "int32", [index_of[name] for name in names])

        tensors = [_tensor(builder, t, buffer_of.get(t.name, 0)) for t in self._tensors.values()]
        nodes = []
        for node in self._nodes:
            code = codes.index((node.operator.code, node.operator.version))
            nodes.append(_node(builder, node, code, indices(node.inputs), indices(node.outputs)))
        return _table(
            builder,
            "SubGraph",
            {
                "Tensors": _offsets(builder, tensors),
                "Inputs": indices(inputs),
                "Outputs": indices(outputs),
                "Operators": _offsets(builder, nodes),
                "Name": builder.CreateString(f"subgraph_{number}" if number else "main"),
            },
        )

    def _check_declared(self, what: str, names: Sequence[str]) -> None:
        for name in names:
            if name not in self._tensors:
                raise ValueError(f"{what} tensor {name!r}, which is not declared")


def _quantization(
    name: str, shape: tuple[int, ...], scale: ArrayLike | None, zero_point: ArrayLike, axis: Any
) -> tuple[tuple[float, ...], tuple[int, ...]]:
    if scale is None:
        return (), ()
    # the file holds float32: round here, so that what is checked is what is written
    scales = np.atleast_1d(np.asarray(scale, dtype=np.float32))
    if scales.ndim != 1 or not np.all(np.isfinite(scales)) or np.any(scales <= 0):
        raise ValueError(f"tensor {name}: scales must be positive and finite, not {scale}")
    if axis is None and len(scales) > 1:
        raise ValueError(f"tensor {name}: {len(scales)} scales need an axis")
    if axis is not None and not 0 <= axis < len(shape):
        raise ValueError(f"tensor {name}: axis must be within 0..{len(shape) - 1}, not {axis}")
    if axis is not None and len(scales) != shape[axis]:
        raise ValueError(
            f"tensor {name}: axis {axis} has {shape[axis]} channels, not {len(scales)} scales"
        )
    zero_points = np.broadcast_to(np.asarray(zero_point, dtype=np.int64), scales.shape)
    return tuple(scales.tolist()), tuple(zero_points.tolist())


def _contents(name: str, shape: tuple[int, ...], dtype: str, data: ArrayLike) -> bytes:
    values = np.asarray(data)
    if values.shape != shape:
        raise ValueError(f"tensor {name}: data must have the shape {shape}, not {values.shape}")
    if dtype != "float32" and not np.array_equal(values.astype(dtype), values):
        raise ValueError(f"tensor {name}: data must hold values of {dtype}")
    return np.ascontiguousarray(values, np.dtype(dtype).newbyteorder("<")).tobytes()


def _table(builder: flatbuffers.Builder, kind: str, fields: dict[str, Any]) -> int:
    """One flatbuffer table; values are scalars or offsets of what was written before."""
    getattr(tflite, f"{kind}Start")(builder)
    for field, value in fields.items():
        getattr(tflite, f"{kind}Add{field}")(builder, value)
    return getattr(tflite, f"{kind}End")(builder)


def _vector(builder: flatbuffers.Builder, dtype: str, values: Sequence[float]) -> int:
    return builder.CreateNumpyVector(np.array(values, dtype=dtype))


def _offsets(builder: flatbuffers.Builder, offsets: Sequence[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return builder.EndVector()


def _buffer(builder: flatbuffers.Builder, data: bytes) -> int:
    if not data:
        return _table(builder, "Buffer", {})
    # files grow from the end: this aligns the place where the bytes will start
    builder.Prep(BUFFER_ALIGNMENT, len(data))
    return _table(builder, "Buffer", {"Data": builder.CreateByteVector(data)})


def _code(builder: flatbuffers.Builder, code: str, version: int) -> int:
    number = getattr(tflite.BuiltinOperator, code)
    # readers before 2020 know only the 8-bit field, whose 127 says: see the other one
    deprecated = min(number, tflite.BuiltinOperator.PLACEHOLDER_FOR_GREATER_OP_CODES)
    fields = {"DeprecatedBuiltinCode": deprecated, "BuiltinCode": number, "Version": version}
    return _table(builder, "OperatorCode", fields)


def _tensor(builder: flatbuffers.Builder, tensor: _Tensor, buffer: int) -> int:
    fields: dict[str, Any] = {
        "Shape": _vector(builder, "int32", tensor.shape),
        "Type": DTYPES[tensor.dtype],
        "Buffer": buffer,
        "Name": builder.CreateString(tensor.name),
    }
    if tensor.scales:
        quantization = {
            "Scale": _vector(builder, "float32", tensor.scales),
            "ZeroPoint": _vector(builder, "int64", tensor.zero_points),
            "QuantizedDimension": tensor.axis,
        }
        fields["Quantization"] = _table(builder, "QuantizationParameters", quantization)
    if tensor.signature is not None:
        fields["ShapeSignature"] = _vector(builder, "int32", tensor.signature)
    if tensor.variable:
        fields["IsVariable"] = True
    return _table(builder, "Tensor", fields)


def _node(builder: flatbuffers.Builder, node: _Node, code: int, inputs: int, outputs: int) -> int:
    fields = {"OpcodeIndex": code, "Inputs": inputs, "Outputs": outputs}
    table = node.operator.table
    if table is not None:
        options = {
            field: _option(builder, value) for field, value in node.operator.fields().items()
        }
        fields["BuiltinOptionsType"] = getattr(tflite.BuiltinOptions, table)
        fields["BuiltinOptions"] = _table(builder, table, options)
    return _table(builder, "Operator", fields)


def _option(builder: flatbuffers.Builder, value: Field) -> int | float:
    if isinstance(value, str):
        return builder.CreateString(value)
    return _vector(builder, "int32", value) if isinstance(value, Sequence) else value
