"""Waits for the end of a run, but not for ever."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .protocol import WAIT_TIMEOUTS


class RunPatience(wiring.Component):
    """Counts the cycles that a request waits for the end of a run.

    Parameters
    ----------
    timeout_cycles : int
        After which a frame that has begun is forgotten.

    Members
    -------
    waiting : In
        A request waits; between two that do it is 0 for two cycles at least.
    expired : Out
        It has waited ``WAIT_TIMEOUTS`` x ``timeout_cycles`` + 1 cycles.
    """

    waiting: Signal
    expired: Signal

    def __init__(self, *, timeout_cycles: int) -> None:
        self._cycles = WAIT_TIMEOUTS * timeout_cycles
        super().__init__({"waiting": In(1), "expired": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        waited = Signal(range(self._cycles + 1))
        m.d.sync += [
            waited.eq(Mux(self.waiting, waited + 1, 0)),
            self.expired.eq(self.waiting & (waited >= self._cycles)),
        ]
        return m
