"""ONNX operators by domain and name: what turns each into values, and its attributes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...operators import FUNCTIONS, onnx_pooling, pooling_operators
from . import (
    convolutions,
    copies,
    cuts,
    dynamic,
    elementwise,
    functions,
    matrix,
    normalization,
    pools,
    recurrent,
    reductions,
    shapes,
    transposed,
)
from . import lns as logarithms
from . import resize as resizing
from .einsum import einsum
from .folding import constant, shape_constant
from .gather_nd import gather_nd
from .operator import Operator
from .unbatched import own_batch
from .values import Value

MICROSOFT = "com.microsoft"


@dataclass(frozen=True)
class Handler:
    """Holds the function that reads an operator, and the attributes that it looks at."""

    read: Callable[[Operator], Value | list[Value]]
    attributes: tuple[str, ...] = ()
    constants: tuple[int, ...] = ()
    """Inputs that must be known when the network is compiled; others may have to be as well."""


_WINDOW = ("auto_pad", "kernel_shape", "pads", "strides", "dilations")
_CONV = (*_WINDOW, "group")
_POOL = (*_WINDOW, "ceil_mode")
_RESIZE = (
    "antialias",
    "axes",
    "coordinate_transformation_mode",
    "cubic_coeff_a",
    "exclude_outside",
    "extrapolation_value",
    "keep_aspect_ratio_policy",
    "mode",
    "nearest_mode",
)
_REDUCE = ("axes", "keepdims", "noop_with_empty_axes")
_REDUCTIONS = {
    "ReduceL1": "absolute",
    "ReduceL2": "length",
    "ReduceLogSum": "log",
    "ReduceLogSumExp": "log_exp",
    "ReduceProd": "product",
    "ReduceSum": "sum",
    "ReduceSumSquare": "square",
}
_LINEAR = ("axis", "block_size", "output_dtype", "precision", "saturate")
_QUANTIZE = Handler(dynamic.quantize_linear, _LINEAR)
_DEQUANTIZE = Handler(dynamic.dequantize_linear, _LINEAR)
_QLINEAR_CONV = tuple(range(1, 9))
_CONSTANTS = ("value", "value_float", "value_floats", "value_int", "value_ints")

_HANDLERS: Mapping[tuple[str, str], Handler] = {
    **{
        ("", name): Handler(reductions.reduction(kind), _REDUCE)
        for name, kind in _REDUCTIONS.items()
    },
    ("", "Add"): Handler(elementwise.arithmetic("add")),
    ("", "ArgMax"): Handler(cuts.arg_extreme("arg_max"), ("axis", "keepdims", "select_last_index")),
    ("", "ArgMin"): Handler(cuts.arg_extreme("arg_min"), ("axis", "keepdims", "select_last_index")),
    ("", "BatchNormalization"): Handler(
        own_batch(elementwise.batch_normalization),
        ("epsilon", "momentum", "training_mode"),
        (1, 2, 3, 4),
    ),
    ("", "Cast"): Handler(shapes.cast, ("to", "saturate")),
    ("", "Clip"): Handler(functions.clip, ("min", "max")),
    ("", "Concat"): Handler(shapes.concat, ("axis",)),
    ("", "Constant"): Handler(constant, _CONSTANTS),
    ("", "Conv"): Handler(own_batch(convolutions.conv), _CONV, (1, 2)),
    ("", "ConvInteger"): Handler(own_batch(convolutions.conv_integer), _CONV, (1, 3)),
    ("", "ConvTranspose"): Handler(
        own_batch(transposed.conv_transpose), (*_CONV, "output_padding", "output_shape"), (1, 2)
    ),
    ("", "DepthToSpace"): Handler(own_batch(cuts.blocks("depth_to_space")), ("blocksize", "mode")),
    ("", "DequantizeLinear"): _DEQUANTIZE,
    ("", "DynamicQuantizeLinear"): Handler(dynamic.dynamic_quantize_linear),
    ("", "Div"): Handler(elementwise.arithmetic("div")),
    ("", "Dropout"): Handler(shapes.identity, ("ratio", "seed")),
    ("", "Einsum"): Handler(einsum, ("equation",)),
    ("", "Expand"): Handler(copies.expand),
    ("", "Flatten"): Handler(shapes.flatten, ("axis",)),
    ("", "Gather"): Handler(cuts.gather, ("axis",)),
    ("", "GatherND"): Handler(gather_nd, ("batch_dims",), (1,)),
    ("", "Gemm"): Handler(matrix.gemm, ("alpha", "beta", "transA", "transB")),
    ("", "GRU"): Handler(recurrent.gru, recurrent.ATTRIBUTES, (1, 2)),
    ("", "GlobalAveragePool"): Handler(own_batch(pools.global_average_pool)),
    ("", "GlobalMaxPool"): Handler(own_batch(cuts.extreme_of_axes("reduce_max"))),
    ("", "Identity"): Handler(shapes.identity),
    ("", "LSTM"): Handler(recurrent.lstm, recurrent.ATTRIBUTES, (1, 2)),
    ("", "LayerNormalization"): Handler(
        normalization.layer_normalization, ("axis", "epsilon", "stash_type")
    ),
    ("", "InstanceNormalization"): Handler(
        own_batch(normalization.instance_normalization), ("epsilon",), (1, 2)
    ),
    ("", "RMSNormalization"): Handler(
        normalization.rms_normalization, ("axis", "epsilon", "stash_type")
    ),
    ("", "LogSoftmax"): Handler(pools.whole_axis("log_softmax"), ("axis",)),
    ("", "MatMul"): Handler(matrix.matmul),
    ("", "MatMulInteger"): Handler(matrix.matmul_integer),
    ("", "Max"): Handler(elementwise.extreme("maximum")),
    ("", "Mean"): Handler(elementwise.mean),
    ("", "Min"): Handler(elementwise.extreme("minimum")),
    ("", "Mul"): Handler(elementwise.arithmetic("mul")),
    ("", "PRelu"): Handler(elementwise.prelu),
    ("", "Pad"): Handler(copies.pad, ("mode", "pads", "value")),
    ("", "Pow"): Handler(elementwise.arithmetic("pow")),
    ("", "QLinearConv"): Handler(own_batch(convolutions.qlinear_conv), _CONV, _QLINEAR_CONV),
    ("", "QLinearMatMul"): Handler(matrix.qlinear_matmul),
    ("", "QuantizeLinear"): _QUANTIZE,
    ("", "ReduceMax"): Handler(cuts.extreme_of_axes("reduce_max"), _REDUCE),
    ("", "ReduceMean"): Handler(pools.reduce_mean, _REDUCE),
    ("", "ReduceMin"): Handler(cuts.extreme_of_axes("reduce_min"), _REDUCE),
    ("", "Reshape"): Handler(shapes.reshape, ("allowzero",)),
    ("", "Resize"): Handler(resizing.resize, _RESIZE),
    ("", "Shape"): Handler(shape_constant, ("start", "end")),
    ("", "Slice"): Handler(cuts.take_slice),
    ("", "Softmax"): Handler(pools.whole_axis("softmax"), ("axis",)),
    ("", "SpaceToDepth"): Handler(own_batch(cuts.blocks("space_to_depth")), ("blocksize", "mode")),
    ("", "Split"): Handler(cuts.split, ("axis", "split", "num_outputs")),
    ("", "Squeeze"): Handler(shapes.squeeze, ("axes",)),
    ("", "Sub"): Handler(elementwise.arithmetic("sub")),
    ("", "Sum"): Handler(elementwise.extreme("add")),
    ("", "Tile"): Handler(copies.tile),
    ("", "Transpose"): Handler(shapes.transpose, ("perm",)),
    ("", "Unsqueeze"): Handler(shapes.unsqueeze, ("axes",)),
    ("", "Where"): Handler(elementwise.where),
    (logarithms.DOMAIN, "LogDequantizeLinear"): Handler(
        logarithms.log_dequantize_linear, logarithms.ATTRIBUTES, (1,)
    ),
    (logarithms.DOMAIN, "LogQuantizeLinear"): Handler(
        logarithms.log_quantize_linear, logarithms.ATTRIBUTES, (1,)
    ),
    (MICROSOFT, "DequantizeLinear"): _DEQUANTIZE,
    (MICROSOFT, "DynamicQuantizeLSTM"): Handler(
        recurrent.dynamic_quantize_lstm, recurrent.ATTRIBUTES, (1, 2, 8, 9, 10, 11)
    ),
    (MICROSOFT, "Gelu"): Handler(functions.function),
    (MICROSOFT, "QGemm"): Handler(matrix.qgemm, ("alpha", "transA", "transB")),
    (MICROSOFT, "QLinearAdd"): Handler(elementwise.qlinear_binary("add")),
    (MICROSOFT, "QLinearAveragePool"): Handler(
        own_batch(pools.qlinear_average_pool), (*_POOL, "count_include_pad", "channels_last")
    ),
    (MICROSOFT, "QLinearConcat"): Handler(shapes.qlinear_concat, ("axis",)),
    (MICROSOFT, "QLinearConv"): Handler(own_batch(convolutions.qlinear_conv), _CONV, _QLINEAR_CONV),
    (MICROSOFT, "QLinearGlobalAveragePool"): Handler(
        own_batch(pools.qlinear_global_average_pool), ("channels_last",)
    ),
    (MICROSOFT, "QLinearLeakyRelu"): Handler(functions.qlinear_function("LeakyRelu"), ("alpha",)),
    (MICROSOFT, "QLinearMul"): Handler(elementwise.qlinear_binary("mul")),
    (MICROSOFT, "QLinearSigmoid"): Handler(functions.qlinear_function("Sigmoid")),
    (MICROSOFT, "QLinearSoftmax"): Handler(pools.qlinear_softmax, ("axis", "opset")),
    (MICROSOFT, "QLinearWhere"): Handler(elementwise.qlinear_where),
    (MICROSOFT, "QuantizeLinear"): _QUANTIZE,
}
"""Operators that have a reader of their own."""


def handlers() -> dict[tuple[str, str], Handler]:
    """Returns what the front-end reads, by domain and name."""
    return {
        **{
            ("", name): Handler(functions.function, tuple(record.defaults))
            for name, record in FUNCTIONS.items()
        },
        **{
            ("", record.onnx): Handler(
                own_batch(pools.pooling(record)), (*_POOL, *record.onnx_attributes)
            )
            for record in pooling_operators()
            if record.onnx
        },
        **_HANDLERS,
    }


_TAKE_CODES = (
    *("ArgMax", "ArgMin", "Concat", "ConvInteger", "DepthToSpace", "DequantizeLinear", "Dropout"),
    *("Expand", "Flatten", "Gather", "GatherND", "GlobalMaxPool", "Identity"),
    *("LogDequantizeLinear",),
    *("MatMulInteger", "Pad", "ReduceMax", "ReduceMin", "Reshape", "Resize"),
    *("Shape", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"),
)
"""Operators that take codes as they are, beside pooling and those whose names begin with Q."""


def take_codes() -> set[str]:
    """Returns the operators that take codes as they are, beside those that begin with Q."""
    return {*_TAKE_CODES, *onnx_pooling(moves_codes=True)}


TAKE_PLACES = (
    *("ArgMax", "ArgMin", "Cast", "Concat", "Dropout", "Expand", "Flatten", "Gather", "Identity"),
    *(
        "GatherND",
        "Pad",
        "ReduceMax",
        "ReduceMin",
        "Reshape",
        "Shape",
        "Slice",
        "Split",
        "Squeeze",
        "Tile",
    ),
    *("Transpose", "Unsqueeze"),
)
"""Operators that take whole numbers that are no codes."""
