"""Writes TFLite files in unusual ways: with what runtimes read past, or find elsewhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import flatbuffers
import numpy as np
from slipstick.writers import tflite as tflite_writer
from slipstick.writers.tflite import BUFFER_ALIGNMENT, TfliteWriter

_UNKNOWN_YET = 1 << 40
"""An offset beyond the file, while its size is not known; no zero, which would not be written."""

_VECTORS = {
    "Scale": "float32",
    "ZeroPoint": "int64",
    "Min": "float32",
    "Max": "float32",
    "Shape": "int32",
    "ShapeSignature": "int32",
}
_OF_QUANTIZATION = ("Scale", "ZeroPoint", "Min", "Max", "QuantizedDimension")


@dataclass(frozen=True, kw_only=True)
class Oddities:
    """How a file differs from an ordinary one.

    Parameters
    ----------
    tensors : mapping
        By tensor: fields of the schema's Tensor and QuantizationParameters; None leaves one out.
    placement : str
        "both": operator codes in both fields; "old" or "new": in one of them.
    unused : bool
        Further operator codes, subgraphs, tensors, buffers, metadata and a signature.
    outside : bool
        Constants behind the file's tables, as files over 2 GB have them.
    padded : int
        Bytes behind each constant in its buffer.
    """

    tensors: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    placement: str = "both"
    unused: bool = False
    outside: bool = False
    padded: int = 0


class OddWriter(TfliteWriter):
    """Writes ordinary networks in odd ways: it changes the tables as they are written."""

    def __init__(self, oddities: Oddities) -> None:
        super().__init__()
        self._odd = oddities
        self._base = _UNKNOWN_YET
        self._outside = bytearray()
        self._tensor = ""
        self._made: dict[str, list[int]] = {}

    def to_bytes(self, inputs: Sequence[str], outputs: Sequence[str]) -> bytes:
        ordinary = tflite_writer._tensor, tflite_writer._table

        def tensor(builder: flatbuffers.Builder, declared: Any, buffer: int) -> int:
            self._tensor = declared.name
            return ordinary[0](builder, declared, buffer)

        def table(builder: flatbuffers.Builder, kind: str, fields: dict[str, Any]) -> int:
            made = ordinary[1](builder, kind, self._changed(builder, kind, fields))
            self._made.setdefault(kind, []).append(made)
            return made

        with mock.patch.multiple(tflite_writer, _tensor=tensor, _table=table, _buffer=self._buffer):
            data = super().to_bytes(inputs, outputs)
            if not self._odd.outside:
                return data
            # the same once more, as only now it is known where the tables end
            self._base = -(-len(data) // BUFFER_ALIGNMENT) * BUFFER_ALIGNMENT
            self._outside, self._made = bytearray(), {}
            data = super().to_bytes(inputs, outputs)
        return data.ljust(self._base, b"\0") + bytes(self._outside)

    def _buffer(self, builder: flatbuffers.Builder, data: bytes) -> int:
        if not data:
            return tflite_writer._table(builder, "Buffer", {})
        if self._odd.outside:
            fields = {"Offset": self._base + len(self._outside), "Size": len(data)}
            self._outside += data + bytes(-len(data) % BUFFER_ALIGNMENT)
            return tflite_writer._table(builder, "Buffer", fields)
        data += bytes(self._odd.padded)
        builder.Prep(BUFFER_ALIGNMENT, len(data))
        return tflite_writer._table(builder, "Buffer", {"Data": builder.CreateByteVector(data)})

    def _changed(
        self, builder: flatbuffers.Builder, kind: str, fields: dict[str, Any]
    ) -> dict[str, Any]:
        """A table's fields as this file is to have them."""
        changes = self._odd.tensors.get(self._tensor, {})
        if kind in ("QuantizationParameters", "Tensor"):
            of_quantization = kind != "Tensor"
            changes = {
                name: value
                for name, value in changes.items()
                if (name in _OF_QUANTIZATION) == of_quantization
            }
        elif kind == "OperatorCode":
            left_out = {"both": "", "old": "BuiltinCode", "new": "DeprecatedBuiltinCode"}
            changes = {left_out[self._odd.placement]: None}
        else:
            changes = self._unread(builder) if kind == "Model" and self._odd.unused else {}
        fields = fields | _written(builder, changes)
        return {name: value for name, value in fields.items() if changes.get(name, 0) is not None}

    def _unread(self, builder: flatbuffers.Builder) -> dict[str, Any]:
        """An operator code and a subgraph that nobody uses, metadata, a signature."""
        table, offsets = tflite_writer._table, tflite_writer._offsets
        subgraphs, codes = self._made["SubGraph"], self._made["OperatorCode"]
        # both lists grow by what is written here
        fields = {"Name": builder.CreateString("unused")}
        for name in ("Tensors", "Inputs", "Outputs", "Operators"):
            fields[name] = offsets(builder, [])
        table(builder, "SubGraph", fields)
        table(builder, "OperatorCode", {"BuiltinCode": 9999, "Version": 77})
        metadata = {"Name": builder.CreateString("min_runtime_version"), "Buffer": 0}
        signature = {"SignatureKey": builder.CreateString("serving_default")}
        return {
            "Subgraphs": offsets(builder, subgraphs),
            "OperatorCodes": offsets(builder, codes),
            "Metadata": offsets(builder, [table(builder, "Metadata", metadata)]),
            "SignatureDefs": offsets(builder, [table(builder, "SignatureDef", signature)]),
        }


def _written(builder: flatbuffers.Builder, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a table, strings and vectors written; without those that are None."""
    made = {}
    for name, value in fields.items():
        if value is None:
            continue
        if name == "Name":
            made[name] = builder.CreateString(value)
        else:
            listed = name in _VECTORS
            made[name] = tflite_writer._vector(builder, _VECTORS[name], value) if listed else value
    return made


def seeded(shape: tuple[int, ...], seed: int = 22) -> np.ndarray:
    """Random codes."""
    return np.random.default_rng(seed).integers(-128, 128, shape, dtype=np.int8)
