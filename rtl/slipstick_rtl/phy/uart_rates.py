"""A serial line: its format, and the rates that a clock can make. Needs no Amaranth."""

DEFAULT_BAUD = 115_200

RATES = (
    DEFAULT_BAUD, 3_000_000, 4_000_000, 2_000_000, 1_000_000, 12_000_000, 921_600, 460_800,
    230_400, 57_600, 38_400, 19_200, 9600, 4800, 2400, 1200, 300,
)  # fmt: skip
"""Rates at which a host looks for a board, the likely ones first."""

BITS_PER_BYTE = 10
"""Start bit, eight data bits from the least significant on, stop bit."""

RECEIVE_DEPTH = 256
"""Bytes that a board's UART holds for the link while that is busy: it cannot hold the host back, so
the host sends no more behind a request that takes long."""

MINIMUM_DIVISOR = 4
RATE_TOLERANCE = 0.02
"""Largest relative difference of two ends' rates: half a bit in ten is 0.05, and edges are seen up
to a cycle late."""


def uart_divisor(clock_hz: int, baud: int) -> int:
    """Clock cycles of a bit.

    Parameters
    ----------
    clock_hz, baud : int
        Cycles and bits a second.

    Raises
    ------
    ValueError
        If a bit is shorter than ``MINIMUM_DIVISOR`` cycles, or the nearest rate that the clock can
        make is off by more than ``RATE_TOLERANCE``.
    """
    if baud < 1:
        raise ValueError(f"baud must be at least 1, not {baud}")
    divisor = round(clock_hz / baud)
    if divisor < MINIMUM_DIVISOR:
        raise ValueError(
            f"baud must be at most {clock_hz // MINIMUM_DIVISOR}, a {MINIMUM_DIVISOR}th of the"
            f" clock, not {baud}"
        )
    if abs(clock_hz / divisor / baud - 1) > RATE_TOLERANCE:
        raise ValueError(
            f"baud must be within {RATE_TOLERANCE:.0%} of clock_hz / n, not {baud}: a clock of"
            f" {clock_hz} makes {clock_hz / divisor:.0f}"
        )
    return divisor
