"""The options tables of TFLite's operators, and the fields of them that are read."""

from collections.abc import Mapping

from ...operators import TFLITE, Pooling

_WINDOW = ("Padding", "StrideH", "StrideW", "FusedActivationFunction")
_POOL = (*_WINDOW, "FilterHeight", "FilterWidth")
_CONVOLUTION = (*_WINDOW, "DilationHFactor", "DilationWFactor")
NEEDED = ("StrideH", "FilterHeight", "Beta", "Alpha", "ValuesCount", "Num", "BlockSize", "Mode")
"""Fields whose default in the schema is of no use, or is not tflm's (``Mode``): their operators
must have options."""

_ACTIVATED = ("FusedActivationFunction",)
Fields = tuple[str, tuple[str, ...]]
"""The name of an options table, and its fields."""

_OPTIONS: Mapping[str, Fields] = {
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
    "MEAN": ("ReducerOptions", ("KeepDims",)),
    "GATHER": ("GatherOptions", ("Axis", "BatchDims")),
    "REDUCE_PROD": ("ReducerOptions", ("KeepDims",)),
    "SUM": ("ReducerOptions", ("KeepDims",)),
    "BATCH_MATMUL": ("BatchMatMulOptions", ("AdjX", "AdjY")),
    "REDUCE_MAX": ("ReducerOptions", ("KeepDims",)),
    "REDUCE_MIN": ("ReducerOptions", ("KeepDims",)),
    "SOFTMAX": ("SoftmaxOptions", ("Beta",)),
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


def fields_of(operator: str) -> Fields | None:
    """Returns the options table of an operator by the schema's name, None if none is read."""
    record = TFLITE.get(operator)
    if isinstance(record, Pooling):
        return "Pool2DOptions", _POOL
    if record is not None and record.tflite is not None and record.tflite.options:
        return record.tflite.options, tuple(record.tflite.fields.values())
    return _OPTIONS.get(operator)


def options() -> dict[str, Fields]:
    """Returns the options table of every operator that has one which is read."""
    found = {name: fields_of(name) for name in (*_OPTIONS, *TFLITE)}
    return {name: fields for name, fields in found.items() if fields is not None}
