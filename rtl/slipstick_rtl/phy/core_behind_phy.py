"""The core behind a PHY: pins of a wire instead of byte streams. Any wire, no board."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import Out, connect, flipped

from ..accelerator import EVENTS, Accelerator
from ..config import Configuration
from ..link.protocol import DEFAULT_TIMEOUT_CYCLES
from .interface import make_phy, pin_members
from .registry import find_wire
from .wire import Wire

_CORE = {"i", "o", "running", "events", "chip"}
"""Ports of an accelerator."""


class CoreBehindPhy(wiring.Component):
    """Connects a core's link to a PHY, and the PHY's pins to its own.

    Whoever holds it drives the wire's domains beside ``sync`` (``Wire.domains``).
    ``core_behind`` makes it.

    Parameters
    ----------
    accelerator : Accelerator
        Or a component around one.
    wire : Wire
    phy : Component
        Of the wire.

    Members
    -------
    each pin, each status
        As of the PHY.
    each other port of what is around the accelerator
        As there; not its pins of a DRAM chip, which a board has elsewhere.
    running : Out
        A program runs.
    events : Out
        As of ``Accelerator``.
    """

    running: Signal
    events: data.View

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...  # the pins

    def __init__(self, *, accelerator: Any, wire: Wire, phy: Any) -> None:
        self.accelerator, self.phy, self.wire = accelerator, phy, wire
        shown = {**pin_members(wire), **{name: Out(1) for name in wire.status}}
        self._shown = tuple(shown)
        members = accelerator.signature.members
        self._others = {name: members[name] for name in members if name not in _CORE}
        super().__init__({**shown, **self._others, "running": Out(1), "events": Out(EVENTS)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.core = core = self.accelerator
        m.submodules[self.wire.submodule] = phy = self.phy
        connect(m, phy.o, core.i)
        connect(m, core.o, phy.i)
        for name in self._shown:
            member = self.signature.members[name]
            pin, own = getattr(phy, name), getattr(self, name)
            if member.is_signature:
                connect(m, pin, flipped(own))
            elif member.flow is Out:
                m.d.comb += own.eq(pin)
            else:
                m.d.comb += pin.eq(own)
        for name, member in self._others.items():
            there, own = getattr(core, name), getattr(self, name)
            m.d.comb += own.eq(there) if member.flow is Out else there.eq(own)
        m.d.comb += [self.running.eq(core.running), self.events.eq(core.events)]
        return m


def core_behind(
    name: str,
    configuration: Configuration,
    *,
    timeout_cycles: int = DEFAULT_TIMEOUT_CYCLES,
    **options: Any,
) -> CoreBehindPhy:
    """Makes the core behind the PHY of a wire.

    Parameters
    ----------
    name : str
        Of the wire.
    configuration : Configuration
        Its ``clock_hz`` is the clock of ``sync``.
    timeout_cycles : int
        As of ``Accelerator``.
    **options
        Of the wire's PHY.

    Raises
    ------
    ImportError
        If the wire's Python package is missing.
    ValueError
        If there is no such wire, or its PHY cannot do with the clock or an option.
    """
    wire = find_wire(name)
    # all checks come before the first component: Amaranth complains of those that are not used
    phy = make_phy(wire, configuration, **options)
    accelerator = Accelerator(configuration=configuration, timeout_cycles=timeout_cycles)
    return CoreBehindPhy(accelerator=accelerator, wire=wire, phy=phy)
