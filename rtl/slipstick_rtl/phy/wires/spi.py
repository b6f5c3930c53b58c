"""SPI: four pins, and a computer's controller at the other end."""

from typing import Any

from ...config import Configuration
from ..wire import INPUT, OUTPUT, Pin, Wire

RECEIVE_DEPTH = 256
"""Bytes. Requests wait here while an answer is sent; the host sends up to 8 READs of 15 bytes ahead
of their answers, and if there were no room it would only send them again."""

REPLAY_BITS = 12
"""4 KiB, two block RAMs of an ECP5. A transfer reads half of it while the other half is filled: so
the host knows how many bytes it can read in the next one, and 99 % of that are data."""

PMOD_PINS = {"sck": "4", "chip_select_n": "1", "mosi": "2", "miso": "3"}
"""The pins of a PMOD connector, where its standard has SPI."""


def _phy(
    configuration: Configuration,
    *,
    receive_depth: int = RECEIVE_DEPTH,
    replay_bits: int = REPLAY_BITS,
) -> Any:
    """Makes an SPI peripheral; SCK may have a fourth of ``sync``."""
    from ..spi import Spi

    return Spi(receive_depth=receive_depth, replay_bits=replay_bits)


WIRE = Wire(
    name="spi",
    device="spi",
    pins=(
        Pin(name="sck", direction=INPUT),
        Pin(name="chip_select_n", direction=INPUT),
        Pin(name="mosi", direction=INPUT),
        Pin(name="miso", direction=OUTPUT, enable="miso_enable"),
    ),
    phy=_phy,
    submodule="spi",
    resource="spi_link",
    faults=("refused",),
    streams_last=True,
)
"""Mode 0, most significant bit first; a transfer with a wrong header is a fault."""
