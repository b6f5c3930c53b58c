"""The vectorised DRAIN and MAP against the instruction set's loop nests, blocks of parameters."""

from itertools import product

import numpy as np
import pytest
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import Opcode, Rounding
from slipstick_rtl.numbers.rounding import clamp, requantize
from slipstick_sim.benches.stimulus.random_post import (
    Fields,
    place_parameters,
    random_parameters,
    random_post,
)
from slipstick_sim.golden.parameters import Parameters, decode_block, encode_block, parameter_block
from slipstick_sim.golden.post import drain, load_table, map_taps, table_entries

CONFIGURATION = Configuration(
    pixels=2,
    rows=8,
    columns=16,
    lanes=4,
    activation_bytes=1 << 12,
    weight_bytes=1 << 12,
    accumulator_depth=64,
)
LANES = CONFIGURATION.lanes


def _nest(
    fields: Fields,
    accumulators: np.ndarray,
    table: np.ndarray,
    parameters: Parameters,
    memory: np.ndarray,
) -> np.ndarray:
    """DRAIN or MAP of one image, word by word, as the docstrings of the opcodes say."""
    result = memory.copy()
    draining = fields["opcode"] == Opcode.DRAIN
    loops = product(*(range(fields[name]) for name in ("slices", "rows", "columns")))
    for part, row, column in loops:
        if draining:
            group = row * -(-fields["columns"] // 2) + column // 2
            value = accumulators[group, column % 2, part * LANES : (part + 1) * LANES]
        else:
            value = None
            for tap_y, tap_x in product(range(fields["taps_y"]), range(fields["taps_x"])):
                address = fields["source"] + part * LANES
                address += row * fields["source_row_step"] + column * fields["source_column_step"]
                address += tap_y * fields["tap_step_y"] + tap_x * fields["tap_step_x"]
                tap = memory[address : address + LANES].astype(np.int32)
                if fields["use_table"] >> tap_x % 2 & 1:
                    tap = table[256 * (tap_x % 2) + tap + 128]
                elif fields["shift_taps"]:
                    tap = tap * 2**19
                combine = np.maximum if fields["take_maximum"] else np.add
                value = tap if value is None else combine(value, tap)
        first = part * LANES if draining else 0
        bias, multiplier, shift = (array[first : first + LANES] for array in parameters)
        rounded = requantize(value, bias, multiplier, shift, Rounding(fields["rounding"]))
        address = fields["destination"] + row * fields["destination_row_step"]
        address += column * fields["destination_column_step"] + part * LANES
        address %= len(result)
        result[address : address + LANES] = clamp(
            rounded, fields["zero_point"], fields["minimum"], fields["maximum"]
        )
    return result


def test_equals_the_loop_nest() -> None:
    generator = np.random.default_rng(1)
    weights = generator.integers(-128, 128, (256, 1, 16), np.int8)
    ninth = np.zeros(weights.shape, np.uint8)
    place_parameters(CONFIGURATION, random_parameters(generator, CONFIGURATION), weights, ninth)
    memory = generator.integers(-128, 128, (3, CONFIGURATION.activation_bytes), np.int8)
    table = generator.integers(-(2**17), 2**17, table_entries(CONFIGURATION)).astype(np.int32)
    for _ in range(120):
        fields = random_post(generator, CONFIGURATION)
        if fields["opcode"] == Opcode.TABLE:
            continue
        accumulators = generator.integers(-(2**17), 2**17, (3, 64, 2, 16)).astype(np.int32)
        address = fields["parameter_address"]
        parameters = parameter_block(weights, ninth, address, CONFIGURATION)
        expected = [
            _nest(fields, sums, table, parameters, image)
            for sums, image in zip(accumulators, memory, strict=True)
        ]
        if fields["opcode"] == Opcode.DRAIN:
            drain(fields, accumulators, parameters, memory, CONFIGURATION)
        else:
            map_taps(fields, table, parameters, memory, CONFIGURATION)
        np.testing.assert_array_equal(memory, expected, str(fields))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows": 0}, "rows must be at least 1, not 0"),
        ({"rows": 65}, "accumulators of DRAIN must lie within 0..64, not 0..65"),
        ({"slices": 5}, "channels of DRAIN must lie within 0..16, not 0..20"),
        ({"destination": 4096}, "destination must lie within 0..4096, not 4096..4100"),
        ({"destination": 2}, "destination must lie at multiples of 4 bytes, not 2"),
        ({"taps_y": 0}, "MAP must have at least one tap, not 0"),
        ({"source": 4092, "tap_step_y": 4, "taps_y": 2}, "source of MAP must lie within"),
        ({"table_words": 129}, "entries of TABLE must lie within 0..512, not 0..516"),
        ({"table_address": 256}, "weight words of TABLE must lie within 0..256, not 256..257"),
    ],
)
def test_refuses(changes: Fields, message: str) -> None:
    fields = dict.fromkeys(random_post(np.random.default_rng(0), CONFIGURATION), 0)
    fields |= {"rows": 1, "columns": 1, "slices": 1, "taps_y": 1, "taps_x": 1, "table_words": 1}
    fields |= changes
    bias, multiplier, shift = random_parameters(np.random.default_rng(0), CONFIGURATION)
    parameters = bias[0], multiplier[0], shift[0]
    memory = np.zeros((1, 4096), np.int8)
    table = np.zeros(table_entries(CONFIGURATION), np.int32)
    with pytest.raises(ValueError, match=message):
        if any(name.startswith("table") for name in changes):
            load_table(fields, np.zeros((256, 1, 16), np.int8), table, CONFIGURATION)
        elif any(name.startswith(("tap", "source")) for name in changes):
            map_taps(fields, table, parameters, memory, CONFIGURATION)
        else:
            drain(fields, np.zeros((1, 64, 2, 16), np.int32), parameters, memory, CONFIGURATION)


