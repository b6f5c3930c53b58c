"""Compiled programs on the golden core against the host's kernels, whatever runs first."""

import dataclasses

import numpy as np
import pytest
from compiler_checks import check_ways
from hypothesis import given, settings
from hypothesis import strategies as st
from random_configurations import configurations
from random_networks import NetworkBuilder, random_network, some_outputs
from slipstick.compiler import compile_graph
from slipstick.compiler.timing import timeline as streams
from slipstick.errors import ModelError, UnsupportedError
from slipstick.program import Program
from slipstick.program.steps import DownloadStep, HostStep, RunStep
from slipstick_rtl.config import Configuration

ORDERS = tuple((order, False) for order in ("matrix_first", "post_first", 1, 2, 3))

HARDWARE = configurations(pixels=(1, 2, 4), activation_bytes=1 << 14, instruction_words=1 << 15)


def check(
    builder: NetworkBuilder,
    configuration: Configuration,
    outputs: tuple[str, ...] = (),
    *,
    inspect: bool = False,
) -> Program:
    """Runs a network in every order; every tensor that comes down must be the kernels'."""
    return check_ways(builder, configuration, outputs, ORDERS, inspect=inspect)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.integers(0, 1 << 30), HARDWARE, st.booleans())
def test_random_networks(seed, configuration, inspect):
    builder = random_network(seed)
    check(builder, configuration, some_outputs(builder), inspect=inspect)


def test_inspection_shows_every_layer():
    builder = NetworkBuilder(1, 9, 8, 3)
    first = builder.same_conv2d(3, 8)
    builder.same_conv2d(3, 8)
    builder.add(first)
    builder.pool("max_pool2d", (2, 2))
    program = check(builder, Configuration(rows=8, columns=8, lanes=4), inspect=True)
    downloaded = {s.tensor for s in program.steps if isinstance(s, DownloadStep)}
    assert {node.outputs[0] for node in builder.nodes} <= downloaded
    assert len([step for step in program.steps if isinstance(step, RunStep)]) == 2


def test_rows_wider_than_the_accumulators():
    builder = NetworkBuilder(2, 3, 75, 2)
    builder.same_conv2d(3, 5)
    builder.pool("average_pool2d", (2, 3))
    check(builder, Configuration(pixels=2, rows=8, columns=4, lanes=4, accumulator_depth=16))


def test_wide_fully_connected():
    builder = NetworkBuilder(3, 2, 90, 3)
    builder.same_conv2d(1, 3)
    builder.fully_connected(7)
    check(builder, Configuration(pixels=2, rows=16, columns=8, lanes=4))


def _set_factors(builder: NetworkBuilder, factors: list[float]) -> None:
    """Gives the channels of a conv2d, the only layer, these scales from sums to codes."""
    node = builder.nodes[0]
    x, weights, y = (builder.tensors[n].quantization for n in (*node.inputs[:2], *node.outputs))
    assert x is not None and weights is not None and y is not None
    weights.scale[:] = np.array(factors) * y.scale / x.scale


def test_factors_on_both_sides_of_one():
    """Channels that are scaled up and channels that are scaled down."""
    configuration = Configuration(rows=8, columns=16, lanes=4)
    builder = NetworkBuilder(11, 5, 5, 4)
    builder.conv2d(24, (3, 3), activation="none")
    weights = builder.tensors["w0"].data
    assert weights is not None
    weights //= 64
    _set_factors(builder, [3.7] * 4 + [0.6] * 3 + [1.9] + [0.013] * 8 + [1.5] * 4 + [50.0] * 4)
    program = check(builder, configuration)
    assert program.layers[0].where == "device"
    # the slices need roundings of their own: HALF_UP, DOUBLE, HALF_UP
    (run,) = [step for step in program.steps if isinstance(step, RunStep)]
    assert run.instructions[0] >= 3
    # now within one slice: no instruction can do that, the host does
    _set_factors(builder, [3.7, 0.013] * 12)
    assert "share a slice" in check(builder, configuration).layers[0].why
    _set_factors(builder, [200.0] * 24)
    assert "beyond the requantiser" in check(builder, configuration).layers[0].why


def test_streams_overlap_and_need_their_waits(monkeypatch):
    """Without waits some order goes wrong: the test above would notice a missing one."""
    builder = NetworkBuilder(4, 12, 12, 3)
    shortcut = builder.same_conv2d(3, 8)
    builder.same_conv2d(3, 8)
    builder.add(shortcut)
    builder.same_conv2d(3, 8)
    configuration = Configuration(rows=8, columns=8, lanes=4, accumulator_depth=64)
    check(builder, configuration)
    monkeypatch.setattr(streams, "_share", lambda *_: False)
    monkeypatch.setattr(streams, "collide", lambda *_: False)
    with pytest.raises(AssertionError, match="not equal"):
        check(builder, configuration)


