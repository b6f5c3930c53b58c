"""Which elements of the array use DSP blocks, and that the targets have that many."""

from typing import Any

import pytest
from slipstick.targets import TARGETS, Target
from slipstick_rtl.config import Configuration
from slipstick_rtl.numbers.int8 import Int8, column_formats

POST_MULTIPLIERS = 4
"""DSP blocks of a lane of the post-processor, where a block is an 18 x 18-bit multiplier."""


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"multiplier": "dsp"}, r"multiplier must be one of \('plain', 'lut'\), not 'dsp'"),
        ({"multiplier": "lut", "dsp_columns": -1}, r"dsp_columns .* 0\.\.16 \(columns\), not -1"),
        ({"multiplier": "lut", "dsp_columns": 17}, r"dsp_columns .* 0\.\.16 \(columns\), not 17"),
        ({"dsp_columns": 1}, 'dsp_columns must be 0 with multiplier "plain", not 1'),
    ],
)
def test_what_makes_no_sense_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Configuration(**fields)


def test_an_unknown_multiplier_is_refused() -> None:
    with pytest.raises(ValueError, match="multiplier must be one of .* not 'dsp'"):
        Int8(multiplier="dsp")


@pytest.mark.parametrize(
    ("fields", "plain"),
    [({}, 16), ({"multiplier": "lut"}, 0), ({"multiplier": "lut", "dsp_columns": 5}, 5)],
)
def test_the_first_columns_have_the_plain_product(fields: dict[str, Any], plain: int) -> None:
    configuration = Configuration(pixels=2, **fields)
    formats = column_formats(configuration)
    assert [column.correction_bits == 0 for column in formats] == [j < plain for j in range(16)]
    assert configuration.element_multipliers == 2 * 16 * plain


ECP5 = [t for t in TARGETS.values() if t.part and t.part.device.startswith("LFE5U")]


@pytest.mark.parametrize("target", ECP5, ids=lambda t: t.name)
def test_the_part_has_the_multipliers(target: Target) -> None:
    assert target.part is not None
    lanes = POST_MULTIPLIERS * target.configuration.lanes
    assert lanes + target.configuration.element_multipliers <= target.part.multipliers
