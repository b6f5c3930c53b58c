"""UART: two pins, and a USB-serial chip or a cable at the other end."""

from typing import Any

from ...config import Configuration
from ..uart_rates import DEFAULT_BAUD, RECEIVE_DEPTH, uart_divisor
from ..wire import INPUT, OUTPUT, Pin, Wire


def _phy(configuration: Configuration, *, baud: int = DEFAULT_BAUD) -> Any:
    """Makes a UART of a rate; ValueError if the clock cannot make it (``uart_divisor``)."""
    from ..uart import Uart

    return Uart(divisor=uart_divisor(configuration.clock_hz, baud), depth=RECEIVE_DEPTH)


WIRE = Wire(
    name="uart",
    device="serial",
    pins=(Pin(name="rx", direction=INPUT), Pin(name="tx", direction=OUTPUT)),
    phy=_phy,
    submodule="uart",
    faults=("framing_error", "overflow"),
    options=("baud",),
)
"""The lines are high at rest: 8 data bits, no parity, one stop bit."""
