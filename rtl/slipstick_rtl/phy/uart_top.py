"""The core behind a UART: what a board with a USB-serial chip carries."""

from amaranth.hdl import Signal
from amaranth.lib.wiring import In, Out

from ..accelerator import Accelerator
from ..config import Configuration
from ..link.link import DEFAULT_TIMEOUT_CYCLES
from .core_behind_phy import CoreBehindPhy
from .uart import Uart
from .uart_rates import DEFAULT_BAUD, uart_divisor

RECEIVE_DEPTH = 256
"""Bytes. While an answer is sent the link takes requests up to its own buffers; the host sends up
to 8 READs of 15 bytes ahead, so twice that is enough for no byte to be lost."""


class SerialAccelerator(CoreBehindPhy):
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

    def __init__(
        self,
        *,
        configuration: Configuration,
        baud: int = DEFAULT_BAUD,
        timeout_cycles: int = DEFAULT_TIMEOUT_CYCLES,
    ) -> None:
        self.divisor = uart_divisor(configuration.clock_hz, baud)
        super().__init__(
            Accelerator(configuration=configuration, timeout_cycles=timeout_cycles),
            Uart(divisor=self.divisor, depth=RECEIVE_DEPTH),
            "uart",
            {"rx": In(1), "tx": Out(1)},
        )
