"""Tang Nano 9K with the GW1NR-9C: USB serial port of its programmer, six lights."""

from amaranth_boards.tang_nano_9k import TangNano9kPlatform

from ..fpga.gowin.clock import GW1NR_9, GowinClock, pll_finder
from ..phy.board_phy import uart
from .board import Board, Light

TANG_NANO_9K = Board(
    platform=TangNano9kPlatform,
    find_pll=pll_finder(GW1NR_9),
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
