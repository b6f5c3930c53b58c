"""Enables for parts of the core that may rest: what clock gates need."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from amaranth.hdl import EnableInserter, Module, Signal, Value
from amaranth.lib.memory import Memory

from ..memory_styles import MOMENTARY
from .delay import delay


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


def momentary_memory(shape: Any, depth: int, *, silicon: int, style: str = "") -> Memory:
    """An empty memory; in silicon one whose words are taken in the cycle after they were read.

    There a port that reads nothing gives anything: see :func:`read_register`. Elsewhere it is of
    the ``style`` of an FPGA's tools, or of the one that they choose.
    """
    style = MOMENTARY if silicon else style
    attributes = {"ram_style": style} if style else {}
    return Memory(shape=shape, depth=depth, init=[], attrs=attributes)


def read_register(m: Module, value: Value, asked: Value | None, name: str) -> Signal:
    """Registers a value that was read: it comes a cycle later.

    Parameters
    ----------
    m : Module
        Gets the register, in its ``sync`` domain.
    value : Value
        A cycle after the read.
    asked : Value or None
        In the cycle of the read: somebody needs it. Otherwise the register stays as it is. None:
        always.
    name : str
        Prefix of the register's.
    """
    register = Signal(len(value), name=f"{name}_0", reset_less=True)
    with where(m, None if asked is None else delay(m, asked, 1, f"{name}_wanted")):
        m.d.sync += register.eq(value)
    return register


def registered(m: Module, value: Any, needed: Value | None, name: str) -> Any:
    """``value`` a cycle later, of the same shape, without reset; as it was while ``needed`` is 0.

    Parameters
    ----------
    m : Module
        Gets the register, in its ``sync`` domain.
    value : Value or View
    needed : Value or None
        None: always.
    name : str
        Of the register.
    """
    register = Signal(value.shape(), name=name, reset_less=True)
    with where(m, needed):
        m.d.sync += Value.cast(register).eq(Value.cast(value))
    return register


def where(m: Module, needed: Value | None) -> AbstractContextManager[None]:
    """``m.If(needed)``, or no condition at all for None."""
    return nullcontext() if needed is None else m.If(needed)
