"""The core behind an SPI peripheral: what a board on a computer's SPI pins carries."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out, connect

from ..accelerator import EVENTS, Accelerator
from ..config import Configuration
from ..link.spi import Spi
from .lights import GLOW_SECONDS, Glow

RECEIVE_DEPTH = 256
"""Bytes. Requests wait here while an answer is sent; the host sends up to 8 READs of 15 bytes ahead
of their answers, and if there were no room it would only send them again."""

REPLAY_BITS = 12
"""4 KiB, two block RAMs of an ECP5. A transfer reads half of it while the other half is filled: so
the host knows how many bytes it can read in the next one, and 99 % of that are data."""


class SpiAccelerator(wiring.Component):
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
    receiving, sending : Out
        Bytes came, or went, within the last ``GLOW_SECONDS``.
    line_error : Out
        A transfer with a wrong header came within the last ``GLOW_SECONDS``.
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
    running: Signal
    receiving: Signal
    sending: Signal
    line_error: Signal
    events: data.View

    def __init__(
        self,
        *,
        configuration: Configuration,
        receive_depth: int = RECEIVE_DEPTH,
        replay_bits: int = REPLAY_BITS,
    ) -> None:
        self.accelerator = Accelerator(configuration=configuration)
        self._spi = Spi(receive_depth=receive_depth, replay_bits=replay_bits)
        self._glow_cycles = max(1, round(configuration.clock_hz * GLOW_SECONDS))
        super().__init__(
            {
                "sck": In(1),
                "chip_select_n": In(1),
                "mosi": In(1),
                "miso": Out(1),
                "miso_enable": Out(1),
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
        m.submodules.spi = spi = self._spi
        connect(m, spi.o, core.i)
        connect(m, core.o, spi.i)
        m.d.comb += [
            spi.sck.eq(self.sck),
            spi.chip_select_n.eq(self.chip_select_n),
            spi.mosi.eq(self.mosi),
            self.miso.eq(spi.miso),
            self.miso_enable.eq(spi.miso_enable),
            self.running.eq(core.running),
            self.events.eq(core.events),
        ]
        shown = {
            "receiving": (spi.o.valid, self.receiving),
            "sending": (spi.i.valid, self.sending),
            "line_error": (spi.refused, self.line_error),
        }
        for name, (strobe, output) in shown.items():
            m.submodules[name] = glow = Glow(cycles=self._glow_cycles)
            m.d.comb += [glow.i.eq(strobe), output.eq(glow.o)]
        return m
