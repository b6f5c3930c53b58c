"""Chains of registers that keep what belongs together in the same cycle."""

from typing import Any

from amaranth.hdl import Module, Signal


def delayed(m: Module, value: Any, cycles: int, name: str) -> Any:
    """``value`` as it was ``cycles`` cycles ago; the value itself for 0.

    Parameters
    ----------
    m : Module
        Its ``sync`` domain clocks the registers.
    value : value-castable
        A value, or a view of a layout: the result has the same shape.
    cycles : int
    name : str
        Of the registers, with the number of cycles appended.
    """
    for cycle in range(cycles):
        register = Signal(value.shape(), name=f"{name}_{cycle + 1}")
        m.d.sync += register.eq(value)
        value = register
    return value