@pytest.mark.parametrize(
    "shape",
    [
        {"rows": 8, "columns": 8, "lanes": 4},
        {"rows": 32, "columns": 16, "lanes": 16, "weight_rows": 4},
        {"rows": 32, "columns": 16, "lanes": 16, "weight_rows": 4, "ninth_bits": 1},
        {"rows": 64, "columns": 8, "lanes": 4, "weight_rows": 16},
    ],
)
def test_blocks_of_parameters(shape: dict[str, int]) -> None:
    configuration = Configuration.from_dict(Configuration().to_dict() | shape)
    generator, columns = np.random.default_rng(1), configuration.columns
    bias = generator.integers(-(2**31), 2**31, columns)
    multiplier = generator.integers(0, 2**31, columns)
    shift = generator.integers(2, 41, columns)
    block = encode_block(configuration, bias, multiplier, shift)
    assert block.dtype == (np.uint8 if configuration.ninth_bits else np.int8)
    for decoded, values in zip(
        decode_block(configuration, block), (bias, multiplier, shift), strict=True
    ):
        np.testing.assert_array_equal(decoded, values)
    # as the instruction set says: element k of channel j is (k mod W) * C + j of word k div W
    number = int(bias[3]) % 2**32 + (int(multiplier[3]) << 32) + (int(shift[3]) << 64)
    size, rows = 1 if configuration.ninth_bits else 8, configuration.weight_rows
    for k in range(72 // size):
        element = int(block[k // rows, k % rows, 3]) % 2**size
        assert element == number >> size * k & (2**size - 1)


def test_refuses_parameters_that_do_not_fit() -> None:
    words = np.zeros((9, 1, 16), np.int8)
    zeros = np.zeros(16, np.int64)
    with pytest.raises(ValueError, match=r"parameter words must lie within 0..9, not 1..10"):
        parameter_block(words, words.astype(np.uint8), 1, CONFIGURATION)
    with pytest.raises(ValueError, match=r"must be shaped \(9, 1, 16\), not \(8, 1, 16\)"):
        decode_block(CONFIGURATION, words[:8])
    with pytest.raises(ValueError, match=r"multiplier must have 16 values, not \(4,\)"):
        encode_block(CONFIGURATION, zeros, zeros[:4], zeros)
    with pytest.raises(ValueError, match=r"shift must be within 0..255, not 256"):
        encode_block(CONFIGURATION, zeros, zeros, zeros + 256)
