"""The options tables of TFLite's operators, and the fields of them that are read."""

from collections.abc import Mapping

_WINDOW = ("Padding", "StrideH", "StrideW", "FusedActivationFunction")
_POOL = (*_WINDOW, "FilterHeight", "FilterWidth")
_CONVOLUTION = (*_WINDOW, "DilationHFactor", "DilationWFactor")
NEEDED = ("StrideH", "FilterHeight", "Beta", "Alpha", "ValuesCount", "Num", "BlockSize", "Mode")
"""Fields whose default in the schema is of no use, or is not tflm's (``Mode``): their operators
must have options."""

_ACTIVATED = ("FusedActivationFunction",)
OPTIONS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "CONV_2D": ("Conv2DOptions", _CONVOLUTION),
    "DEPTHWISE_CONV_2D": ("DepthwiseConv2DOptions", (*_CONVOLUTION, "DepthMultiplier")),
    "TRANSPOSE_CONV": ("TransposeConvOptions", _WINDOW),
    "FULLY_CONNECTED": (
        "FullyConnectedOptions",
        (*_ACTIVATED, "WeightsFormat", "KeepNumDims"),
    ),
    "ADD": ("AddOptions", _ACTIVATED),
    "SUB": ("SubOptions", _ACTIVATED),
    "MUL": ("MulOptions", _ACTIVATED),
    "DIV": ("DivOptions", _ACTIVATED),
    "AVERAGE_POOL_2D": ("Pool2DOptions", _POOL),
    "MAX_POOL_2D": ("Pool2DOptions", _POOL),
    "MEAN": ("ReducerOptions", ("KeepDims",)),
    "GATHER": ("GatherOptions", ("Axis", "BatchDims")),
    "REDUCE_PROD": ("ReducerOptions", ("KeepDims",)),
    "SUM": ("ReducerOptions", ("KeepDims",)),
    "BATCH_MATMUL": ("BatchMatMulOptions", ("AdjX", "AdjY")),
    "REDUCE_MAX": ("ReducerOptions", ("KeepDims",)),
    "REDUCE_MIN": ("ReducerOptions", ("KeepDims",)),
    "SOFTMAX": ("SoftmaxOptions", ("Beta",)),
    "LEAKY_RELU": ("LeakyReluOptions", ("Alpha",)),
    "CONCATENATION": ("ConcatenationOptions", ("Axis", *_ACTIVATED)),
    "PACK": ("PackOptions", ("Axis", "ValuesCount")),
    "UNPACK": ("UnpackOptions", ("Axis", "Num")),
    "STRIDED_SLICE": (
        "StridedSliceOptions",
        ("BeginMask", "EndMask", "EllipsisMask", "NewAxisMask", "ShrinkAxisMask", "Offset"),
    ),
    "MIRROR_PAD": ("MirrorPadOptions", ("Mode",)),
    "SPACE_TO_DEPTH": ("SpaceToDepthOptions", ("BlockSize",)),
    "DEPTH_TO_SPACE": ("DepthToSpaceOptions", ("BlockSize",)),
    "RESIZE_NEAREST_NEIGHBOR": (
        "ResizeNearestNeighborOptions",
        ("AlignCorners", "HalfPixelCenters"),
    ),
    "CALL_ONCE": ("CallOnceOptions", ("InitSubgraphIndex",)),
    "VAR_HANDLE": ("VarHandleOptions", ("Container", "SharedName")),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (
        "UnidirectionalSequenceLSTMOptions",
        (*_ACTIVATED, "CellClip", "ProjClip", "TimeMajor", "DiagonalRecurrentTensors"),
    ),
    "RESIZE_BILINEAR": ("ResizeBilinearOptions", ("AlignCorners", "HalfPixelCenters")),
}
