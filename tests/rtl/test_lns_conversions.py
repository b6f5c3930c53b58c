"""Conversions of logarithmic numbers, held to numbers of many digits."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from slipstick_rtl.numbers.lns.formats import Lns
from slipstick_rtl.numbers.lns.unit.conversions import (
    from_fixed,
    from_float,
    from_int8,
    to_fixed,
    to_float,
    to_int8,
)

FORMATS = [Lns(3, 4), Lns(2, 2), Lns(6, 6), Lns(4, 0), Lns(5, 10), Lns(1, 18), Lns(10, 9)]


def codes_of(lns: Lns, count: int = 300) -> np.ndarray:
    """All codes, or some with the corners."""
    if lns.bits <= 9:
        return np.arange(-lns.largest_code, lns.largest_code + 1)
    generator = np.random.default_rng(1)
    top = lns.largest_code
    corners = [0, 1, -1, 2, top, -top, top - 1, -lns.zero, -lns.zero + 1]
    return np.concatenate([corners, generator.integers(-top, top + 1, count)])


def value_of(lns: Lns, code: int) -> Decimal:
    """A code's value with 60 digits."""
    if code == 0:
        return Decimal(0)
    with localcontext(prec=60):
        exponent = Decimal(abs(code) + lns.zero) / (1 << lns.fraction_bits)
        return (1 if code > 0 else -1) * Decimal(2) ** exponent


@pytest.mark.parametrize("lns", FORMATS, ids=lambda lns: lns.name)
def test_floats_hold_every_number(lns: Lns) -> None:
    codes = codes_of(lns)
    np.testing.assert_array_equal(from_float(lns, to_float(lns, codes)), codes)
    if lns.integer_bits < 8:
        single = to_float(lns, codes, np.float32)
        assert single.dtype == np.float32
        np.testing.assert_array_equal(from_float(lns, single), codes)


@pytest.mark.parametrize("lns", FORMATS, ids=lambda lns: lns.name)
def test_values_are_correctly_rounded(lns: Lns) -> None:
    for code in codes_of(lns, 100):
        exact = value_of(lns, int(code))
        got = to_float(lns, code)
        # float() of a Decimal rounds once, half to even
        assert got == float(exact)
        single = to_float(lns, code, np.float32)
        if np.isfinite(single) and abs(single) > 2.0**-126:
            for other in (np.nextafter(single, np.float32(s * np.inf)) for s in (-1, 1)):
                assert abs(exact - Decimal(float(single))) < abs(exact - Decimal(float(other)))
        fixed = int(to_fixed(lns, code, 7, 40))
        with localcontext(prec=60):
            rounded = int((exact * 128).to_integral_value())
        assert fixed == min(max(rounded, -(2**39)), 2**39 - 1)


@pytest.mark.parametrize("lns", FORMATS, ids=lambda lns: lns.name)
def test_floats_beside_a_tie_go_to_the_nearest(lns: Lns) -> None:
    generator = np.random.default_rng(3)
    for e in generator.integers(lns.smallest, lns.largest, 40):
        with localcontext(prec=60):
            tie = Decimal(2) ** ((Decimal(int(e)) + Decimal("0.5")) / (1 << lns.fraction_bits))
        near = float(tie)
        floats = np.array([np.nextafter(near, 0), near, np.nextafter(near, np.inf)])
        expected = [e - lns.zero + (Decimal(float(v)) > tie) for v in floats]
        np.testing.assert_array_equal(from_float(lns, floats), expected)
        np.testing.assert_array_equal(from_float(lns, -floats), np.negative(expected))


def test_ends_infinities_and_nan() -> None:
    lns = Lns(3, 4)
    top = lns.largest_code
    values = [np.inf, -np.inf, 1e300, -17.0, 0.0, -0.0, 1e-300, 5e-324]
    np.testing.assert_array_equal(from_float(lns, values), [top, -top, top, -top, 0, 0, 0, 0])
    half_below = 2.0 ** ((lns.smallest - 0.5) / 16)
    assert from_float(lns, half_below * 1.0001) == 1
    assert from_float(lns, half_below * 0.9999) == 0
    with pytest.raises(ValueError, match=r"must be no NaN to be converted to lns1\+3\+4"):
        from_float(lns, [1.0, np.nan])
    wide = Lns(12, 4)
    assert to_float(wide, wide.largest_code) == np.inf
    assert to_float(wide, -wide.largest_code, np.float32) == -np.inf
    assert to_float(wide, 1) == 0


def test_int8_with_a_scale() -> None:
    lns = Lns(6, 9)
    codes = np.arange(-128, 128)
    for scale, zero_point in ((0.0234375, 0), (np.float32(0.1), -3), (7.5, 100)):
        logarithms = from_int8(lns, codes, scale, zero_point)
        exact = (codes - zero_point) * float(scale)
        np.testing.assert_array_equal(logarithms, from_float(lns, exact))
        # an ulp of 0.14 % is less than half a step of 255
        np.testing.assert_array_equal(to_int8(lns, logarithms, scale, zero_point), codes)
    assert to_int8(lns, [lns.largest_code, -lns.largest_code], 0.5).tolist() == [127, -128]


def test_fixed_point() -> None:
    lns = Lns(5, 10)
    values = np.array([0, 1, -1, 3, 255, -4096, 1 << 52])
    np.testing.assert_array_equal(from_fixed(lns, values, 8), from_float(lns, values / 256))
    one = -lns.zero
    # 0.5 and 1.5, ties, go to even; 2^-40 is nothing
    assert to_fixed(lns, [one - 1024, -one + 1024, one], 0).tolist() == [0, 0, 1]
    assert to_fixed(lns, [lns.largest_code, -lns.largest_code], 20, 16).tolist() == [32767, -32768]
    assert to_fixed(lns, 1, 0) == 0


@pytest.mark.parametrize(
    ("convert", "message"),
    [
        (lambda: to_fixed(Lns(3, 4), 1, 0, 54), "must have 2 to 53 bits, not 54"),
        (lambda: from_fixed(Lns(3, 4), (1 << 53) + 1, 0), r"within 2\^\+-53"),
    ],
)
def test_what_is_out_of_range_is_refused(convert, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        convert()
