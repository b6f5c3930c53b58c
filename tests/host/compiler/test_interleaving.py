"""Layers that take turns: what may change places does, and the waits keep the rest in order."""

import itertools

import numpy as np
import pytest
from program_runner import run_program
from random_networks import NetworkBuilder
from shared_data import shared
from slipstick.compiler import compile_graph, whole
from slipstick.compiler.codegen.assemble import Assembler
from slipstick.compiler.scheduling.groups import Tiling
from slipstick.compiler.scheduling.interleave import (
    Unit,
    UnitSequence,
    UnitSequences,
    joined,
    units,
)
from slipstick.compiler.timing.cycle_model import Clock, CycleModel
from slipstick.compiler.timing.timeline import Instruction, Issued, Region, collide
from slipstick.frontends import load
from slipstick.program.slip_file import encode
from slipstick.program.steps import Placement
from slipstick.targets import find_target
from slipstick.verify.tflm_reference import TflmReference
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import Opcode

LARGE = find_target("ecpix5-85f").configuration


def _convolve(bank: int, row: int = 0) -> Instruction:
    fields = {"opcode": Opcode.CONVOLVE, "rows": 1, "groups": 1, "origin_y": row, "origin_x": 0}
    return Instruction(0, fields, bank=bank)


def _drain(bank: int) -> Instruction:
    return Instruction(0, {"opcode": Opcode.DRAIN}, bank=bank)


def _map(*, table: int = 0, opcode: Opcode = Opcode.MAP) -> Instruction:
    return Instruction(1, {"opcode": opcode, "use_table": table})


def _sequence(group: int, units: list[Unit]) -> UnitSequence:
    return UnitSequence((group, Tiling(1)), units, len(units), [], [])


def test_units_hold_their_banks_until_they_are_drained():
    one, other, sums = [_convolve(0), _drain(0)], [_convolve(1, 1), _drain(1)], [_map()]
    assert units([*one, *sums, *other]) == [tuple(one), tuple(sums), tuple(other)]
    early = [_convolve(0), _convolve(1), _convolve(0), _drain(0), _convolve(1), _drain(1)]
    assert units([*early, *sums]) == [tuple(early), tuple(sums)]


def test_turns_stay_together():
    turns = [(_convolve(bank), _drain(bank)) for bank in range(3)]
    other = (_convolve(3, 1), _drain(3))
    assert joined([*turns, other]) == [tuple(itertools.chain(*turns)), other]
    maps = [(_map(),), (_map(),)]
    assert joined(maps) == maps


def test_a_table_keeps_its_place():
    sequences = UnitSequences(CycleModel(LARGE), joins=False)
    earlier = _sequence(0, [(_map(table=1),), (_map(),)])
    table = _sequence(1, [(_map(opcode=Opcode.TABLE),), (_map(),)])
    assert sequences.needs(table, earlier) == [1, 0]
    behind = _sequence(2, [(_map(table=2),), (_map(opcode=Opcode.TABLE),)])
    assert sequences.needs(behind, table) == [1, 1]


def test_rows_come_as_soon_as_what_they_read_is_there():
    place = Placement(0, 8, 8, 4, 1, 8)

    def rows(first: int, last: int) -> tuple[Region, ...]:
        return (Region(place, (first, last), (0, 8)),)

    makers = [(Instruction(0, {"opcode": Opcode.MAP}, writes=rows(y, y + 1)),) for y in range(4)]
    reads = [rows(0, 2), rows(1, 4), rows(0, 1)]
    readers = [(Instruction(1, {"opcode": Opcode.MAP}, reads=read),) for read in reads]
    earlier, later = _sequence(0, makers), _sequence(1, readers)
    assert UnitSequences(CycleModel(LARGE), joins=False).needs(later, earlier) == [2, 4, 1]


def _orders(first: list[Issued], second: list[Issued]) -> None:
    """Whatever two instructions of unlike streams touch, one is done before the other starts."""
    reached = list(itertools.accumulate((item.wait for item in second), max))
    waits = list(itertools.accumulate((item.wait for item in first), max))
    for (i, a), (j, b) in itertools.product(enumerate(first), enumerate(second)):
        if _share(a.accumulators, b.accumulators) or collide(a.instruction, b.instruction):
            assert waits[i] > j or reached[j] > i, (a, b)


def _share(one: tuple[int, int, int] | None, other: tuple[int, int, int] | None) -> bool:
    if one is None or other is None:
        return False
    return one[0] == other[0] and one[1] < other[2] and other[1] < one[2]


@pytest.mark.parametrize("shape", [(8, 8, 4), (16, 8, 8), (8, 4, 4)])
def test_trials_that_end_early_change_no_program(
    shape: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The least end that a trial can have is no later than the end that it has."""
    rows, columns, lanes = shape
    configuration = Configuration(rows=rows, columns=columns, lanes=lanes, accumulator_depth=64)
    builder = NetworkBuilder(6, 12, 12, 4)
    shortcut = builder.same_conv2d(3, 8)
    builder.depthwise((3, 3), 1)
    builder.same_conv2d(1, 8)
    builder.add(shortcut)
    builder.same_conv2d(3, 24)
    builder.same_conv2d(3, 8)
    found = encode(compile_graph(builder.graph(), configuration))
    asked = []
    plain = Clock.end_after

    def never(clock: Clock, array_work: int, post_work: int) -> int:
        asked.append(plain(clock, array_work, post_work))
        return 0

    monkeypatch.setattr(Clock, "end_after", never)
    assert encode(compile_graph(builder.graph(), configuration)) == found
    assert len(asked) > 100


@pytest.mark.borrows
def test_resnet8_is_woven(monkeypatch):
    path = shared("models/ic01_resnet8_int8.tflite")
    streams = []

    class Recording(Assembler):
        def __init__(self, operations, arrangement, timelines) -> None:
            streams.extend(timelines.values())
            super().__init__(operations, arrangement, timelines)

    monkeypatch.setattr(whole, "Assembler", Recording)
    graph = load(path)
    program = compile_graph(graph, LARGE)
    (timeline,) = streams
    owners = [item.instruction.operation for item in timeline.matrix]
    assert len(list(itertools.groupby(owners))) > len(set(owners))
    _orders(timeline.matrix, timeline.post)
    assert len(timeline) <= LARGE.instructions
    shape = graph.tensors[graph.inputs[0]].shape
    image = np.random.default_rng(2).integers(-128, 128, shape).astype(np.int8)
    expected = TflmReference(path).run_layers(image)
    for order in ("matrix_first", "post_first", 1, 2):
        values = run_program(program, {graph.inputs[0]: image}, order=order)
        for name in graph.outputs:
            np.testing.assert_array_equal(values[name].reshape(-1), expected[name].reshape(-1))
