"""Words of logarithmic numbers in hardware: into sign and magnitude, and back with saturation."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Module, Mux, Signal, Value

from ..formats import Lns


@dataclass(frozen=True)
class Parts:
    """A word's sign, and its magnitude as ordered codes have it: 0 for zero."""

    negative: Value
    magnitude: Value

    @classmethod
    def of(cls, word: Value) -> "Parts":
        """The sign of a zero is dropped. The magnitude is e with its highest bit turned."""
        exponent = word[:-1]
        magnitude = Cat(exponent[:-1], ~exponent[-1])
        return cls(word[-1] & magnitude.any(), magnitude)


def finish(m: Module, lns: Lns, total: Value, negative: Value, zero: Value, name: str) -> Value:
    """The word of a magnitude that may be out of range, a cycle later.

    Parameters
    ----------
    total : Value
        Signed. Below 1 the result is zero; above ``lns.largest_code`` it is that.
    negative : Value
    zero : Value
        The result is zero whatever the total is.
    """
    magnitude = Signal(lns.exponent_bits, name=f"{name}_magnitude")
    nothing = zero | (total <= 0)
    large = total > lns.largest_code
    m.d.comb += magnitude.eq(
        Mux(nothing, 0, Mux(large, lns.largest_code, total[: lns.exponent_bits]))
    )
    word = Signal(lns.bits, name=name, reset_less=True)
    m.d.sync += word.eq(Cat(magnitude[:-1], ~magnitude[-1], negative & ~nothing))
    return word


def negated(word: Value, condition: Value | int = 1) -> Value:
    """The word with its sign turned, if a condition holds."""
    return Cat(word[:-1], word[-1] ^ condition)
