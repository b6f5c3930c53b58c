"""More operators for ``tflite_writer``: moves, slices, products, reductions, resizes."""

from dataclasses import dataclass

from tflite_operators import ACTIVATIONS, PADDINGS, Field, Operator, choice

MODES = {"REFLECT": 0, "SYMMETRIC": 1}


@dataclass(frozen=True, kw_only=True)
class Sub(Operator):
    """Inputs: a, b."""

    code = "SUB"
    version = 2
    table = "SubOptions"
    activation: str = "NONE"

    def fields(self) -> dict[str, Field]:
        return {"FusedActivationFunction": choice("activation", self.activation, ACTIVATIONS)}


@dataclass(frozen=True, kw_only=True)
class Mul(Sub):
    """Inputs: a, b."""

    code = "MUL"
    table = "MulOptions"


@dataclass(frozen=True, kw_only=True)
class SquaredDifference(Operator):
    """Inputs: a, b."""

    code = "SQUARED_DIFFERENCE"
    version = 2
    table = "SquaredDifferenceOptions"


@dataclass(frozen=True, kw_only=True)
class Maximum(Operator):
    """Inputs: a, b, of the output's quantisation."""

    code = "MAXIMUM"
    version = 2
    table = "MaximumMinimumOptions"


@dataclass(frozen=True, kw_only=True)
class Minimum(Maximum):
    """Inputs: a, b, of the output's quantisation."""

    code = "MINIMUM"


@dataclass(frozen=True, kw_only=True)
class LeakyRelu(Operator):
    """Inputs: x."""

    code = "LEAKY_RELU"
    version = 2
    table = "LeakyReluOptions"
    alpha: float

    def fields(self) -> dict[str, Field]:
        return {"Alpha": self.alpha}


@dataclass(frozen=True, kw_only=True)
class Prelu(Operator):
    """Inputs: x, alpha int8."""

    code = "PRELU"
    version = 1


@dataclass(frozen=True, kw_only=True)
class Elu(Operator):
    """Inputs: x."""

    code = "ELU"
    version = 1


@dataclass(frozen=True, kw_only=True)
class ReluToOne(Operator):
    """Inputs: x; clamped to 0..1."""

    code = "RELU_0_TO_1"
    version = 1


@dataclass(frozen=True, kw_only=True)
class LogSoftmax(Operator):
    """Inputs: x; an int8 output has scale 16/256 and zero point 127."""

    code = "LOG_SOFTMAX"
    version = 2
    table = "LogSoftmaxOptions"


@dataclass(frozen=True, kw_only=True)
class ReduceMax(Operator):
    """Inputs: x, axes int32."""

    code = "REDUCE_MAX"
    version = 2
    table = "ReducerOptions"
    keep_dimensions: bool = False

    def fields(self) -> dict[str, Field]:
        return {"KeepDims": self.keep_dimensions}


@dataclass(frozen=True, kw_only=True)
class ReduceMin(ReduceMax):
    """Inputs: x, axes int32."""

    code = "REDUCE_MIN"


@dataclass(frozen=True, kw_only=True)
class Sum(ReduceMax):
    """Inputs: x, axes int32."""

    code = "SUM"


@dataclass(frozen=True, kw_only=True)
class BatchMatMul(Operator):
    """Inputs: a, b, matrices in the last two axes."""

    code = "BATCH_MATMUL"
    version = 2
    table = "BatchMatMulOptions"
    adjoint_a: bool = False
    adjoint_b: bool = False

    def fields(self) -> dict[str, Field]:
        return {"AdjX": self.adjoint_a, "AdjY": self.adjoint_b}


@dataclass(frozen=True, kw_only=True)
class Abs(Operator):
    """Inputs: x."""

    code = "ABS"
    version = 2


@dataclass(frozen=True, kw_only=True)
class Rsqrt(Operator):
    """Inputs: x, no code of which is below the zero point."""

    code = "RSQRT"
    version = 2


@dataclass(frozen=True, kw_only=True)
class ArgMax(Operator):
    """Inputs: x, axis int32; the output is int32."""

    code = "ARG_MAX"
    version = 2
    table = "ArgMaxOptions"

    def fields(self) -> dict[str, Field]:
        # TensorType.INT32
        return {"OutputType": 2}


@dataclass(frozen=True, kw_only=True)
class ArgMin(ArgMax):
    """Inputs: x, axis int32; the output is int32."""

    code = "ARG_MIN"
    table = "ArgMinOptions"


@dataclass(frozen=True, kw_only=True)
class Concatenation(Operator):
    """Inputs: any number, equal but for their sizes along the axis."""

    code = "CONCATENATION"
    version = 2
    table = "ConcatenationOptions"
    axis: int
    activation: str = "NONE"

    def fields(self) -> dict[str, Field]:
        activation = choice("activation", self.activation, ACTIVATIONS)
        return {"Axis": self.axis, "FusedActivationFunction": activation}


