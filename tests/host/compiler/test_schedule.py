"""The schedule's parts: arithmetic that must be exact, the planner, the order of lanes."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_networks import NetworkBuilder
from slipstick.compiler.ir.operations import Convolution, Map, View
from slipstick.compiler.ir.requantization import identity, requantization, rounding_runs
from slipstick.compiler.ir.views import HostReason
from slipstick.compiler.lower.pooling import averaging, clipped_runs
from slipstick.compiler.lower.select import select
from slipstick.compiler.mapping.reduction import channel_tiles, choose_reduction
from slipstick.compiler.memory.planner import Block, Piece, plan, prolonged
from slipstick.errors import CapacityError
from slipstick.kernels.tflite.scaling import multiply_by_quantized_multiplier
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import Rounding
from slipstick_rtl.numbers.rounding import requantize

ROUNDINGS = (Rounding.DOUBLE, Rounding.HALF_UP)


def test_averaging_is_exact():
    """Every sum of up to 256 codes; above that, around every tie and at the ends."""
    counts = [*range(1, 257), 1000, 4096, 255 * 255]
    for count in counts:
        values = averaging(count, (-128, 127))
        total = np.arange(-128 * count, 127 * count + 1, dtype=np.int64)
        if count > 256:
            ties = np.arange(-128, 127) * count + count // 2
            total = np.concatenate([ties + near for near in (-1, 0, 1)])
        assert 1 << 30 <= values.multiplier[0] < 1 << 31
        expected = np.sign(total) * ((np.abs(total) + count // 2) // count)
        got = requantize(total, 0, values.multiplier, values.shift, Rounding.HALF_UP)
        np.testing.assert_array_equal(got, expected, f"{count} codes")


def test_identity():
    codes = np.arange(-128, 128)
    values = identity()
    got = requantize(codes, values.bias, values.multiplier, values.shift, Rounding.HALF_UP)
    np.testing.assert_array_equal(got, codes)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.integers(-(1 << 24), 1 << 24), min_size=1, max_size=20),
    st.integers(1 << 30, (1 << 31) - 1),
    st.integers(-31, 7),
)
def test_requantization_is_the_reference_with_either_sign_of_shift(totals, multiplier, shift):
    values = requantization(
        np.array([multiplier]), np.array([shift]), np.array([0]), 0, (-128, 127)
    )
    rounding = Rounding(int(values.rounding[0]))
    assert rounding is (Rounding.HALF_UP if shift > 0 else Rounding.DOUBLE)
    total = np.array(totals)
    got = requantize(total, 0, multiplier, values.shift, rounding)
    wide = total * (1 << max(shift, 0))
    if shift > 0:
        # the reference shifts left first, and its 32 bits must hold that
        total = total[np.abs(wide) < 1 << 31]
        got = got[np.abs(wide) < 1 << 31]
    expected = multiply_by_quantized_multiplier(total, multiplier, shift)
    np.testing.assert_array_equal(got, expected)


def test_unshifted_channels_suit_either_rounding():
    shifts = np.array([0, 1, 0, 0, 0, -1, 0, 0])
    values = requantization(np.full(8, 1 << 30), shifts, np.zeros(8), 0, (-128, 127))
    assert rounding_runs(values, 8, 4) == [(0, 4, Rounding.HALF_UP), (4, 8, Rounding.DOUBLE)]
    assert rounding_runs(values, 8, 8) is None
    total = np.arange(-100000, 100000, 7)
    results = [requantize(total, 0, 1987654321, values.shift[0], r) for r in ROUNDINGS]
    np.testing.assert_array_equal(results[0], results[1])


@pytest.mark.parametrize("shift", [-32, 8])
def test_requantization_refuses_other_shifts(shift):
    one = np.array([1])
    with pytest.raises(ValueError, match="shift must be within"):
        requantization(one, one * shift, one, 0, (-128, 127))


def test_clipped_runs():
    # 10 positions of a window of 3, stride 2, one column of padding before 20 columns
    assert clipped_runs(10, 20, 3, 2, 1) == [((0, 1), 0, 2), ((1, 10), 1, 3)]
    assert clipped_runs(3, 3, 3, 1, 1) == [((0, 1), 0, 2), ((1, 2), 0, 3), ((2, 3), 1, 2)]
    with pytest.raises(HostReason, match="window 0 lies in padding only"):
        clipped_runs(2, 3, 2, 2, 2)


BLOCKS = st.lists(
    st.tuples(st.integers(1, 300), st.integers(0, 8), st.integers(0, 4)), min_size=1, max_size=12
)


@settings(max_examples=200, deadline=None)
@given(BLOCKS, st.sampled_from([4, 16]))
def test_planner_never_overlaps(sizes, alignment):
    blocks = [Block(str(i), size, a, a + span) for i, (size, a, span) in enumerate(sizes)]
    addresses = plan(blocks, 1 << 14, alignment, [""] * 13)
    for block in blocks:
        start = addresses[block.name]
        assert start % alignment == 0 and start >= 0
        for other in blocks:
            if other is not block and other.lives_with(block):
                begin = addresses[other.name]
                assert start + block.bytes <= begin or begin + other.bytes <= start


PIECES = st.lists(
    st.tuples(
        st.integers(1, 90), st.integers(1, 90), st.integers(0, 6), st.integers(0, 6), st.booleans()
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=200, deadline=None)
@given(PIECES)
def test_planner_keeps_pieces_apart(sizes):
    """A block of two pieces, the second of which follows the first and may overwrite it."""
    blocks = []
    for i, (before, lag, first, span, paired) in enumerate(sizes):
        pieces = [Piece(lag if paired else 0, before, first, first + span)]
        if paired:
            pieces.append(Piece(0, before, first + span, first + span + 1))
        last = first + span + paired
        end = max(piece.offset + piece.bytes for piece in pieces)
        blocks.append(Block(str(i), end, first, last, tuple(pieces)))
    addresses = plan(blocks, 1 << 14, 4, [""] * 15)
    taken = [
        (block.name, addresses[block.name] + piece.offset, piece)
        for block in blocks
        for piece in block.parts
    ]
    for name, start, piece in taken:
        assert start >= 0 and addresses[name] % 4 == 0
        for other, begin, theirs in taken:
            if other != name and piece.first <= theirs.last and theirs.first <= piece.last:
                assert start + piece.bytes <= begin or begin + theirs.bytes <= start


def test_what_overwrites_leaves_room_for_others_at_other_times():
    """Each piece takes 80 bytes of a block of 100, at its own time."""
    pair = Block("pair", 100, 1, 3, (Piece(20, 80, 1, 2), Piece(0, 80, 2, 3)))
    blocks = [pair, Block("early", 20, 0, 1), Block("late", 20, 3, 4)]
    addresses = plan(blocks, 100, 4, ["v", "w", "x", "y", "z"])
    assert addresses == {"pair": 0, "early": 0, "late": 80}
    with pytest.raises(CapacityError, match="layer 'w'.* 100 bytes .100 of them alive"):
        plan(blocks, 99, 4, ["v", "w", "x", "y", "z"])


def test_planner_reuses_memory_and_names_the_peak():
    blocks = [Block("a", 64, 0, 1), Block("b", 64, 1, 2), Block("c", 64, 2, 3)]
    assert plan(blocks, 128, 16, ["x", "y", "z", "w"]) == {"a": 0, "b": 64, "c": 0}
    with pytest.raises(CapacityError, match="layer 'y'.* 128 bytes .128 of .* but has 127"):
        plan(blocks, 127, 16, ["x", "y", "z", "w"])


def test_blocks_live_longer_where_there_is_room():
    moments = ["x", "y", "z", "w"]
    blocks = [Block("a", 64, 0, 1), Block("b", 64, 1, 2, (Piece(0, 64, 1, 2),))]
    blocks.append(Block("c", 64, 2, 3))
    last = [block.last for block in prolonged(blocks, 192, 16, moments, 1)]
    assert last == [2, 3, 3]
    kept = prolonged(blocks, 192, 16, moments, 2)
    assert [block.last for block in kept] == [3, 3, 3] and kept[1].pieces[0].last == 3
    # no more than fits
    assert [block.last for block in prolonged(blocks, 128, 16, moments, 2)] == [1, 3, 3]
    assert prolonged(blocks, 64, 16, moments, 2) == blocks


def _convolution(seed: int, sizes: tuple[int, int, int], **changes) -> Convolution:
    builder = NetworkBuilder(seed, *sizes)
    builder.conv2d(8, changes.pop("kernel"), **changes)
    operations, _ = select(builder.graph(), Configuration())
    assert isinstance(operations[0], Convolution)
    return operations[0]


@pytest.mark.parametrize(
    ("channels", "pitches", "tiles", "aligned"),
    [
        (3, (105, 3), 2, ""),  # 27 lanes across rows, as 105 - 9 is a multiple of 16
        (3, (96, 3), 3, "row"),  # a wrong pitch: each row of 9 lanes is a tile
        (16, (512, 16), 9, ""),
        (8, (256, 8), 6, "row"),  # 24 lanes a row
        (8, (264, 8), 5, ""),  # 72 lanes
        (12, (512, 16), 9, ""),  # pads between pixels are lanes of weight zero
    ],
)
def test_reduction_counts_lanes_as_densely_as_banks_allow(channels, pitches, tiles, aligned):
    convolution = _convolution(
        1, (32, 32, channels), kernel=(3, 3), dilation=(1, 1), stride=(1, 1), padding=(1, 1, 1, 1),
        sides=(32, 32),
    )  # fmt: skip
    reduction = choose_reduction(convolution, 0, channels, pitches, Configuration())
    assert reduction.tiles == tiles and reduction.is_legal(Configuration())
    assert (reduction.align_row, reduction.align_tap) == (aligned == "row", aligned == "tap")


def test_kernel_over_the_whole_width_is_one_tap_a_row():
    convolution = _convolution(
        2, (2, 40, 8), kernel=(2, 40), dilation=(1, 1), stride=(1, 1), padding=(0, 0, 0, 0),
        sides=(1, 1),
    )  # fmt: skip
    reduction = choose_reduction(convolution, 0, 8, (320, 8), Configuration())
    assert reduction.merged and reduction.kernel == (2, 1) and reduction.tiles == 40
    with pytest.raises(CapacityError, match="at most 65535 tiles of 16 lanes"):
        choose_reduction(convolution, 0, 8, (80000, 2000), Configuration())


def test_grouped_convolutions_read_only_their_channels():
    builder = NetworkBuilder(3, 5, 5, 8)
    builder.conv2d(32, (2, 2), groups=4)
    operations, _ = select(builder.graph(), Configuration())
    convolution = operations[0]
    assert isinstance(convolution, Convolution) and convolution.input == View(5, 5, 8)
    tiles = channel_tiles(convolution, (40, 8), Configuration(rows=8, columns=8))
    assert [(t.first, t.count, t.reduction.first, t.reduction.channels) for t in tiles] == [
        (0, 8, 0, 2),
        (8, 8, 2, 2),
        (16, 8, 4, 2),
        (24, 8, 6, 2),
    ]


def _sum(scales: tuple[float, float], zero_points: tuple[int, int]) -> Map:
    """The map of an addition of activations of these scales."""
    builder = NetworkBuilder(6, 4, 4, 8)
    first = builder.same_conv2d(1, 8)
    builder.same_conv2d(1, 8)
    operands = builder.last, first
    builder.add(first)
    for name, scale, zero_point in zip(operands, scales, zero_points, strict=True):
        quantization = builder.tensors[name].quantization
        assert quantization is not None
        quantization.scale[:], quantization.zero_point[:] = scale, zero_point
    operations, _ = select(builder.graph(), Configuration())
    made = operations[-1]
    assert isinstance(made, Map) and set(made.sources) == set(operands)
    return dataclasses.replace(made, sources=tuple(str(operands.index(s)) for s in made.sources))


def test_the_operand_of_the_larger_scale_needs_no_table():
    larger_first, larger_second = _sum((0.5, 0.3), (3, -5)), _sum((0.3, 0.5), (3, -5))
    assert larger_first.sources == ("1", "0") and larger_second.sources == ("0", "1")
    for made, zero_point in ((larger_first, 3), (larger_second, -5)):
        assert made.table is not None and made.table.size == 256
        assert made.shifts and made.looked_up == 0b01
        assert made.windows[0].requantization.bias[0] == -zero_point << 19
    both = _sum((0.5, 0.5), (3, -5))
    assert both.table is None and both.shifts and both.looked_up == 0
    assert both.windows[0].requantization.bias[0] == 2 << 19
