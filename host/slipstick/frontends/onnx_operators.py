"""ONNX operators by domain and name: what turns each into values, and its attributes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..kernels.onnx_functions import DEFAULTS, FUNCTIONS
from . import onnx_convolutions as convolutions
from . import onnx_cuts as cuts
from . import onnx_elementwise as elementwise
from . import onnx_matrix as matrix
from . import onnx_pools as pools
from . import onnx_quantization as quantization
from . import onnx_shapes as shapes
from .onnx_folding import constant, shape_constant
from .onnx_operator import Operator
from .onnx_values import Value

MICROSOFT = "com.microsoft"


@dataclass(frozen=True)
class Handler:
    """What reads an operator, and the attributes that it looks at."""

    read: Callable[[Operator], Value | list[Value]]
    attributes: tuple[str, ...] = ()


_WINDOW = ("auto_pad", "kernel_shape", "pads", "strides", "dilations")
_CONV = (*_WINDOW, "group")
_POOL = (*_WINDOW, "ceil_mode")
_LINEAR = ("axis", "block_size", "output_dtype", "precision", "saturate")
_QUANTIZE = Handler(quantization.quantize_linear, _LINEAR)
_DEQUANTIZE = Handler(quantization.dequantize_linear, _LINEAR)
_CONSTANTS = ("value", "value_float", "value_floats", "value_int", "value_ints")

OPERATORS: Mapping[tuple[str, str], Handler] = {
    **{
        ("", name): Handler(elementwise.function, tuple(DEFAULTS.get(name, ())))
        for name in FUNCTIONS
    },
    ("", "Add"): Handler(elementwise.arithmetic("add")),
    ("", "ArgMax"): Handler(cuts.arg_extreme("arg_max"), ("axis", "keepdims", "select_last_index")),
    ("", "ArgMin"): Handler(cuts.arg_extreme("arg_min"), ("axis", "keepdims", "select_last_index")),
    ("", "AveragePool"): Handler(pools.average_pool, (*_POOL, "count_include_pad")),
    ("", "BatchNormalization"): Handler(
        elementwise.batch_normalization, ("epsilon", "momentum", "training_mode")
    ),
    ("", "Cast"): Handler(shapes.cast, ("to", "saturate")),
    ("", "Clip"): Handler(elementwise.clip, ("min", "max")),
    ("", "Concat"): Handler(shapes.concat, ("axis",)),
    ("", "Constant"): Handler(constant, _CONSTANTS),
    ("", "Conv"): Handler(convolutions.conv, _CONV),
    ("", "ConvInteger"): Handler(convolutions.conv_integer, _CONV),
    ("", "DepthToSpace"): Handler(cuts.blocks("depth_to_space"), ("blocksize", "mode")),
    ("", "DequantizeLinear"): _DEQUANTIZE,
    ("", "Div"): Handler(elementwise.arithmetic("div")),
    ("", "Dropout"): Handler(shapes.identity, ("ratio", "seed")),
    ("", "Flatten"): Handler(shapes.flatten, ("axis",)),
    ("", "Gather"): Handler(cuts.gather, ("axis",)),
    ("", "Gemm"): Handler(matrix.gemm, ("alpha", "beta", "transA", "transB")),
    ("", "GlobalAveragePool"): Handler(pools.global_average_pool),
    ("", "GlobalMaxPool"): Handler(cuts.extreme_of_axes("reduce_max")),
    ("", "Identity"): Handler(shapes.identity),
    ("", "LayerNormalization"): Handler(
        pools.layer_normalization, ("axis", "epsilon", "stash_type")
    ),
    ("", "LogSoftmax"): Handler(pools.whole_axis("log_softmax"), ("axis",)),
    ("", "MatMul"): Handler(matrix.matmul),
    ("", "MatMulInteger"): Handler(matrix.matmul_integer),
    ("", "Max"): Handler(elementwise.extreme("maximum")),
    ("", "MaxPool"): Handler(pools.max_pool, (*_POOL, "storage_order")),
    ("", "Min"): Handler(elementwise.extreme("minimum")),
    ("", "Mul"): Handler(elementwise.arithmetic("mul")),
    ("", "PRelu"): Handler(elementwise.prelu),
    ("", "Pad"): Handler(shapes.pad, ("mode", "pads", "value")),
    ("", "Pow"): Handler(elementwise.arithmetic("pow")),
    ("", "QLinearConv"): Handler(convolutions.qlinear_conv, _CONV),
    ("", "QLinearMatMul"): Handler(matrix.qlinear_matmul),
    ("", "QuantizeLinear"): _QUANTIZE,
    ("", "ReduceMax"): Handler(cuts.extreme_of_axes("reduce_max"), ("axes", "keepdims")),
    ("", "ReduceMean"): Handler(pools.reduce_mean, ("axes", "keepdims", "noop_with_empty_axes")),
    ("", "ReduceMin"): Handler(cuts.extreme_of_axes("reduce_min"), ("axes", "keepdims")),
    ("", "Reshape"): Handler(shapes.reshape, ("allowzero",)),
    ("", "Resize"): Handler(
        cuts.resize,
        (
            "mode",
            "coordinate_transformation_mode",
            "nearest_mode",
            "cubic_coeff_a",
            "exclude_outside",
            "extrapolation_value",
        ),
    ),
    ("", "Shape"): Handler(shape_constant, ("start", "end")),
    ("", "Slice"): Handler(cuts.take_slice),
    ("", "Softmax"): Handler(pools.whole_axis("softmax"), ("axis",)),
    ("", "SpaceToDepth"): Handler(cuts.blocks("space_to_depth"), ("blocksize",)),
    ("", "Split"): Handler(cuts.split, ("axis", "split", "num_outputs")),
    ("", "Squeeze"): Handler(shapes.squeeze, ("axes",)),
    ("", "Sub"): Handler(elementwise.arithmetic("sub")),
    ("", "Sum"): Handler(elementwise.extreme("add")),
    ("", "Transpose"): Handler(shapes.transpose, ("perm",)),
    ("", "Unsqueeze"): Handler(shapes.unsqueeze, ("axes",)),
    (MICROSOFT, "DequantizeLinear"): _DEQUANTIZE,
    (MICROSOFT, "Gelu"): Handler(elementwise.function),
    (MICROSOFT, "QGemm"): Handler(matrix.qgemm, ("alpha", "transA", "transB")),
    (MICROSOFT, "QLinearAdd"): Handler(elementwise.qlinear_binary("add")),
    (MICROSOFT, "QLinearAveragePool"): Handler(
        pools.qlinear_average_pool, (*_POOL, "count_include_pad", "channels_last")
    ),
    (MICROSOFT, "QLinearConcat"): Handler(shapes.qlinear_concat, ("axis",)),
    (MICROSOFT, "QLinearConv"): Handler(convolutions.qlinear_conv, _CONV),
    (MICROSOFT, "QLinearGlobalAveragePool"): Handler(
        pools.qlinear_global_average_pool, ("channels_last",)
    ),
    (MICROSOFT, "QLinearLeakyRelu"): Handler(elementwise.qlinear_function("LeakyRelu"), ("alpha",)),
    (MICROSOFT, "QLinearMul"): Handler(elementwise.qlinear_binary("mul")),
    (MICROSOFT, "QLinearSigmoid"): Handler(elementwise.qlinear_function("Sigmoid")),
    (MICROSOFT, "QLinearSoftmax"): Handler(pools.qlinear_softmax, ("axis", "opset")),
    (MICROSOFT, "QuantizeLinear"): _QUANTIZE,
}
"""What the front-end reads."""
