"""Tang Nano 20K with the GW2AR-18C: USB serial port of its programmer, six lights."""

from typing import Any

from ..fpga.gowin.cores import GW2A
from ..fpga.parts import Part
from ..toplevel.board import Board, Light, Programmer, WirePins, clocked


def _platform() -> Any:
    """Makes the platform by the board's schematic; amaranth-boards does not have it."""
    from amaranth.build import Attrs, Clock, Pins, Resource
    from amaranth.vendor import GowinPlatform
    from amaranth_boards.resources import ButtonResources, LEDResources

    class TangNano20KPlatform(GowinPlatform):
        part = "GW2AR-LV18QN88C8/I7"
        family = "GW2AR-18C"
        default_clk = "clk27"
        resources = [
            Resource("clk27", 0, Pins("4", dir="i"), Clock(27e6), Attrs(IO_TYPE="LVCMOS33")),
            *ButtonResources(pins="88 87", attrs=Attrs(IO_TYPE="LVCMOS33")),
            *LEDResources(pins="15 16 17 18 19 20", invert=True, attrs=Attrs(IO_TYPE="LVCMOS33")),
        ]
        connectors = []

    return TangNano20KPlatform()


TANG_NANO_20K = Board(
    name="tang-nano-20k",
    description="Tang Nano 20K: DS-CNN on the chip",
    part=Part("GW2AR-18C", "GW2AR-LV18QN88C8/I7", 8, 20_736, 46, 96),
    platform=_platform,
    oscillator_hz=27_000_000,
    configuration=clocked(GW2A, 54_000_000),
    wires=(
        WirePins(
            wire="uart",
            pins={"rx": "70", "tx": "69"},
            attributes={"IO_TYPE": "LVCMOS33", "PULL_MODE": "UP"},
            # the BL702's fastest
            options={"baud": 3_000_000},
        ),
    ),
    lights=(
        Light(number=0, states=("alive",)),
        Light(number=1, states=("running",)),
        Light(number=2, states=("receiving",)),
        Light(number=3, states=("sending",)),
        Light(number=5, states=("line_error",)),
    ),
    button="button",
    programmer=Programmer(board="tangnano20k"),
)

BOARDS = (TANG_NANO_20K,)
