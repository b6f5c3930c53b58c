"""OrangeCrab r0.2 with the LFE5U-85F: a light of three colours, USB pins of its own."""

from amaranth.build import Attrs
from amaranth_boards.orangecrab_r0_2 import OrangeCrabR0_2_85FPlatform
from amaranth_boards.resources import UARTResource

from ..fpga.ecp5.clock import Ecp5Clock, find_pll
from ..phy.board_phy import uart
from ..phy.board_spi import spi, spi_resource
from ..phy.board_usb import usb
from .board import Board, Light


class _Platform(OrangeCrabR0_2_85FPlatform):
    """With UART and SPI on the pins of the header that carry these names."""

    resources = [
        *OrangeCrabR0_2_85FPlatform.resources,
        UARTResource(
            0, rx="0", tx="1", conn=("io", 0), attrs=Attrs(IO_TYPE="LVCMOS33", PULLMODE="UP")
        ),
        spi_resource(
            sck="sck",
            chip_select_n="10",
            mosi="copi",
            miso="cipo",
            connector=("io", 0),
            attrs=Attrs(IO_TYPE="LVCMOS33", PULLMODE="UP"),
        ),
    ]


ORANGECRAB_85F = Board(
    platform=_Platform,
    find_pll=find_pll,
    clock=Ecp5Clock,
    lights=(
        Light(resource="rgb_led", signal="g", states=("running", "alive")),
        Light(resource="rgb_led", signal="b", states=("receiving", "sending")),
        Light(resource="rgb_led", signal="r", states=("line_error",)),
    ),
    links={"uart": uart(), "spi": spi(), "usb": usb()},
    button="button",
)
