"""Requantizer against ``numbers.rounding``: random and corner values, every rounding and shift."""

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge
from slipstick_rtl.isa import Rounding
from slipstick_rtl.numbers.rounding import clamp, encode_shift, requantize
from slipstick_rtl.postprocess.requantizer import Requantizer

from .drivers.streams import start
from .registry import Bench


def component() -> Requantizer:
    """The lane under test."""
    return Requantizer()


BENCH = Bench(name="bench_requantizer", component=component, test_module=__name__)

_SHIFTS = {rounding: (24, 62) for rounding in Rounding} | {Rounding.DOUBLE: (0, 31)}
_SIGNIFICANT = 24
"""Bits that FLOAT keeps of a product."""

_LOWEST_FACTOR = 7
"""Bits below a float32's significand in a multiplier."""

_CORNERS = (0, 1, -1, 2, -2, 2**31 - 1, -(2**31), 2**30, -(2**30))

Values = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def _random(generator: np.random.Generator, rounding: Rounding, count: int) -> Values:
    """Sums of every magnitude, some of which wrap; every legal shift."""

    def any_magnitude() -> np.ndarray:
        words = generator.integers(-(2**31), 2**31, count) >> generator.integers(0, 32, count)
        return np.where(generator.random(count) < 0.1, generator.choice(_CORNERS, count), words)

    low, high = (encode_shift(rounding, shift) for shift in _SHIFTS[rounding])
    bias = np.where(generator.random(count) < 0.3, 0, any_magnitude())
    multiplier = np.where(
        generator.random(count) < 0.2,
        generator.choice([0, 1, 2**30, 2**31 - 1], count),
        generator.integers(2**30, 2**31, count),
    )
    if rounding is Rounding.FLOAT:
        multiplier = multiplier >> _LOWEST_FACTOR << _LOWEST_FACTOR
    shift = np.resize(np.arange(low, high + 1), count)
    return any_magnitude(), bias, multiplier, generator.permutation(shift)


def _ties(generator: np.random.Generator, rounding: Rounding, count: int) -> Values:
    """Products just at, below and above a tie, by multipliers that are powers of two."""
    low, high = _SHIFTS[rounding]
    power = generator.integers(16, 31, count)
    if rounding is Rounding.DOUBLE:
        # the first rounding meets ties with small powers, the second with exact first halves
        power = np.where(generator.random(count) < 0.5, 30, power)
        dropped = np.where(power == 30, generator.integers(1, 20, count) + 1, 31 - power)
        shift = np.where(power == 30, dropped - 1, generator.integers(low, 4, count))
    else:
        dropped = np.clip(generator.integers(low, high, count) - power, 1, 30)
        shift = np.clip(dropped + power, low, high)
    whole = generator.integers(-300, 300, count)
    offset = generator.integers(-1, 2, count)
    value = (whole << dropped) + (1 << (dropped - 1)) + offset
    value = np.clip(value, -(2**31), 2**31 - 1)
    encoded = shift + encode_shift(rounding, low) - low
    return value, np.zeros(count, np.int64), np.int64(1) << power, encoded


def _near_ties(generator: np.random.Generator, count: int) -> Values:
    """Products around the ends of what FLOAT takes for a tie, for results of every size and sign.

    With 2^L <= |tie| < 2^(L + 1), those ends are 2^(L - 24) away; below 1/2, half as far as above.
    """
    exponent = generator.integers(-2, 9, count)
    first = 1 << np.maximum(exponent, 0)
    whole = np.where(exponent < 0, 0, first + generator.integers(0, first))
    shift = generator.integers(np.maximum(31 - exponent, 24), 60 - exponent)
    end = shift + exponent - _SIGNIFICANT
    # powers of two give products every bit down to the end, or a few less
    power = generator.integers(
        np.maximum(shift + exponent - 29, _LOWEST_FACTOR), np.minimum(end, 30) + 1
    )
    tie = (2 * whole + 1) << (shift - 1 - power)
    distance = generator.choice([-1, 0, 1], count) << (end - power)
    total = tie + distance + generator.integers(-2, 3, count)
    sign = generator.choice([-1, 1], count)
    encoded = shift + encode_shift(Rounding.FLOAT, 24) - 24
    return total * sign, np.zeros(count, np.int64), np.int64(1) << power, encoded


def _near_products(generator: np.random.Generator, count: int) -> Values:
    """Sums and significands whose products lie as near a tie as they can."""
    shift = generator.integers(32, 54, count)
    multiplier = generator.integers(1 << 23, 1 << 24, count) << _LOWEST_FACTOR
    tie = (2 * generator.integers(-300, 300, count) + 1) << (shift - 1)
    total = np.clip(tie // multiplier + generator.integers(0, 2, count), -(2**31), 2**31 - 1)
    encoded = shift + encode_shift(Rounding.FLOAT, 24) - 24
    return total, np.zeros(count, np.int64), multiplier, encoded


async def _check(dut: Any, rounding: Rounding, values: Values, limits: tuple[int, ...]) -> None:
    """Sends the values in consecutive cycles, each parameter at its delay."""
    zero_point, minimum, maximum = limits
    dut.rounding.value = int(rounding)
    dut.zero_point.value = zero_point
    dut.minimum.value = minimum
    dut.maximum.value = maximum
    value, bias, multiplier, shift = values
    expected = clamp(requantize(value.astype(np.int32), bias, multiplier, shift, rounding), *limits)
    inputs = (
        (dut.value, value, 0),
        (dut.bias, bias, 0),
        (dut.multiplier, multiplier, Requantizer.multiplier_delay),
        (dut.shift, shift, Requantizer.shift_delay),
    )
    for cycle in range(len(value) + Requantizer.latency + 1):
        for port, column, delay in inputs:
            if 0 <= cycle - delay < len(column):
                port.value = int(column[cycle - delay])
        await RisingEdge(dut.clk)
        index = cycle - Requantizer.latency
        if 0 <= index < len(value):
            got = dut.result.value.to_signed()
            assert got == expected[index], (
                f"{rounding.name}: ({value[index]} + {bias[index]}) x {multiplier[index]}"
                f" >> {shift[index]}: {got} instead of {expected[index]}"
            )


@cocotb.test()
@cocotb.parametrize(rounding=list(Rounding))
async def random_values(dut: Any, rounding: Rounding) -> None:
    generator = np.random.default_rng(int(rounding))
    await start(dut)
    for limits in ((0, -128, 127), (-128, -128, 127), (127, -128, 127), (-5, -5, 90), (4, 4, 4)):
        await _check(dut, rounding, _random(generator, rounding, 1000), limits)


@cocotb.test()
@cocotb.parametrize(rounding=list(Rounding))
async def ties(dut: Any, rounding: Rounding) -> None:
    generator = np.random.default_rng(10 + int(rounding))
    await start(dut)
    for limits in ((0, -128, 127), (100, -128, 127)):
        await _check(dut, rounding, _ties(generator, rounding, 2000), limits)


@cocotb.test()
async def float_ties(dut: Any) -> None:
    generator = np.random.default_rng(20)
    await start(dut)
    for limits in ((0, -128, 127), (127, -128, 127), (-128, -128, 127)):
        await _check(dut, Rounding.FLOAT, _near_ties(generator, 4000), limits)
        await _check(dut, Rounding.FLOAT, _near_products(generator, 1000), limits)
