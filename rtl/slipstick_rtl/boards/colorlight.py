"""Colorlight 5A-75B, a controller of LED panels with the LFE5U-25F: Ethernet of 1 Gbit/s."""

from dataclasses import replace
from typing import Any

from ..fpga.ecp5.cores import SMALL_WITH_ROOM
from ..fpga.parts import ECP5_25F, Part
from ..toplevel.board import Board, Programmer, Variant, WirePins, clocked


def _platform() -> Any:
    from amaranth_boards.colorlight_5a75b_r7_0 import Colorlight_5A75B_R70Platform

    return Colorlight_5A75B_R70Platform()


_CORE = clocked(SMALL_WITH_ROOM, 75_000_000)
_CHIPS = "M12L16161A"
_SDRAM = Variant(
    suffix="sdram",
    description="Colorlight 5A-75B V7.0 with the LFE5U-25F and its SDRAM",
    configuration=replace(_CORE, dram=_CHIPS),
)

COLORLIGHT_5A75B = Board(
    name="colorlight-5a75b",
    description="Colorlight 5A-75B V7.0 with the LFE5U-25F",
    part=Part("LFE5U-25F", "CABGA256", 6, *ECP5_25F),
    platform=_platform,
    oscillator_hz=25_000_000,
    configuration=_CORE,
    variants=(_SDRAM,),
    dram=_CHIPS,
    wires=(
        # the B50612D delays the clock that it is given, but not what it sends
        WirePins(
            wire="rgmii",
            pins={
                "rx_clk": "M1",
                "rx_ctl": "N6",
                "rx_data": "N1 M5 N5 M6",
                "tx_clk": "M2",
                "tx_ctl": "M3",
                "tx_data": "L1 L3 P2 L4",
                "rst_n": "P5",
            },
            attributes={"IO_TYPE": "LVCMOS33"},
            options={"tx_delay": 0.0, "rx_delay": 2e-9},
            note="the first of its Ethernet ports, 1 Gbit/s",
        ),
        WirePins(wire="uart", options={"baud": 3_000_000}, note="J19: DATA_LED- (TX), KEY+ (RX)"),
    ),
    # its only light and button are the pins of the UART
    programmer=Programmer(
        board="colorlight", connect="connect a JTAG adapter to its pins J27, J31, J32 and J30"
    ),
    notes="Pins of revision V7.0. Level shifters make all its connectors outputs, but for J19.",
)

BOARDS = (COLORLIGHT_5A75B,)
