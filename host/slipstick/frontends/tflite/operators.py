"""TFLite operators by their schema names, each turned into operators of the graph."""

from collections.abc import Callable, Mapping

from ...operators import TFLITE, Pooling, Unary
from . import functions, moves, slices, windows
from .operator import Operator
from .windows import Normalised

Reader = Callable[[Operator], Normalised]

_READERS: Mapping[str, Reader] = {
    "CONV_2D": windows.conv2d,
    "DEPTHWISE_CONV_2D": windows.depthwise_conv2d,
    "TRANSPOSE_CONV": windows.transpose_conv2d,
    "FULLY_CONNECTED": windows.fully_connected,
    "ADD": functions.add,
    "SUB": functions.sub,
    "MUL": functions.mul,
    "SQUARED_DIFFERENCE": functions.squared_difference,
    "MAXIMUM": functions.maximum,
    "MINIMUM": functions.minimum,
    "AVERAGE_POOL_2D": windows.average_pool2d,
    "MEAN": functions.mean,
    "SUM": functions.reduce_sum,
    "REDUCE_MAX": functions.reduce_max,
    "REDUCE_MIN": functions.reduce_min,
    "BATCH_MATMUL": functions.matmul,
    "ARG_MAX": functions.arg_max,
    "ARG_MIN": functions.arg_min,
    "RESHAPE": moves.reshape,
    "SQUEEZE": moves.reshape,
    "EXPAND_DIMS": moves.reshape,
    "CONCATENATION": moves.concatenation,
    "PACK": moves.pack,
    "TRANSPOSE": moves.transpose,
    "PAD": moves.pad,
    "PADV2": moves.pad,
    "MIRROR_PAD": moves.mirror_pad,
    "SPACE_TO_DEPTH": moves.space_to_depth,
    "DEPTH_TO_SPACE": moves.depth_to_space,
    "RESIZE_NEAREST_NEIGHBOR": moves.resize_nearest,
    "RESIZE_BILINEAR": moves.resize_bilinear,
    "SLICE": slices.slice_,
    "STRIDED_SLICE": slices.strided_slice,
    "SOFTMAX": functions.softmax,
    "LOG_SOFTMAX": functions.log_softmax,
    "PRELU": functions.prelu,
    "HARD_SWISH": functions.hard_swish,
    "QUANTIZE": functions.quantize,
    "DEQUANTIZE": functions.dequantize,
    "TILE": moves.tile,
    "DIV": functions.div,
}
"""Operators of one output that have a reader of their own."""


def readers() -> dict[str, Reader]:
    """Returns what reads each operator of one output, by its name in the schema."""
    own = {code: _reader(record) for code, record in TFLITE.items()}
    return {**own, **_READERS}


def _reader(record: Unary | Pooling) -> Reader:
    if isinstance(record, Pooling):
        return windows.pooling(record)
    return functions.unary(record)


SPLITTERS: Mapping[str, Callable[[Operator], list[Normalised]]] = {
    "SPLIT": slices.split,
    "SPLIT_V": slices.split_v,
    "UNPACK": slices.unpack,
}
"""Operators of several outputs: a node each."""
