"""Cuts of a graph: what crosses them, and the same results wherever they are."""

import itertools

import numpy as np
import pytest
from random_networks import NetworkBuilder, random_network, some_outputs
from slipstick.compiler.stages.cut import Crossings, cut_graph, part_of
from slipstick.compiler.stages.pipeline import compile_stages
from slipstick.compiler.stages.staged_program import Division, join_programs
from slipstick.devices.group import DeviceGroup, GroupKind
from slipstick.devices.model import ModelDevice
from slipstick.errors import ProgramError
from slipstick.graph import Graph
from slipstick.kernels.dispatch import run_graph
from slipstick.passes import optimize
from slipstick.runtime.executor import Execution
from slipstick.runtime.stages.pipeline_execution import PipelineExecution
from slipstick.targets import find_target

BOARDS = [find_target(name).configuration for name in ("sim-small", "ulx3s-12f")]
IMAGES = 3


def residual() -> NetworkBuilder:
    """Two convolutions with a shortcut around them, and one that begins at the input."""
    builder = NetworkBuilder(11, 6, 6, 4)
    first = builder.same_conv2d(3, 4)
    builder.same_conv2d(3, 4)
    builder.same_conv2d(3, 4)
    added = builder.add(first)
    builder.last = "input"
    builder.same_conv2d(1, 4)
    builder.add(added)
    return builder


def check_cuts(graph: Graph, images: np.ndarray) -> int:
    """Cuts in two at every place: the results on unlike boards must be the kernels'."""
    expected = run_graph(graph, [images])
    for end in range(1, len(graph.nodes)):
        program = compile_stages(graph, [end], BOARDS, effort=0)
        devices = [ModelDevice(board) for board in BOARDS]
        group = DeviceGroup(GroupKind.PIPELINE, ["one", "two"], devices)
        values = PipelineExecution(program, group, Execution).infer_batch({"input": images})
        for name in graph.outputs:
            np.testing.assert_array_equal(values[name], expected[name], f"{name}, cut at {end}")
    return len(graph.nodes) - 1


@pytest.mark.parametrize("seed", range(8))
def test_a_network_cut_anywhere_gives_the_same_codes(seed: int) -> None:
    builder = random_network(seed)
    graph = builder.graph(*some_outputs(builder))
    images = np.concatenate([builder.images() for _ in range(IMAGES)])
    check_cuts(graph, images)
    check_cuts(optimize(graph), images)


def test_a_shortcut_crosses_the_cuts_around_which_it_goes() -> None:
    builder = residual()
    graph = builder.graph()
    first, second, third, _, _, _ = (node.outputs[0] for node in graph.nodes)
    parts = cut_graph(graph, [2])
    assert parts[0].inputs == ("input",) and set(parts[0].outputs) == {first, second}
    assert set(parts[1].inputs) == {"input", first, second}
    middle = part_of(graph, 2, 3)
    assert middle.inputs == (second,) and middle.outputs == (third,)
    assert check_cuts(graph, builder.images()) == 5


def test_codes_cross_with_their_scale_and_zero_point() -> None:
    graph = residual().graph()
    for part in cut_graph(graph, [1, 3]):
        for name in (*part.inputs, *part.outputs):
            assert part.tensors[name] == graph.tensors[name]


@pytest.mark.parametrize("seed", range(20, 30))
def test_crossings_are_the_sizes_of_inputs_and_outputs(seed: int) -> None:
    builder = random_network(seed)
    graph = builder.graph(*some_outputs(builder))
    crossings, count = Crossings(graph), len(graph.nodes)
    for first, end in itertools.combinations(range(count + 1), 2):
        part = part_of(graph, first, end)
        sizes = [
            sum(int(np.prod(part.tensors[name].shape)) for name in names)
            for names in (part.inputs, part.outputs)
        ]
        assert crossings(first, end) == tuple(sizes)


def test_an_output_may_be_an_input_and_stages_may_have_none_of_it() -> None:
    builder = residual()
    graph = builder.graph("input", builder.last)
    check_cuts(graph, builder.images())


def test_the_joined_program_is_for_no_single_board() -> None:
    graph = residual().graph()
    program = compile_stages(graph, [2], BOARDS, effort=0)
    assert program.inputs == ("input",) and program.outputs == graph.outputs
    assert program.predicted_cycles == sum(stage.predicted_cycles for stage in program.stages)
    with pytest.raises(ProgramError, match="divided among 2 boards: run it on device pipeline:"):
        Execution(program, ModelDevice(BOARDS[0]))
    with pytest.raises(ProgramError, match="divided among 2 boards, not 1"):
        program.check_boards(BOARDS[:1])
    with pytest.raises(ProgramError, match="stage 1 of 2: program .* compiled for hardware"):
        program.check_boards(BOARDS[::-1])


def test_stages_must_belong_together() -> None:
    graph = residual().graph()
    program = compile_stages(graph, [2], BOARDS, effort=0)
    described = {name: program.tensors[name] for name in (*program.inputs, *program.outputs)}
    ends = program.inputs, program.outputs, described, Division.PIPELINE
    with pytest.raises(ProgramError, match="nothing makes .* for stage 1"):
        join_programs("network", *ends, program.stages[::-1])
    with pytest.raises(ProgramError, match="no stage makes the output"):
        join_programs("network", *ends, program.stages[:1])
    with pytest.raises(ProgramError, match="at least one stage"):
        join_programs("network", *ends, [])
