"""The core behind an SPI peripheral: what a board on a computer's SPI pins carries."""

from amaranth.hdl import Signal
from amaranth.lib.wiring import In, Out

from ..accelerator import Accelerator
from ..config import Configuration
from .core_behind_phy import CoreBehindPhy
from .spi import Spi

RECEIVE_DEPTH = 256
"""Bytes. Requests wait here while an answer is sent; the host sends up to 8 READs of 15 bytes ahead
of their answers, and if there were no room it would only send them again."""

REPLAY_BITS = 12
"""4 KiB, two block RAMs of an ECP5. A transfer reads half of it while the other half is filled: so
the host knows how many bytes it can read in the next one, and 99 % of that are data."""


class SpiAccelerator(CoreBehindPhy):
    """The core, its link on the four pins of an SPI peripheral.

    Parameters
    ----------
    configuration : Configuration
        Its ``clock_hz`` is the clock of ``sync``; SCK may have a fourth of it.
    receive_depth, replay_bits : int
        As of ``Spi``.

    Members
    -------
    sck, chip_select_n, mosi, miso, miso_enable
        As of ``Spi``: mode 0, most significant bit first.
    running : Out
        A program runs.
    events : Out
        As of ``Accelerator``.

    Raises
    ------
    ValueError
        As for ``Spi``.
    """

    sck: Signal
    chip_select_n: Signal
    mosi: Signal
    miso: Signal
    miso_enable: Signal

    def __init__(
        self,
        *,
        configuration: Configuration,
        receive_depth: int = RECEIVE_DEPTH,
        replay_bits: int = REPLAY_BITS,
    ) -> None:
        super().__init__(
            Accelerator(configuration=configuration),
            Spi(receive_depth=receive_depth, replay_bits=replay_bits),
            "spi",
            {
                "sck": In(1),
                "chip_select_n": In(1),
                "mosi": In(1),
                "miso": Out(1),
                "miso_enable": Out(1),
            },
        )
