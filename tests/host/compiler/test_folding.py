"""Layers of few channels make several pixels at once, and are the same layers."""

import pytest
from compiler_checks import check_ways
from random_networks import NetworkBuilder
from slipstick.program.steps import TensorDescription
from slipstick_rtl.config import Configuration

HARDWARE = Configuration(rows=16, columns=16, lanes=8, weight_rows=4, accumulator_depth=64)
WAYS = tuple((order, False) for order in ("matrix_first", "post_first", 1))


def _network(width: int, channels: int, stride: tuple[int, int] = (1, 1)) -> NetworkBuilder:
    """Two layers of few channels, the second depthwise, and one that reads them."""
    builder = NetworkBuilder(width, 7, width, 3)
    height, across = -(-7 // stride[0]), -(-width // stride[1])
    builder.conv2d(
        channels, (3, 3), dilation=(1, 1), stride=stride, padding=(1, 1, 1, 1),
        sides=(height, across),
    )  # fmt: skip
    builder.depthwise((3, 3), 1)
    builder.same_conv2d(1, 24)
    return builder


def _pitches(place: TensorDescription) -> tuple[int, int]:
    assert place.placement is not None
    return place.placement.pixel_pitch, place.placement.channels


@pytest.mark.parametrize(
    ("width", "channels", "pixels"),
    [(12, 8, 2), (12, 4, 4), (10, 4, 2), (16, 2, 8), (12, 8, 2), (11, 8, 1), (12, 16, 1)],
)
@pytest.mark.parametrize("stride", [(1, 1), (2, 1)])
@pytest.mark.parametrize("inspect", [False, True])
def test_neighbours_are_one_pixel(width, channels, pixels, stride, inspect):
    builder = _network(width, channels, stride)
    program = check_ways(builder, HARDWARE, (), WAYS, inspect=inspect)
    first = program.layers[0]
    assert first.why == ("array" if pixels == 1 else f"array, {pixels} pixels at once")
    made = _pitches(program.tensors[first.output])
    assert made == (channels if pixels > 1 else -(-channels // 8) * 8, channels)
    assert first.macs == builder.shape(first.output)[1] * -(-width // stride[1]) * channels * 27


def test_only_convolutions_read_what_is_folded():
    builder = NetworkBuilder(3, 8, 8, 3)
    builder.same_conv2d(3, 8)
    builder.pool("max_pool2d", (2, 2))
    program = check_ways(builder, HARDWARE, (), WAYS, inspect=False)
    assert program.layers[0].why == "array"
    plain = _network(12, 8)
    compact = Configuration(engine="compact", rows=2, columns=8, lanes=1, parameter_words=64)
    program = check_ways(plain, compact, (), WAYS[:1], inspect=False)
    assert program.layers[0].why == "array"


def test_folded_results_may_be_outputs_and_overwrite_their_inputs():
    builder = _network(12, 8)
    inner = builder.nodes[0].outputs[0]
    check_ways(builder, HARDWARE, (inner, builder.last), WAYS, inspect=False)
    wide = NetworkBuilder(5, 32, 32, 8)
    wide.same_conv2d(3, 8)
    wide.same_conv2d(3, 8)
    hardware = Configuration(rows=16, columns=16, lanes=8, weight_rows=4, activation_bytes=1 << 14)
    program = check_ways(wide, hardware, (), WAYS, inspect=False)
    assert not program.is_streamed