def test_light_shortcut_runs_first_and_add_is_fused():
    builder = NetworkBuilder(5, 8, 8, 8)
    main = builder.same_conv2d(3, 16)
    builder.last = "input"
    builder.same_conv2d(1, 16)
    builder.add(main)
    program = check(builder, Configuration(rows=8, columns=8, lanes=4))
    names = [layer.name for layer in program.layers]
    assert names == ["conv2d_1", "conv2d_0", "add_2"]
    # the sums are made between the drains
    (run,) = [step for step in program.steps if isinstance(step, RunStep)]
    owners = [layer for layer, _ in run.owners[1]]
    assert owners.index(2) < len(owners) - 1 - owners[::-1].index(1)


def test_host_layers_split_the_run():
    builder = NetworkBuilder(6, 4, 4, 4)
    builder.same_conv2d(3, 4)
    builder.softmax()
    builder.same_conv2d(3, 4)
    program = check(builder, Configuration())
    kinds = [type(step).__name__ for step in program.steps]
    run = ["UploadStep", "RunStep", "DownloadStep"]
    assert kinds == [*run, "HostStep", *run]
    assert [layer.where for layer in program.layers] == ["device", "host", "device"]


def test_several_outputs():
    builder = NetworkBuilder(7, 6, 6, 3)
    first = builder.same_conv2d(3, 6)
    second = builder.unary("tanh")
    builder.add(first)
    check(builder, Configuration(), (first, second, builder.last))


def test_network_for_the_host_alone():
    builder = NetworkBuilder(8, 4, 4, 4)
    builder.softmax()
    program = check(builder, Configuration())
    assert [type(step) for step in program.steps] == [HostStep] and not program.images


def test_model_errors():
    builder = NetworkBuilder(10, 4, 4, 4)
    builder.same_conv2d(3, 4)
    graph = builder.graph()
    with pytest.raises(UnsupportedError, match="semantics must be tflm or onnx"):
        compile_graph(graph.replace(semantics="litert"), Configuration())
    missing = {name: tensor for name, tensor in graph.tensors.items() if name != "w0"}
    with pytest.raises(ModelError, match="'w0', which is not there"):
        compile_graph(graph.replace(tensors=missing), Configuration())
    bias = graph.tensors["w0b"].data
    assert bias is not None
    bias[:] = (1 << 31) - 1
    weights = graph.tensors["w0"].data
    assert weights is not None
    weights[:] = 127
    quantization = graph.tensors["input"].quantization
    assert quantization is not None
    quantization.zero_point[:] = -128
    with pytest.raises(ModelError, match="must be 32 bits, not"):
        compile_graph(graph, Configuration())


def test_the_smallest_layers_make_room_if_their_weights_are_too_many():
    """64 KiB of weights, and a few more in the first layer."""
    builder = NetworkBuilder(12, 1, 1, 4)
    for outputs in (128, 512):
        builder.fully_connected(outputs)
    configuration = Configuration(
        rows=16, columns=16, weight_rows=4, ninth_bits=1, weight_bytes=1 << 16
    )
    program = check(builder, configuration)
    assert not program.is_streamed and all(layer.where == "device" for layer in program.layers)
    # where even more is missing they are streamed, and all on the device
    program = check(builder, dataclasses.replace(configuration, weight_bytes=1 << 15))
    assert program.loads and all(layer.where == "device" for layer in program.layers)


def test_depthwise_layers_that_slide_leave_room_for_others():
    """Two of 64 channels, a tile of 4 words for 8 of them: 1 KiB each, not 2.25 KiB for 9 taps.

    A layer of 128 bytes is too much then, and its weights are ninth bits.
    """
    builder = NetworkBuilder(12, 12, 12, 4)
    builder.same_conv2d(1, 64)
    for _ in range(2):
        builder.conv2d(
            64, (3, 3), 64, stride=(1, 1), dilation=(1, 1), padding=(1,) * 4, sides=(12, 12)
        )
    builder.mean()
    for outputs in (512, 56, 16, 8):
        builder.fully_connected(outputs)
    configuration = Configuration(
        rows=16, columns=8, lanes=4, weight_rows=4, ninth_bits=1, weight_bytes=1 << 16
    )
    program = compile_graph(builder.graph(), configuration)
    assert not program.is_streamed and all(layer.where == "device" for layer in program.layers)


def test_the_smallest_layer_is_the_hosts_without_ninth_bits():
    builder = NetworkBuilder(12, 1, 1, 4)
    for outputs in (128, 224, 128, 4):
        builder.fully_connected(outputs)
    configuration = Configuration(rows=16, columns=16, weight_rows=4, weight_bytes=1 << 16)
    program = check(builder, configuration)
    assert not program.is_streamed
    assert [layer.where for layer in program.layers] == ["host", "device", "device", "device"]
    assert "all others fit" in program.layers[0].why
