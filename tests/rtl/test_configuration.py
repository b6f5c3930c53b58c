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
    "parameter_words": 64,
}


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"rows": 8.0}, TypeError, "rows must be int, not 8.0"),
        ({"rows": True}, TypeError, "rows must be int, not True"),
        ({"engine": 3}, TypeError, "engine must be str, not 3"),
        ({"engine": "tiny"}, ValueError, "engine must be one of ('pipelined', 'compact'), not 't"),
        ({"clock_hz": 0}, ValueError, "clock_hz must be positive, not 0"),
        ({"rows": 20}, ValueError, "rows must be a power of two, or three times one, not 20"),
        ({"rows": 0}, ValueError, "rows must be a power of two, or three times one, not 0"),
        ({"rows": 3}, ValueError, "rows must be within 4..64, not 3"),
        (COMPACT | {"rows": 3}, ValueError, "rows must be a power of two, not 3"),
        (
            {"rows": 12, "training": 1},
            ValueError,
            "training must be 0 with rows that are no power of two (12), not 1",
        ),
        ({"rows": 2}, ValueError, "rows must be within 4..64, not 2"),
        ({"columns": 128}, ValueError, "columns must be within 4..64, not 128"),
        ({"weight_bytes": 3000}, ValueError, "weight_bytes must be a power of two, not 3000"),
        ({"activation_bytes": 512}, ValueError, "activation_bytes must be within 1024..8388608"),
        ({"lanes": 32}, ValueError, "lanes must be at most rows (16) and columns (16), not 32"),
        (
            {"number_format": "int3"},
            ValueError,
            'number_format must be "int8" or a logarithmic one such as "lns1+3+4", not \'int3\'',
        ),
        (
            {"number_format": "lns8"},
            ValueError,
            'number_format: a logarithmic format is named "lns1+I+F", such as "lns1+3+4", not',
        ),
        ({"number_format": "lns1+1+2"}, ValueError, "must have 5 to 20 bits with its sign, not 4"),
        (
            {"number_format": "lns1+4+4"},
            ValueError,
            "number_format: an array's logarithmic format must have at most 8 bits, not 9",
        ),
        (
            {"number_format": "lns1+5+2"},
            ValueError,
            "number_format: an array's logarithmic format must have at most 4 integer bits, not 5",
        ),
        (
            {"number_format": "lns1+03+4"},
            ValueError,
            "number_format must be written \"lns1+3+4\", not 'lns1+03+4'",
        ),
        (
            {"number_format": "lns1+3+4", "packed_rows": 2},
            ValueError,
            "packed_rows must be 0 with number_format 'lns1+3+4', not 2",
        ),
        (
            {"number_format": "lns1+3+4", "multiplier": "lut"},
            ValueError,
            "multiplier must be 'plain' with number_format 'lns1+3+4', not 'lut'",
        ),
        (
            COMPACT | {"number_format": "lns1+2+2"},
            ValueError,
            "engine must be 'pipelined' with number_format 'lns1+2+2', not 'compact'",
        ),
        ({"multiplier": "booth"}, ValueError, "multiplier must be one of"),
        ({"pixels": 3}, ValueError, "pixels must be a power of two, not 3"),
        ({"pixels": 32}, ValueError, "pixels must be within 1..16, not 32"),
        ({"accumulator_depth": 8}, ValueError, "accumulator_depth must be within 16..4096, not 8"),
        ({"packed_rows": 17}, ValueError, "packed_rows must be within 0..16 (rows), and 0 with"),
        ({"packed_rows": -1}, ValueError, "packed_rows must be within 0..16 (rows), and 0 with"),
        ({"packed_rows": True}, TypeError, "packed_rows must be int, not True"),
        # whole words make a tile, and one comes in at most every four cycles
        ({"weight_rows": 3}, ValueError, "weight_rows must be a power of two, not 3"),
        ({"weight_rows": 8}, ValueError, "weight_rows must be within 1..4, not 8"),
        ({"rows": 4, "lanes": 4, "weight_rows": 2}, ValueError, "must be within 1..1, not 2"),
        ({"ninth_bits": 2}, ValueError, "ninth_bits must be 0 or 1, not 2"),
        ({"halved_tables": -1}, ValueError, "halved_tables must be 0 or 1, not -1"),
        (
            {"columns": 4, "lanes": 4, "ninth_bits": 1},
            ValueError,
            "with weight words of 4 bytes, no multiple of 8",
        ),
        (
            {"rows": 64, "weight_rows": 16, "ninth_bits": 1},
            ValueError,
            "weight_rows must divide 72 with ninth_bits, not 16",
        ),
        ({"dram_clock_hz": 75_000_000}, ValueError, "must be 0 without DDR3, not 75000000"),
        (
            {"dram": "MT48LC16M16", "dram_clock_hz": 75_000_000},
            ValueError,
            "dram_clock_hz must be 0 without DDR3, not 75000000",
        ),
        (
            {"dram": "MT41K256M16", "dram_clock_hz": 100_000_001},
            ValueError,
            "dram_clock_hz must be 0 or within 40000000..100000000, not 100000001",
        ),
        (
            {"parameter_words": 16},
            ValueError,
            'parameter_words must be 0 with engine "pipelined", whose parameters lie in the weight'
            " memory, not 16",
        ),
        (
            COMPACT | {"parameter_words": 48},
            ValueError,
            "parameter_words must be a power of two, 16..65536, not 48",
        ),
        (COMPACT | {"weight_rows": 2}, ValueError, "weight_rows must be within 1..1, not 2"),
        (COMPACT | {"packed_rows": 1}, ValueError, 'and 0 with engine "compact", not 1'),
        (
            COMPACT | {"halved_tables": 1},
            ValueError,
            'halved_tables must be 0 with engine "compact", not 1',
        ),
        ({"drain_tables": 2}, ValueError, "drain_tables must be 0 or 1, not 2"),
        (
            {"drain_tables": 1, "halved_tables": 1},
            ValueError,
            "drain_tables must be 0 with engine 'pipelined' and halved_tables 1, not 1",
        ),
        ({"products": 2}, ValueError, "products must be 0 or 1, not 2"),
        (
            {"products": 1, "number_format": "lns1+3+4"},
            ValueError,
            "products must be 0 with engine 'pipelined' and number_format 'lns1+3+4', not 1",
        ),
        (COMPACT | {"products": 1}, ValueError, "products must be 0 with engine 'compact'"),
        (
            {"payload_bytes": 64, "columns": 64},
            ValueError,
            "payload_bytes must be at least 68, a weight word of 64 bytes and its address, not 64",
        ),
        (
            {"payload_bytes": 128, "weight_rows": 8, "rows": 32, "ninth_bits": 1},
            ValueError,
            "payload_bytes must be at least 148, a weight word of 144 bytes and its address, not",
        ),
        ({"silicon": 2}, ValueError, "silicon must be 0 or 1, not 2"),
        ({"silicon": 1, "packed_rows": 1}, ValueError, "packed_rows must be 0 with silicon, not 1"),
        (
            {"silicon": 1, "multiplier": "lut"},
            ValueError,
            "silicon must be 0 with engine 'pipelined' and multiplier 'lut', not 1",
        ),
        (COMPACT | {"silicon": 1}, ValueError, "silicon must be 0 with engine 'compact'"),
        (COMPACT | {"drain_tables": 1}, ValueError, "drain_tables must be 0 with engine 'compact'"),
        (COMPACT | {"ninth_bits": 1}, ValueError, 'ninth_bits must be 0 with engine "compact"'),
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


