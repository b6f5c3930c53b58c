"""LogRequantizer against ``ArrayArithmetic.requantize``: every place with every mantissa."""

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge
from slipstick_rtl.numbers.lns.array_arithmetic import ArrayArithmetic
from slipstick_rtl.numbers.lns.formats import Lns
from slipstick_rtl.postprocess.log_requantizer import LogRequantizer

from .drivers.streams import start
from .registry import Bench, parameters


def make(number_format: str) -> LogRequantizer:
    """The lane of this format."""
    return LogRequantizer(arithmetic=ArrayArithmetic(Lns.parse(number_format)))


BENCH = Bench(
    name="bench_log_requantizer",
    component=make,
    test_module=__name__,
    parameters=({"number_format": "lns1+3+4"}, {"number_format": "lns1+2+2"}),
)

_PLACES = 32
_CORNERS = np.array([0, 1, -1, 2, -2, 127, 128, -128, -129, 255, 256, 2**31 - 1, -(2**31)])


def _arithmetic() -> ArrayArithmetic:
    return ArrayArithmetic(Lns.parse(parameters()["number_format"]))


async def _check(
    dut: Any,
    values: np.ndarray,
    bias: np.ndarray,
    offset: np.ndarray,
    *,
    coded: bool = False,
    limits: tuple[int, int] = (-128, 127),
) -> None:
    """Sends the values in consecutive cycles, each parameter at its delay."""
    values, bias = values.astype(np.int32), bias.astype(np.int32)
    codes = values + bias if coded else _arithmetic().requantize(values, bias, offset)
    expected = np.clip(codes, *limits)
    dut.coded.value = int(coded)
    dut.minimum.value, dut.maximum.value = limits
    inputs = (
        (dut.value, values, 0),
        (dut.bias, bias, 0),
        (dut.offset, offset, LogRequantizer.offset_delay),
    )
    for cycle in range(len(values) + LogRequantizer.latency + 1):
        for port, column, delay in inputs:
            if 0 <= cycle - delay < len(column):
                port.value = int(column[cycle - delay])
        await RisingEdge(dut.clk)
        index = cycle - LogRequantizer.latency
        if 0 <= index < len(values):
            got = dut.result.value.to_signed()
            assert got == expected[index], (
                f"{values[index]} + {bias[index]}, offset {offset[index]}:"
                f" {got} instead of {expected[index]}"
            )


@cocotb.test()
async def every_mantissa_at_every_place(dut: Any) -> None:
    """All that the logarithm depends on, with codes in range, below and above it."""
    arithmetic, generator = _arithmetic(), np.random.default_rng(1)
    bits = arithmetic.mantissa_bits
    place, mantissa = (part.ravel() for part in np.indices((_PLACES - 1, 1 << bits)))
    whole = (1 << bits) + mantissa
    values = np.where(
        place >= bits, whole << np.maximum(place - bits, 0), whole >> bits - np.minimum(place, bits)
    )
    # bits below those that count
    values |= generator.integers(0, 1 << 31, len(values)) & (1 << np.maximum(place - bits, 0)) - 1
    values *= generator.choice([-1, 1], len(values))
    codes = generator.integers(-8, (arithmetic.lns.largest_code + 2) << 3, len(values))
    await start(dut)
    await _check(dut, values, np.zeros(len(values)), codes - (place << arithmetic.log_places))


@cocotb.test()
async def sums_that_wrap_and_extreme_offsets(dut: Any) -> None:
    generator = np.random.default_rng(2)
    values, bias = (part.ravel() for part in np.meshgrid(_CORNERS, _CORNERS))
    offset = generator.choice([-(1 << 15), (1 << 15) - 1, 0, -1], len(values))
    await start(dut)
    await _check(dut, values, bias, offset)
    count = 1000
    words = generator.integers(-(2**31), 2**31, (2, count)) >> generator.integers(0, 32, (2, count))
    offset = generator.integers(-(1 << 12), 1 << 10, count)
    for limits in ((-128, 127), (0, 20), (5, 5), (-9, -3)):
        await _check(dut, words[0], words[1], offset, limits=limits)


@cocotb.test()
async def codes_pass_as_they_are(dut: Any) -> None:
    """Also what is far outside a byte, which is clamped."""
    generator = np.random.default_rng(3)
    codes = np.concatenate([np.arange(-300, 300), _CORNERS])
    bias = np.concatenate([np.zeros(600), np.tile(generator.choice(_CORNERS), len(_CORNERS))])
    offset = generator.integers(-(1 << 15), 1 << 15, len(codes))
    await start(dut)
    for limits in ((-128, 127), (0, 127), (-31, 31)):
        await _check(dut, codes, bias, offset, coded=True, limits=limits)
