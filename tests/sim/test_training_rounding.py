"""Rounding of integer training: against Python's integers, and today's post-processor."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slipstick_rtl.isa import Rounding
from slipstick_rtl.numbers.rounding import encode_shift, requantize
from slipstick_sim.golden.training import finishing, rounding

LARGEST = (1 << 31) - 1
CORNERS = [0, 1, 2, 3, 127, 128, 255, 256, (1 << 24) - 1, 1 << 24, (1 << 30) - 1, 1 << 30, LARGEST]
sums = st.integers(-LARGEST, LARGEST) | st.sampled_from(CORNERS + [-value for value in CORNERS])
shifts = st.integers(0, 31)


def half_even(value: int, shift: int) -> int:
    return round(Fraction(value, 1 << shift))


def pseudo_stochastic(value: int, shift: int, most: int = 8) -> int:
    """By bits as text: the upper half of what is dropped, 8 at most, against what follows."""
    magnitude = abs(value)
    text = f"{magnitude:032b}"
    kept, dropped = text[: 32 - shift], text[32 - shift :]
    width = min(most, (shift + 1) // 2)
    upper = dropped[:width]
    lower = dropped[width : 2 * width].ljust(width, "0")
    up = upper > lower
    return (int(kept, 2) + up) * (-1 if value < 0 else 1)


@settings(max_examples=300, deadline=None)
@given(st.lists(sums, min_size=1, max_size=20), shifts)
def test_rounding_is_that_of_python_integers(values: list[int], shift: int) -> None:
    array = np.array(values, np.int32)
    nearest = rounding.round_half_even(array, shift)
    assert nearest.tolist() == [half_even(value, shift) for value in values]
    stochastic = rounding.round_pseudo_stochastic(array, shift)
    assert stochastic.tolist() == [pseudo_stochastic(value, shift) for value in values]
    fine = rounding.round_pseudo_stochastic(array, shift, rounding.UPDATE_FRACTION_BITS)
    assert fine.tolist() == [pseudo_stochastic(value, shift, 16) for value in values]
    assert np.array_equal(array, np.array(values, np.int32)), "operands are left as they are"


@settings(max_examples=300, deadline=None)
@given(st.lists(sums, min_size=1, max_size=20), shifts)
def test_forward_rounding_is_the_post_processors(values: list[int], shift: int) -> None:
    array = np.array(values, np.int32)
    encoded = encode_shift(Rounding.HALF_EVEN, rounding.FORWARD_SHIFT + shift)
    today = requantize(array, 0, rounding.FORWARD_MULTIPLIER, encoded, Rounding.HALF_EVEN)
    np.testing.assert_array_equal(rounding.round_half_even(array, shift), today)


@given(st.integers(0, LARGEST))
def test_the_chosen_shift_is_the_smallest_that_leaves_seven_bits(largest: int) -> None:
    shift = rounding.shift_for(largest)
    assert largest >> shift <= 127
    assert shift == 0 or largest >> (shift - 1) > 127
    assert shift <= 24


def test_pseudo_stochastic_rounding_is_right_on_average() -> None:
    for shift, tolerance in ((8, 0.04), (12, 0.01), (16, 0.003)):
        values = np.arange(1 << shift, dtype=np.int32) + (5 << shift)
        mean = rounding.round_pseudo_stochastic(values, shift).mean()
        assert abs(mean - 5.5) < tolerance


def test_codes_saturate_symmetrically() -> None:
    assert rounding.codes_of(np.array([-500, -128, -127, 0, 127, 128])).tolist() == [
        *(-127, -127, -127, 0, 127, 127)
    ]


@given(sums, st.integers(-40, 40))
def test_alignment_is_exact_or_raises(value: int, shift: int) -> None:
    if shift >= 0:
        wanted = half_even(value, shift) if shift < 32 else 0
    else:
        wanted = value << -shift
    array = np.array([value], np.int32)
    if abs(wanted) > LARGEST:
        with pytest.raises(OverflowError, match="32 bits|within"):
            rounding.align(array, shift)
    else:
        assert rounding.align(array, shift).tolist() == [wanted]


def test_largest_magnitudes() -> None:
    assert rounding.largest_magnitude(np.array([-5, 3], np.int8)) == 5
    assert rounding.largest_magnitude(np.array([-128], np.int8)) == 128
    assert rounding.largest_magnitude(np.array([], np.int32)) == 0


@pytest.mark.parametrize("shift", [-1, 32])
def test_shifts_out_of_range(shift: int) -> None:
    for function in (rounding.round_half_even, rounding.round_pseudo_stochastic):
        with pytest.raises(ValueError, match=f"within 0..31, not {shift}"):
            function(np.zeros(1, np.int32), shift)


@pytest.mark.parametrize("largest", [-1, 1 << 31])
def test_largest_out_of_range(largest: int) -> None:
    with pytest.raises(ValueError, match=f"not {largest}"):
        rounding.shift_for(largest)


def test_sums_beyond_32_bits_raise() -> None:
    assert rounding.exact_sum(np.array([LARGEST, -LARGEST])).dtype == np.int32
    with pytest.raises(OverflowError, match=f"not {LARGEST + 1}"):
        rounding.exact_sum(np.array([LARGEST + 1]), "a gradient")


def test_the_next_exponent_is_reached_by_the_shift_between() -> None:
    assert rounding.next_exponent(-20, 1 << 12) == -14
    assert rounding.shift_between(-20, -14) == 6
    assert rounding.shift_between(-20, -30) == 0
    assert rounding.shift_between(-20, 100) == 31


@settings(deadline=None)
@given(st.lists(sums, min_size=2, max_size=40), shifts, st.booleans())
def test_finished_sums(values: list[int], shift: int, relu: bool) -> None:
    array = np.array(values, np.int32).reshape(1, -1)
    codes = finishing.finish_forward(array, shift, relu)
    lowest = 0 if relu else -127
    assert codes.dtype == np.int8
    wanted = [max(lowest, min(127, half_even(value, shift))) for value in values]
    assert codes.tolist() == [wanted]
    errors = finishing.finish_errors(array, shift)
    wanted = [max(-127, min(127, pseudo_stochastic(value, shift))) for value in values]
    assert errors.dtype == np.int8 and errors.tolist() == [wanted]
    assert finishing.largest_error(array) == max(abs(value) for value in values)
    counted = [max(value, 0 if relu else ~value) for value in values]
    assert finishing.largest_forward(array, relu) == max(counted)


def test_more_sums_than_a_block() -> None:
    values = np.arange(-50_000, 50_000, dtype=np.int32).reshape(2, 5, -1)
    codes = finishing.finish_forward(values, 9)
    np.testing.assert_array_equal(codes, rounding.codes_of(rounding.round_half_even(values, 9)))


def test_a_bias_is_added_exactly_or_raises() -> None:
    sums, bias = np.array([[5, 6]], np.int32), np.array([-7, 8], np.int32)
    assert finishing.add_bias(sums, bias).tolist() == [[-2, 14]]
    sums, bias = np.array([[LARGEST, 0]], np.int32), np.array([-1, 5], np.int32)
    assert finishing.add_bias(sums, bias).tolist() == [[LARGEST - 1, 5]]
    with pytest.raises(OverflowError, match="a sum with its bias"):
        finishing.add_bias(np.array([[LARGEST, 0]], np.int32), np.array([1, 0], np.int32))
