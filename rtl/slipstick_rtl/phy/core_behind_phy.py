"""The core behind a PHY: the part that UART, SPI and USB share.

A PHY is a component with two byte streams, ``i`` (to be sent) and ``o`` (received), and with pins.
A new wire is a PHY and a subclass of :class:`CoreBehindPhy` that names its pins.
"""

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import Out, connect, flipped

from ..accelerator import EVENTS, Accelerator


class CoreBehindPhy(wiring.Component):
    """Connects a core's link to a PHY, and the PHY's pins to its own.

    Parameters
    ----------
    accelerator : Accelerator
    phy : Component
        Has ``i`` and ``o``, streams of bytes, and every pin.
    name : str
        The PHY's name as a submodule.
    pins : mapping of members by name
        As the PHY has them: ``In`` or ``Out``, of a width or of a signature.

    Members
    -------
    each pin
        As of the PHY.
    running : Out
        A program runs.
    events : Out
        As of ``Accelerator``.
    """

    running: Signal
    events: data.View

    def __init__(
        self,
        accelerator: Accelerator,
        phy: Any,
        name: str,
        pins: Mapping[str, Any],
    ) -> None:
        self.accelerator = accelerator
        self._phy, self._name, self._pins = phy, name, tuple(pins)
        super().__init__({**pins, "running": Out(1), "events": Out(EVENTS)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.core = core = self.accelerator
        m.submodules[self._name] = phy = self._phy
        connect(m, phy.o, core.i)
        connect(m, core.o, phy.i)
        for name in self._pins:
            member = self.signature.members[name]
            pin, own = getattr(phy, name), getattr(self, name)
            if member.is_signature:
                connect(m, pin, flipped(own))
            elif member.flow is Out:
                m.d.comb += own.eq(pin)
            else:
                m.d.comb += pin.eq(own)
        m.d.comb += [self.running.eq(core.running), self.events.eq(core.events)]
        return m
