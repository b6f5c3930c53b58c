"""The wires by name, found by listing the modules of :mod:`slipstick_rtl.phy.wires`."""

from functools import cache

from ..listing import modules_of
from .wire import Wire


@cache
def all_wires() -> dict[str, Wire]:
    """Returns the wires by name, in the order of their modules."""
    return {module.WIRE.name: module.WIRE for module in modules_of("slipstick_rtl.phy.wires")}


def find_wire(name: str) -> Wire:
    """Returns the wire of a name.

    Raises
    ------
    ValueError
        If there is none.
    """
    wires = all_wires()
    if name not in wires:
        raise ValueError(f"wire must be one of {', '.join(wires)}, not {name!r}")
    return wires[name]
