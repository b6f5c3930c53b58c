"""Delay lines: registers in a row."""

from typing import Any

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data


def delay(m: Module, value: Any, cycles: int, name: str, *, reset_less: bool = False) -> Any:
    """``value`` as it was ``cycles`` ago; the value itself for 0.

    Parameters
    ----------
    m : Module
        Gets the registers, in its ``sync`` domain.
    value : Value or View
    cycles : int
        At least 0.
    name : str
        Prefix of the registers' names.
    reset_less : bool
        For data whose validity travels beside it: a reset net is not drawn to it.

    Raises
    ------
    ValueError
        If ``cycles`` is negative.
    """
    if cycles < 0:
        raise ValueError(f"cycles must be at least 0, not {cycles}")
    shape = value.shape()
    for stage in range(cycles):
        register = Signal(shape, name=f"{name}_{stage}", reset_less=reset_less)
        m.d.sync += Value.cast(register).eq(Value.cast(value))
        value = register
    return value


def copies(m: Module, value: Any, count: int, name: str) -> list[Any]:
    """Registers of ``value``, a cycle late, that synthesis does not make one of again.

    Each drives what stands near it. They differ in how they begin and in whether they are reset, so
    nothing may depend on either.

    Parameters
    ----------
    m : Module
    value : Value or View
    count : int
        1 to 4.
    name : str

    Raises
    ------
    ValueError
        If there are to be more than differ.
    """
    if not 1 <= count <= 4:
        raise ValueError(f"copies must be within 1..4, not {count}")
    bits = Value.cast(value)
    results = []
    for index in range(count):
        init = -(index % 2) & ((1 << len(bits)) - 1)
        register = Signal(len(bits), init=init, name=f"{name}_{index}", reset_less=index // 2 == 0)
        m.d.sync += register.eq(bits)
        shape = value.shape()
        results.append(data.View(shape, register) if isinstance(shape, data.Layout) else register)
    return results
