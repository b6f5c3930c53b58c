"""iCEBreaker with the iCE40UP5K: FTDI's USB serial port, two lights; SPI on PMOD 1A."""

from typing import Any

from ..fpga.ice40.cores import UP5K
from ..fpga.parts import Part
from ..phy.wires.spi import PMOD_PINS
from ..toplevel.board import Board, Light, Programmer, WirePins, clocked


def _platform() -> Any:
    from amaranth_boards.icebreaker import ICEBreakerPlatform

    return ICEBreakerPlatform()


ICEBREAKER = Board(
    name="icebreaker",
    description="iCEBreaker: ResNet-8 in SPRAM",
    part=Part("iCE40UP5K", "SG48", 0, 5_280, 30, 8, 4 * 32_768),
    platform=_platform,
    oscillator_hz=12_000_000,
    configuration=clocked(UP5K, 24_000_000),
    wires=(
        # the FT2232H can do more; a bit has 6 cycles of this clock
        WirePins(wire="uart", options={"baud": 4_000_000}),
        WirePins(
            wire="spi",
            pins=PMOD_PINS,
            connector=("pmod", 0),
            attributes={"IO_STANDARD": "SB_LVCMOS", "PULLUP": 1},
            note="PMOD 1A",
        ),
    ),
    lights=(
        Light(resource="led_g", states=("running", "receiving", "alive")),
        Light(resource="led_r", states=("line_error",)),
    ),
    button="button",
    programmer=Programmer(board="ice40_generic", volatile=False),
)

BOARDS = (ICEBREAKER,)
