"""The multiplier of an element with logarithmic weights and linear activations: a choice, a shift.

The multiples of an activation by which weights may differ are made once, where it enters the array,
and run through it. An element chooses one by the weight's fraction and shifts it by the weight's
integer part, one bit of which at a time. Of the last shift only what has two sources takes a
multiplexer; the rest is masked, and mask and sign are left to the carry chain of the sum, as
:mod:`.log_multiplier` does.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Value
from amaranth.lib import data

from ..numbers.lns.coded_multiplier import CodedMultiplier
from ..numbers.lns.log_multiplier import shift_left
from ..primitives.delay import delay
from .mixed_arithmetic import ACTIVATION_BITS, LARGEST_ACTIVATION, MixedArithmetic

_STEPS_A_CYCLE = 2
"""Choice and shifts between two registers."""


def activation_code(arithmetic: MixedArithmetic) -> data.StructLayout:
    """An activation inside the array: its magnitude, the multiples of it, its sign."""
    multiples = {
        f"multiple_{k}": (LARGEST_ACTIVATION * int(factor)).bit_length()
        for k, factor in enumerate(arithmetic.antilog)
        if k
    }
    return data.StructLayout({"magnitude": ACTIVATION_BITS, **multiples, "negative": 1})


def encode_activation(arithmetic: MixedArithmetic, activation: Any) -> Value:
    """``activation_code`` of an int8; combinational."""
    negative = activation[ACTIVATION_BITS - 1]
    magnitude = ((activation ^ negative.replicate(ACTIVATION_BITS)) + negative)[:ACTIVATION_BITS]
    layout = activation_code(arithmetic)
    multiples = [
        (magnitude * int(factor))[: layout[f"multiple_{k}"].width]
        for k, factor in enumerate(arithmetic.antilog)
        if k
    ]
    return Cat(magnitude, *multiples, negative)


def _steps(arithmetic: MixedArithmetic) -> int:
    """The choice, if there is one, and all shifts but the last."""
    return (arithmetic.lns.fraction_bits > 0) + arithmetic.lns.integer_bits - 1


def multiplier_latency(arithmetic: MixedArithmetic) -> int:
    """Cycles from activations to products, whose last shift belongs to the sum's cycle."""
    return -(-_steps(arithmetic) // _STEPS_A_CYCLE)


class MixedMultiplier(CodedMultiplier):
    """P products of int8 and logarithms, ``multiplier_latency`` cycles after the activations.

    Parameters
    ----------
    arithmetic : MixedArithmetic
    pixels : int
        P.
    """

    def __init__(self, *, arithmetic: MixedArithmetic, pixels: int) -> None:
        self._arithmetic = arithmetic
        super().__init__(
            activation=activation_code(arithmetic), arithmetic=arithmetic, pixels=pixels
        )

    def multiply(
        self, m: Module, platform: object, p: int, activation: data.View, active: data.View
    ) -> tuple[Value, Value, Value]:
        """Chooses a multiple and shifts it, with a register behind every second step."""
        lns = self._arithmetic.lns
        number: Value = activation.magnitude
        shifts = active.magnitude[lns.fraction_bits :]
        # what later cycles need of the weight
        rest = Cat(shifts, active.present, activation.negative ^ active.negative)
        count, level = _steps(self._arithmetic), 0
        for step in range(count):
            if step == 0 and lns.fraction_bits:
                number = self._choose(activation, active.magnitude[: lns.fraction_bits])
            else:
                name = f"shifted_{1 << level}_{p}"
                number = shift_left(m, platform, number, rest[0], 1 << level, name)
                rest, level = rest[1:], level + 1
            if step % _STEPS_A_CYCLE == _STEPS_A_CYCLE - 1 or step == count - 1:
                number = delay(m, number, 1, f"number_{step}_{p}", reset_less=True)
                rest = delay(m, rest, 1, f"rest_{step}_{p}", reset_less=True)
        bits, mask = self._spread(number, rest[0], rest[1])
        return bits, mask, rest[2]

    def _choose(self, activation: data.View, fraction: Value) -> Value:
        """The multiple of an activation that a weight's fraction names."""
        places = self._arithmetic.antilog_places
        chosen: Value = activation.magnitude.shift_left(places)
        for k in range(1, len(self._arithmetic.antilog)):
            chosen = Mux(fraction == k, activation[f"multiple_{k}"], chosen)
        return chosen

    def _spread(self, number: Value, shift: Value, present: Value) -> tuple[Value, Value]:
        """Bits of the product, and the mask: ``number`` moved by the last shift, or not."""
        arithmetic = self._arithmetic
        places = 1 << arithmetic.lns.integer_bits - 1
        first = arithmetic.dropped_places
        bits: list[Value] = []
        masks: list[Value] = []
        for place in range(first, first + arithmetic.product_bits):
            stays, moves = place < len(number), 0 <= place - places < len(number)
            if stays and moves:
                bits.append(Mux(shift, number[place - places], number[place]))
                masks.append(present)
            else:
                bits.append(number[place] if stays else number[place - places])
                masks.append(present & (~shift if stays else shift))
        return Cat(bits), Cat(masks)
