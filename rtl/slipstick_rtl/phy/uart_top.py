"""The core behind a UART: what a board with a USB-serial chip carries."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out, connect

from ..accelerator import EVENTS, Accelerator
from ..config import Configuration
from ..link.link import DEFAULT_TIMEOUT_CYCLES
from .uart import Uart
from .uart_rates import DEFAULT_BAUD, uart_divisor

RECEIVE_DEPTH = 256
"""Bytes. While an answer is sent the link takes requests up to its own buffers; the host sends up
to 8 READs of 15 bytes ahead, so twice that is enough for no byte to be lost."""


class SerialAccelerator(wiring.Component):
    """The core, its link on two pins.

    Parameters
    ----------
    configuration : Configuration
        Its ``clock_hz`` is the clock of ``sync``.
    baud : int
        Bits a second on both pins.
    timeout_cycles : int
        As of ``Accelerator``.

    Members
    -------
    rx, tx : In, Out
        The lines, high at rest: 8 data bits, no parity, one stop bit.
    running : Out
        A program runs.
    events : Out
        As of ``Accelerator``.

    Raises
    ------
    ValueError
        If the clock cannot make the baud rate (``uart_divisor``).
    """

    rx: Signal
    tx: Signal
    running: Signal
    events: data.View

    def __init__(
        self,
        *,
        configuration: Configuration,
        baud: int = DEFAULT_BAUD,
        timeout_cycles: int = DEFAULT_TIMEOUT_CYCLES,
    ) -> None:
        self.accelerator = Accelerator(configuration=configuration, timeout_cycles=timeout_cycles)
        self.divisor = uart_divisor(configuration.clock_hz, baud)
        self._uart = Uart(divisor=self.divisor, depth=RECEIVE_DEPTH)
        super().__init__(
            {
                "rx": In(1),
                "tx": Out(1),
                "running": Out(1),
                "events": Out(EVENTS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.core = core = self.accelerator
        m.submodules.uart = uart = self._uart
        connect(m, uart.o, core.i)
        connect(m, core.o, uart.i)
        m.d.comb += [
            uart.rx.eq(self.rx),
            self.tx.eq(uart.tx),
            self.running.eq(core.running),
            self.events.eq(core.events),
        ]
        return m
