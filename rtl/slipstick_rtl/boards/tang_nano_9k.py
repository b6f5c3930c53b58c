"""Tang Nano 9K with the GW1NR-9C: USB serial port of its programmer, six lights."""

from typing import Any

from ..fpga.gowin.cores import GW1N
from ..fpga.parts import Part
from ..toplevel.board import Board, Light, Programmer, WirePins, clocked


def _platform() -> Any:
    from amaranth_boards.tang_nano_9k import TangNano9kPlatform

    return TangNano9kPlatform()


TANG_NANO_9K = Board(
    name="tang-nano-9k",
    description="Tang Nano 9K",
    part=Part("GW1NR-9C", "GW1NR-LV9QN88PC6/I5", 6, 8_640, 26, 40),
    platform=_platform,
    oscillator_hz=27_000_000,
    configuration=clocked(GW1N, 27_000_000),
    # the BL702's fastest
    wires=(WirePins(wire="uart", options={"baud": 3_000_000}),),
    lights=(
        Light(number=0, states=("alive",)),
        Light(number=1, states=("running",)),
        Light(number=2, states=("receiving",)),
        Light(number=3, states=("sending",)),
        Light(number=5, states=("line_error",)),
    ),
    button="button",
    programmer=Programmer(board="tangnano9k"),
)

BOARDS = (TANG_NANO_9K,)
