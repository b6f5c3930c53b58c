"""Operators for ``tflite_writer`` that converters leave in float32, and TILE."""

from dataclasses import dataclass

from .tflite_functions import Mul
from .tflite_operators import Operator


@dataclass(frozen=True, kw_only=True)
class Ceil(Operator):
    """Inputs: x."""

    code = "CEIL"
    version = 1


@dataclass(frozen=True, kw_only=True)
class Cos(Operator):
    """Inputs: x."""

    code = "COS"
    version = 1


@dataclass(frozen=True, kw_only=True)
class Exp(Operator):
    """Inputs: x."""

    code = "EXP"
    version = 1
    table = "ExpOptions"


@dataclass(frozen=True, kw_only=True)
class Floor(Operator):
    """Inputs: x."""

    code = "FLOOR"
    version = 1


@dataclass(frozen=True, kw_only=True)
class Log(Operator):
    """Inputs: x."""

    code = "LOG"
    version = 1


@dataclass(frozen=True, kw_only=True)
class Neg(Operator):
    """Inputs: x."""

    code = "NEG"
    version = 1
    table = "NegOptions"


@dataclass(frozen=True, kw_only=True)
class Round(Operator):
    """Inputs: x; ties to even."""

    code = "ROUND"
    version = 1


@dataclass(frozen=True, kw_only=True)
class Sin(Operator):
    """Inputs: x."""

    code = "SIN"
    version = 1


@dataclass(frozen=True, kw_only=True)
class Sqrt(Operator):
    """Inputs: x."""

    code = "SQRT"
    version = 1


@dataclass(frozen=True, kw_only=True)
class Square(Operator):
    """Inputs: x."""

    code = "SQUARE"
    version = 1
    table = "SquareOptions"


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
