"""The operators that ``tflite_writer`` writes: one frozen dataclass each, options with defaults."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import tflite as schema

from ..operators import Pooling, Tflite, Unary, find

Field = int | float | str | Sequence[int]

PADDINGS = {"SAME": schema.Padding.SAME, "VALID": schema.Padding.VALID}
ACTIVATIONS = {
    "NONE": schema.ActivationFunctionType.NONE,
    "RELU": schema.ActivationFunctionType.RELU,
    "RELU_N1_TO_1": schema.ActivationFunctionType.RELU_N1_TO_1,
    "RELU6": schema.ActivationFunctionType.RELU6,
}


@dataclass(frozen=True, kw_only=True)
class Operator:
    """An operator's options; a subclass names its builtin code, int8 version and options table."""

    code: ClassVar[str]
    version: ClassVar[int]
    table: ClassVar[str | None] = None

    def fields(self) -> dict[str, Field]:
        """The options table's fields by their schema names; sequences become int32 vectors."""
        return {}


@dataclass(frozen=True, kw_only=True)
class Conv2D(Operator):
    """Inputs: x NHWC, weights OHWI, bias int32. Pairs are (y, x)."""

    code = "CONV_2D"
    version = 3
    table = "Conv2DOptions"
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    padding: str = "SAME"
    activation: str = "NONE"

    def fields(self) -> dict[str, Field]:
        return {
            "Padding": choice("padding", self.padding, PADDINGS),
            "StrideH": self.stride[0],
            "StrideW": self.stride[1],
            "DilationHFactor": self.dilation[0],
            "DilationWFactor": self.dilation[1],
            "FusedActivationFunction": choice("activation", self.activation, ACTIVATIONS),
        }


@dataclass(frozen=True, kw_only=True)
class DepthwiseConv2D(Conv2D):
    """Inputs: x NHWC, weights 1HWO, bias int32; multiplier is output channels per input channel."""

    code = "DEPTHWISE_CONV_2D"
    table = "DepthwiseConv2DOptions"
    multiplier: int = 1

    def fields(self) -> dict[str, Field]:
        return super().fields() | {"DepthMultiplier": self.multiplier}


@dataclass(frozen=True, kw_only=True)
class FullyConnected(Operator):
    """Inputs: x, weights OI, bias int32."""

    code = "FULLY_CONNECTED"
    version = 4
    table = "FullyConnectedOptions"
    activation: str = "NONE"
    keep_dimensions: bool = False

    def fields(self) -> dict[str, Field]:
        return {
            "FusedActivationFunction": choice("activation", self.activation, ACTIVATIONS),
            "KeepNumDims": self.keep_dimensions,
        }


@dataclass(frozen=True, kw_only=True)
class Add(Operator):
    """Inputs: a, b."""

    code = "ADD"
    version = 2
    table = "AddOptions"
    activation: str = "NONE"

    def fields(self) -> dict[str, Field]:
        return {"FusedActivationFunction": choice("activation", self.activation, ACTIVATIONS)}


@dataclass(frozen=True, kw_only=True)
class AveragePool2D(Operator):
    """Inputs: x NHWC; window and stride are (y, x)."""

    code = "AVERAGE_POOL_2D"
    version = 2
    table = "Pool2DOptions"
    window: tuple[int, int]
    stride: tuple[int, int]
    padding: str = "VALID"
    activation: str = "NONE"

    def fields(self) -> dict[str, Field]:
        return {
            "Padding": choice("padding", self.padding, PADDINGS),
            "StrideH": self.stride[0],
            "StrideW": self.stride[1],
            "FilterHeight": self.window[0],
            "FilterWidth": self.window[1],
            "FusedActivationFunction": choice("activation", self.activation, ACTIVATIONS),
        }


@dataclass(frozen=True, kw_only=True)
class MaxPool2D(AveragePool2D):
    """Inputs: x NHWC; input and output share scale and zero point."""

    code = "MAX_POOL_2D"


@dataclass(frozen=True, kw_only=True)
class Mean(Operator):
    """Inputs: x, axes int32."""

    code = "MEAN"
    version = 2
    table = "ReducerOptions"
    keep_dimensions: bool = False

    def fields(self) -> dict[str, Field]:
        return {"KeepDims": self.keep_dimensions}


@dataclass(frozen=True, kw_only=True)
class Reshape(Operator):
    """Inputs: x, and shape int32 if wanted."""

    code = "RESHAPE"
    version = 1
    table = "ReshapeOptions"
    shape: tuple[int, ...]

    def fields(self) -> dict[str, Field]:
        return {"NewShape": self.shape}


@dataclass(frozen=True, kw_only=True)
class Pad(Operator):
    """Inputs: x, paddings int32 of shape (rank, 2)."""

    code = "PAD"
    version = 2
    table = "PadOptions"


@dataclass(frozen=True, kw_only=True)
class Softmax(Operator):
    """Inputs: x; an int8 output has scale 1/256 and zero point -128."""

    code = "SOFTMAX"
    version = 2
    table = "SoftmaxOptions"
    beta: float = 1.0

    def fields(self) -> dict[str, Field]:
        return {"Beta": self.beta}


@dataclass(frozen=True, kw_only=True)
class Quantize(Operator):
    """float32 to int8, or one int8 or uint8 scale to another."""

    code = "QUANTIZE"
    version = 1
    table = "QuantizeOptions"


@dataclass(frozen=True, kw_only=True)
class Dequantize(Operator):
    """int8 to float32."""

    code = "DEQUANTIZE"
    version = 2
    table = "DequantizeOptions"


def choice(field: str, value: str, choices: Mapping[str, int]) -> int:
    """The schema's number of an option, or ValueError."""
    if value not in choices:
        raise ValueError(f"{field} must be one of {tuple(choices)}, not {value!r}")
    return choices[value]


def pool2d(record: Pooling, **options: Any) -> Operator:
    """Returns a pooling operator by its record, with the options of ``AveragePool2D``."""
    assert record.tflite is not None
    own = {"code": record.tflite.code, "version": record.tflite.version}
    return type(record.tflite.code, (AveragePool2D,), own)(**options)


def function_class(name: str) -> type[Operator]:
    """Returns the class of a function of one number without options, by its graph's name."""
    record = find(name)
    assert isinstance(record, Unary) and record.tflite is not None
    return _class(record.tflite)


def function(record: Unary, **attributes: float) -> Operator:
    """Returns a function of one number by its record, with the node's attributes."""
    assert record.tflite is not None
    given = {**record.defaults, **attributes}
    fields = {field: given[name] for name, field in record.tflite.fields.items()}
    return _class(record.tflite, fields=lambda self: fields)()


def _class(tflite: Tflite, **own: Any) -> type[Operator]:
    table = tflite.options or tflite.written or None
    described = {"code": tflite.code, "version": tflite.version, "table": table}
    return type(tflite.code, (Operator,), {**described, **own})


Relu = function_class("relu")
Relu6 = function_class("relu6")
Logistic = function_class("logistic")
Tanh = function_class("tanh")
HardSwish = function_class("hard_swish")
