"""Runs of instructions become one: the turns of the golden core are what was merged."""

import pytest
from compiler_checks import check_ways
from random_networks import NetworkBuilder
from slipstick.compiler.timing.cycle_model import CycleModel
from slipstick.compiler.timing.loop_rolling import Repeated, merge
from slipstick.compiler.timing.timeline import Instruction, Timeline
from slipstick.program import Program
from slipstick.program.steps import RunStep
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import INSTRUCTION_BITS, Opcode
from slipstick_rtl.link.protocol import Space
from slipstick_sim.golden.repeats import turn

FIRST = {"bank": 1, "wait": 5, "parts": 0}
CONVOLVE = {**FIRST, "opcode": Opcode.CONVOLVE, "weight_address": 40, "origin": -16}
DRAIN = {**FIRST, "opcode": Opcode.DRAIN, "destination": 96, "parameter_address": 3}
HARDWARE = Configuration(rows=8, columns=8, lanes=4, weight_rows=2)
WAYS = tuple((order, False) for order in ("matrix_first", "post_first", 1, 2))


@pytest.mark.parametrize(
    ("first", "steps"),
    [
        (CONVOLVE, {"weight_step": 72, "origin_step": 8}),
        (CONVOLVE, {"weight_step": 0, "origin_step": 0}),
        ({**CONVOLVE, "parts": 1}, {"weight_step": 8, "origin_step": 0}),
        ({**CONVOLVE, "parts": 1}, {"weight_step": 8, "origin_step": 0, "waits_each": 1}),
        ({**CONVOLVE, "parts": 2}, {"weight_step": 8, "origin_step": 8}),
        ({**DRAIN, "parts": 2}, {"destination_step": 16, "parameter_step": 18}),
        (DRAIN, {"destination_step": 16, "parameter_step": 18}),
    ],
)
def test_turns_are_merged_again(first, steps):
    repeated = {**first, **steps, "repeats": 9}
    turns = [turn(repeated, number) for number in range(10)]
    plain = [{name: t[name] for name in first} for t in turns]
    (merged,) = merge(plain)
    assert merged.values() == repeated
    assert Repeated(first).values() == first


@pytest.mark.parametrize(
    "changes",
    [
        {"wait": 7},
        {"bank": 1},
        {"weight_address": 39},
        {"weight_address": 40 + (1 << 16)},
        {"origin": -17},
        {"origin": 240},
        {"rows": 2},
        {"opcode": Opcode.DRAIN},
    ],
)
def test_what_differs_otherwise_is_no_turn(changes):
    first = {**CONVOLVE, "rows": 1}
    second = {**first, "bank": 0, "weight_address": 50, "origin": -8}
    assert len(merge([first, second])) == 1
    assert len(merge([first, {**second, **changes}])) == 2


def test_only_256_turns_are_one_instruction():
    plain = [{**CONVOLVE, "bank": 1 ^ i & 1, "wait": 5 + max(i - 1, 0)} for i in range(300)]
    # the others wait for one more each, as long as they are few
    assert [item.repeats for item in merge(plain)] == [255, 43]
    assert [item.waits_each for item in merge(plain)] == [False, True]
    again = [{**item, "wait": 5 + max(i % 256 - 1, 0)} for i, item in enumerate(plain)]
    assert [item.repeats for item in merge(again)] == [255, 43]


def _tile(bank: int, parts: int) -> list[Instruction]:
    """Accumulators are filled and drained; nothing else is in the way."""
    matrix = {
        "parts": parts,
        "opcode": Opcode.CONVOLVE,
        "weight_address": 8 * bank,
        "origin": 0,
        "rows": 4,
        "groups": 4,
        "reduction_tiles": 2,
        "pairs": 0,
        "depthwise": 0,
        "from_ninth": 0,
        "whole_words": 1,
    }
    post = {
        "parts": parts,
        "opcode": Opcode.DRAIN,
        "destination": 4 * bank,
        "parameter_address": bank,
        "rows": 4,
        "columns": 4,
        "slices": 1,
    }
    return [
        Instruction(0, matrix, bank=bank),
        Instruction(0, post, bank=bank),
    ]


def _tiles(count: int, parts: int) -> list[Instruction]:
    return [instruction for number in range(count) for instruction in _tile(number, parts)]


def test_who_waits_for_all_before_can_be_one_instruction():
    """In the midst of others the first of some tiles need not wait as turns do; it may."""
    for late, parts, expected in ((False, 1, 7), (True, 1, 6), (False, 0, 6), (True, 0, 6)):
        timeline = Timeline(CycleModel(HARDWARE))
        timeline.extend(_tiles(2, parts))
        timeline.extend(_tiles(6, parts), late=late)
        assert len(timeline) == expected
        matrix, post = timeline.merged()
        assert len(matrix) + len(post) + 2 == len(timeline)
        assert sum(item.repeats + 1 for item in matrix) == len(timeline.matrix) == 8
        assert timeline.copy().merged()[0] == matrix


def _deep() -> NetworkBuilder:
    builder = NetworkBuilder(3, 6, 6, 16)
    builder.same_conv2d(1, 64)
    builder.depthwise((3, 3), 1)
    builder.same_conv2d(3, 64)
    builder.fully_connected(40)
    return builder


def _instructions(program: Program) -> int:
    (image,) = [image for image in program.images if image.space == Space.INSTRUCTIONS]
    return len(image.data) * 8 // INSTRUCTION_BITS


def test_layers_of_many_channels_take_few_instructions():
    program = check_ways(_deep(), HARDWARE, (), WAYS, inspect=False)
    (run,) = [step for step in program.steps if isinstance(step, RunStep)]
    turns = sum(run.instructions)
    assert turns > 2 * (8 + 8 + 8 + 5) - 1
    assert _instructions(program) < turns // 2


def test_less_memory_for_instructions_costs_cycles_only():
    builder = _deep()
    cycles, sizes = [], []
    for words in (1 << 12, 256, 128):
        hardware = Configuration(rows=8, columns=8, lanes=4, weight_rows=2, instruction_words=words)
        program = check_ways(builder, hardware, (), WAYS, inspect=False)
        assert not program.is_streamed
        assert _instructions(program) <= hardware.instructions
        cycles.append(program.predicted_cycles)
        sizes.append(_instructions(program))
    assert sizes == sorted(sizes, reverse=True) and cycles == sorted(cycles)


def test_a_compact_engine_has_no_turns():
    compact = Configuration(
        engine="compact", rows=2, columns=8, lanes=1, parameter_words=256, weight_bytes=1 << 17
    )
    program = check_ways(_deep(), compact, (), WAYS[:1], inspect=False)
    (run,) = [step for step in program.steps if isinstance(step, RunStep)]
    copies = 1 if program.alternate is None else 2
    assert _instructions(program) == copies * (sum(run.instructions) + 2)
