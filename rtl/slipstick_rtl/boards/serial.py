"""The core behind a UART: what a board with a USB-serial chip carries."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out, connect

from ..accelerator import EVENTS, Accelerator
from ..config import Configuration
from ..link.line import DEFAULT_BAUD, uart_divisor
from ..link.link import DEFAULT_TIMEOUT_CYCLES
from ..link.uart import Uart
from .lights import GLOW_SECONDS, Glow

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
    receiving, sending : Out
        A bit was low on the line within the last ``GLOW_SECONDS``.
    line_error : Out
        A byte was dropped within the last ``GLOW_SECONDS``, for want of a stop bit or of room: the
        baud rates differ, or the host sends further ahead than it may.
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
    receiving: Signal
    sending: Signal
    line_error: Signal
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
        self._glow_cycles = max(1, round(configuration.clock_hz * GLOW_SECONDS))
        super().__init__(
            {
                "rx": In(1),
                "tx": Out(1),
                "running": Out(1),
                "receiving": Out(1),
                "sending": Out(1),
                "line_error": Out(1),
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
        shown = {
            "receiving": (uart.o.valid, self.receiving),
            "sending": (~uart.tx, self.sending),
            "line_error": (uart.framing_error | uart.overflow, self.line_error),
        }
        for name, (strobe, output) in shown.items():
            m.submodules[name] = glow = Glow(cycles=self._glow_cycles)
            m.d.comb += [glow.i.eq(strobe), output.eq(glow.o)]
        return m
