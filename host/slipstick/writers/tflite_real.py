"""Operators for ``tflite_writer`` that converters leave in float32, and TILE."""

from dataclasses import dataclass

from .tflite_functions import Mul
from .tflite_operators import Operator, function_class


@dataclass(frozen=True, kw_only=True)
class Div(Mul):
    """Inputs: a, b."""

    code = "DIV"
    version = 1
    table = "DivOptions"


@dataclass(frozen=True, kw_only=True)
class Tile(Operator):
    """Inputs: x, multiples int32."""

    code = "TILE"
    version = 1
    table = "TileOptions"


Ceil = function_class("ceil")
Cos = function_class("cos")
Exp = function_class("exp")
Floor = function_class("floor")
Log = function_class("log")
Neg = function_class("neg")
Round = function_class("round")
Sin = function_class("sin")
Sqrt = function_class("sqrt")
Square = function_class("square")
