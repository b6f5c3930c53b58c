"""The UART's parameters: what a clock can make, and what is refused."""

from typing import Any

import pytest
from slipstick_rtl.config import Configuration
from slipstick_rtl.phy.core_behind_phy import core_behind
from slipstick_rtl.phy.uart import Uart, UartReceiver, UartTransmitter
from slipstick_rtl.phy.uart_rates import uart_divisor


@pytest.mark.parametrize(
    ("clock_hz", "baud", "divisor"),
    [
        (100_000_000, 115_200, 868),
        (100_000_000, 3_000_000, 33),
        (25_000_000, 115_200, 217),
        (12_000_000, 3_000_000, 4),
    ],
)
def test_divisors(clock_hz: int, baud: int, divisor: int) -> None:
    assert uart_divisor(clock_hz, baud) == divisor


@pytest.mark.parametrize(
    ("clock_hz", "baud", "message"),
    [
        (100_000_000, 0, "baud must be at least 1, not 0"),
        (12_000_000, 4_000_000, "baud must be at most 3000000, a 4th of the clock, not 4000000"),
        (
            12_000_000,
            921_600 * 2,
            "baud must be within 2% of clock_hz / n, not 1843200: a clock of .* makes 1714286",
        ),
    ],
)
def test_rates_that_a_clock_cannot_make(clock_hz: int, baud: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        uart_divisor(clock_hz, baud)


@pytest.mark.parametrize("component", [UartReceiver, UartTransmitter])
def test_divisors_that_are_refused(component: Any) -> None:
    with pytest.raises(TypeError, match=r"divisor must be an integer, not 8\.5"):
        component(divisor=8.5)
    with pytest.raises(ValueError, match="divisor must be at least 4, not 3"):
        component(divisor=3)


def test_a_uart_checks_its_queue() -> None:
    with pytest.raises(ValueError, match="depth must be at least 2, not 1"):
        Uart(divisor=8, depth=1)


def test_a_board_knows_its_divisor() -> None:
    configuration = Configuration(rows=4, columns=4, lanes=4, clock_hz=25_000_000)
    uart = core_behind("uart", configuration).phy
    assert uart.receive_latency == Uart(divisor=217, depth=2).receive_latency
    with pytest.raises(ValueError, match="baud must be at most 6250000"):
        core_behind("uart", configuration, baud=12_000_000)
