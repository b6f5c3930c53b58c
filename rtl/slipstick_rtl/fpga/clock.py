"""Defines the interface that the clocks of all FPGA families share."""

from typing import Any

from amaranth.hdl import Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class BoardClock(wiring.Component):
    """From the oscillator's pin to the core's clock; each family's class says how it restarts.

    Parameters
    ----------
    port : amaranth.lib.io.SingleEndedPort
        The oscillator's.
    pll : object
        Settings of the family's PLL.

    Members
    -------
    restart : In
        High: begin anew; asynchronous.
    clock : Out
    ready : Out
        The core may take what the host says.
    oscillator : Out
        The pin.
    """

    restart: Signal
    clock: Signal
    ready: Signal
    oscillator: Signal

    def __init__(self, *, port: Any, pll: Any) -> None:
        self._port = port
        self._pll = pll
        super().__init__({"restart": In(1), "clock": Out(1), "ready": Out(1), "oscillator": Out(1)})