@dataclass(frozen=True, kw_only=True)
class Pack(Operator):
    """Inputs: as many as ``count``."""

    code = "PACK"
    version = 2
    table = "PackOptions"
    count: int
    axis: int

    def fields(self) -> dict[str, Field]:
        return {"ValuesCount": self.count, "Axis": self.axis}


@dataclass(frozen=True, kw_only=True)
class Unpack(Pack):
    """Inputs: x; outputs: as many as ``count``."""

    code = "UNPACK"
    table = "UnpackOptions"

    def fields(self) -> dict[str, Field]:
        return {"Num": self.count, "Axis": self.axis}


@dataclass(frozen=True, kw_only=True)
class Split(Operator):
    """Inputs: axis int32, x; outputs: as many as ``count``."""

    code = "SPLIT"
    version = 2
    table = "SplitOptions"
    count: int

    def fields(self) -> dict[str, Field]:
        return {"NumSplits": self.count}


@dataclass(frozen=True, kw_only=True)
class SplitV(Split):
    """Inputs: x, sizes int32, axis int32; outputs: as many as ``count``."""

    code = "SPLIT_V"
    table = "SplitVOptions"


@dataclass(frozen=True, kw_only=True)
class Slice(Operator):
    """Inputs: x, begin int32, size int32."""

    code = "SLICE"
    version = 2
    table = "SliceOptions"


@dataclass(frozen=True, kw_only=True)
class StridedSlice(Operator):
    """Inputs: x, begin, end, strides, all int32; masks have a bit an axis."""

    code = "STRIDED_SLICE"
    version = 2
    table = "StridedSliceOptions"
    begin_mask: int = 0
    end_mask: int = 0
    ellipsis_mask: int = 0
    shrink_axis_mask: int = 0

    def fields(self) -> dict[str, Field]:
        return {
            "BeginMask": self.begin_mask,
            "EndMask": self.end_mask,
            "EllipsisMask": self.ellipsis_mask,
            "ShrinkAxisMask": self.shrink_axis_mask,
        }


@dataclass(frozen=True, kw_only=True)
class Transpose(Operator):
    """Inputs: x, permutation int32."""

    code = "TRANSPOSE"
    version = 2
    table = "TransposeOptions"


@dataclass(frozen=True, kw_only=True)
class MirrorPad(Operator):
    """Inputs: x, paddings int32 of shape (rank, 2)."""

    code = "MIRROR_PAD"
    version = 1
    table = "MirrorPadOptions"
    mode: str = "REFLECT"

    def fields(self) -> dict[str, Field]:
        return {"Mode": choice("mode", self.mode, MODES)}


@dataclass(frozen=True, kw_only=True)
class SpaceToDepth(Operator):
    """Inputs: x NHWC."""

    code = "SPACE_TO_DEPTH"
    version = 1
    table = "SpaceToDepthOptions"
    block: int

    def fields(self) -> dict[str, Field]:
        return {"BlockSize": self.block}


@dataclass(frozen=True, kw_only=True)
class DepthToSpace(SpaceToDepth):
    """Inputs: x NHWC."""

    code = "DEPTH_TO_SPACE"
    table = "DepthToSpaceOptions"


@dataclass(frozen=True, kw_only=True)
class ResizeNearest(Operator):
    """Inputs: x NHWC, size int32 (y, x)."""

    code = "RESIZE_NEAREST_NEIGHBOR"
    version = 2
    table = "ResizeNearestNeighborOptions"
    align_corners: bool = False
    half_pixel_centers: bool = False

    def fields(self) -> dict[str, Field]:
        return {"AlignCorners": self.align_corners, "HalfPixelCenters": self.half_pixel_centers}


@dataclass(frozen=True, kw_only=True)
class ResizeBilinear(ResizeNearest):
    """Inputs: x NHWC, size int32 (y, x)."""

    code = "RESIZE_BILINEAR"
    table = "ResizeBilinearOptions"


@dataclass(frozen=True, kw_only=True)
class TransposeConv(Operator):
    """Inputs: the output's shape int32, weights OHWI, x NHWC, bias int32 if wanted."""

    code = "TRANSPOSE_CONV"
    version = 3
    table = "TransposeConvOptions"
    stride: tuple[int, int] = (1, 1)
    padding: str = "SAME"
    activation: str = "NONE"

    def fields(self) -> dict[str, Field]:
        return {
            "Padding": choice("padding", self.padding, PADDINGS),
            "StrideH": self.stride[0],
            "StrideW": self.stride[1],
            "FusedActivationFunction": choice("activation", self.activation, ACTIVATIONS),
        }
