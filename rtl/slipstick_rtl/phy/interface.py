"""The interface of every PHY: bytes in, bytes out; on a board also a fault and an oscillator."""

from typing import Any

from amaranth.lib import io, stream, wiring
from amaranth.lib.wiring import In, Member, Out

from ..config import Configuration
from .wire import BOTH, INPUT, Wire

STREAMS = wiring.Signature({"i": In(stream.Signature(8)), "o": Out(stream.Signature(8))})
"""Members of a PHY, beside its pins: ``i``, bytes to be sent; ``o``, bytes received."""

BOARD_PHY = wiring.Signature({**STREAMS.members, "fault": Out(1), "oscillator": In(1)})
"""Members of a PHY on a board's pins: ``fault`` strobes if a byte was lost on the wire, and
``oscillator`` is the board's, for wires that need clocks of their own."""


def pin_members(wire: Wire) -> dict[str, Member]:
    """Returns the pins of a wire's PHY as members of a component."""
    members: dict[str, Member] = {}
    for pin in wire.pins:
        shape: Any = pin.width
        if pin.direction == BOTH:
            shape = io.Buffer.Signature(io.Direction.Bidir, pin.width)
        members[pin.name] = In(shape) if pin.direction == INPUT else Out(shape)
        if pin.enable:
            members[pin.enable] = Out(1)
    return members


def make_phy(wire: Wire, configuration: Configuration, **options: Any) -> Any:
    """Makes the PHY of a wire, and checks it against the interface.

    Parameters
    ----------
    wire : Wire
    configuration : Configuration
        Its ``clock_hz`` is the clock of ``sync``.
    **options
        Of the wire's PHY.

    Raises
    ------
    ImportError
        If the wire's Python package is missing.
    TypeError
        If a member is missing, or another one; the message names it.
    ValueError
        If the PHY cannot do with the clock or an option.
    """
    phy = wire.phy(configuration, **options)
    outputs = {name: Out(1) for name in (*wire.faults, *wire.status)}
    members = dict(phy.signature.members.items())
    for name, member in {**STREAMS.members, **pin_members(wire), **outputs}.items():
        if members.get(name) != member:
            raise TypeError(f"the PHY of wire {wire.name} must have {name} as {member}")
    return phy
