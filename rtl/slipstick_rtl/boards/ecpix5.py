"""ECPIX-5 with the LFE5UM5G-85F: FTDI's USB serial port, four lights of three colours."""

from amaranth_boards.ecpix5 import ECPIX545Platform, ECPIX585Platform

from .board import Board, Light
from .clock_ecp5 import Ecp5Clock, find_pll
from .links import uart

_LIGHTS = (
    Light(resource="rgb_led", number=0, signal="g", states=("alive",)),
    Light(resource="rgb_led", number=1, signal="g", states=("running",)),
    Light(resource="rgb_led", number=2, signal="b", states=("receiving",)),
    Light(resource="rgb_led", number=3, signal="b", states=("sending",)),
    Light(resource="rgb_led", number=0, signal="r", states=("line_error",)),
)

ECPIX5_45F = Board(
    platform=ECPIX545Platform,
    find_pll=find_pll,
    clock=Ecp5Clock,
    lights=_LIGHTS,
    links={"uart": uart()},
    button="rst",
)
ECPIX5_85F = Board(
    platform=ECPIX585Platform,
    find_pll=find_pll,
    clock=Ecp5Clock,
    lights=_LIGHTS,
    links={"uart": uart()},
    button="rst",
)
