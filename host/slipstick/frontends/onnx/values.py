"""Says what an ONNX tensor is to the front-end: a constant, codes, real values, or work to do."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ...graph import Quantization

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Activation:
    """A tensor of the graph that stands for an ONNX tensor.

    Parameters
    ----------
    tensor : str
        Its name in the graph.
    shape : tuple of int
        ONNX's.
    layout : str
        "natural": the graph's shape is ONNX's. "picture": ONNX's is N x C x H x W, or N x C x W,
        the graph's N x H x W x C. "flattened": ONNX's is N x (C H W), the graph's N x (H W C).
    picture : tuple of int
        What a flattened one was: N, C, H, W.
    """

    tensor: str
    shape: Shape
    layout: str = "natural"
    picture: Shape = ()


@dataclass(frozen=True, eq=False)
class Constant:
    """An array of the file's, or one computed of such."""

    array: np.ndarray


@dataclass(frozen=True, eq=False)
class Coded:
    """A constant of real numbers that the file holds as codes.

    Parameters
    ----------
    codes : array of int8 or int32
        uint8 codes less 128.
    scale : array of float32, 1 or as long as ``axis``
    zero_point : array of int64, as long
    axis : int or None
    meaning : array of float64, 256, or None
        What -128, ..., 127 mean beside the scale, if not themselves less the zero point.
    """

    codes: np.ndarray
    scale: np.ndarray
    zero_point: np.ndarray
    axis: int | None
    meaning: np.ndarray | None = None

    def along(self, values: np.ndarray) -> np.ndarray:
        """Scales or zero points, shaped to broadcast with the codes."""
        if self.axis is None:
            return values.reshape(())
        shape = [1] * self.codes.ndim
        shape[self.axis] = -1
        return values.reshape(shape)

    @property
    def array(self) -> np.ndarray:
        """The real numbers, float32."""
        if self.meaning is not None:
            real = self.meaning[self.codes.astype(np.int64) + 128] * self.along(self.scale)
            return real.astype(np.float32)
        centred = self.codes.astype(np.int64) - self.along(self.zero_point)
        return centred.astype(np.float32) * self.along(self.scale)


@dataclass(frozen=True)
class Codes:
    """An int8 or uint8 tensor; the graph's is int8 in either case, uint8 codes less 128."""

    activation: Activation
    dtype: str


@dataclass(frozen=True, eq=False)
class Real:
    """A float tensor that is a function of another tensor's codes.

    Parameters
    ----------
    activation : Activation
        int8, quantised.
    values : array of float32, 256
        Entry x + 128 belongs to the code x.
    linear : bool
        Whether they are what the codes mean, and nothing else.
    """

    activation: Activation
    values: np.ndarray
    linear: bool


@dataclass(frozen=True)
class Float:
    """A tensor that is in the graph as ONNX has it, float32 or whole numbers."""

    activation: Activation


@dataclass(frozen=True)
class Overall:
    """A tensor that ONNX has once for the whole batch, and the graph once a picture.

    Parameters
    ----------
    activation : Activation
        float32, or int8 codes without a meaning; its shape has the batch in front of ONNX's.
    shape : tuple of int
        ONNX's.
    dtype : str
        ONNX's.
    """

    activation: Activation
    shape: Shape
    dtype: str


@dataclass(frozen=True)
class Result:
    """Describes the tensor that a node of the graph shall write."""

    name: str
    dtype: str
    quantization: Quantization | None = None
    clamp: tuple[int, int] | None = None


@dataclass(frozen=True, eq=False)
class Pending:
    """A float tensor that is not computed yet: what reads it decides in which codes.

    Parameters
    ----------
    name : str
        ONNX's, for the case that it is computed as float32.
    shape : tuple of int
        ONNX's.
    emit : callable
        Puts the nodes that compute it into the graph.
    low, high : float
        To what it is clamped.
    affine : callable or None
        Given real factors and offsets, one or one a channel, the same times those plus these; None
        if it cannot.
    channel_axis : int
        The axis of those channels.
    dtype : str
        "float32", or "int32" for the sums of an integer operator.
    made : dict
        What was computed already.
    """

    name: str
    shape: Shape
    emit: Callable[[Result], Activation]
    low: float = -np.inf
    high: float = np.inf
    affine: Callable[[np.ndarray, np.ndarray], "Pending | None"] | None = None
    channel_axis: int = 1
    dtype: str = "float32"
    made: dict[object, Activation] = field(default_factory=dict)


Value = Constant | Coded | Codes | Real | Float | Overall | Pending


def shape_of(value: Value) -> Shape:
    """ONNX's shape of a tensor."""
    match value:
        case Constant(array):
            return array.shape
        case Coded():
            return value.codes.shape
        case Pending() | Overall():
            return value.shape
        case _:
            return value.activation.shape


def dtype_of(value: Value) -> str:
    """ONNX's type of a tensor, as NumPy calls it; "" if only the graph knows."""
    match value:
        case Constant(array):
            return array.dtype.name
        case Codes() | Overall():
            return value.dtype
        case Pending():
            return value.dtype
        case Float():
            return ""
        case _:
            return "float32"
