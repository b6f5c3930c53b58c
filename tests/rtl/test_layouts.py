"""Amaranth's instruction layouts against the packed bytes of the instruction set."""

import random
from collections.abc import Mapping

import pytest
from amaranth.lib.data import StructLayout
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import MATRIX_FIELDS, POST_FIELDS, Field, pack
from slipstick_rtl.layouts import MATRIX_INSTRUCTION, instruction_layout, post_instruction

LOGARITHMIC_POST = post_instruction(Configuration(number_format="lns1+3+4"))


@pytest.mark.parametrize(
    ("fields", "layout"), [(MATRIX_FIELDS, MATRIX_INSTRUCTION), (POST_FIELDS, LOGARITHMIC_POST)]
)
def test_layout_is_that_of_pack(fields: Mapping[str, Field], layout: StructLayout) -> None:
    draw = random.Random(1)
    values: dict[int | str, int] = {
        name: draw.randrange(1 << field.width) - (field.signed << (field.width - 1))
        for name, field in fields.items()
    }
    packed = pack(fields, {str(name): value for name, value in values.items()})
    assert layout.const(values).as_bits() == int.from_bytes(packed, "little")


def test_int8_lacks_the_last_fields() -> None:
    """Those of logarithmic number formats come last, so that the places of all others stay."""
    plain = post_instruction(Configuration())
    names = list(POST_FIELDS)
    absent = Configuration().format.absent_fields
    assert list(plain.members) == names[: -len(absent)]
    assert set(names) - set(plain.members) == absent


def test_too_many_bits() -> None:
    with pytest.raises(ValueError, match="an instruction must be at most 384 bits, not 385"):
        instruction_layout({"wide": Field(385, False, "")})