@pytest.mark.parametrize(
    ("fields", "depthwise", "pairs"),
    [
        ({}, True, True),
        ({"pixels": 2}, False, False),
        ({"rows": 16}, False, True),
        # 48 rows have 64 banks: half a window more would lie in no bank of its own
        ({"rows": 48}, True, False),
        ({"rows": 64}, True, True),
        # nine rows behind the packed ones hold a kernel's taps
        ({"packed_rows": 15}, True, True),
        ({"packed_rows": 23}, True, False),
        ({"packed_rows": 24}, False, False),
        # both halves of a pair must be rows of their own kind
        ({"packed_rows": 16}, True, False),
    ],
)
def test_modes_that_an_array_takes(fields: Any, depthwise: bool, pairs: bool) -> None:
    """Depthwise taps and pairs of vectors are for one pixel, and for rows that are not packed."""
    shape: dict[str, Any] = {"rows": 32, "columns": 16}
    configuration = Configuration(**(shape | fields))
    assert (configuration.takes_depthwise, configuration.takes_pairs) == (depthwise, pairs)
    assert configuration.windows == (2 if pairs else configuration.pixels)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"weight_rows": 1}, 9),
        ({"weight_rows": 2}, 5),
        ({"weight_rows": 4}, 3),
        ({"weight_rows": 4, "ninth_bits": 1}, 18),
        ({"weight_rows": 8, "ninth_bits": 1}, 9),
    ],
)
def test_words_of_a_block_of_parameters(fields: Any, words: int) -> None:
    """72 bits a column: a byte a row and word, or a bit."""
    configuration = Configuration(rows=32, **fields)
    assert configuration.parameter_block_words == words
    unit = configuration.weight_rows * 16
    assert configuration.weight_word_bytes == unit
    assert configuration.weight_unit_bytes == unit + ("ninth_bits" in fields) * unit // 8


