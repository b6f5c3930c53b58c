"""Logarithmic arithmetic: every distance of an adder, every pair of narrow formats, all rules."""

import numpy as np
import pytest
from slipstick_rtl.numbers.lns.formats import Lns
from slipstick_rtl.numbers.lns.unit.arithmetic import LnsArithmetic
from slipstick_rtl.numbers.lns.unit.conversions import from_float, to_float
from slipstick_rtl.numbers.lns.unit.gaussian_log_interpolated_model import InterpolatedGauss
from slipstick_rtl.numbers.lns.unit.gaussian_log_model import (
    PlainGauss,
    exact_minus,
    exact_plus,
    reach,
    rounds_to_zero_from,
)

TO_16_BITS = [Lns(i, f) for f in range(15) for i in range(1, 16 - f) if 5 <= 1 + i + f]
WIDER = [Lns(i, 19 - i) for i in (1, 2, 4, 7, 12, 19)]
NARROW = [lns for lns in TO_16_BITS if lns.bits <= 7]
FOUNDING = Lns(6, 6)


def numbers(lns: Lns) -> np.ndarray:
    """Every ordered code."""
    return np.arange(-lns.largest_code, lns.largest_code + 1, dtype=np.int32)


def pairs(lns: Lns) -> tuple[np.ndarray, np.ndarray]:
    """Every pair of ordered codes, as a column and a row."""
    return numbers(lns)[:, None], numbers(lns)[None, :]


@pytest.mark.parametrize("lns", [*TO_16_BITS, *WIDER], ids=lambda lns: lns.name)
def test_adders_are_faithful_at_every_distance(lns: Lns) -> None:
    gauss = LnsArithmetic(lns).gauss
    bound = 0.5 if isinstance(gauss, PlainGauss) else 0.95
    distance = np.arange(reach(lns))
    plus, minus = gauss.plus(distance), gauss.minus(distance)
    assert np.abs(plus - exact_plus(distance, lns.fraction_bits)).max() <= bound
    exact = exact_minus(distance[1:], lns.fraction_bits)
    assert np.abs(minus[1:] - exact).max(initial=0) <= bound
    assert (np.diff(plus) <= 0).all() or bound > 0.5
    beyond = np.arange(rounds_to_zero_from(lns.fraction_bits), 2 * lns.largest_code)
    assert np.abs(exact_minus(beyond, lns.fraction_bits)).max(initial=0) < 0.5


def test_interpolation_agrees_with_the_tables_within_an_ulp() -> None:
    for fraction_bits in (5, 6, 7, 8):
        lns = Lns(4, fraction_bits)
        distance = np.arange(1, reach(lns))
        plain, fine = PlainGauss(lns), InterpolatedGauss(lns)
        assert np.abs(plain.plus(distance) - fine.plus(distance)).max() <= 1
        assert np.abs(plain.minus(distance) - fine.minus(distance)).max() <= 1


def test_tables_have_the_sizes_that_are_documented() -> None:
    bits = {f: LnsArithmetic(Lns(5, f)).gauss.table_bits for f in (3, 4, 5, 6, 7, 9, 10)}
    assert bits == {3: 329, 4: 1068, 5: 2934, 6: 7721, 7: 1176, 9: 3006, 10: 5299}


@pytest.mark.parametrize("lns", NARROW, ids=lambda lns: lns.name)
def test_products_quotients_and_roots_of_all_numbers(lns: Lns) -> None:
    arithmetic = LnsArithmetic(lns)
    a, b = pairs(lns)
    x, y = to_float(lns, a), to_float(lns, b)
    np.testing.assert_array_equal(arithmetic.multiply(a, b), from_float(lns, x * y))
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = np.where((x == 0) & (y == 0), 0, x / y)
    # a zero divisor has no sign of its own
    np.testing.assert_array_equal(arithmetic.divide(a, b), from_float(lns, quotient))
    codes = numbers(lns)
    roots = arithmetic.square_root(codes)
    assert not roots[codes <= 0].any()
    error = (roots - arithmetic.one) - (codes - arithmetic.one) / 2
    assert np.abs(error[codes > 0]).max() <= 0.5
    assert ((roots - arithmetic.one)[(codes > 0) & (np.abs(error) == 0.5)] % 2 == 0).all()


