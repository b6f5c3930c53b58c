"""Short tiles take parts of the accumulators' banks in turn, and never one that is in use."""

from dataclasses import replace

import pytest
from compiler_checks import check_ways
from random_networks import NetworkBuilder
from slipstick.compiler.timing.cycle_model import CycleModel
from slipstick.compiler.timing.timeline import Instruction, Issued, Timeline
from slipstick.program import Program
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import (
    INSTRUCTION_BITS,
    MATRIX_FIELDS,
    POST_FIELDS,
    Opcode,
    opcode_of,
    unpack,
)
from slipstick_rtl.link.protocol import Space

HARDWARE = Configuration(rows=16, columns=8, lanes=4, weight_rows=2, accumulator_depth=64)
WAYS = tuple((order, False) for order in ("matrix_first", "post_first", 1, 2))


def _parts(program: Program) -> list[tuple[int, int]]:
    """Words of accumulators and parts, of all instructions that use accumulators."""
    (image,) = [image for image in program.images if image.space == Space.INSTRUCTIONS]
    size, found = INSTRUCTION_BITS // 8, []
    for at in range(0, len(image.data), size):
        word = image.data[at : at + size]
        if opcode_of(word) == Opcode.CONVOLVE:
            fields = unpack(MATRIX_FIELDS, word)
            found.append((fields["rows"] * fields["groups"], fields["parts"]))
        elif opcode_of(word) == Opcode.DRAIN:
            fields = unpack(POST_FIELDS, word)
            found.append((fields["rows"] * fields["columns"], fields["parts"]))
    return found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("inspect", [False, True])
def test_layers_with_banks_of_all_sizes(seed, inspect):
    builder = NetworkBuilder(seed, 5, 36, 8)
    builder.same_conv2d(1, 40)  # a row is more than half a bank
    builder.depthwise((3, 3), 1)
    builder.same_conv2d(3, 24)
    builder.pool("max_pool2d", (2, 2))
    builder.same_conv2d(1, 40)
    builder.fully_connected(100)
    builder.fully_connected(90)
    program = check_ways(builder, HARDWARE, (), WAYS, inspect=inspect)
    used = _parts(program)
    assert {parts for _, parts in used} >= {0, 2}
    for words, parts in used:
        assert words <= HARDWARE.accumulator_depth >> parts


def test_several_pixels_have_whole_banks():
    """Each is one memory, of which no part can be read while the array adds to another."""
    builder = NetworkBuilder(9, 5, 6, 8)
    builder.same_conv2d(3, 40)
    builder.fully_connected(60)
    for hardware, largest in ((HARDWARE, 2), (replace(HARDWARE, pixels=2), 0)):
        program = check_ways(builder, hardware, (), WAYS, inspect=False)
        assert max(parts for _, parts in _parts(program)) == largest


def _tile(bank: int, parts: int, words: int) -> list[Instruction]:
    matrix = {
        "opcode": Opcode.CONVOLVE,
        "weight_address": 8 * bank,
        "origin": 0,
        "rows": 1,
        "groups": words,
        "parts": parts,
        "depthwise": 0,
        "pairs": 0,
        "reduction_tiles": 4,
        "from_ninth": 0,
        "whole_words": 1,
    }
    post = {
        "opcode": Opcode.DRAIN,
        "destination": 4 * bank,
        "parameter_address": bank,
        "rows": 1,
        "columns": words,
        "slices": 1,
        "parts": parts,
    }
    return [Instruction(0, fields, bank=bank) for fields in (matrix, post)]


def _layer(count: int, parts: int, words: int) -> list[Instruction]:
    return [instruction for n in range(count) for instruction in _tile(n, parts, words)]


def _waits(issued: list[Issued]) -> list[int]:
    return [item.wait for item in issued]


def test_a_tile_waits_for_the_one_whose_accumulators_it_takes():
    for parts in range(3):
        timeline = Timeline(CycleModel(HARDWARE))
        timeline.extend(_layer(12, parts, 9))
        assert _waits(timeline.matrix) == [max(n + 1 - (2 << parts), 0) for n in range(12)]
        assert _waits(timeline.post) == list(range(1, 13))
        assert len(timeline) == 4
    # from eight banks to two: each half was last used by one of the last two tiles
    timeline = Timeline(CycleModel(HARDWARE))
    timeline.extend(_layer(8, 2, 9))
    timeline.extend(_layer(3, 0, 60))
    assert _waits(timeline.matrix)[8:] == [7, 8, 9]
    assert [item.bank for item in timeline.matrix[8:]] == [0, 1, 0]
    # and back: the first part of a half is free when all of the half is
    timeline.extend(_layer(3, 2, 9))
    assert [item.bank for item in timeline.matrix[11:]] == [3, 4, 5]
    assert _waits(timeline.matrix)[11:] == [10, 11, 11]


def test_short_tiles_do_not_wait_for_each_other():
    ends = []
    for parts in range(3):
        timeline = Timeline(CycleModel(HARDWARE))
        timeline.extend(_layer(16, parts, 1))
        ends.append(timeline.end)
    assert ends[0] > ends[1] >= ends[2]


def test_what_reads_all_channels_begins_with_the_first():
    roomy = Configuration(rows=16, columns=8, lanes=4, weight_rows=4)
    builder = NetworkBuilder(8, 7, 7, 16)
    for _ in range(2):
        builder.conv2d(
            64, (3, 3), 64 if builder.shape()[3] == 64 else 1, stride=(1, 1), dilation=(1, 1),
            padding=(1, 1, 1, 1), sides=builder.shape()[1:3], spread=0.2,
        )  # fmt: skip
    builder.same_conv2d(1, 64)
    builder.fully_connected(64)
    builder.fully_connected(64)
    program = check_ways(builder, roomy, (), WAYS, inspect=False)
    (image,) = [image for image in program.images if image.space == Space.INSTRUCTIONS]
    size = INSTRUCTION_BITS // 8
    words = [image.data[at : at + size] for at in range(0, len(image.data), size)]
    convolves = [unpack(MATRIX_FIELDS, w) for w in words if opcode_of(w) == Opcode.CONVOLVE]
    assert any(fields["accumulate"] for fields in convolves)
