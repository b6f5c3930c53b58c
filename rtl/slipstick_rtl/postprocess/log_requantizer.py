"""One lane of requantisation to logarithms: a 32-bit sum to an ordered code."""

from collections.abc import Mapping

import numpy as np
from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..isa import OFFSET_BITS
from ..numbers.lns.array_arithmetic import GUARD_BITS, ArrayArithmetic
from ..primitives.constant_table import look_up
from ..primitives.delay_memory import long_delay
from ..primitives.stages import Stages, busy_member
from .fields import InstructionField, ParameterField
from .multiplier import VALUE_BITS
from .normalizer import Normalizer
from .requantizer import Requantizer

_MAGNITUDE_DELAY = 2
"""Cycles: the addition of the bias, the magnitude of the sum."""

_LOG_CYCLES = 2
"""A look into the table, and the addition of what it says."""

_FINISH_CYCLES = 4
"""The offset's addition, the limits of the format, the sign, the clamp."""


class LogRequantizer(wiring.Component):
    """clamp(requantize(value, bias, offset)), or clamp(value + bias), one a cycle, never stalling.

    Bit for bit :meth:`...numbers.lns.array_arithmetic.ArrayArithmetic.requantize`: the place of the
    sum's highest one is the logarithm's integer part; the bits below it are its fraction, but for
    a correction that a table gives. The latency is that of :class:`Requantizer`, so that all that
    happens beside the lanes is the same.

    Parameters
    ----------
    arithmetic : ArrayArithmetic
    silicon : int
        1: with a ``busy_member``.

    Members
    -------
    value, bias : In(signed(32))
        Their sum wraps at 32 bits.
    offset : In(signed(16))
        ``offset_delay`` cycles after its value.
    coded : In(1)
        The sum is a code; ``coded_delay`` cycles after its value.
    minimum, maximum : In(signed(8))
        ``clamp_delay`` cycles after its value.
    result : Out(signed(8))
        ``latency`` cycles after its value.
    """

    value: Signal
    bias: Signal
    offset: Signal
    coded: Signal
    minimum: Signal
    maximum: Signal
    result: Signal

    offset_delay = _MAGNITUDE_DELAY + Normalizer.latency + _LOG_CYCLES
    latency = Requantizer.latency
    clamp_delay = latency - 1
    coded_delay = clamp_delay - 1

    parameters: Mapping[str, ParameterField] = {
        "bias": ParameterField(0, 32, VALUE_BITS, 0),
        "offset": ParameterField(32, OFFSET_BITS, OFFSET_BITS, offset_delay),
    }
    fields: Mapping[str, InstructionField] = {
        "coded": InstructionField(1, coded_delay),
        "minimum": InstructionField(signed(8), clamp_delay),
        "maximum": InstructionField(signed(8), clamp_delay),
    }

    def __init__(self, *, arithmetic: ArrayArithmetic, silicon: int = 0) -> None:
        self._arithmetic, self._silicon = arithmetic, silicon
        super().__init__(
            {
                **busy_member(self.latency, silicon=silicon),
                "value": In(signed(VALUE_BITS)),
                "bias": In(signed(VALUE_BITS)),
                "offset": In(signed(OFFSET_BITS)),
                "coded": In(1),
                "minimum": In(signed(8)),
                "maximum": In(signed(8)),
                "result": Out(signed(8)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits = self._arithmetic.mantissa_bits
        self._stages = stages = Stages.of(self, silicon=self._silicon)
        normalizer = Normalizer(mantissa_bits=bits, silicon=self._silicon)
        m.submodules.normalizer = normalizer
        stages.lead(m, normalizer, _MAGNITUDE_DELAY)
        # no reset in here: what is under way leaves without being written
        total = Signal(signed(VALUE_BITS), reset_less=True)
        magnitude = Signal(VALUE_BITS, reset_less=True)
        negative = total[-1]
        with stages.at(m, 0):
            m.d.sync += total.eq(self.value + self.bias)
        with stages.at(m, 1):
            m.d.sync += magnitude.eq((total ^ negative.replicate(VALUE_BITS)) + negative)
        m.d.comb += normalizer.i.eq(magnitude)
        limited = self._limited(m, *self._logarithm(m, normalizer))
        found = stages.delay(m, limited, self.coded_delay - self._slack, self._slack, "found")
        passed = self._pass(m, Cat(_saturated(total), negative))
        code, sign = passed[:8].as_signed(), passed[8]
        signed_code, result = (
            Signal(signed(8), name=name, reset_less=True) for name in ("signed_code", "clamped")
        )
        negated = ((found ^ sign.replicate(8)) + sign)[:8]
        below = Mux(signed_code < self.minimum, self.minimum, signed_code)
        with stages.at(m, self.coded_delay):
            m.d.sync += signed_code.eq(Mux(self.coded, code, negated))
        with stages.at(m, self.clamp_delay):
            m.d.sync += result.eq(Mux(signed_code > self.maximum, self.maximum, below))
        m.d.comb += self.result.eq(result)
        return m

    def _pass(self, m: Module, code: Value) -> Value:
        """Delays a sum that is a code until those that are none come."""
        cycles = self.coded_delay - _MAGNITUDE_DELAY + 1
        if self._silicon:
            return self._stages.delay(m, code, 1, cycles, "passed")
        return long_delay(m, code, cycles, "passed")

    @property
    def _slack(self) -> int:
        """Cycles that this takes less than the other requantiser."""
        return self.latency - self.offset_delay - _FINISH_CYCLES

    def _logarithm(self, m: Module, normalizer: Normalizer) -> tuple[Value, Value]:
        """With GUARD_BITS more than a code has, half a code added; and whether there is one.

        ``_LOG_CYCLES`` later.
        """
        entries, index = self._arithmetic.log, normalizer.mantissa
        # the argument has a bit more than the result; a straight line needs no table
        corrections = entries - (np.arange(len(entries)) >> 1) + (1 << (GUARD_BITS - 1))
        stages, came = self._stages, _MAGNITUDE_DELAY + Normalizer.latency
        correction = stages.delay(m, look_up(corrections, index), came, 1, "correction")
        linear = stages.delay(m, Cat(index[1:], normalizer.place), came, 1, "linear")
        log = stages.delay(m, linear + correction, came + 1, 1, "log")
        return log, stages.delay(m, normalizer.present, came, _LOG_CYCLES, "present")

    def _limited(self, m: Module, log: Value, present: Value) -> Value:
        """The magnitude of the code within the format, 8 bits, two cycles later."""
        bits = self._arithmetic.lns.exponent_bits
        shifted = Signal(signed(max(len(log), OFFSET_BITS) + 2), reset_less=True)
        stages, came = self._stages, self.offset_delay
        with stages.at(m, came):
            m.d.sync += shifted.eq(log + self.offset)
        present = stages.delay(m, present, came, 1, "shifted_present")
        code = shifted[GUARD_BITS:]
        limited = Signal(8, reset_less=True)
        saturated = code[:bits] | code[bits:-1].any().replicate(bits)
        with stages.at(m, came + 1):
            m.d.sync += limited.eq(Mux(present & ~code[-1], saturated, 0))
        return limited


def _saturated(total: Signal) -> Value:
    """A word as a signed byte; combinational."""
    fits = (total[7:] == 0) | total[7:].all()
    limit = Cat((~total[-1]).replicate(7), total[-1])
    return Mux(fits, total[:8], limit)
