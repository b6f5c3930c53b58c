"""The board's IP address by DHCP: when the client asks, and what holds until it has an answer."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .liteeth import CORE_HZ

RETRY_SECONDS = 4
RENEWALS = 16
"""Retries between two renewals, a minute: LiteEth's client does not tell how long a lease is."""


class DhcpStart(wiring.Component):
    """Starts LiteEth's DHCP client again and again, and keeps the address that it found.

    The client forgets its address when an attempt fails.

    Parameters
    ----------
    retry_cycles : int
        Longer than the client's second.

    Members
    -------
    fallback : In
        The address until the client has one.
    found : In
        The client's; 0 if it has none.
    start : Out
    ip : Out
    """

    fallback: Signal
    found: Signal
    start: Signal
    ip: Signal

    def __init__(self, *, retry_cycles: int = RETRY_SECONDS * CORE_HZ) -> None:
        self._retry_cycles = retry_cycles
        super().__init__({"fallback": In(32), "found": In(32), "start": Out(1), "ip": Out(32)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        wait, rest = Signal(range(self._retry_cycles)), Signal(range(RENEWALS))
        kept = Signal(32)
        m.d.sync += self.start.eq(0)
        with m.If(wait != 0):
            m.d.sync += wait.eq(wait - 1)
        with m.Else():
            m.d.sync += wait.eq(self._retry_cycles - 1)
            with m.If((rest == 0) | (self.found == 0)):
                m.d.sync += [self.start.eq(1), rest.eq(RENEWALS - 1)]
            with m.Else():
                m.d.sync += rest.eq(rest - 1)
        with m.If(self.found != 0):
            m.d.sync += kept.eq(self.found)
        m.d.comb += self.ip.eq(self.fallback)
        with m.If(kept != 0):
            m.d.comb += self.ip.eq(kept)
        return m
