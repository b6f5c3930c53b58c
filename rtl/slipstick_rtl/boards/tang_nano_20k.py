"""Tang Nano 20K with the GW2AR-18C: USB serial port of its programmer, six lights."""

from amaranth.build import Attrs, Clock, Pins, Resource
from amaranth.vendor import GowinPlatform
from amaranth_boards.resources import ButtonResources, LEDResources, UARTResource

from .board import Board, Light
from .clock_gowin import GW2AR_18, GowinClock, pll_finder
from .links import uart


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


TANG_NANO_20K = Board(
    platform=TangNano20KPlatform,
    find_pll=pll_finder(GW2AR_18),
    clock=GowinClock,
    lights=(
        Light(number=0, states=("alive",)),
        Light(number=1, states=("running",)),
        Light(number=2, states=("receiving",)),
        Light(number=3, states=("sending",)),
        Light(number=5, states=("line_error",)),
    ),
    links={"uart": uart()},
    button="button",
)
