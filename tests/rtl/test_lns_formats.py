"""Logarithmic formats: names, codes, words, and what is refused."""

import numpy as np
import pytest
from slipstick_rtl.numbers.lns.array_arithmetic import ArrayArithmetic
from slipstick_rtl.numbers.lns.formats import Lns

FORMATS = [Lns(i, f) for i in range(1, 7) for f in range(13) if 5 <= 1 + i + f <= 16]
NARROW = [f for f in FORMATS if f.bits <= 8 and f.integer_bits <= 4]


@pytest.mark.parametrize("lns", FORMATS, ids=lambda f: f.name)
def test_codes_and_words_hold_every_number(lns: Lns) -> None:
    exponents = np.arange(lns.zero, lns.largest + 1)
    for sign in (False, True):
        signs = np.full(exponents.shape, sign) & (exponents != lns.zero)
        for back in (
            lns.from_code(lns.to_code(sign, exponents)),
            lns.from_word(lns.to_word(sign, exponents)),
        ):
            np.testing.assert_array_equal(back[0], signs)
            np.testing.assert_array_equal(back[1], exponents)
    assert Lns.parse(lns.name) == lns


def test_ordered_codes_have_the_order_of_the_values() -> None:
    lns = Lns(3, 4)
    signs, exponents = lns.from_code(np.arange(-lns.largest_code, lns.largest_code + 1))
    values = np.where(exponents == lns.zero, 0, 2.0 ** (exponents / 16)) * (1 - 2 * signs)
    assert (np.diff(values) > 0).all()


@pytest.mark.parametrize("lns", NARROW, ids=lambda f: f.name)
def test_products_are_those_of_the_values_within_the_table_and_the_cut(lns: Lns) -> None:
    arithmetic = ArrayArithmetic(lns)
    codes = np.arange(1, lns.largest_code + 1)
    products = arithmetic.multiply(codes[:, None], -codes[None, :])
    steps = 1 << lns.fraction_bits
    exact = 2.0 ** ((codes[:, None] + codes[None, :]) / steps) / arithmetic.unit
    relative = 0.5 / (1 << arithmetic.antilog_places)
    assert (np.abs(-products - exact) <= exact * relative + 1).all()
    assert int(-products.min()).bit_length() <= arithmetic.product_bits <= 20
    assert not arithmetic.multiply(0, codes).any()


@pytest.mark.parametrize("lns", NARROW, ids=lambda f: f.name)
def test_requantizing_is_within_six_tenths_of_an_ulp(lns: Lns) -> None:
    arithmetic = ArrayArithmetic(lns)
    generator = np.random.default_rng(1)
    values = generator.integers(-(2**31), 2**31, 20_000) >> generator.integers(0, 31, 20_000)
    offset = arithmetic.offset(2.0**-12)
    codes = arithmetic.requantize(values.astype(np.int32), 0, offset)
    exact = np.log2(np.maximum(np.abs(values), 2.0**-9)) * (1 << lns.fraction_bits)
    exact = np.clip(exact - 12 * (1 << lns.fraction_bits), 0, lns.largest_code)
    kept = codes != 0
    assert (np.sign(codes[kept]) == np.sign(values[kept])).all()
    assert np.abs(np.abs(codes) - exact).max() <= 0.61


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Lns(0, 6), "integer_bits must be at least 1, not 0"),
        (lambda: Lns(3, -1), "fraction_bits must be at least 0, not -1"),
        (lambda: Lns(2, 1), "5 to 20 bits with its sign, not 4"),
        (lambda: Lns(10, 10), "5 to 20 bits with its sign, not 21"),
        (lambda: Lns.parse("lns8"), "not 'lns8'"),
        (lambda: ArrayArithmetic(Lns(4, 4)), "at most 8 bits, not 9"),
        (lambda: ArrayArithmetic(Lns(5, 2)), "at most 4 integer bits, not 5"),
        (lambda: ArrayArithmetic(Lns(3, 4)).offset(2.0**300), "within 2"),
    ],
)
def test_what_is_out_of_range_is_refused(make, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("^", r"\^").replace("+", r"\+")):
        make()


def test_bits_are_integers() -> None:
    with pytest.raises(TypeError, match="integer_bits must be int, not 3.0"):
        Lns(3.0, 4)  # type: ignore[arg-type]
