"""Lists what a lane's requantiser is told: a channel's parameters, an instruction's fields."""

from dataclasses import dataclass

from amaranth.hdl import ShapeLike


@dataclass(frozen=True)
class ParameterField:
    """A part of a channel's parameters: its bits among them, those used, and when."""

    first_bit: int
    bits: int
    used_bits: int
    delay: int
    """Cycles from a result's bias to its use of this field."""


@dataclass(frozen=True)
class InstructionField:
    """A value that all results of an instruction have in common, and when it is used."""

    shape: ShapeLike
    delay: int
    """Cycles from a result's bias to its use of this field."""
