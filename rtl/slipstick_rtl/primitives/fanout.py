"""Registers that synthesis leaves alone, for signals that go to many places of a chip."""

from typing import Any

from amaranth.hdl import Cat, ClockSignal, Const, Instance, Module, ResetSignal, Signal, Value

from .multiplier18 import is_ecp5


def copy_of(
    m: Module, platform: object, value: Any, name: str, *, initial: int | None = None
) -> Signal:
    """A bit as it was a cycle ago, in a register of its own; without reset if ``initial`` is None.

    Synthesis merges registers of equal contents, so that one drives what was given to many; on ECP5
    this one is an instance that it keeps.
    """
    copy = Signal(name=name, init=initial or 0, reset_less=initial is None)
    if not is_ecp5(platform):
        m.d.sync += copy.eq(value)
        return copy
    m.submodules[f"{name}_register"] = Instance(
        "TRELLIS_FF",
        a_keep=1,
        p_GSR="DISABLED",
        p_CEMUX="1",
        p_CLKMUX="CLK",
        p_LSRMUX="LSR",
        p_SRMODE="LSR_OVER_CE",
        p_REGSET="SET" if initial else "RESET",
        i_CLK=ClockSignal(),
        i_LSR=Const(0) if initial is None else ResetSignal(allow_reset_less=True),
        i_DI=value,
        o_Q=copy,
    )
    return copy


def copies_of(m: Module, platform: object, value: Value, name: str) -> Value:
    """All bits of a value as they were a cycle ago, each a :func:`copy_of`."""
    return Cat(copy_of(m, platform, bit, f"{name}_{k}") for k, bit in enumerate(value))
