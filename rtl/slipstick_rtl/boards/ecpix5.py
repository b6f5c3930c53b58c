"""ECPIX-5 with two sizes of LFE5UM5G: FTDI's USB serial port, four lights; SPI on PMOD 0."""

from typing import Any

from amaranth.build import Attrs
from amaranth_boards.ecpix5 import ECPIX545Platform, ECPIX585Platform

from ..fpga.ecp5.clock import Ecp5Clock, find_pll
from ..phy.board_phy import uart
from ..phy.board_spi import pmod_resource, spi
from .board import Board, Light

_LIGHTS = (
    Light(resource="rgb_led", number=0, signal="g", states=("alive",)),
    Light(resource="rgb_led", number=1, signal="g", states=("running",)),
    Light(resource="rgb_led", number=2, signal="b", states=("receiving",)),
    Light(resource="rgb_led", number=3, signal="b", states=("sending",)),
    Light(resource="rgb_led", number=0, signal="r", states=("line_error",)),
)


def _board(platform: type[Any]) -> Board:
    def make() -> Any:
        made = platform()
        made.add_resources([pmod_resource(0, Attrs(IO_TYPE="LVCMOS33", PULLMODE="UP"))])
        return made

    return Board(
        platform=make,
        find_pll=find_pll,
        clock=Ecp5Clock,
        lights=_LIGHTS,
        links={"uart": uart(), "spi": spi()},
        button="rst",
    )


ECPIX5_45F = _board(ECPIX545Platform)
ECPIX5_85F = _board(ECPIX585Platform)
