"""iCEBreaker with the iCE40UP5K: FTDI's USB serial port, two lights; SPI on PMOD 1A."""

from amaranth.build import Attrs
from amaranth_boards.icebreaker import ICEBreakerPlatform

from ..fpga.ice40.clock import Ice40Clock, find_pll
from ..phy.board_phy import uart
from ..phy.board_spi import pmod_resource, spi
from .board import Board, Light


class _Platform(ICEBreakerPlatform):
    resources = [
        *ICEBreakerPlatform.resources,
        pmod_resource(0, Attrs(IO_STANDARD="SB_LVCMOS", PULLUP=1)),
    ]


ICEBREAKER = Board(
    platform=_Platform,
    find_pll=find_pll,
    clock=Ice40Clock,
    lights=(
        Light(resource="led_g", states=("running", "receiving", "alive")),
        Light(resource="led_r", states=("line_error",)),
    ),
    links={"uart": uart(), "spi": spi()},
    button="button",
)
