"""The instructions as Amaranth layouts: the bit-fields of ``isa`` in gateware's terms."""

from collections.abc import Mapping

from amaranth.hdl import signed, unsigned
from amaranth.lib import data

from .config import Configuration
from .isa import INSTRUCTION_BITS, MATRIX_FIELDS, POST_FIELDS, Field


def instruction_layout(fields: Mapping[str, Field]) -> data.StructLayout:
    """The layout of an instruction with these fields, from bit 0 up.

    Raises
    ------
    ValueError
        If the fields need more bits than an instruction has.
    """
    layout = data.StructLayout(
        {
            name: signed(field.width) if field.signed else unsigned(field.width)
            for name, field in fields.items()
        }
    )
    if layout.size > INSTRUCTION_BITS:
        raise ValueError(
            f"an instruction must be at most {INSTRUCTION_BITS} bits, not {layout.size}"
        )
    return layout


MATRIX_INSTRUCTION = instruction_layout(MATRIX_FIELDS)
"""HALT and CONVOLVE; narrower than INSTRUCTION_BITS, the bits above are ignored."""


def post_instruction(configuration: Configuration) -> data.StructLayout:
    """HALT, DRAIN, MAP and TABLE; narrower than INSTRUCTION_BITS, the bits above are ignored.

    Without the fields that the configuration's number format gives no meaning.
    """
    absent = configuration.format.absent_fields
    return instruction_layout(
        {name: field for name, field in POST_FIELDS.items() if name not in absent}
    )


EVENTS = data.StructLayout({"matrix_start": 1, "matrix_done": 1, "post_start": 1, "post_done": 1})
"""Pulses: an instruction begins to work, or its results have landed."""
