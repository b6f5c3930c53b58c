"""iCEBreaker with the iCE40UP5K: FTDI's USB serial port, two lights."""

from amaranth_boards.icebreaker import ICEBreakerPlatform

from .board import Board, Light
from .clock_ice40 import Ice40Clock, find_pll
from .links import uart

ICEBREAKER = Board(
    platform=ICEBreakerPlatform,
    find_pll=find_pll,
    clock=Ice40Clock,
    lights=(
        Light(resource="led_g", states=("running", "receiving", "alive")),
        Light(resource="led_r", states=("line_error",)),
    ),
    links={"uart": uart()},
    button="button",
)
