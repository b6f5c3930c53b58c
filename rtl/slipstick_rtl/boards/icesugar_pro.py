"""iCESugar-Pro, a Colorlight i5's sister with the LFE5U-25F: one light of three colours."""

from dataclasses import replace
from typing import Any

from ..fpga.ecp5.cores import SMALL, SMALL_WITH_DRAM
from ..fpga.parts import ECP5_25F, Part
from ..toplevel.board import Board, Light, Programmer, Variant, WirePins, clocked


def _platform() -> Any:
    from amaranth_boards.icesugar_pro import ICESugarProPlatform

    return ICESugarProPlatform()


_CORE = clocked(SMALL, 100_000_000)
_CHIP = "MT48LC16M16"
_SDRAM = Variant(
    suffix="sdram",
    description="iCESugar-Pro with the 25F and its SDRAM",
    # LiteDRAM's controller is the slower part
    configuration=replace(clocked(SMALL_WITH_DRAM, 97_500_000), dram=_CHIP),
)

ICESUGAR_PRO = Board(
    name="icesugar-pro",
    description="iCESugar-Pro with the 25F",
    part=Part("LFE5U-25F", "CABGA256", 6, *ECP5_25F),
    platform=_platform,
    oscillator_hz=25_000_000,
    configuration=_CORE,
    variants=(_SDRAM,),
    dram=_CHIP,
    wires=(WirePins(wire="uart"),),
    lights=(
        Light(resource="rgb_led", signal="g", states=("running", "alive")),
        Light(resource="rgb_led", signal="b", states=("receiving", "sending")),
        Light(resource="rgb_led", signal="r", states=("line_error",)),
    ),
    programmer=Programmer(board="colorlight-i5", connect="connect the USB port of its base board"),
)

BOARDS = (ICESUGAR_PRO,)
