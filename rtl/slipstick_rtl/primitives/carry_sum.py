"""Sums whose operands' gates lie in the carry chain's own look-up tables, where chips allow."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, Const, Instance, Module, Signal, Value

from .multiplier18 import is_ecp5

_START = 0x0008
"""Table of a chain's first half cell, with C = D = 1: it passes no carry on, and makes one of
A & B. Without it place and route would spend a cell on bringing a constant into the chain."""

_NO_START = 0x0000

_ZERO, _ONE = Const(0, 1), Const(1, 1)


@dataclass(frozen=True)
class Operand:
    """A number, extended by its own sign, and what is combined with each of its bits.

    Parameters
    ----------
    number : Value
    mask : Value, optional
        The operand is ``number & mask``: one bit for all of the number's, or as many as it has.
    flip : Value, optional
        One bit; the operand is ``(number & mask) ^ flip``; for a sum's second operand only, and if
        it has a mask too, the first one has none.
    """

    number: Value
    mask: Value | None = None
    flip: Value | None = None

    def bit(self, index: int) -> Value | None:
        """A bit of the extended number; None where it is always 0."""
        if index < len(self.number):
            return self.number[index]
        return self.number[-1] if self.number.shape().signed else None

    def mask_bit(self, index: int) -> Value:
        """Returns the mask of a bit; 1 if there is no mask."""
        if self.mask is None:
            return _ONE
        return self.mask[min(index, len(self.mask) - 1)]

    def bits(self, width: int) -> Value:
        """The whole operand."""
        bits = Cat(_ZERO if (bit := self.bit(k)) is None else bit for k in range(width))
        if self.mask is not None:
            bits = bits & Cat(self.mask_bit(k) for k in range(width))
        return bits if self.flip is None else bits ^ self.flip.replicate(width)


def carry_sum(
    m: Module,
    platform: object,
    name: str,
    a: Operand,
    b: Operand,
    *,
    width: int,
    ones: tuple[Value, Value] | None = None,
) -> Signal:
    """``a + b``, and one more if both bits of ``ones`` are 1; combinational, modulo 2^width.

    On ECP5 one half of a CCU2C a bit and one more, gates included; elsewhere plain operators.

    Parameters
    ----------
    m : Module
        Gets the cells.
    platform : object
        As ``elaborate`` has it.
    name : str
        Of the result and prefix of the cells.
    """
    result = Signal(width, name=name)
    if not is_ecp5(platform):
        one = _ZERO if ones is None else ones[0] & ones[1]
        m.d.comb += result.eq(a.bits(width) + b.bits(width) + one)
        return result
    start = (_NO_START, _ONE, _ONE) if ones is None else (_START, *ones)
    halves = [(start[0], start[1], start[2], _ONE, _ONE)]
    halves += [_half(a, b, k) for k in range(width)]
    outputs: list[Value | None] = [None, *result]
    if len(halves) % 2:
        halves.append((_NO_START, _ONE, _ONE, _ONE, _ONE))
        outputs.append(None)
    carry: Signal | None = None
    for k in range(0, len(halves), 2):
        ports: dict[str, Value] = {} if carry is None else {"i_CIN": carry}
        for half in range(2):
            inputs = zip("ABCD", halves[k + half][1:], strict=True)
            ports |= {f"i_{port}{half}": value for port, value in inputs}
            if (output := outputs[k + half]) is not None:
                ports[f"o_S{half}"] = output
        if k + 2 < len(halves):
            carry = Signal(name=f"{name}_carry_{k}")
            ports["o_COUT"] = carry
        m.submodules[f"{name}_{k}"] = Instance(
            "CCU2C",
            p_INIT0=Const(halves[k][0], 16),
            p_INIT1=Const(halves[k + 1][0], 16),
            p_INJECT1_0="NO",
            p_INJECT1_1="NO",
            **ports,
        )
    return result


def _half(a: Operand, b: Operand, k: int) -> tuple[int, Value, Value, Value, Value]:
    """Table and inputs of a half cell. Inputs without use are 1, which is what open ones are.

    The carry is generated as the table tells for C = D = 0, so that A and B must say it alone.
    """
    first, second = a.bit(k), b.bit(k)
    inputs = [
        _ONE if first is None else first,
        a.mask_bit(k),
        _ONE if second is None else second,
        _ONE,
    ]

    def of_a(x: int, y: int) -> int:
        return 0 if first is None else x & y

    both = b.mask is not None and b.flip is not None

    def of_b(y: int, z: int, w: int) -> int:
        number = 0 if second is None else z & y if both else z
        return number ^ w if b.flip is not None else number & w

    if b.flip is not None:
        inputs[3] = b.flip
    elif b.mask is not None:
        inputs[3] = b.mask_bit(k)
    if both:
        # without C and D nothing of the second operand is left, whatever B
        inputs[1] = b.mask_bit(k)
    return _table(lambda x, y, z, w: of_a(x, y | both) ^ of_b(y, z, w)), *inputs


def _table(function: Callable[[int, int, int, int], int]) -> int:
    """A look-up table's bits, from those of its inputs."""
    return sum(function(k & 1, k >> 1 & 1, k >> 2 & 1, k >> 3 & 1) << k for k in range(16))


def release_starts(netlist: dict[str, Any]) -> int:
    """Disconnects the constant carry before each chain that starts itself, in place.

    Yosys' abc9 ties it to 0, and place and route would spend a cell on bringing that in. The first
    half of such a chain does not look at it. Returns how many there were.
    """
    released = 0
    for module in netlist["modules"].values():
        for cell in module.get("cells", {}).values():
            if cell["type"] != "CCU2C":
                continue
            ports, table = cell["connections"], int(cell["parameters"]["INIT0"], 2)
            starts = ports["C0"] == ports["D0"] == ["1"] and table >> 12 == 0
            if starts and ports.get("CIN") in (["0"], ["1"]):
                ports["CIN"] = ["x"]
                released += 1
    return released
