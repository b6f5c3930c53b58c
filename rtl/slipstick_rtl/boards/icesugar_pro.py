"""iCESugar-Pro, a Colorlight i5's sister with the LFE5U-25F: one light of three colours."""

from amaranth_boards.icesugar_pro import ICESugarProPlatform

from ..fpga.ecp5.clock import Ecp5Clock, find_pll
from ..phy.board_phy import uart
from .board import Board, Light

ICESUGAR_PRO = Board(
    platform=ICESugarProPlatform,
    find_pll=find_pll,
    clock=Ecp5Clock,
    lights=(
        Light(resource="rgb_led", signal="g", states=("running", "alive")),
        Light(resource="rgb_led", signal="b", states=("receiving", "sending")),
        Light(resource="rgb_led", signal="r", states=("line_error",)),
    ),
    links={"uart": uart()},
)
