"""The record of an operator: its name and all that code for several operators asks of one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any

import numpy as np

Attributes = Mapping[str, Any]

Function = Callable[[np.ndarray, Attributes], np.ndarray]
"""A function of float64 numbers, element by element, and of the node's attributes."""


class Family(Enum):
    """A group of operators that share code. A table may have one entry for all of a family."""

    LAYER = "layer"
    BINARY = "binary"
    POOLING = "pooling"
    REDUCTION = "reduction"
    UNARY = "unary"
    NORMALIZATION = "normalization"
    MOVEMENT = "movement"
    CONVERSION = "conversion"
    OTHER = "other"


@dataclass(frozen=True)
class OnnxForm:
    """A node of TensorFlow Lite's semantics as a node of ONNX's, but for its clamp.

    Parameters
    ----------
    operator : str
        The graph's name.
    attributes : mapping
        Those that are added to the node's own.
    """

    operator: str
    attributes: Attributes = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Tflite:
    """An operator in a .tflite file.

    Parameters
    ----------
    code : str
        The builtin operator's name in the schema.
    version : int
        Its version for int8 codes, as files are written.
    options : str
        The name of its options table; "": none is read.
    fields : mapping of schema field by attribute
        Numbers of the options table that become attributes of the node.
    written : str
        The name of its options table in written files, where none is read.
    result : (scale, zero point) or None
        The only ones that the codes of its result may have.
    in_tflm : bool
        Whether TensorFlow Lite Micro has it.
    """

    code: str
    version: int = 1
    options: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    written: str = ""
    result: tuple[float, int] | None = None
    in_tflm: bool = True


@dataclass(frozen=True, kw_only=True)
class Operator:
    """One operator of the graph.

    Parameters
    ----------
    name : str
        The graph's.
    family : Family
    doc : str
        One line for docs/reference/operators.md.
    operands : int
        Activations that a node of it reads, in random networks.
    share : float
        How often the random generator draws it, relative to the others; 0: never.
    fuses_activation : bool
        A RELU behind it becomes its attribute ``activation``.
    onnx_form : OnnxForm or None
        How ONNX's semantics express it; None: not at all, or in a way of its own.
    natural_view : bool
        The device reads rows and columns: memory must hold the input as its shape says.
    broadcasts : bool
        Its inputs broadcast to the output's shape.
    moves_codes : bool
        It moves, compares or looks up codes, whatever they mean.
    keeps_codes : bool
        Its result has the scale and zero point of its input.
    sums_floats : bool
        It sums or approximates float numbers: NumPy chooses the order by an array's shape.
    transcendental : bool
        C libraries give float32 results that differ in the last bits.
    tabulated : bool
        Of int8 codes it is a table of 256 entries, also in TensorFlow Lite's semantics.
    """

    name: str
    family: Family
    doc: str
    operands: int = 1
    share: float = 0.0
    fuses_activation: bool = False
    onnx_form: OnnxForm | None = None
    natural_view: bool = False
    broadcasts: bool = False
    moves_codes: bool = False
    keeps_codes: bool = False
    sums_floats: bool = False
    transcendental: bool = False
    tabulated: bool = False


@dataclass(frozen=True, kw_only=True)
class Unary(Operator):
    """A function of one number. This record is all that most of them need.

    Parameters
    ----------
    function : callable
        Of float64 numbers; its float32 result is rounded once.
    onnx : str
        ONNX's name; "": ONNX has it not.
    defaults : mapping
        Its attributes in ONNX, with their values where the file does not say.
    tflite : Tflite or None
    clamp : (low, high) or None
        Of a function that only clamps: its bounds, None for no bound.
    quantized : bool
        ``slipstick quantize`` gives codes to its results; those of others stay float32.
    """

    function: Function
    family: Family = Family.UNARY
    onnx: str = ""
    defaults: Mapping[str, float | str] = field(default_factory=dict)
    tflite: Tflite | None = None
    clamp: tuple[float | None, float | None] | None = None
    quantized: bool = False

    def __call__(self, x: np.ndarray, attributes: Attributes = MappingProxyType({})) -> np.ndarray:
        """The function of float32 numbers; infinite or NaN where it has no value."""
        given = {**self.defaults, **attributes}
        with np.errstate(all="ignore"):
            return self.function(x.astype(np.float64), given).astype(np.float32)


@dataclass(frozen=True, kw_only=True)
class Pooling(Operator):
    """An operator of windows over a picture, which makes one number of each window.

    With ``moves_codes`` it picks one of the window's codes; others compute.

    Parameters
    ----------
    onnx : str
        ONNX's name; "": ONNX has it not.
    onnx_attributes : mapping
        Whole numbers that ONNX's has beside the window's, with their defaults. The node gets those
        that the reader does not know.
    tflite : Tflite or None
    dilated : str
        The graph's name for windows with gaps, which the host alone runs; "": they are refused.
    """

    family: Family = Family.POOLING
    natural_view: bool = True
    onnx: str = ""
    onnx_attributes: Mapping[str, int] = field(default_factory=dict)
    tflite: Tflite | None = None
    dilated: str = ""
