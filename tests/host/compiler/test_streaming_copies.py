"""Copies of networks that are streamed: on the device wherever there is room for both sides."""

import numpy as np
import pytest
from compiler_checks import check_ways
from copy_networks import concatenate, grow, move, places, random_copies
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx_checks import check as check_onnx
from onnx_writer import OnnxWriter
from random_configurations import configurations
from random_networks import NetworkBuilder
from slipstick.compiler import compile_graph
from slipstick_rtl.config import Configuration

WAYS = (("matrix_first", False), ("post_first", True))
TINY = configurations(
    pixels=(1, 2),
    activation_bytes=st.sampled_from([1 << 10, 1 << 11, 1 << 12, 1 << 14]),
    weight_bytes=st.sampled_from([1 << 12, 1 << 13]),
    instruction_words=st.sampled_from([1 << 8, 1 << 10, 1 << 12]),
)
NARROW = Configuration(rows=8, columns=8, lanes=4, activation_bytes=1 << 14, weight_bytes=1 << 12)
"""Weights of one layer or two, and room for many small activations."""


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(0, 1 << 30), TINY, st.booleans())
def test_random_copies_in_tiny_memories(seed: int, configuration, inspect: bool) -> None:
    builder = random_copies(seed)
    builder.same_conv2d(3, int(builder.rng.integers(8, 24)))
    grow(builder)
    builder.same_conv2d(3, int(builder.rng.integers(8, 24)))
    check_ways(builder, configuration, (), WAYS, inspect=inspect)


def enlarged(seed: int, channels: int = 24) -> NetworkBuilder:
    """Layers whose weights do not fit together, with a small copy before each."""
    builder = NetworkBuilder(seed, 6, 6, 8)
    for _ in range(4):
        builder.same_conv2d(3, channels)
        builder.pool("max_pool2d", (1, 1))
        concatenate(builder, [builder.last], 1)
        move_half(builder)
    builder.same_conv2d(3, channels)
    return builder


def move_half(builder: NetworkBuilder) -> None:
    """Every second row."""
    _, height, width, channels = builder.shape()
    sizes = (1, height // 2, width, channels)
    options = {"starts": (0, 0, 0, 0), "steps": (1, 2, 1, 1), "sizes": sizes, "shape": sizes}
    move(builder, "slice", sizes, **options)


def test_small_copies_stay_on_the_device() -> None:
    program = check_ways(enlarged(3), NARROW, (), WAYS, inspect=False)
    assert program.is_streamed
    assert {layer.where for layer in program.layers} == {"device"}


def test_only_what_has_no_room_is_the_hosts() -> None:
    """One copy is larger than the memory, the others are small."""
    builder = NetworkBuilder(4, 16, 16, 8)
    builder.same_conv2d(3, 24)
    sizes = {"size": (32, 32), "align_corners": False, "half_pixel_centers": False}
    move(builder, "resize_nearest", (1, 32, 32, 24), **sizes)
    builder.conv2d(24, (3, 3), stride=(4, 4), padding=(0, 0, 0, 0), dilation=(1, 1), sides=(8, 8))
    concatenate(builder, [builder.last], 1)
    builder.same_conv2d(3, 24)
    program = check_ways(builder, NARROW, (), WAYS, inspect=False)
    assert program.is_streamed
    assert places(program, "resize_nearest") == {"host"}
    (reason,) = [layer.why for layer in program.layers if layer.operator == "resize_nearest"]
    assert reason == "the activation memory has no room for its copy"
    assert places(program, "concatenation") == {"device"}


@pytest.mark.parametrize("zero_point", [119, 60])
def test_networks_of_uint8_repeat_their_inputs_on_the_device(zero_point: int) -> None:
    """Weights less their zero points want 9 bits: each row is read twice."""
    rng, net = np.random.default_rng(31), OnnxWriter()
    y = net.pair(net.input("x", (1, 8, 6, 6)), 0.0613, 130, "uint8")
    for _ in range(4):
        inputs = 8 if not net.nodes[4:] else 24
        codes = rng.integers(0, 256, (24, inputs, 3, 3)).astype(np.uint8)
        kernel = net.weights(codes, np.float32(0.0017), zero_point)
        y = net.pair(net.add("Conv", [y, kernel], pads=[1, 1, 1, 1]), 0.0913, 125, "uint8")
    x = rng.normal(0, 2, (3, 8, 6, 6)).astype(np.float32)
    graph = check_onnx(net.to_bytes([y]), x)
    program = compile_graph(graph, NARROW)
    assert program.is_streamed
    copies = [layer for layer in program.layers if layer.operator == "resize_nearest"]
    assert len(copies) >= 3
    # the first one's input comes from the host
    assert {layer.where for layer in copies[1:]} == {"device"}
