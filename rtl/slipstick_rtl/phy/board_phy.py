"""The physical layers that a board can have: the link's bytes to and from its pins."""

from collections.abc import Callable
from typing import Any, Protocol

from amaranth.hdl import Module, Signal
from amaranth.lib import io, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ..config import Configuration
from .uart import Uart
from .uart_rates import DEFAULT_BAUD, uart_divisor
from .uart_top import RECEIVE_DEPTH


class BoardLink(Protocol):
    """A component that asks the platform for its pins.

    Members
    -------
    i : In(stream of bytes)
        To be sent.
    o : Out(stream of bytes)
        Received.
    fault : Out
        Strobe: a byte was lost on the line.
    oscillator : In
        The board's, for layers that need a clock of their own.
    """

    i: stream.Interface
    o: stream.Interface
    fault: Signal
    oscillator: Signal

    def elaborate(self, platform: Any) -> Module:
        """The layer with its pins."""
        ...


LinkMaker = Callable[[Configuration, int], BoardLink]
"""What a board holds for each layer it has pins for: from the configuration and the oscillator in
Hz; ValueError if a clock does not suit the layer."""

SIGNATURE = {
    "i": In(stream.Signature(8)),
    "o": Out(stream.Signature(8)),
    "fault": Out(1),
    "oscillator": In(1),
}
"""The members of a ``BoardLink``."""


class UartLink(wiring.Component):
    """A UART on a board's pins.

    Parameters
    ----------
    divisor : int
        Clock cycles of a bit.
    resource : str
        The platform's, with ``rx`` (towards the FPGA) and ``tx``.

    Members
    -------
    i, o, fault, oscillator
        As of ``BoardLink``.
    """

    i: stream.Interface
    o: stream.Interface
    fault: Signal
    oscillator: Signal

    def __init__(self, *, divisor: int, resource: str) -> None:
        self._uart = Uart(divisor=divisor, depth=RECEIVE_DEPTH)
        self._resource = resource
        super().__init__(SIGNATURE)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        pins = platform.request(self._resource, 0, dir="-")
        m.submodules.uart = uart = self._uart
        m.submodules.rx = rx = io.Buffer(io.Direction.Input, pins.rx)
        m.submodules.tx = tx = io.Buffer(io.Direction.Output, pins.tx)
        connect(m, flipped(self.i), uart.i)
        connect(m, uart.o, flipped(self.o))
        m.d.comb += [
            uart.rx.eq(rx.i),
            tx.o.eq(uart.tx),
            self.fault.eq(uart.framing_error | uart.overflow),
        ]
        return m


def uart(resource: str = "uart") -> LinkMaker:
    """A board's UART, at ``DEFAULT_BAUD``."""

    def make(configuration: Configuration, oscillator_hz: int) -> BoardLink:
        divisor = uart_divisor(configuration.clock_hz, DEFAULT_BAUD)
        return UartLink(divisor=divisor, resource=resource)

    return make
