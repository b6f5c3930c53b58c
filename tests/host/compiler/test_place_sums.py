"""Means over more places than the memory holds: the array adds them, part after part."""

import dataclasses

import numpy as np
import pytest
from compiler_checks import check_ways
from onnx_writer import OnnxWriter
from random_networks import NetworkBuilder
from slipstick.compiler import compile_graph
from slipstick.devices.model import ModelDevice
from slipstick.frontends.onnx import load_onnx_bytes
from slipstick.kernels.dispatch import run_graph
from slipstick.program import Program
from slipstick.runtime.executor import Execution
from slipstick.targets import find_target
from slipstick_rtl.config import Configuration

SMALL = Configuration(
    rows=16,
    columns=8,
    lanes=8,
    activation_bytes=1 << 12,
    weight_bytes=1 << 13,
    instruction_words=1 << 10,
    accumulator_depth=64,
)
WITH_DRAM = dataclasses.replace(SMALL, dram="MT48LC16M16")
COMPACT = dataclasses.replace(find_target("icebreaker").configuration, activation_bytes=1 << 12)


def on_host(program: Program) -> list[str]:
    return [layer.name for layer in program.layers if layer.where == "host"]


def network(seed: int, *, keep_dimensions: bool = True) -> NetworkBuilder:
    """A mean between two layers, whose sides are no multiples of anything."""
    rng = np.random.default_rng(seed)
    height, width = (int(side) for side in rng.integers(17, 75, 2))
    builder = NetworkBuilder(seed, height, width, int(rng.integers(1, 4)))
    builder.same_conv2d(1, int(rng.integers(8, 40)))
    builder.mean(keep_dimensions=keep_dimensions)
    return builder


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("configuration", [SMALL, COMPACT], ids=["pipelined", "compact"])
def test_a_mean_of_more_than_the_memory(configuration: Configuration, seed: int) -> None:
    builder = network(seed)
    builder.same_conv2d(1, 8)
    ways = [("post_first", True), ("matrix_first", False)]
    program = check_ways(builder, configuration, (builder.last,), ways, inspect=False)
    assert not on_host(program)


@pytest.mark.parametrize("batch", [1, 2, 4])
@pytest.mark.parametrize("seed", range(3))
def test_a_mean_from_dram(seed: int, batch: int) -> None:
    builder = network(10 + seed, keep_dimensions=False)
    builder.fully_connected(10)
    program = compile_graph(builder.graph(), WITH_DRAM, batch=batch)
    assert not on_host(program)
    images = np.concatenate([builder.images() for _ in range(5)])
    expected = run_graph(builder.graph(), [images])
    execution = Execution(program, ModelDevice(program.hardware))
    assert execution.lists
    found = execution.infer_batch({"input": images})
    for name in program.outputs:
        np.testing.assert_array_equal(found[name], expected[name])


def test_a_pool_of_a_whole_picture() -> None:
    builder = NetworkBuilder(5, 40, 37, 3)
    builder.same_conv2d(1, 24)
    result = builder.activation("pooled", (1, 1, 1, 24), like=builder.last)
    sides = {"window": (40, 37), "stride": (1, 1), "padding": (0, 0, 0, 0)}
    builder.node("average_pool2d", (builder.last,), result, activation="none", **sides)
    ways = [("post_first", True)]
    assert not on_host(check_ways(builder, SMALL, (builder.last,), ways, inspect=False))


def test_a_mean_of_onnx() -> None:
    net = OnnxWriter()
    x = net.pair(net.input("x", (1, 40, 37, 24)), 0.06, 7)
    y = net.pair(net.add("GlobalAveragePool", [x]), 0.0107, -20)
    graph = load_onnx_bytes(net.to_bytes([y]))
    program = compile_graph(graph, SMALL)
    assert "average_pool2d" not in on_host(program)
    rng = np.random.default_rng(1)
    image = rng.normal(0, 3, (2, 40, 37, 24)).astype(np.float32)
    execution = Execution(program, ModelDevice(program.hardware))
    found, expected = execution.infer_batch({"x": image}), run_graph(graph, [image])
    for name in program.outputs:
        np.testing.assert_array_equal(found[name], expected[name])
