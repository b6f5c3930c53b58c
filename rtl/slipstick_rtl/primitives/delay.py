"""Delay lines: registers in a row."""

from typing import Any

from amaranth.hdl import Module, Signal, Value


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
