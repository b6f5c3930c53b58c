"""Configurations that are refused, each with its field, its rule and its value."""

import re
from typing import Any

import pytest
from slipstick_rtl.config import Configuration

COMPACT: dict[str, Any] = {
    "engine": "compact",
    "rows": 2,
    "columns": 8,
    "lanes": 1,
    "activation_bytes": 4096,
    "weight_bytes": 4096,
}


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"rows": 8.0}, TypeError, "rows must be int, not 8.0"),
        ({"rows": True}, TypeError, "rows must be int, not True"),
        ({"engine": 3}, TypeError, "engine must be str, not 3"),
        ({"engine": "tiny"}, ValueError, "engine must be one of ('pipelined', 'compact'), not 't"),
        ({"clock_hz": 0}, ValueError, "clock_hz must be positive, not 0"),
        ({"rows": 12}, ValueError, "rows must be a power of two, not 12"),
        ({"rows": 0}, ValueError, "rows must be a power of two, not 0"),
        ({"rows": 2}, ValueError, "rows must be within 4..64, not 2"),
        ({"columns": 128}, ValueError, "columns must be within 4..64, not 128"),
        ({"weight_bytes": 3000}, ValueError, "weight_bytes must be a power of two, not 3000"),
        ({"activation_bytes": 512}, ValueError, "activation_bytes must be within 1024..8388608"),
        ({"lanes": 32}, ValueError, "lanes must be at most rows (16) and columns (16), not 32"),
        ({"number_format": "int3"}, ValueError, "number_format must be one of"),
        ({"multiplier": "booth"}, ValueError, "multiplier must be one of"),
        ({"dsp_columns": 17}, ValueError, "dsp_columns must be within 0..16 (columns), not 17"),
        ({"dsp_columns": 4}, ValueError, 'dsp_columns must be 0 with multiplier "plain", not 4'),
        (COMPACT | {"pixels": 2}, ValueError, "pixels must be within 1..1, not 2"),
        (COMPACT | {"lanes": 2}, ValueError, "lanes must be within 1..1, not 2"),
        (
            COMPACT | {"weight_bytes": 4097},
            ValueError,
            "weight_bytes must be a multiple of columns (8), not 4097",
        ),
        (
            COMPACT | {"columns": 4},
            ValueError,
            'columns must be at least rows + 4 (6) with engine "compact", not 4',
        ),
        (
            COMPACT | {"multiplier": "lut"},
            ValueError,
            'multiplier must be "plain" with engine "compact", not \'lut\'',
        ),
    ],
)
def test_a_configuration_says_what_is_wrong(
    fields: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        Configuration(**fields)


def test_memories_of_a_compact_engine_need_not_be_powers_of_two() -> None:
    assert Configuration(**dict(COMPACT, weight_bytes=5000)).weight_words == 625


def test_a_clock_is_no_other_hardware() -> None:
    slow = Configuration(clock_hz=25_000_000)
    assert slow.fingerprint == Configuration().fingerprint
    assert slow.fingerprint != Configuration(lanes=4).fingerprint


def test_a_dictionary_must_have_exactly_the_fields() -> None:
    fields: Any = Configuration().to_dict()
    assert Configuration.from_dict(fields) == Configuration()
    names: Any = list(fields)
    del fields["rows"]
    with pytest.raises(ValueError, match=r"exactly the known fields, not \['rows'\]"):
        Configuration.from_dict(fields)
    with pytest.raises(TypeError, match="a configuration must be a mapping, not list"):
        Configuration.from_dict(names)
