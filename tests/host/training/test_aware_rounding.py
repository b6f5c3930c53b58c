"""Rounding in trainings is the array's, bit for bit; a limited format's codes end early."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slipstick.errors import InputError
from slipstick.kernels.lns.codes import decode, encode, magnitudes
from slipstick.training.aware import find_format
from slipstick.training.aware.rounding import (
    Products,
    SumRounding,
    round_input,
    round_weights,
)
from slipstick_rtl.numbers.lns.array_arithmetic import ArrayArithmetic

NAMES = ("lns4", "lns5", "lns6", "lns7", "lns8", "lns1+4+1")
LARGEST_EXACT = 1 << 24


def rounded(
    arithmetic: ArrayArithmetic, sums: np.ndarray, units: np.ndarray, scale: float, *, relu: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Real numbers of some sums, rounded; and where errors pass."""
    numbers = (sums * units).astype(np.float32)
    return SumRounding(arithmetic, units, scale, relu)(numbers)


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(NAMES),
    seed=st.integers(0, 1 << 32),
    scale_log=st.floats(-3, 12),
    relu=st.booleans(),
)
def test_sums_become_the_codes_of_the_golden_requantiser(
    name: str, seed: int, scale_log: float, relu: bool
) -> None:
    arithmetic = find_format(name).arithmetic
    generator = np.random.default_rng(seed)
    sizes = np.exp2(generator.uniform(0, 22, (40, 3)))
    sums = np.rint(sizes * generator.choice([-1, 1], sizes.shape)).astype(np.int64)
    corners = [0, 1, -1, 2, 3, LARGEST_EXACT - 1, 1 - LARGEST_EXACT]
    sums[: len(corners), 0] = corners
    # powers of two keep float32 exact, so that the sums are what they were
    units, scale = np.array([1.0, 0.25, 8.0]), float(np.exp2(scale_log))
    numbers, passes = rounded(arithmetic, sums, units, scale, relu=relu)
    offsets = np.array([arithmetic.offset(float(unit) / scale) for unit in units])
    codes = arithmetic.requantize(sums, 0, offsets)
    wanted = np.maximum(codes, 0) if relu else codes
    np.testing.assert_array_equal(
        numbers, decode(wanted.astype(np.int8), scale, arithmetic).astype(np.float32)
    )
    # a ReLU cuts what is negative, and the format what is beyond its largest code
    beyond = np.abs(sums * units) > scale * magnitudes(arithmetic)[-1] * 1.5
    assert not passes[beyond].any()
    within = np.abs(sums * units) < scale * magnitudes(arithmetic)[-1] * 0.7
    np.testing.assert_array_equal(passes[within], (sums >= 0)[within] if relu else 1)


@pytest.mark.parametrize("name", NAMES)
def test_weights_and_inputs_become_the_nearest_codes(name: str) -> None:
    arithmetic = find_format(name).arithmetic
    generator = np.random.default_rng(1)
    weights = generator.normal(0, 1, (4, 50)).astype(np.float32)
    scales = np.array([0.01, 0.1, 0.4, 2.0], np.float32)
    found, beyond = round_weights(weights, scales, arithmetic)
    wide = scales.astype(np.float64)[:, None]
    wanted = decode(encode(weights, wide, arithmetic), wide, arithmetic)
    np.testing.assert_array_equal(found, wanted.astype(np.float32))
    np.testing.assert_array_equal(beyond, np.abs(weights) > wide * magnitudes(arithmetic)[-1])
    pixels = np.arange(256, dtype=np.uint8)
    (once,) = round_input(pixels, 20.0, arithmetic, doubled=False)
    first, second = round_input(pixels, 20.0, arithmetic, doubled=True)
    np.testing.assert_array_equal(once, first)
    for looked_up, computed in zip(
        (first, second),
        round_input(pixels.astype(np.float32), 20.0, arithmetic, doubled=True),
        strict=True,
    ):
        np.testing.assert_array_equal(looked_up, computed)
    covered = pixels <= 20 * magnitudes(arithmetic)[-1]
    assert (np.abs(first + second - pixels) <= np.abs(first - pixels))[covered].all()


@pytest.mark.parametrize("name", ["lns4", "lns5", "lns6", "lns7"])
def test_products_are_the_arrays(name: str) -> None:
    arithmetic = find_format(name).arithmetic
    assert arithmetic.dropped_places == 0 or name == "lns7"
    every = np.arange(-arithmetic.lns.largest_code, arithmetic.lns.largest_code + 1)
    numbers = decode(every, 1.0, arithmetic).astype(np.float32)
    products = Products(arithmetic)
    activations = products.activations(numbers, 1.0)
    weights = products.weights(numbers[None], np.ones(1))
    found = sum(np.outer(a, w[0]) for a, w in zip(activations, weights, strict=True))
    wanted = arithmetic.multiply(every[:, None], every[None]) * arithmetic.unit
    np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=arithmetic.unit)


def test_formats() -> None:
    four, five = find_format("lns4"), find_format("lns5")
    assert (four.bits, four.target, four.is_limited) == (4, "sim-lns1+3+1", True)
    assert (five.bits, five.target, five.is_limited) == (5, "sim-lns1+2+2", False)
    assert find_format("lns1+3+2").lns == find_format("lns6").lns
    assert find_format("lns8").is_doubled is False and four.is_doubled
    # the codes of 1+2+1 are the first ones of 1+3+1, with the same products
    array = find_format("lns1+3+1").arithmetic
    np.testing.assert_array_equal(magnitudes(four.arithmetic), magnitudes(array)[:8])
    codes = np.arange(-7, 8)
    np.testing.assert_array_equal(
        four.arithmetic.multiply(codes[:, None], codes), array.multiply(codes[:, None], codes)
    )
    assert four.arithmetic.unit == array.unit


@pytest.mark.parametrize("name", ["lns3", "lns1+4+4", "lns1+5+1", "int8", "lns1+1+1"])
def test_formats_that_no_array_has(name: str) -> None:
    with pytest.raises(InputError, match=r"a format to train for must be one of lns4, lns5"):
        find_format(name)
