"""An SPI peripheral on a board's pins."""

from typing import Any

from amaranth.build import Attrs, Pins, Resource, Subsignal
from amaranth.hdl import Module, Signal
from amaranth.lib import io, stream, wiring
from amaranth.lib.wiring import connect, flipped

from ..config import Configuration
from .board_phy import SIGNATURE, BoardLink, LinkMaker
from .spi import Spi
from .spi_top import RECEIVE_DEPTH, REPLAY_BITS

RESOURCE = "spi_link"


def spi_resource(
    *, sck: str, chip_select_n: str, mosi: str, miso: str, connector: tuple[str, int], attrs: Attrs
) -> Resource:
    """The four pins on a connector of a board, for its platform.

    Parameters
    ----------
    sck, chip_select_n, mosi, miso : str
        Pins of the connector.
    connector : tuple of (str, int)
        The platform's.
    attrs : Attrs
        Such as the voltage of the pins.
    """
    inputs = {"sck": sck, "chip_select_n": chip_select_n, "mosi": mosi}
    return Resource(
        RESOURCE,
        0,
        *(Subsignal(name, Pins(pin, dir="i", conn=connector)) for name, pin in inputs.items()),
        Subsignal("miso", Pins(miso, dir="o", conn=connector)),
        attrs,
    )


def pmod_resource(number: int, attrs: Attrs) -> Resource:
    """The pins on a PMOD connector, where its standard has SPI: select, MOSI, MISO, SCK on 1..4.

    Parameters
    ----------
    number : int
        Of the platform's connector.
    attrs : Attrs
    """
    return spi_resource(
        chip_select_n="1", mosi="2", miso="3", sck="4", connector=("pmod", number), attrs=attrs
    )


class SpiLink(wiring.Component):
    """The layer on the pins of ``spi_resource``.

    Members
    -------
    i, o, fault, oscillator
        As of ``BoardLink``; a transfer with a wrong header is a fault.
    """

    i: stream.Interface
    o: stream.Interface
    fault: Signal
    oscillator: Signal

    def __init__(self) -> None:
        self._spi = Spi(receive_depth=RECEIVE_DEPTH, replay_bits=REPLAY_BITS)
        super().__init__(SIGNATURE)

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        pins = platform.request(RESOURCE, 0, dir="-")
        m.submodules.spi = spi = self._spi
        for name in ("sck", "chip_select_n", "mosi"):
            buffer = io.Buffer(io.Direction.Input, getattr(pins, name))
            m.submodules[name] = buffer
            m.d.comb += getattr(spi, name).eq(buffer.i)
        m.submodules.miso = miso = io.Buffer(io.Direction.Output, pins.miso)
        m.d.comb += [miso.o.eq(spi.miso), miso.oe.eq(spi.miso_enable), self.fault.eq(spi.refused)]
        connect(m, flipped(self.i), spi.i)
        connect(m, spi.o, flipped(self.o))
        return m


def spi() -> LinkMaker:
    """A board's SPI pins."""

    def make(configuration: Configuration, oscillator_hz: int) -> BoardLink:
        return SpiLink()

    return make
