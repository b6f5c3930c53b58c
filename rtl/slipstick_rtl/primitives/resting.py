"""Enables for parts of the core that may rest: what clock gates need."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from amaranth.hdl import EnableInserter, Module, Signal, Value


def works_for(m: Module, begins: Value, cycles: int, name: str) -> Value:
    """1 in every cycle in which ``begins`` is 1, and in the ``cycles`` after the last of them.

    Parameters
    ----------
    m : Module
        Gets a counter, in its ``sync`` domain.
    begins : Value
        There is something to do.
    cycles : int
        That it can take, at least 1.
    name : str
        Of the counter.
    """
    left = Signal(range(cycles + 1), name=name)
    with m.If(begins):
        m.d.sync += left.eq(cycles)
    with m.Elif(left != 0):
        m.d.sync += left.eq(left - 1)
    return begins | (left != 0)


def resting(part: Any, works: Value | None) -> Any:
    """A component or module whose registers keep their values while ``works`` is 0; None: never."""
    return part if works is None else EnableInserter(works)(part)


def where(m: Module, needed: Value | None) -> AbstractContextManager[None]:
    """``m.If(needed)``, or no condition at all for None."""
    return nullcontext() if needed is None else m.If(needed)
