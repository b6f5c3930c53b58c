"""OrangeCrab r0.2 with the LFE5U-85F: a light of three colours, USB pins of its own."""

from typing import Any

from ..fpga.ecp5.cores import LARGE
from ..fpga.parts import ECP5_85F, Part
from ..toplevel.board import Board, Light, Programmer, WirePins, clocked

_ATTRIBUTES = {"IO_TYPE": "LVCMOS33", "PULLMODE": "UP"}


def _platform() -> Any:
    from amaranth_boards.orangecrab_r0_2 import OrangeCrabR0_2_85FPlatform

    return OrangeCrabR0_2_85FPlatform()


ORANGECRAB_85F = Board(
    name="orangecrab-85f",
    description="OrangeCrab with the 85F",
    part=Part("LFE5U-85F", "CSFBGA285", 8, *ECP5_85F),
    platform=_platform,
    oscillator_hz=48_000_000,
    # 100 MHz is nothing that the PLL makes of 48 MHz
    configuration=clocked(LARGE, 96_000_000),
    wires=(
        WirePins(
            wire="uart",
            pins={"rx": "0", "tx": "1"},
            connector=("io", 0),
            attributes=_ATTRIBUTES,
            note="header: 0 (RX), 1 (TX)",
        ),
        WirePins(
            wire="spi",
            pins={"sck": "sck", "chip_select_n": "10", "mosi": "copi", "miso": "cipo"},
            connector=("io", 0),
            attributes=_ATTRIBUTES,
            note="header: the pins of these names, 10 (select)",
        ),
        WirePins(wire="usb", note="its only port"),
    ),
    lights=(
        Light(resource="rgb_led", signal="g", states=("running", "alive")),
        Light(resource="rgb_led", signal="b", states=("receiving", "sending")),
        Light(resource="rgb_led", signal="r", states=("line_error",)),
    ),
    button="button",
    programmer=Programmer(
        board="orangeCrab",
        volatile=False,
        connect="hold its button down while you connect its USB port, so that its bootloader runs",
    ),
    notes="The PLL cannot make 100 MHz of this oscillator within its limits.",
)

BOARDS = (ORANGECRAB_85F,)
