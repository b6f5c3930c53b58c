"""Operands that an element's power is measured with: the same real numbers in each format.

Activations are those that a rectifier leaves of normally distributed numbers, weights normally
distributed; four standard deviations are the largest code.
"""

from typing import Any

import numpy as np
from slipstick_rtl.numbers.lns.formats import Lns

from .kinds import LOG, Kind

DEVIATIONS = 4.0

_INT8_TOP = 127
_HEADROOM_OCTAVES = 4
"""By which a sum of sixteen products may exceed the largest one."""


def operands(kind: Kind, cycles: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Activations (cycles, rows) and weights (rows,) as a column's ports take them.

    Parameters
    ----------
    kind : Kind
        Any but packed int8, whose elements are pairs.
    cycles, rows : int
    """
    generator = np.random.default_rng(1)
    activations = np.maximum(generator.normal(0, 1 / DEVIATIONS, (cycles, rows)), 0)
    weights = generator.normal(0, 1 / DEVIATIONS, rows)
    if kind.sums == LOG:
        return _words(kind.log_format, activations), _words(kind.log_format, weights)
    number_format = kind.element_format(rows)
    linear = kind.lns is None or kind.linear_activations
    of_activations = _affine(activations) if linear else _codes(kind.log_format, activations)
    of_weights = _linear(weights) if kind.lns is None else _codes(kind.log_format, weights)
    return (
        _encoded(number_format.encode, number_format.activation, of_activations),
        _encoded(number_format.store, number_format.stored_weight, of_weights),
    )


def _linear(real: np.ndarray) -> np.ndarray:
    """Symmetric int8 of numbers up to 1."""
    return np.rint(np.clip(real, -1, 1) * _INT8_TOP).astype(int)


def _affine(real: np.ndarray) -> np.ndarray:
    """Int8 of numbers from 0 to 1, with -128 for 0, as rectified activations have it."""
    return np.rint(np.clip(real, 0, 1) * 255).astype(int) - 128


def _octaves(real: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log2(np.minimum(np.abs(real), 1))


def _codes(lns: Lns, real: np.ndarray) -> np.ndarray:
    """Ordered codes, the largest for 1."""
    code = np.rint(_octaves(real) * (1 << lns.fraction_bits)) + lns.largest_code
    return (np.sign(real) * np.maximum(code, 0)).astype(int)


def _words(lns: Lns, real: np.ndarray) -> np.ndarray:
    """Words, with 1 so far below the largest number that sums of products fit."""
    top = (lns.largest >> 1) - (_HEADROOM_OCTAVES << lns.fraction_bits >> 1)
    exponent = np.rint(_octaves(real) * (1 << lns.fraction_bits)) + top
    exponent = np.where(exponent < lns.smallest, lns.zero, np.maximum(exponent, lns.zero))
    return lns.to_word(real < 0, exponent)


def _encoded(encode: Any, shape: Any, codes: np.ndarray) -> np.ndarray:
    """Simulates a number format's gates on codes, and returns their words."""
    from amaranth.hdl import Module, Shape, Signal, Value, signed
    from amaranth.sim import Simulator

    different, places = np.unique(codes, return_inverse=True)
    bits = max(8, int(np.abs(different).max()).bit_length() + 1)
    code, word = Signal(signed(bits)), Signal(Shape.cast(shape).width)
    m = Module()
    m.d.comb += word.eq(Value.cast(encode(code)))
    found: list[int] = []

    async def drive(context: Any) -> None:
        for each in different:
            context.set(code, int(each))
            await context.delay(1e-9)
            found.append(context.get(word))

    simulator = Simulator(m)
    simulator.add_testbench(drive)
    simulator.run()
    return np.array(found, object)[places].reshape(codes.shape)
