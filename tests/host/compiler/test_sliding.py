"""Depthwise kernels slide along a side of the input, and are the same layers."""

import pytest
from compiler_checks import check_ways
from random_networks import NetworkBuilder
from slipstick.compiler.mapping.depthwise_window import sliding_vectors
from slipstick.compiler.timing.cycle_model import CycleModel
from slipstick.program import Program
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import INSTRUCTION_BITS, MATRIX_FIELDS, Opcode, unpack
from slipstick_rtl.link.protocol import Space

HARDWARE = Configuration(
    rows=16, columns=8, lanes=4, weight_rows=2, packed_rows=5, accumulator_depth=64
)
WAYS = tuple((order, False) for order in ("matrix_first", "post_first", 1))
Pair = tuple[int, int]


def _convolves(program: Program) -> list[dict[str, int]]:
    (image,) = [image for image in program.images if image.space == Space.INSTRUCTIONS]
    size = INSTRUCTION_BITS // 8
    words = [image.data[at : at + size] for at in range(0, len(image.data), size)]
    unpacked = [unpack(MATRIX_FIELDS, word) for word in words]
    return [fields for fields in unpacked if fields["opcode"] == Opcode.CONVOLVE]


def _depthwise(
    builder: NetworkBuilder, kernel: Pair, stride: Pair, dilation: Pair, padding: Pair
) -> None:
    """A layer with as much padding behind as before."""
    _, height, width, channels = builder.shape()
    sides = [
        (size + 2 * pad - (taps - 1) * apart - 1) // step + 1
        for size, pad, taps, apart, step in zip(
            (height, width), padding, kernel, dilation, stride, strict=True
        )
    ]
    builder.conv2d(
        channels, kernel, channels, stride=stride, dilation=dilation,
        padding=(padding[0], padding[0], padding[1], padding[1]), sides=tuple(sides),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("sides", "kernel", "stride", "dilation", "padding"),
    [
        ((9, 12), (3, 3), (1, 1), (1, 1), (1, 1)),
        ((12, 5), (3, 3), (1, 1), (1, 1), (1, 1)),
        ((11, 12), (3, 3), (2, 2), (1, 1), (1, 0)),
        ((12, 11), (3, 3), (2, 1), (1, 1), (0, 1)),
        ((12, 11), (3, 3), (1, 3), (1, 1), (2, 2)),
        ((9, 9), (2, 3), (1, 1), (1, 1), (0, 1)),
        ((9, 9), (3, 1), (2, 2), (1, 1), (1, 0)),
        ((8, 8), (1, 2), (1, 1), (1, 1), (0, 0)),
        ((13, 10), (3, 3), (1, 2), (1, 2), (1, 2)),
        ((13, 10), (3, 3), (3, 1), (3, 1), (2, 1)),
        ((3, 3), (3, 3), (1, 1), (1, 1), (1, 1)),
        ((1, 9), (1, 3), (1, 1), (1, 1), (0, 1)),
    ],
)
@pytest.mark.parametrize("channels", [3, 8, 20])
def test_layers_are_the_kernels(sides, kernel, stride, dilation, padding, channels):
    height, width = sides
    builder = NetworkBuilder(height + width + channels, height, width, 4)
    builder.same_conv2d(1, channels)
    _depthwise(builder, kernel, stride, dilation, padding)
    builder.same_conv2d(1, 12)
    program = check_ways(builder, HARDWARE, (), WAYS, inspect=False)
    sliding = [fields for fields in _convolves(program) if fields["depthwise"]]
    # few taps, or many columns to skip, are fewer cycles on the diagonal
    assert sliding or kernel[0] * kernel[1] < 6 or max(stride) > 2 or channels == 3
    for fields in sliding:
        assert fields["skip"] in stride and fields["reduction_tiles"] == 1
    check_ways(builder, HARDWARE, (builder.nodes[1].outputs[0],), WAYS[:1], inspect=True)


def test_the_input_may_be_the_networks_and_the_result_written_over_it():
    builder = NetworkBuilder(3, 14, 14, 8)
    for _ in range(3):
        _depthwise(builder, (3, 3), (1, 1), (1, 1), (1, 1))
    tight = Configuration(
        rows=16, columns=8, lanes=4, weight_rows=2, accumulator_depth=64, activation_bytes=1 << 11
    )
    for hardware in (HARDWARE, tight):
        program = check_ways(builder, hardware, (), WAYS, inspect=False)
        assert hardware is tight or all(fields["depthwise"] for fields in _convolves(program))


