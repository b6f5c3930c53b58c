"""Operators for ``tflite_writer`` that compute code by code, or over axes."""

from dataclasses import dataclass

from .tflite_operators import ACTIVATIONS, Field, Operator, choice, function_class


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


Elu = function_class("elu")
ReluToOne = function_class("relu_0_to_1")
Abs = function_class("abs")
Rsqrt = function_class("rsqrt")
