"""Operators for ``tflite_writer`` that move codes, and TRANSPOSE_CONV."""

from dataclasses import dataclass

from .tflite_operators import ACTIVATIONS, PADDINGS, Field, Operator, choice

MODES = {"REFLECT": 0, "SYMMETRIC": 1}


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


@dataclass(frozen=True, kw_only=True)
class ShapeOf(Operator):
    """Inputs: x; the output is int32."""

    code = "SHAPE"
    version = 1
    table = "ShapeOptions"

    def fields(self) -> dict[str, Field]:
        # TensorType.INT32
        return {"OutType": 2}
