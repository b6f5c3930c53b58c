"""Plans for several boards: balanced stages, divided layers, and which of them is faster."""

import numpy as np
import pytest
import stateful_networks as networks
from random_networks import NetworkBuilder, random_network, some_outputs
from slipstick.compiler import compile_graph
from slipstick.compiler.stages.choose import choose
from slipstick.compiler.stages.pipeline import plan_pipeline, whole_programs
from slipstick.compiler.stages.shard import channel_bounds, divisible_layers, shard_graph
from slipstick.compiler.stages.split import plan_split
from slipstick.compiler.stages.staged_program import Division, staged_program
from slipstick.devices.group import DeviceGroup, GroupKind
from slipstick.devices.model import ModelDevice
from slipstick.errors import UnsupportedError
from slipstick.frontends.tflite import load_tflite_bytes
from slipstick.graph import Graph
from slipstick.kernels.dispatch import run_graph
from slipstick.passes import optimize
from slipstick.runtime.stages.board_time import BoardTime, board_of
from slipstick.runtime.stages.split_execution import SplitExecution
from slipstick.targets import find_target
from slipstick_rtl.config import Configuration

SMALL, MIXED = (find_target(name).configuration for name in ("sim-small", "ulx3s-12f"))
OPTIONS = {"effort": 0}


def chain(layers: int = 6, channels: int = 16) -> NetworkBuilder:
    """Equal convolutions, one after the other."""
    builder = NetworkBuilder(5, 8, 8, channels)
    for _ in range(layers):
        builder.same_conv2d(3, channels)
    return builder


def boards_of(*configurations: Configuration, wire: str | None = None) -> list[BoardTime]:
    found = board_of(find_target("sim-small"), wire).wire
    return [BoardTime(f"board {k}", each, found) for k, each in enumerate(configurations)]


def small_memory(weight_bytes: int) -> Configuration:
    values = {**SMALL.to_dict(), "weight_bytes": weight_bytes}
    return Configuration.from_dict(values)


