"""Amaranth's instruction layouts against the packed bytes of the instruction set."""

import random
from collections.abc import Mapping

import pytest
from amaranth.lib.data import StructLayout
from slipstick_rtl.isa import MATRIX_FIELDS, POST_FIELDS, Field, pack
from slipstick_rtl.layouts import MATRIX_INSTRUCTION, POST_INSTRUCTION, instruction_layout


@pytest.mark.parametrize(
    ("fields", "layout"), [(MATRIX_FIELDS, MATRIX_INSTRUCTION), (POST_FIELDS, POST_INSTRUCTION)]
)
def test_layout_is_that_of_pack(fields: Mapping[str, Field], layout: StructLayout) -> None:
    draw = random.Random(1)
    values: dict[int | str, int] = {
        name: draw.randrange(1 << field.width) - (field.signed << (field.width - 1))
        for name, field in fields.items()
    }
    packed = pack(fields, {str(name): value for name, value in values.items()})
    assert layout.const(values).as_bits() == int.from_bytes(packed, "little")


def test_too_many_bits() -> None:
    with pytest.raises(ValueError, match="an instruction must be at most 384 bits, not 385"):
        instruction_layout({"wide": Field(385, False, "")})
