"""ULX3S: LFE5U of four sizes, FTDI's USB serial chip, SPI on J1, USB on US2."""

from typing import Any

from amaranth.build import Attrs
from amaranth_boards.ulx3s import (
    ULX3S_12F_Platform,
    ULX3S_25F_Platform,
    ULX3S_45F_Platform,
    ULX3S_85F_Platform,
)

from ..fpga.ecp5.clock import Ecp5Clock, find_pll
from ..phy.board_phy import uart
from ..phy.board_spi import spi, spi_resource
from ..phy.board_usb import usb
from .board import Board, Light

_SPI = spi_resource(
    sck="0+",
    chip_select_n="0-",
    mosi="1+",
    miso="1-",
    connector=("gpio", 0),
    attrs=Attrs(IO_TYPE="LVCMOS33", PULLMODE="UP"),
)


def _board(platform: type[Any]) -> Board:
    def make() -> Any:
        made = platform()
        made.add_resources([_SPI])
        return made

    return Board(
        platform=make,
        find_pll=find_pll,
        clock=Ecp5Clock,
        lights=(
            Light(number=0, states=("alive",)),
            Light(number=1, states=("running",)),
            Light(number=2, states=("receiving",)),
            Light(number=3, states=("sending",)),
            Light(number=7, states=("line_error",)),
        ),
        links={"uart": uart(), "spi": spi(), "usb": usb()},
        button="button_pwr",
    )


ULX3S_12F = _board(ULX3S_12F_Platform)
ULX3S_25F = _board(ULX3S_25F_Platform)
ULX3S_45F = _board(ULX3S_45F_Platform)
ULX3S_85F = _board(ULX3S_85F_Platform)