def test_multipliers_of_the_array() -> None:
    """A packed row takes half a multiplier a column, one of look-up tables none."""
    assert Configuration(rows=32, packed_rows=13).element_multipliers == 19 * 16 + 13 * 8
    assert Configuration(rows=32, packed_rows=13, multiplier="lut").element_multipliers == 13 * 8
    assert Configuration(pixels=2).element_multipliers == 512


def test_a_logarithmic_array_takes_no_multipliers() -> None:
    logarithmic = Configuration(number_format="lns1+3+2")
    assert logarithmic.element_multipliers == 0
    assert logarithmic.logarithmic is not None
    assert logarithmic.logarithmic.lns.bits == 6
    assert logarithmic.logarithmic is Configuration(number_format="lns1+3+2").logarithmic
    assert Configuration().logarithmic is None
    assert (logarithmic.kept_padding, Configuration().kept_padding) == (0, -128)


@pytest.mark.parametrize(
    "fields",
    [
        {"number_format": "lns1+4+3"},
        {"weight_rows": 4},
        {"packed_rows": 3},
        {"ninth_bits": 1},
        {"halved_tables": 1},
        {"drain_tables": 1},
        {"products": 1},
        {"silicon": 1},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_other_hardware_has_another_fingerprint(fields: Any) -> None:
    assert Configuration(**fields).fingerprint != Configuration().fingerprint


def test_another_clock_of_ddr3_is_other_hardware() -> None:
    ddr3 = Configuration(rows=16, dram="MT41K256M16")
    faster = Configuration(rows=16, dram="MT41K256M16", dram_clock_hz=100_000_000)
    assert faster.fingerprint != ddr3.fingerprint
    assert faster.dram_peak * 3 == ddr3.dram_peak * 4


@pytest.mark.parametrize("chip", ["", "MT48LC16M16", "MT41K256M16"])
def test_another_dram_has_its_usual_clock(chip: str) -> None:
    """The same DDR3 keeps a clock of its own; another chip has its usual one."""
    faster = Configuration(rows=16, dram="MT41K256M16", dram_clock_hz=100_000_000)
    expected = faster if chip == faster.dram else Configuration(rows=16, dram=chip)
    assert faster.with_dram(chip) == expected
    assert Configuration(rows=16, dram=chip).with_dram("") == Configuration(rows=16)


def test_a_clock_is_no_other_hardware() -> None:
    slow = Configuration(clock_hz=25_000_000)
    assert slow.fingerprint == Configuration().fingerprint
    assert slow.fingerprint != Configuration(lanes=4).fingerprint


@pytest.mark.parametrize("name", ["drain_tables", "products", "silicon"])
def test_a_description_from_before_a_field_is_known(name: str) -> None:
    fields: Any = Configuration().to_dict()
    assert name not in fields
    other: Any = Configuration.from_dict({**fields, name: 1})
    assert other.to_dict() == {**fields, name: 1}
    assert Configuration.from_dict(other.to_dict()) == other


def test_a_dictionary_must_have_exactly_the_fields() -> None:
    fields: Any = Configuration().to_dict()
    assert Configuration.from_dict(fields) == Configuration()
    names: Any = list(fields)
    del fields["rows"]
    with pytest.raises(ValueError, match=r"exactly the known fields, not \['rows'\]"):
        Configuration.from_dict(fields)
    with pytest.raises(TypeError, match="a configuration must be a mapping, not list"):
        Configuration.from_dict(names)


@pytest.mark.parametrize(
    ("fields", "together", "starts"),
    [
        # upper and lower half may work on vectors of their own: pairs stay within a half
        ({"silicon": 1, "rows": 16, "columns": 16, "weight_rows": 4}, 2, [0, 0, 4, 4]),
        ({"silicon": 1, "rows": 16, "columns": 16, "weight_rows": 2}, 1, [0, 8]),
        # without such halves two chains are enough
        ({"silicon": 1, "rows": 8, "columns": 8, "weight_rows": 2, "pixels": 2}, 2, [0, 0]),
        # rows that take taps from one another stand alone, and so do an FPGA's
        ({"silicon": 1, "rows": 16, "columns": 8, "weight_rows": 4}, 1, [0, 4, 8, 12]),
        ({"rows": 16, "columns": 16, "weight_rows": 4}, 1, [0, 4, 8, 12]),
    ],
)
def test_rows_that_share_their_sums(fields: Any, together: int, starts: list[int]) -> None:
    c = Configuration(lanes=4, **fields)
    assert c.rows_together == together
    assert [c.chain_start(chain) for chain in range(c.weight_rows)] == starts
