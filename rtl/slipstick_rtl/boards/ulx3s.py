"""ULX3S: LFE5U of four sizes, FTDI's USB serial chip, eight lights."""

from collections.abc import Callable
from typing import Any

from amaranth_boards.ulx3s import (
    ULX3S_12F_Platform,
    ULX3S_25F_Platform,
    ULX3S_45F_Platform,
    ULX3S_85F_Platform,
)

from .board import Board, Light
from .clock_ecp5 import Ecp5Clock, find_pll
from .links import uart


def _board(platform: Callable[[], Any]) -> Board:
    return Board(
        platform=platform,
        find_pll=find_pll,
        clock=Ecp5Clock,
        lights=(
            Light(number=0, states=("alive",)),
            Light(number=1, states=("running",)),
            Light(number=2, states=("receiving",)),
            Light(number=3, states=("sending",)),
            Light(number=7, states=("line_error",)),
        ),
        links={"uart": uart()},
        button="button_pwr",
    )


ULX3S_12F = _board(ULX3S_12F_Platform)
ULX3S_25F = _board(ULX3S_25F_Platform)
ULX3S_45F = _board(ULX3S_45F_Platform)
ULX3S_85F = _board(ULX3S_85F_Platform)
