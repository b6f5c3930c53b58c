"""Concatenations, slices, borders and enlargements on the device, in every order of execution."""

from contextlib import closing

import numpy as np
import pytest
from copy_networks import concatenate, move, places, random_copies, share_quantization
from hypothesis import given, settings
from hypothesis import strategies as st
from program_runner import run_program
from random_networks import NetworkBuilder
from slipstick.compiler import compile_graph
from slipstick.compiler.lower.data_movement import BORDER, runs
from slipstick.devices import open_device
from slipstick.kernels import run_graph
from slipstick.kernels.tflite.resize import nearest_places
from slipstick.program import Program
from slipstick.program import slip_file as program_file
from slipstick.runtime.executor import Execution
from slipstick.targets import find_target
from slipstick_rtl.config import Configuration

ORDERS = ("matrix_first", "post_first", 1, 2)
SMALL = Configuration(rows=8, columns=8, lanes=4, activation_bytes=1 << 14)


def check(builder: NetworkBuilder, configuration: Configuration, *, inspect: bool) -> Program:
    """Every tensor that comes down is the kernels', whichever stream runs first."""
    graph, image = builder.graph(), builder.images()
    expected = run_graph(graph, [image])
    program = compile_graph(graph, configuration, inspect=inspect)
    program = program_file.decode(program_file.encode(program))
    for order in ORDERS:
        values = run_program(program, {"input": image}, order=order)
        for name, value in values.items():
            np.testing.assert_array_equal(value, expected[name], f"{name}, {order}")
    return program


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 1 << 30), st.sampled_from([4, 8]), st.booleans())
def test_random_copies(seed, lanes, inspect):
    configuration = Configuration(
        rows=8, columns=8, lanes=lanes, activation_bytes=1 << 16, instruction_words=1 << 15
    )
    check(random_copies(seed), configuration, inspect=inspect)


def test_random_copies_on_the_rtl() -> None:
    """The gateware copies as the golden model does, in the cycles that were predicted."""
    configuration = find_target("1x4x4").configuration
    predicted = measured = 0
    with (
        closing(open_device("model", configuration)) as model,
        closing(open_device("sim", configuration)) as sim,
    ):
        for seed in range(25):
            builder = random_copies(seed)
            program = compile_graph(builder.graph(), configuration)
            feed = {"input": builder.images()}
            expected = Execution(program, model).infer(feed)
            execution = Execution(program, sim)
            got = execution.infer(feed)
            for name in program.outputs:
                np.testing.assert_array_equal(got[name], expected[name], f"{seed}: {name}")
            predicted += program.predicted_cycles
            measured += execution.last_cycles or 0
    assert abs(predicted / measured - 1) < 0.05


@pytest.mark.parametrize("inspect", [False, True])
def test_channels(inspect: bool) -> None:
    builder = NetworkBuilder(3, 5, 4, 3)
    first = builder.same_conv2d(3, 8)
    builder.last = "input"
    second = builder.same_conv2d(1, 6)
    share_quantization(builder, [second, first])
    concatenate(builder, [first], 3)
    builder.same_conv2d(3, 16)
    sizes = (1, 5, 4, 7)
    move(builder, "slice", sizes, starts=(0, 0, 0, 8), steps=(1,) * 4, sizes=sizes, shape=sizes)
    builder.same_conv2d(3, 16)
    move(builder, "depth_to_space", (1, 10, 8, 4), block=2)
    move(builder, "space_to_depth", (1, 5, 4, 16), block=2)
    program = check(builder, SMALL, inspect=inspect)
    assert {layer.where for layer in program.layers} == {"device"}
    assert program.layers[2].why == "post-processor, copy"


def test_reasons_for_the_host() -> None:
    builder = NetworkBuilder(4, 5, 4, 3)
    first = builder.same_conv2d(3, 6)
    builder.last = "input"
    second = builder.same_conv2d(1, 6)
    share_quantization(builder, [second, first])
    concatenate(builder, [first], 3)
    program = check(builder, SMALL, inspect=False)
    assert "whole slices of 4" in program.layers[2].why
    builder = NetworkBuilder(5, 5, 4, 3)
    concatenate(builder, ["input"], 1)
    assert "comes from the host" in check(builder, SMALL, inspect=False).layers[0].why


def test_short_memory_leaves_copies_to_the_host() -> None:
    builder = NetworkBuilder(6, 8, 8, 3)
    builder.same_conv2d(1, 8)
    concatenate(builder, [builder.last], 1)
    wide = Configuration(rows=8, columns=8, lanes=4, activation_bytes=1 << 11)
    narrow = Configuration(rows=8, columns=8, lanes=4, activation_bytes=1 << 10)
    assert places(check(builder, wide, inspect=False), "concatenation") == {"device"}
    program = check(builder, narrow, inspect=False)
    assert "no room" in program.layers[1].why


def covered(sources: list[int]) -> list[int]:
    """What the runs say each place's source is."""
    made = [-2] * len(sources)
    for run in runs(sources):
        for number, place in enumerate(range(run.first, run.end, run.step)):
            made[place] = run.origin + number * run.stride
    return made


@given(st.lists(st.integers(BORDER, 5), min_size=1, max_size=24))
def test_runs_cover_all_places(sources: list[int]) -> None:
    assert covered(sources) == sources


def test_runs_are_few() -> None:
    assert len(runs(range(100))) == 1
    assert len(runs([BORDER, BORDER, 0, 1, 2, BORDER])) == 3
    options = {"align_corners": False, "half_pixel_centers": True}
    assert len(runs(nearest_places(30, 90, options).tolist())) == 3
