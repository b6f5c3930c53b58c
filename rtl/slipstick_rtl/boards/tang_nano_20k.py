"""Tang Nano 20K with the GW2AR-18C: USB serial port of its programmer, six lights."""

from dataclasses import replace

from amaranth.build import Attrs, Clock, Pins, Resource
from amaranth.vendor import GowinPlatform
from amaranth_boards.resources import ButtonResources, LEDResources, UARTResource

from ..fpga.gowin.clock import GW2AR_18, pll_finder
from .tang_nano_9k import TANG_NANO_9K


class TangNano20KPlatform(GowinPlatform):
    """What the core needs of the board, by its schematic; amaranth-boards does not have it."""

    part = "GW2AR-LV18QN88C8/I7"
    family = "GW2AR-18C"
    default_clk = "clk27"
    resources = [
        Resource("clk27", 0, Pins("4", dir="i"), Clock(27e6), Attrs(IO_TYPE="LVCMOS33")),
        *ButtonResources(pins="88 87", attrs=Attrs(IO_TYPE="LVCMOS33")),
        *LEDResources(pins="15 16 17 18 19 20", invert=True, attrs=Attrs(IO_TYPE="LVCMOS33")),
        UARTResource(0, rx="70", tx="69", attrs=Attrs(IO_TYPE="LVCMOS33", PULL_MODE="UP")),
    ]
    connectors = []


TANG_NANO_20K = replace(TANG_NANO_9K, platform=TangNano20KPlatform, find_pll=pll_finder(GW2AR_18))
"""It has the same lights, button and serial port as the 9K."""
