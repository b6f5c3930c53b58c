"""A long delay in look-up tables' memory: for words whose registers would cost more."""

from typing import Any

from amaranth.hdl import Cat, ClockSignal, Const, Instance, Module, Mux, ShapeLike, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .delay import delay
from .multiplier18 import is_ecp5

LONGEST_RING = 16
"""Words of a block of distributed memory."""

SHORTEST_RING = 4
"""Cycles from which on a ring costs less than registers."""

_BITS = 4
"""Bits of a word of distributed memory."""


class DelayRing(wiring.Component):
    """``i`` as it was ``cycles`` ago; no reset.

    On ECP5 a ring in distributed memory, where each word is overwritten when it has been read, six
    look-up tables for four bits; Yosys stops at such a memory within a larger design, so its
    blocks are instances. Elsewhere registers in a row.

    Parameters
    ----------
    shape : ShapeLike
    cycles : int
        2 to ``LONGEST_RING``.

    Raises
    ------
    ValueError
        If there are fewer or more cycles.
    """

    i: Signal
    o: Signal

    def __init__(self, *, shape: ShapeLike, cycles: int) -> None:
        if not 2 <= cycles <= LONGEST_RING:
            raise ValueError(f"cycles must be within 2..{LONGEST_RING}, not {cycles}")
        self._cycles = cycles
        super().__init__({"i": In(shape), "o": Out(shape)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        given, found = Value.cast(self.i), Value.cast(self.o)
        if not is_ecp5(platform):
            late = delay(m, given, self._cycles, "late", reset_less=True)
            m.d.comb += found.eq(late)
            return m
        # no reset: what is on its way goes on, as it does in registers
        place = Signal(range(LONGEST_RING), reset_less=True)
        m.d.sync += place.eq(Mux(place == self._cycles - 1, 0, place + 1))
        for first in range(0, len(given), _BITS):
            part = given[first : first + _BITS]
            word = Signal(_BITS, name=f"word_{first}")
            ports: dict[str, Any] = {"i_DI": Cat(part, Const(0, _BITS - len(part)))}
            m.submodules[f"block_{first}"] = Instance(
                "TRELLIS_DPR16X4",
                p_WCKMUX="WCK",
                p_WREMUX="WRE",
                p_INITVAL=Const(0, 64),
                i_WCK=ClockSignal(),
                i_WRE=Const(1),
                i_WAD=place,
                i_RAD=place,
                o_DO=word,
                **ports,
            )
            m.d.comb += found[first : first + len(part)].eq(word)
        return m


def long_delay(m: Module, value: Value, cycles: int, name: str) -> Value:
    """``value`` as it was ``cycles`` ago: in rings, and in registers what is too short for one."""
    rings = 0
    while cycles >= SHORTEST_RING:
        piece = min(cycles, LONGEST_RING)
        m.submodules[f"{name}_ring_{rings}"] = ring = DelayRing(shape=len(value), cycles=piece)
        m.d.comb += ring.i.eq(value)
        value, cycles, rings = ring.o, cycles - piece, rings + 1
    return delay(m, value, cycles, name, reset_less=True)
