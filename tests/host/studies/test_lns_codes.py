"""Logarithmic codes of real numbers: the nearest ones, at both ends and in between."""

import numpy as np
import pytest
from lns_networks import FORMATS
from slipstick.graph import Quantization
from slipstick.kernels.lns.codes import arithmetic_of, decode, encode, magnitudes
from slipstick.kernels.lns.layers import mean_table, sum_tables
from slipstick_rtl.numbers.lns.array_arithmetic import ArrayArithmetic


def arithmetic(name: str) -> ArrayArithmetic:
    found = arithmetic_of(name)
    assert found is not None
    return found


@pytest.mark.parametrize("name", FORMATS)
def test_nearest(name: str) -> None:
    own, scale = arithmetic(name), 0.37
    every = np.arange(-own.lns.largest_code, own.lns.largest_code + 1)
    np.testing.assert_array_equal(encode(decode(every, scale, own), scale, own), every)
    numbers = np.random.default_rng(0).normal(0, 40, 500) * scale
    meanings = decode(every, scale, own)
    wanted = every[np.abs(numbers[:, None] - meanings).argmin(axis=1)]
    np.testing.assert_array_equal(encode(numbers, scale, own), wanted)


def test_ends_ties_and_what_is_no_number() -> None:
    own = arithmetic("lns1+3+2")
    values, top = magnitudes(own), own.lns.largest_code
    ties = (values[3] + values[4]) / 2, -(values[3] + values[4]) / 2, values[1] / 2
    assert encode(np.array(ties), 1.0, own).tolist() == [3, -3, 0]
    odd = np.array([np.inf, -np.inf, np.nan, 1e30, -0.0])
    assert encode(odd, 1e-30, own).tolist() == [top, -top, 0, top, 0]
    # bytes that are no codes mean what the ends mean
    bytes_ = np.array([-128, 127], np.int8)
    assert decode(bytes_, 1.0, own).tolist() == [-values[-1], values[-1]]


def test_names() -> None:
    assert arithmetic_of("onnx") is None and arithmetic_of("tflm") is None
    with pytest.raises(ValueError, match="must have at most 8 bits, not 9"):
        arithmetic_of("lns1+4+4")


@pytest.mark.parametrize("name", FORMATS)
def test_tables_leave_room_for_sums(name: str) -> None:
    own = arithmetic(name)
    for taps in (1, 9, 255 * 255):
        table, unit = mean_table(taps, own)
        assert taps * int(table.max()) < 1 << 31
        exact = magnitudes(own)[-1] / unit
        assert abs(table.max() - exact) <= 0.5
    scales = [Quantization(np.array([item]), np.array([0])) for item in (0.01, 3.0, 0.5)]
    tables, offset = sum_tables(tuple(scales), own)
    assert 1 << 28 < int(np.abs(tables).max(axis=1).sum()) < 1 << 31
    codes = np.array([own.lns.largest_code, -5])
    sums = tables[0][codes + 128] + tables[1][codes[::-1] + 128]
    real = decode(codes, 0.01, own) + decode(codes[::-1], 3.0, own)
    wanted = encode(real, 0.5, own).astype(int)
    assert (np.abs(own.requantize(sums, 0, offset) - wanted) <= 1).all()