@pytest.mark.parametrize("lns", NARROW, ids=lambda lns: lns.name)
def test_sums_and_differences_of_all_numbers_are_correctly_rounded(lns: Lns) -> None:
    arithmetic = LnsArithmetic(lns)
    a, b = pairs(lns)
    x, y = to_float(lns, a), to_float(lns, b)
    np.testing.assert_array_equal(arithmetic.subtract(a, b), arithmetic.add(a, -b))
    np.testing.assert_array_equal(arithmetic.compare(a, b), np.sign(x - y) * arithmetic.one)
    exact = np.where(np.abs(x + y) < 1e-12 * np.abs(x), 0, x + y)
    np.testing.assert_array_equal(arithmetic.add(a, b), from_float(lns, exact))


@pytest.mark.parametrize("lns", [Lns(5, 10), Lns(8, 7), Lns(1, 14)], ids=lambda lns: lns.name)
def test_sums_of_fine_formats_are_faithful(lns: Lns) -> None:
    arithmetic = LnsArithmetic(lns)
    generator = np.random.default_rng(1)
    a = generator.integers(-lns.largest_code, lns.largest_code + 1, 20_000)
    b = np.clip(a + generator.integers(-99, 99, a.size), -lns.largest_code, lns.largest_code)
    for second in (b, -b, generator.permutation(a)):
        total = to_float(lns, a) + to_float(lns, second)
        with np.errstate(divide="ignore"):
            exact = np.log2(np.abs(total)) * (1 << lns.fraction_bits) - lns.zero
        got = arithmetic.add(a, second)
        kept = (exact >= 1) & (exact <= lns.largest_code)
        assert np.abs(np.abs(got) - exact)[kept].max() < 1
        assert (np.sign(got) == np.sign(total))[kept].all()
        assert (np.abs(got)[exact > lns.largest_code + 1] == lns.largest_code).all()
        assert not got[exact < 0].any()


def test_the_founding_pair() -> None:
    arithmetic = LnsArithmetic(FOUNDING)
    a, b, c = (from_float(FOUNDING, value) for value in (98, 2, 10))
    total = float(to_float(FOUNDING, arithmetic.add(a, b)))
    product = float(to_float(FOUNDING, arithmetic.multiply(c, c)))
    assert round(total, 3) == 99.776
    assert round(product, 3) == 100.863


def test_compensation_keeps_what_small_terms_add() -> None:
    arithmetic = LnsArithmetic(FOUNDING)
    term = from_float(FOUNDING, 0.002)
    plain = total = from_float(FOUNDING, 1.0)
    rest = np.int32(0)
    for _ in range(1000):
        plain = arithmetic.add(plain, term)
        total, rest = arithmetic.compensated_add(total, term, rest)
    assert plain == arithmetic.one
    assert abs(float(to_float(FOUNDING, total)) - 3.0) < 0.05


def test_compensated_addition_is_four_additions() -> None:
    arithmetic = LnsArithmetic(Lns(3, 4))
    generator = np.random.default_rng(2)
    w, u, c = generator.integers(-127, 128, (3, 10_000))
    y = arithmetic.add(u, c)
    t = arithmetic.add(w, y)
    rest = arithmetic.subtract(y, arithmetic.subtract(t, w))
    got = arithmetic.compensated_add(w, u, c)
    np.testing.assert_array_equal(got[0], t)
    np.testing.assert_array_equal(got[1], rest)


def test_ends_of_the_range() -> None:
    lns = Lns(3, 4)
    arithmetic = LnsArithmetic(lns)
    top, small = lns.largest_code, 1
    assert arithmetic.multiply(top, -top) == -top
    assert arithmetic.multiply(small, -small) == 0
    assert arithmetic.add(top, top) == top
    assert arithmetic.subtract(small + 1, small) == 0
    assert arithmetic.divide(-5, 0) == -top
    assert arithmetic.divide(5, 0) == top
    assert arithmetic.divide(0, 0) == 0
    assert arithmetic.square_root(-5) == 0