@pytest.mark.parametrize("count", [2, 3])
def test_equal_layers_make_equal_stages(count: int) -> None:
    graph, boards = chain().graph(), boards_of(*[SMALL] * count)
    plan = plan_pipeline(graph, boards, options=OPTIONS)
    assert [len(stage.graph.nodes) for stage in plan.stages] == [6 // count] * count
    single = boards[0].seconds(whole_programs(graph, boards, OPTIONS)[0])
    assert single / plan.seconds > 0.85 * count
    assert all(stage.received == stage.sent == 8 * 8 * 16 for stage in plan.stages)
    assert sum(stage.weights for stage in plan.stages) == 6 * 9 * 16 * 16


def test_a_slower_board_gets_less() -> None:
    graph = chain().graph()
    plan = plan_pipeline(graph, boards_of(SMALL, MIXED), options=OPTIONS)
    fast, slow = plan.stages
    assert len(fast.graph.nodes) > len(slow.graph.nodes)


def test_a_slow_wire_moves_the_cut() -> None:
    """The third tensor is small: where bytes are dear, the cut is there."""
    builder = NetworkBuilder(5, 8, 8, 16)
    builder.same_conv2d(3, 16)
    builder.same_conv2d(3, 16)
    builder.same_conv2d(3, 1)
    builder.same_conv2d(3, 16)
    builder.same_conv2d(3, 16)
    builder.fully_connected(1)
    plan = plan_pipeline(builder.graph(), boards_of(SMALL, SMALL, wire="uart"), options=OPTIONS)
    assert plan.stages[0].sent == 64


def test_boards_that_hold_parts_beat_one_that_streams() -> None:
    hardware = small_memory(8192)
    graph, boards = chain().graph(), boards_of(hardware, hardware)
    assert whole_programs(graph, boards, OPTIONS)[0].is_streamed
    plan = plan_pipeline(graph, boards, options=OPTIONS)
    assert not any(stage.program.is_streamed for stage in plan.stages)
    found = choose(graph, boards, options=OPTIONS)
    assert found.division is Division.PIPELINE
    assert found.single.seconds / found.seconds > 2


def test_layers_that_no_board_holds_alone_are_divided() -> None:
    """A layer of 36 KiB, and a small one: a stage streams the first, half of both fits."""
    builder = NetworkBuilder(5, 1, 1, 192)
    builder.same_conv2d(1, 192)
    builder.same_conv2d(1, 16)
    hardware = small_memory(32768)
    graph, boards = builder.graph(), boards_of(hardware, hardware)
    plan = plan_split(graph, boards, options=OPTIONS)
    assert not any(program.is_streamed for program in plan.program.stages)
    found = choose(graph, boards, options=OPTIONS)
    assert found.pipeline is not None and found.pipeline.stages[0].program.is_streamed
    assert found.division is Division.SPLIT
    image = builder.images()
    program, names = plan.program, ["one", "two"]
    group = DeviceGroup(GroupKind.SPLIT, names, [ModelDevice(hardware) for _ in names])
    made = SplitExecution(program, group).infer_batch({"input": image})
    expected = run_graph(graph, [image])[graph.outputs[0]]
    np.testing.assert_array_equal(made[graph.outputs[0]], expected)


def test_the_bytes_of_a_split_are_counted() -> None:
    """Both boards get the input, give halves, get the whole, and give halves of the result."""
    builder = NetworkBuilder(5, 1, 1, 32)
    builder.same_conv2d(1, 64)
    builder.same_conv2d(1, 16)
    plan = plan_split(builder.graph(), boards_of(SMALL, SMALL), options=OPTIONS)
    assert plan.exchanges == 2 and len(plan.layers) == 2
    assert plan.weights == (32 * 32 + 64 * 8,) * 2
    assert plan.moved_bytes == 2 * (32 + 32 + 64 + 8)


def test_networks_that_cannot_be_divided_are_refused() -> None:
    builder = NetworkBuilder(5, 4, 4, 2)
    builder.same_conv2d(3, 2)
    builder.same_conv2d(3, 2)
    boards = boards_of(SMALL, SMALL, SMALL)
    with pytest.raises(UnsupportedError, match="2 layers .* too few for a pipeline of 3 boards"):
        plan_pipeline(builder.graph(), boards, options=OPTIONS)
    with pytest.raises(UnsupportedError, match="no layer .* at least 3 output channels"):
        plan_split(builder.graph(), boards, options=OPTIONS)
    found = choose(builder.graph(), boards, options=OPTIONS)
    assert found.division is None and len(found.refused) == 2


def test_layers_of_the_host_are_no_stage() -> None:
    builder = NetworkBuilder(5, 4, 4, 2)
    builder.same_conv2d(3, 4)
    builder.fully_connected(8)
    builder.softmax()
    plan = plan_pipeline(builder.graph(), boards_of(SMALL, SMALL), options=OPTIONS)
    assert [layer.where for layer in plan.stages[1].program.layers] == ["device", "host"]
    with pytest.raises(UnsupportedError, match="has 2 layers that a device can run"):
        plan_pipeline(builder.graph(), boards_of(SMALL, SMALL, SMALL), options=OPTIONS)


def test_networks_that_keep_values_are_refused() -> None:
    graph = load_tflite_bytes(networks.wake_word(np.random.default_rng(1)), "keeps")
    assert graph.variables
    boards = boards_of(SMALL, SMALL)
    for plan in (plan_pipeline, plan_split):
        with pytest.raises(UnsupportedError, match="keeps .* values from run to run"):
            plan(graph, boards)


def check_split(graph: Graph, images: np.ndarray, shares: list[float]) -> int:
    """All layers that can be divided are: the results must be the kernels'."""
    ready, expected = optimize(graph), run_graph(graph, [images])
    layers = divisible_layers(ready, len(shares))
    if not layers:
        return 0
    hardware = [(SMALL, MIXED)[number % 2] for number in range(len(shares))]
    parts = shard_graph(ready, [node.name for node in layers], shares)
    programs = [
        compile_graph(part, each, effort=0) for part, each in zip(parts, hardware, strict=True)
    ]
    program = staged_program(graph, Division.SPLIT, programs)
    names = [f"board {number}" for number in range(len(shares))]
    group = DeviceGroup(GroupKind.SPLIT, names, [ModelDevice(each) for each in hardware])
    values = SplitExecution(program, group).infer_batch({"input": images})
    for name in graph.outputs:
        np.testing.assert_array_equal(values[name], expected[name], name)
    return len(layers)


@pytest.mark.parametrize("seed", range(12))
def test_divided_networks_give_the_same_codes(seed: int) -> None:
    builder = random_network(seed)
    graph = builder.graph(*some_outputs(builder))
    images = np.concatenate([builder.images() for _ in range(2)])
    check_split(graph, images, [1.0, 1.0])
    check_split(graph, images, [1.0, 3.0, 1.0])


def test_what_works_by_channel_needs_no_exchange() -> None:
    """A depthwise convolution, a pool and a residual sum go on with the channels that are there."""
    builder = NetworkBuilder(5, 8, 8, 4)
    builder.same_conv2d(3, 16)
    builder.depthwise((3, 3), 1)
    builder.pool("max_pool2d", (1, 1))
    builder.mean()
    builder.fully_connected(6)
    graph = optimize(builder.graph())
    layers = [node.name for node in divisible_layers(graph, 2)]
    parts = shard_graph(graph, layers, [1.0, 1.0])
    assert [node.operator for node in parts[0].nodes].count("all_gather") == 2
    assert check_split(builder.graph(), builder.images(), [1.0, 1.0]) == 2


@pytest.mark.parametrize(
    ("channels", "shares", "multiple", "bounds"),
    [
        (32, [1, 1], 8, (0, 16, 32)),
        (32, [1, 3], 8, (0, 8, 32)),
        (10, [1, 1], 8, (0, 5, 10)),
        (3, [100, 1, 1], 1, (0, 1, 2, 3)),
        (16, [1, 1, 1], 8, (0, 5, 11, 16)),
    ],
)
def test_every_board_gets_some_channels(
    channels: int, shares: list[float], multiple: int, bounds: tuple[int, ...]
) -> None:
    assert channel_bounds(channels, shares, multiple) == bounds
