"""TFLite operators by their schema names, each turned into operators of the graph."""

from collections.abc import Callable, Mapping

from . import functions, moves, slices, windows
from .operator import Operator
from .windows import Normalised

OPERATORS: Mapping[str, Callable[[Operator], Normalised]] = {
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
    "MAX_POOL_2D": windows.max_pool2d,
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
    "LOG_SOFTMAX": functions.fixed("log_softmax", 1 / 16, 127),
    "RELU": functions.plain("relu"),
    "RELU6": functions.plain("relu6"),
    "RELU_N1_TO_1": functions.plain("relu_n1_to_1"),
    "RELU_0_TO_1": functions.plain("relu_0_to_1"),
    "ELU": functions.plain("elu"),
    "ABS": functions.plain("abs"),
    "RSQRT": functions.plain("rsqrt"),
    "LEAKY_RELU": functions.leaky_relu,
    "PRELU": functions.prelu,
    "LOGISTIC": functions.fixed("logistic", 1 / 256, -128),
    "TANH": functions.fixed("tanh", 1 / 128, 0),
    "HARD_SWISH": functions.hard_swish,
    "QUANTIZE": functions.quantize,
    "DEQUANTIZE": functions.dequantize,
    "TILE": moves.tile,
    "DIV": functions.div,
    **{
        operator: functions.real(operator.lower())
        for operator in ("CEIL", "COS", "EXP", "FLOOR", "LOG", "NEG", "ROUND", "SIN", "SQRT")
    },
    "SQUARE": functions.real("square"),
}
"""What the front-end reads: operators of one output."""

SPLITTERS: Mapping[str, Callable[[Operator], list[Normalised]]] = {
    "SPLIT": slices.split,
    "SPLIT_V": slices.split_v,
    "UNPACK": slices.unpack,
}
"""Operators of several outputs: a node each."""
