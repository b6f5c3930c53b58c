"""The cycle model's latencies follow the gateware's, give or take a pipeline register."""

from dataclasses import replace
from itertools import pairwise

import pytest
from slipstick.compiler.timing.cycle_model import FETCH_CYCLES, FIELDS_PERIOD, CycleModel
from slipstick_rtl.array.matrix_engine import MatrixEngine
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import Opcode
from slipstick_rtl.postprocess import distances
from slipstick_rtl.postprocess.post_engine import PostEngine

SLACK = 4
"""Cycles an instruction: 150 instructions of ResNet-8 would be 1 % off."""

WIDE = Configuration(rows=32, columns=16, lanes=16, weight_rows=4, ninth_bits=1, halved_tables=1)


@pytest.mark.parametrize(
    "sizes",
    [(1, 8, 8, 4, 1, 0), (2, 16, 16, 8, 2, 0), (1, 32, 16, 16, 4, 0), (1, 32, 16, 16, 4, 1)],
)
def test_latencies(sizes):
    names = ("pixels", "rows", "columns", "lanes", "weight_rows", "ninth_bits")
    configuration = Configuration(**dict(zip(names, sizes, strict=True)))
    model = CycleModel(configuration)
    assert abs(model.matrix_latency - MatrixEngine(configuration=configuration).latency) <= SLACK
    assert abs(model.post_latency - distances.landing_distance(configuration)) <= SLACK
    post = PostEngine(configuration=configuration)
    assert abs(model.parameter_load - post.parameter_period) <= SLACK
    assert distances.FIELDS_PERIOD == FIELDS_PERIOD


def test_results_through_tables_land_later():
    plain, tabulated = (Configuration(drain_tables=value) for value in (0, 1))
    assert CycleModel(tabulated).post_latency == CycleModel(plain).post_latency + 3
    landing = distances.landing_distance
    assert landing(tabulated) == landing(plain) + 3


def _convolve(vectors: int, tiles: int, *, whole_words: int = 1) -> dict[str, int]:
    return {
        "opcode": Opcode.CONVOLVE,
        "rows": 1,
        "groups": vectors,
        "reduction_tiles": tiles,
        "diagonal": 0,
        "depthwise": 0,
        "pairs": 0,
        "from_ninth": 0,
        "whole_words": whole_words,
    }


def _drain(results: int) -> dict[str, int]:
    return {"opcode": Opcode.DRAIN, "rows": 1, "columns": results, "slices": 1}


@pytest.mark.parametrize(("whole_words", "period"), [(1, 8), (0, 32)])
def test_a_tile_lasts_as_long_as_its_weights_and_its_taps(whole_words, period):
    clock = CycleModel(WIDE).clock()
    fields = _convolve(1, 20, whole_words=whole_words)
    starts = [clock.issue(fields, 0, repeated=number > 0)[0] for number in range(3)]
    assert starts[1] - starts[0] == starts[2] - starts[1] == 20 * period
    long = CycleModel(WIDE).clock()
    starts = [long.issue(_convolve(100, 2), 0)[0] for _ in range(3)]
    assert starts[2] - starts[1] == 200


def test_turns_need_no_fetching():
    fetched, repeated = CycleModel(WIDE).clock(), CycleModel(WIDE).clock()
    fields = _convolve(1, 1)
    starts = [fetched.issue(fields, 0)[0] for _ in range(4)]
    turns = [repeated.issue(fields, 0, repeated=number > 0)[0] for number in range(4)]
    assert turns[3] < starts[3] and starts[3] > 3 * FETCH_CYCLES


def test_drains_follow_each_other_without_a_gap():
    clock = CycleModel(WIDE).clock()
    starts = [clock.issue(_drain(100), 0)[0] for _ in range(3)]
    assert starts[1] - starts[0] == starts[2] - starts[1] == 100
    # shorter ones wait for their parameters
    model = CycleModel(WIDE)
    clock = model.clock()
    starts = [clock.issue(_drain(4), 0, repeated=number > 0)[0] for number in range(9)]
    assert min(late - early for early, late in pairwise(starts)) == model.slice_period
    # which are read an instruction ahead
    assert starts[8] - starts[0] < 8 * (model.skew + WIDE.parameter_block_words)


def test_parameters_of_two_slices_come_in_time_beside_an_array_that_loads_weights():
    """As in fully connected layers, whose tiles last as long as their weights load."""
    narrow = replace(WIDE, lanes=8, halved_tables=0)
    alone, beside = CycleModel(narrow).clock(), CycleModel(narrow).clock()
    drain, done = {**_drain(1), "slices": 2}, [0] * 8
    starts, late = [], []
    for number in range(40):
        starts.append(alone.issue(drain, 0, repeated=number > 0)[0])
        # there are eight banks
        _, landed = beside.issue(_convolve(1, 4), done[number], repeated=number > 0)
        start, landed = beside.issue(drain, landed, repeated=number > 0)
        late.append(start)
        done.append(landed)
    # measured on the ULX3S' core: two slices' 50 cycles; 32 words of weights and 18 of parameters
    assert starts[-1] - starts[19] == 20 * 50
    assert late[-1] - late[19] == pytest.approx(20 * 50, rel=0.02)


def test_reads_of_parameters_hold_up_the_loader_of_weights():
    clock = CycleModel(WIDE).clock()
    starts = []
    for number in range(4):
        start, landed = clock.issue(_convolve(1, 20), 0, repeated=number > 0)
        clock.issue(_drain(1), landed, repeated=number > 0)
        starts.append(start)
    assert starts[3] - starts[2] == 20 * 8 + WIDE.parameter_block_words
