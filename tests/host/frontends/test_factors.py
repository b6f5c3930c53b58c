"""Factors above and below 1 in one layer: an instruction has one rounding, a layer has both."""

import dataclasses
from collections.abc import Sequence
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from program_runner import run_program
from random_networks import NetworkBuilder
from slipstick.compiler import compile_graph
from slipstick.devices import open_device
from slipstick.kernels.dispatch import run_graph
from slipstick.program import Program
from slipstick.runtime.executor import Execution
from slipstick.targets import find_target
from slipstick_rtl.config import Configuration

TARGETS = ("icebreaker", "tang-nano-9k", "tang-nano-20k")
COMPACT = Configuration(
    engine="compact",
    rows=2,
    columns=8,
    lanes=1,
    activation_bytes=1 << 11,
    weight_bytes=1 << 11,
    parameter_words=128,
    instruction_words=1 << 9,
    accumulator_depth=32,
)
"""The small core that the tests of streaming build as well."""
PATTERNS = (
    "+-------",
    "-+++++++",
    "+-+-+-+-",
    "-+",
    "--+",
    "+++-+---++",
    "-----++-++++-",
    "++--++--",
)


def set_factors(builder: NetworkBuilder, pattern: Sequence[str]) -> None:
    """Gives the last layer's channels in turn factors above (+) and below (-) 1."""
    node = builder.nodes[-1]
    draw = builder.rng
    weights, result = builder.tensors[node.inputs[1]], builder.tensors[node.outputs[0]]
    assert weights.quantization is not None and result.quantization is not None
    axis, count = weights.quantization.axis, weights.quantization.scale.size
    above = np.array([pattern[i % len(pattern)] == "+" for i in range(count)])
    factors = np.where(above, 2 ** draw.uniform(0.1, 3, count), 2 ** draw.uniform(-8, -1, count))
    source = builder.tensors[node.inputs[0]].quantization
    assert source is not None and axis is not None and weights.data is not None
    scales = factors * result.quantization.scale[0] / source.scale[0]
    quantization = dataclasses.replace(weights.quantization, scale=scales)
    # large factors see few sums that are codes: let there be small weights
    data = np.where(draw.random(weights.shape) < 0.5, weights.data // 32, weights.data)
    builder.tensors[weights.name] = dataclasses.replace(
        weights, quantization=quantization, data=data.astype(np.int8)
    )
    bias = builder.tensors[node.inputs[2]]
    assert bias.data is not None
    builder.tensors[bias.name] = dataclasses.replace(bias, data=bias.data // 100)


def check(builder: NetworkBuilder, configuration: Configuration) -> Program:
    graph, image = builder.graph(), builder.images()
    expected = run_graph(graph, [image])
    program = compile_graph(graph, configuration)
    values = run_program(program, {"input": image})
    for name in graph.outputs:
        np.testing.assert_array_equal(values[name], expected[name])
    return program


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_depthwise_layer_of_a_compact_engine(target: str, pattern: str) -> None:
    builder = NetworkBuilder(4, 6, 8, 12)
    builder.depthwise((3, 3), 1)
    set_factors(builder, pattern)
    program = check(builder, find_target(target).configuration)
    assert [layer.where for layer in program.layers] == ["device"]


def test_depthwise_layers_on_the_rtl_of_a_compact_engine() -> None:
    with closing(open_device("sim", COMPACT)) as sim:
        for seed, pattern in enumerate(PATTERNS):
            builder = NetworkBuilder(seed, 6, 5, 11)
            builder.same_conv2d(1, 11)
            builder.depthwise((3, 3), 1)
            set_factors(builder, pattern)
            graph, image = builder.graph(), builder.images()
            found = Execution(compile_graph(graph, COMPACT), sim).infer({"input": image})
            expected = run_graph(graph, [image])[builder.last]
            np.testing.assert_array_equal(found[builder.last], expected, pattern)


@pytest.mark.parametrize("target", [*TARGETS, "sim-medium", "sim-small", "asic-4x4", "ulx3s-85f"])
@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 1 << 30),
    sides=st.tuples(st.integers(3, 9), st.integers(3, 9)),
    channels=st.integers(1, 40),
    kind=st.sampled_from(["depthwise", "depthwise", "multiplied", "groups", "plain"]),
    pattern=st.lists(st.sampled_from(["+", "-"]), min_size=1, max_size=40),
    runs=st.sampled_from([1, 2, 4, 8, 16]),
    before=st.booleans(),
)
def test_layers_of_every_pattern(
    target: str,
    seed: int,
    sides: tuple[int, int],
    channels: int,
    kind: str,
    pattern: list[str],
    runs: int,
    before: bool,
) -> None:
    builder = NetworkBuilder(seed, *sides, channels)
    if before:
        builder.same_conv2d(1, channels)
    kernel = int(builder.rng.integers(1, 4)), int(builder.rng.integers(1, 4))
    match kind:
        case "depthwise":
            builder.depthwise(kernel, 1)
        case "multiplied":
            builder.depthwise(kernel, 2)
        case "groups":
            groups = next(g for g in (4, 3, 2, 1) if channels % g == 0)
            builder.conv2d(groups * 3, kernel, groups)
        case "plain":
            builder.conv2d(19, kernel)
    set_factors(builder, [sign for sign in pattern for _ in range(runs)])
    check(builder, find_target(target).configuration)