@pytest.mark.parametrize(
    ("sides", "along"), [((4, 28), "x"), ((28, 4), "y"), ((5, 25), "x"), ((27, 6), "y")]
)
def test_the_longer_side_is_streamed(sides, along):
    builder = NetworkBuilder(5, sides[0], sides[1], 8)
    builder.same_conv2d(1, 8)
    _depthwise(builder, (3, 3), (1, 1), (1, 1), (1, 1))
    roomy = Configuration(rows=16, columns=8, lanes=4, weight_rows=2, accumulator_depth=256)
    program = check_ways(builder, roomy, (), WAYS[:1], inspect=False)
    fields = _convolves(program)[-1]
    assert fields["depthwise"] and (fields["height"], fields["width"]) == (min(sides), max(sides))
    place = program.tensors[program.layers[0].output].placement
    assert place is not None
    spread = place.row_pitch if along == "x" else place.pixel_pitch
    assert spread % 16 == 8 == fields["tap_step_y"] % 16
    # a column of padding is the last of a row and the first of the next; rows of tiles are cut
    assert fields["joined"] or along == "y"


@pytest.mark.parametrize(
    ("sides", "dilation", "padding", "backwards"),
    [
        # as TensorFlow pads even and odd sides, and PyTorch all
        ((12, 12), 1, (0, 1, 0, 1), True),
        ((13, 13), 1, (1, 1, 1, 1), False),
        ((6, 34), 1, (1, 0, 1, 0), False),
        ((34, 6), 1, (0, 1, 0, 1), True),
        ((7, 11), 2, (0, 2, 0, 2), True),
        ((3, 2), 1, (1, 1, 0, 1), None),
    ],
)
@pytest.mark.parametrize("channels", [8, 24])
def test_rows_are_kept_with_stride_2(sides, dilation, padding, backwards, channels):
    builder = NetworkBuilder(sides[0] + channels, sides[0], sides[1], 4)
    builder.same_conv2d(1, channels)
    quantization = builder.tensors[builder.last].quantization
    assert quantization is not None
    quantization.zero_point[:] = -128
    reach = 2 * dilation + 1
    out = [(side + sum(pads) - reach) // (2 * dilation) + 1
           for side, pads in zip(sides, (padding[:2], padding[2:]), strict=True)]  # fmt: skip
    builder.conv2d(
        channels, (3, 3), channels, stride=(2 * dilation,) * 2, dilation=(dilation,) * 2,
        padding=padding, sides=tuple(out),
    )  # fmt: skip
    builder.same_conv2d(1, 12)
    program = check_ways(builder, HARDWARE, (), WAYS, inspect=False)
    kept = [fields for fields in _convolves(program) if fields["kept_rows"]]
    assert kept
    for fields in kept:
        assert fields["groups"] <= 7
        assert backwards is None or (fields["tap_step_y"] < 0) == backwards


def test_rows_are_kept_only_if_what_is_above_them_is_padding_of_that_value():
    for zero_point, padding in ((-127, 1), (-128, 0)):
        builder = NetworkBuilder(2, 11, 11, 4)
        builder.same_conv2d(1, 8)
        quantization = builder.tensors[builder.last].quantization
        assert quantization is not None
        quantization.zero_point[:] = zero_point
        _depthwise(builder, (3, 3), (2, 2), (1, 1), (padding, padding))
        program = check_ways(builder, HARDWARE, (), WAYS[:1], inspect=False)
        fields = _convolves(program)[-1]
        assert fields["depthwise"] and fields["skip"] == 2 and not fields["kept_rows"]


def test_other_hardware_and_larger_kernels_take_the_diagonal():
    for hardware, kernel, padding in (
        (HARDWARE, 5, 2),
        (Configuration(rows=8, columns=8, lanes=4, weight_rows=2), 3, 1),
    ):
        builder = NetworkBuilder(6, 8, 8, 8)
        _depthwise(builder, (kernel, kernel), (1, 1), (1, 1), (padding, padding))
        program = check_ways(builder, hardware, (), WAYS[:1], inspect=False)
        assert all(f["diagonal"] and not f["depthwise"] for f in _convolves(program))


def test_cycles_of_a_tile():
    fields = {"depthwise": 1, "rows": 5, "groups": 7, "skip": 1, "whole_words": 1, "from_ninth": 0}
    fields |= {"kept_rows": 0, "joined": 0}
    model = CycleModel(HARDWARE)
    assert model.tile_period(fields) == sliding_vectors(5, 7, 1) == 3 * 9 * 2
    assert model.tile_period({**fields, "joined": 1}) == (3 * 8 + 1) * 2
    assert model.tile_period({**fields, "skip": 2}) == 5 * 15 * 2
    assert model.tile_period({**fields, "skip": 2, "kept_rows": 1}) == 3 * 15 * 2
    assert model.tile_period({**fields, "rows": 1, "groups": 1}) == HARDWARE.tile_words
