"""A core behind an Ethernet port, with one clock for all, for the compiled simulation."""

from typing import Any

from amaranth.hdl import ClockDomain, ClockSignal, Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import Out, connect
from slipstick_rtl.accelerator import EVENTS
from slipstick_rtl.config import Configuration
from slipstick_rtl.phy.ethernet.liteeth import BARE
from slipstick_rtl.phy.ethernet.wire_phy import ethernet_phy

LEASE_CYCLES = 100_000_000
_CORE = {"i", "o", "running", "events"}


class EthernetBoard(wiring.Component):
    """A core behind LiteEth, whose wire is a byte per cycle.

    Parameters
    ----------
    core : Accelerator
        Or a component around one, such as ``CoreWithDram``.
    configuration : Configuration
        Of the core.
    ip : str or None
        None for DHCP.
    mac : str
    lease_cycles : int

    Members
    -------
    rx_valid, rx_data, rx_last : In
        Frames to the board, with preamble and check sequence.
    tx_valid, tx_data, tx_last : Out
        Frames from it.
    rst_n : Out
        Low at first, while frames are lost.
    running, events : Out
        As of ``Accelerator``.
    each other port of what is around the accelerator
        As there.
    """

    running: Signal
    events: data.View
    rst_n: Signal

    def __init__(
        self,
        *,
        core: Any,
        configuration: Configuration,
        ip: str | None,
        mac: str,
        lease_cycles: int = LEASE_CYCLES,
    ) -> None:
        self._phy = ethernet_phy(
            configuration,
            BARE,
            ip=ip,
            mac=mac,
            reset_milliseconds=0,
            lease_cycles=lease_cycles,
        )
        self._core = core
        members = dict(self._phy.signature.members.items())
        self._pins = {name: members[name] for name in members if name not in ("i", "o")}
        ports = core.signature.members
        self._others = {name: ports[name] for name in ports if name not in _CORE}
        super().__init__({**self._pins, **self._others, "running": Out(1), "events": Out(EVENTS)})

    @property
    def verilog(self) -> str:
        """LiteEth's, which goes beside the Verilog of this."""
        return self._phy.liteeth.verilog

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains.ethernet = ClockDomain("ethernet")
        m.d.comb += ClockSignal("ethernet").eq(ClockSignal("sync"))
        m.submodules.core = core = self._core
        m.submodules.ethernet = phy = self._phy
        connect(m, phy.o, core.i)
        connect(m, core.o, phy.i)
        for part, members in ((phy, self._pins), (core, self._others)):
            for name, member in members.items():
                there, own = getattr(part, name), getattr(self, name)
                m.d.comb += own.eq(there) if member.flow is Out else there.eq(own)
        m.d.comb += [self.running.eq(core.running), self.events.eq(core.events)]
        return m
