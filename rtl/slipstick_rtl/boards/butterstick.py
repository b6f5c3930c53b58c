"""ButterStick with the LFE5UM5G-85F: USB at high speed, supplies that the FPGA sets."""

from typing import Any

from ..fpga.ecp5.cores import LARGE_WITH_ROOM
from ..fpga.parts import ECP5_85F, Part
from ..toplevel.board import Board, WirePins, clocked
from ..toplevel.supplies import AdjustableSupplies


def _platform() -> Any:
    from amaranth_boards.butterstick import ButterStickPlatform

    return ButterStickPlatform(VCCIOA="1V2", VCCIOB="1V2", VCCIOC="3V3")


SUPPLIES = AdjustableSupplies(
    # no pin of the SYZYGY ports is in use: the lowest voltage, which no module minds; the ULPI chip
    # and its bank work from 1.8 V to 3.3 V
    volts=(1.2, 1.2, 3.3),
    resource="vccio_ctrl",
    reference_volts=0.6,
    pin_volts=3.3,
    injection_ohms=68_000,
    feedback_ohms=53_600,
    set_ohms=13_000,
    filter_farads=0.1e-6,
    soft_start_seconds=1e-3,
)
"""The parts of the schematic, as amaranth-boards has them."""

BUTTERSTICK = Board(
    name="butterstick",
    description="ButterStick with the 85F",
    part=Part("LFE5UM5G-85F", "CABGA381", 8, *ECP5_85F),
    platform=_platform,
    oscillator_hz=30_000_000,
    # LARGE and USB's queues need 209 of 208 block RAMs
    configuration=clocked(LARGE_WITH_ROOM, 100_000_000),
    wires=(
        # the chip takes its clock from the FPGA, and its supply is one that the FPGA sets
        WirePins(
            wire="usb-hs",
            resource="usb",
            driven=("clk",),
            options={"reset_milliseconds": 100},
            note="its USB-C port",
        ),
    ),
    button="button",
    supplies=SUPPLIES,
    notes="The FPGA sets the voltages of the SYZYGY ports (1.2 V) and of the ULPI chip (3.3 V).",
)

BOARDS = (BUTTERSTICK,)
