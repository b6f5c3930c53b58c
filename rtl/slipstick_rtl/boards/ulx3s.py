"""ULX3S: LFE5U of four sizes, FTDI's USB serial chip, SPI or RMII on J1, USB on US2."""

import importlib
from dataclasses import replace
from typing import Any

from ..config import Configuration
from ..fpga.ecp5.cores import (
    LARGE,
    LARGE_LNS,
    LARGE_LNS5,
    LARGE_WITH_ROOM,
    MEDIUM,
    MEDIUM_WITH_PRODUCTS,
    SIXTEEN_LANES,
    SMALL,
    SMALL_WITH_DRAM,
    TINY,
)
from ..fpga.parts import ECP5_12F, ECP5_12F_DIE, ECP5_25F, ECP5_45F, ECP5_85F, Part
from ..toplevel.board import Board, Light, Programmer, Variant, WirePins, clocked

_HZ = 100_000_000
_CHIP = "MT48LC16M16"
_DRAM_HZ = 97_500_000
"""Clock that LiteDRAM's controller reaches on this speed grade."""
_LARGE_DRAM_HZ = 92_187_500
"""... where the rest of the chip is three quarters full; with seed 2, see the report."""


def _part(size: str, counts: tuple[int, int, int]) -> Part:
    return Part(f"LFE5U-{size}", "CABGA381", 6, *counts)


def _board(
    size: str,
    counts: tuple[int, int, int],
    configuration: Configuration,
    remark: str = "",
    variants: tuple[Variant, ...] = (),
    notes: str = "",
) -> Board:
    def platform() -> Any:
        return getattr(importlib.import_module("amaranth_boards.ulx3s"), f"ULX3S_{size}_Platform")()

    return Board(
        name=f"ulx3s-{size.lower()}",
        description=f"ULX3S with the LFE5U-{size}{remark}",
        part=_part(size, counts),
        platform=platform,
        oscillator_hz=25_000_000,
        configuration=clocked(configuration, _HZ),
        variants=variants,
        wires=(
            WirePins(wire="uart", options={"baud": 3_000_000}, note="US1"),  # FT231X's fastest
            WirePins(
                wire="spi",
                pins={"sck": "0+", "chip_select_n": "0-", "mosi": "1+", "miso": "1-"},
                connector=("gpio", 0),
                attributes={"IO_TYPE": "LVCMOS33", "PULLMODE": "UP"},
                note="J1: GP0 (SCK), GN0 (select), GP1 (MOSI), GN1 (MISO)",
            ),
            WirePins(wire="usb", note="US2"),
            WirePins(
                wire="rmii",
                # GP12 is the one that can be a clock; SPI is at the other end
                pins={
                    "ref_clk": "12+",
                    "crs_dv": "11+",
                    "rx_data": "11- 10+",
                    "tx_en": "10-",
                    "tx_data": "9+ 9-",
                    "rst_n": "13+",
                },
                connector=("gpio", 0),
                attributes={"IO_TYPE": "LVCMOS33"},
                note=(
                    "J1, a module with LAN8720: GP12 (nINT/RETCLK), GP11 (CRS), GN11 (RX0),"
                    " GP10 (RX1), GN10 (TX-EN), GP9 (TX0), GN9 (TX1), and GP13 (reset) if it has"
                    " it; 3.3 V; the ESP32 has GP11 and GP12 as well, and must leave them alone"
                ),
            ),
        ),
        lights=(
            Light(number=0, states=("alive",)),
            Light(number=1, states=("running",)),
            Light(number=2, states=("receiving",)),
            Light(number=3, states=("sending",)),
            Light(number=7, states=("line_error",)),
        ),
        button="button_pwr",
        dram=_CHIP,
        programmer=Programmer(board="ulx3s", connect="connect its port US1 to this computer"),
        bare_clock_site="G2",
        notes=notes,
    )


def _sdram(
    size: str, configuration: Configuration, remark: str = "", hertz: int = _DRAM_HZ
) -> Variant:
    return Variant(
        suffix="sdram",
        description=f"ULX3S with the LFE5U-{size} and its SDRAM{remark}",
        configuration=replace(clocked(configuration, hertz), dram=_CHIP),
        part=_part("12F", ECP5_12F_DIE) if size == "12F" else None,
    )


_LNS6 = Variant(
    suffix="lns6",
    description="ULX3S with the LFE5U-85F: logarithms of 6 bits",
    configuration=clocked(LARGE_LNS, 100_000_000),
)

_LNS5 = Variant(
    suffix="lns5",
    description="ULX3S with the LFE5U-85F: logarithms of 5 bits, 768 elements",
    configuration=clocked(LARGE_LNS5, 100_000_000),
)

_SIXTEEN_LANES = Variant(
    suffix="16-lanes",
    description="ULX3S with the LFE5U-85F: convolutions faster, fully connected layers slower",
    configuration=clocked(SIXTEEN_LANES, 100_000_000),
)

_ETHERNET = Variant(
    suffix="ethernet",
    description="ULX3S with the LFE5U-85F: logic left for Ethernet",
    configuration=clocked(LARGE_WITH_ROOM, 80_000_000),
)

BOARDS = (
    _board(
        "12F",
        ECP5_12F,
        TINY,
        variants=(_sdram("12F", TINY, ": some more LUTs than are sold"),),
        notes=(
            "The die is a 25F's; the configuration keeps to the LUTs and block RAMs sold. With"
            " SDRAM it takes 4 % more LUTs than that."
        ),
    ),
    _board("25F", ECP5_25F, SMALL, variants=(_sdram("25F", SMALL_WITH_DRAM),)),
    _board("45F", ECP5_45F, MEDIUM, variants=(_sdram("45F", MEDIUM_WITH_PRODUCTS),)),
    _board(
        "85F",
        ECP5_85F,
        LARGE,
        ": ResNet-8 on the chip",
        (_SIXTEEN_LANES, _LNS6, _LNS5, _ETHERNET, _sdram("85F", LARGE, hertz=_LARGE_DRAM_HZ)),
    ),
)
