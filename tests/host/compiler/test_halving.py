"""Depthwise layers of C / 2 channels: both halves of the image at once, the same results."""

import pytest
from compiler_checks import check_ways
from random_networks import NetworkBuilder
from slipstick.program import Program
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import INSTRUCTION_BITS, MATRIX_FIELDS, Opcode, unpack
from slipstick_rtl.link.protocol import Space

HARDWARE = Configuration(
    rows=16,
    columns=8,
    lanes=8,
    weight_rows=2,
    packed_rows=5,
    accumulator_depth=128,
    activation_bytes=1 << 14,
)
WAYS = tuple((order, False) for order in ("matrix_first", "post_first", 1))


def _network(sides: tuple[int, int]) -> NetworkBuilder:
    """A folded layer of four channels, a depthwise one, and one that reads its pixels."""
    builder = NetworkBuilder(sides[0] + sides[1], sides[0], sides[1], 3)
    builder.same_conv2d(3, 4)
    builder.conv2d(4, (3, 3), 4, stride=(1, 1), dilation=(1, 1), padding=(1, 1, 1, 1), sides=sides)
    builder.same_conv2d(1, 16)
    return builder


def _halved(program: Program) -> list[dict[str, int]]:
    (image,) = [image for image in program.images if image.space == Space.INSTRUCTIONS]
    size = INSTRUCTION_BITS // 8
    words = [image.data[at : at + size] for at in range(0, len(image.data), size)]
    fields = [unpack(MATRIX_FIELDS, word) for word in words]
    convolves = [values for values in fields if values["opcode"] == Opcode.CONVOLVE]
    return [values for values in convolves if values["depthwise"] and values["kernel_x"] == 2]


@pytest.mark.parametrize("sides", [(24, 24), (9, 40), (30, 18)])
def test_halves_of_the_image_are_computed_at_once(sides):
    builder = _network(sides)
    program = check_ways(builder, HARDWARE, (), WAYS, inspect=False)
    halved = _halved(program)
    assert halved
    for fields in halved:
        assert fields["channels"] == 4 and fields["dilation_x"] <= sides[1] // 2
        assert fields["tap_step_x"] % 16 == 4


def test_what_others_read_or_see_is_not_halved():
    builder = _network((24, 24))
    names = (builder.nodes[1].outputs[0],)
    assert not _halved(check_ways(builder, HARDWARE, names, WAYS[:1], inspect=False))
    assert not _halved(check_ways(builder, HARDWARE, (), WAYS[:1], inspect=True))
    builder = _network((24, 24))
    builder.last = builder.nodes[1].outputs[0]
    builder.same_conv2d(3, 8)
    assert not _halved(check_ways(builder, HARDWARE, (), WAYS[:1], inspect=False))
