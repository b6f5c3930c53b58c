"""Products of the array's number formats, for benches: operands, codes, the golden model."""

from typing import Any

import numpy as np

WEIGHT_CYCLES = 2
"""Cycles from a weight to its activations: captured, at work."""


def codes(encode: Any, bits: int) -> dict[int, int]:
    """Returns the gateware's own encoding of every byte, as an element is given it."""
    from amaranth.hdl import Module, Signal, signed
    from amaranth.sim import Simulator

    m, byte, code = Module(), Signal(signed(8)), Signal(bits)
    m.d.comb += code.eq(encode(byte))
    found = dict[int, int]()

    async def ask(context: Any) -> None:
        for value in range(-128, 128):
            context.set(byte, value)
            found[value] = context.get(code)

    simulator = Simulator(m)
    simulator.add_testbench(ask)
    simulator.run()
    return found


def products(number_format: str, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Returns the golden model's products of operands."""
    from slipstick_rtl.numbers.lns.array_arithmetic import ArrayArithmetic
    from slipstick_rtl.numbers.lns.formats import Lns

    if number_format == "int8":
        return first.astype(np.int64) * second
    return ArrayArithmetic(Lns.parse(number_format)).multiply(first, second)


def operands(number_format: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Returns random bytes that mean something in a format; the first two are its ends."""
    from slipstick_rtl.numbers.lns.formats import Lns

    low, high = -128, 127
    if number_format != "int8":
        high = Lns.parse(number_format).largest_code
        low = -high
    found = np.random.default_rng(seed).integers(low, high + 1, shape)
    found[0], found[1] = low, high
    return found
