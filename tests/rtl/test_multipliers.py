"""Which elements of the array use DSP blocks, and that the targets have that many."""

from typing import Any

import pytest
from slipstick.fpga.area import LANE_MULTIPLIERS, multipliers
from slipstick.targets import TARGETS, Target
from slipstick_rtl.config import Configuration
from slipstick_rtl.numbers.int8 import Int8
from slipstick_rtl.postprocess.requantizer import Requantizer
from slipstick_sim import toolchain


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"multiplier": "dsp"}, r"multiplier must be one of \('plain', 'lut'\), not 'dsp'"),
        ({"packed_rows": -1}, r"packed_rows .* 0\.\.16 \(rows\).*, not -1"),
        ({"packed_rows": 17}, r"packed_rows .* 0\.\.16 \(rows\).*, not 17"),
    ],
)
def test_what_makes_no_sense_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Configuration(**fields)


def test_an_unknown_multiplier_is_refused() -> None:
    with pytest.raises(ValueError, match="multiplier must be one of .* not 'dsp'"):
        Int8(multiplier="dsp")


@pytest.mark.parametrize(
    ("fields", "blocks"),
    [
        ({}, 16 * 16),
        ({"multiplier": "lut"}, 0),
        ({"multiplier": "lut", "packed_rows": 5}, 5 * 8),
        ({"packed_rows": 5}, 5 * 8 + 11 * 16),
        ({"packed_rows": 16}, 16 * 8),
    ],
)
def test_a_packed_row_needs_half_the_blocks(fields: dict[str, Any], blocks: int) -> None:
    assert Configuration(pixels=2, **fields).element_multipliers == 2 * blocks


def test_a_lane_has_as_many_multipliers_as_budgets_say() -> None:
    assert toolchain.convert_to_rtlil(Requantizer(), "lane").count("cell $mul ") == LANE_MULTIPLIERS


ECP5 = [t for t in TARGETS.values() if t.part and t.part.device.startswith("LFE5U")]


@pytest.mark.parametrize("target", ECP5, ids=lambda t: t.name)
def test_the_part_has_the_multipliers(target: Target) -> None:
    assert target.part is not None
    assert multipliers(target.configuration) <= target.part.multipliers
    assert (multipliers(target.configuration) == 0) == (
        target.configuration.logarithmic is not None
    )
