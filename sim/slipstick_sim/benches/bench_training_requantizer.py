"""TrainingRequantizer against ``numbers.rounding``: what it does besides, from value to value."""

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge
from slipstick_rtl.isa import Rounding
from slipstick_rtl.numbers.rounding import (
    clamp,
    encode_shift,
    lowest_bytes,
    noted_bits,
    requantize,
    requantize_stochastic,
)
from slipstick_rtl.postprocess.training_requantizer import TrainingRequantizer

from .drivers.streams import start
from .registry import Bench


def component() -> TrainingRequantizer:
    """The lane under test."""
    return TrainingRequantizer()


BENCH = Bench(name="bench_training_requantizer", component=component, test_module=__name__)

_CORNERS = (0, 1, -1, 2, -2, 2**31 - 1, 1 - 2**31, 2**30, -(2**30))
_PLAIN, _STOCHASTIC, _BYTES = range(3)


class _Values:
    """Random values with their parameters and what comes of them, of all three kinds in turns."""

    def __init__(self, seed: int, count: int) -> None:
        self._generator = generator = np.random.default_rng(seed)
        words = generator.integers(1 - 2**31, 2**31, count) >> generator.integers(0, 32, count)
        corners = generator.choice(_CORNERS, count)
        self.value = np.where(generator.random(count) < 0.1, corners, words).astype(np.int32)
        self.kind = np.repeat(generator.integers(0, 3, -(-count // 7)), 7)[:count]
        self.bias = np.where(self.kind == _STOCHASTIC, 0, generator.integers(-999, 999, count))
        dropped = generator.integers(1, 32, count)
        byte = encode_shift(Rounding.HALF_EVEN, 30) + 8 * generator.integers(0, 4, count)
        is_plain, is_stochastic = self.kind == _PLAIN, self.kind == _STOCHASTIC
        powers = np.where(is_stochastic, 1 << (31 - dropped), 1 << 30)
        self.multiplier = np.where(is_plain, generator.integers(0, 2**31, count), powers)
        shifts = np.where(is_stochastic, dropped, byte)
        self.shift = np.where(is_plain, generator.integers(2, 41, count), shifts)
        self.results = self._expected()

    def _expected(self) -> np.ndarray:
        arguments = self.value, self.bias, self.multiplier, self.shift
        usual = requantize(*arguments, Rounding.HALF_EVEN)
        stochastic = np.where(
            self.kind == _STOCHASTIC,
            requantize_stochastic(self.value, 0, self.multiplier, np.clip(self.shift, 1, 31)),
            usual,
        )
        return np.where(
            self.kind == _BYTES, lowest_bytes(*arguments), clamp(stochastic, 0, -127, 127)
        )


@cocotb.test()
@cocotb.parametrize(seed=[1, 2, 3])
async def all_kinds_in_turns(dut: Any, seed: int) -> None:
    """Each input at its delay; notes gather bits until they are forgotten."""
    values = _Values(seed, 6000)
    generator = np.random.default_rng(seed)
    unit = TrainingRequantizer
    noting = generator.random(len(values.value)) < 0.3
    forgetting = generator.random(len(values.value)) < 0.02
    positive = np.repeat(generator.random(-(-len(values.value) // 9)) < 0.5, 9)
    dut.rounding.value = int(Rounding.HALF_EVEN)
    dut.zero_point.value, dut.minimum.value, dut.maximum.value = 0, -127, 127
    await start(dut)
    inputs = (
        (dut.value, values.value, 0),
        (dut.bias, values.bias, 0),
        (dut.stochastic, values.kind == _STOCHASTIC, 0),
        (dut.multiplier, values.multiplier, unit.multiplier_delay),
        (dut.shift, values.shift, unit.shift_delay),
        (dut.as_bytes, values.kind == _BYTES, unit.zero_point_delay),
        (dut.positive, positive, unit.noting_delay),
        (dut.noting, noting, unit.noting_delay),
        (dut.forgetting, forgetting, unit.noting_delay),
    )
    notes = 0
    for cycle in range(len(values.value) + unit.latency + 1):
        for port, column, late in inputs:
            port.value = int(column[cycle - late]) if 0 <= cycle - late < len(column) else 0
        await RisingEdge(dut.clk)
        noted = cycle - unit.noting_delay - 1
        if 0 <= noted < len(values.value):
            if forgetting[noted]:
                notes = 0
            elif noting[noted]:
                is_stochastic = bool(values.kind[noted] == _STOCHASTIC)
                value, bias = values.value[noted], values.bias[noted]
                notes |= int(noted_bits(value, bias, is_stochastic, bool(positive[noted])))
            assert dut.notes.value.to_unsigned() == notes, noted
        index = cycle - unit.latency
        if 0 <= index < len(values.value):
            got = dut.result.value.to_signed()
            case = values.kind[index], values.value[index], values.shift[index]
            assert got == values.results[index], f"{case}: {got}, not {values.results[index]}"
