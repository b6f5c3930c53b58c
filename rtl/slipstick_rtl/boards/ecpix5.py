"""ECPIX-5 with two sizes of LFE5UM5G: FTDI's USB serial port, ULPI, Ethernet; SPI on PMOD 0."""

import importlib
from dataclasses import replace
from typing import Any

from ..config import Configuration
from ..fpga.ecp5.cores import (
    LARGE,
    LARGE_WITH_ROOM,
    MEDIUM,
    MEDIUM_WITH_PRODUCTS,
    SIXTEEN_LANES,
)
from ..fpga.parts import ECP5_45F, ECP5_85F, Part
from ..phy.wires.spi import PMOD_PINS
from ..toplevel.board import Board, Light, Programmer, Variant, WirePins, clocked

_CHIP = "MT41K256M16"
RGMII_PINS = {
    "rx_clk": "E11",
    "rx_ctl": "A11",
    "rx_data": "B11 A10 B10 A9",
    "tx_clk": "A12",
    "tx_ctl": "C9",
    "tx_data": "D8 C8 B8 A8",
    "rst_n": "C13",
}


def _board(
    size: str,
    counts: tuple[int, int, int],
    configuration: Configuration,
    slots: int,
    variants: tuple[Variant, ...] = (),
    hertz: int = 100_000_000,
) -> Board:
    """``slots`` are those of Ethernet: of 1 KiB each, as many as its block RAMs allow."""

    def platform() -> Any:
        return getattr(importlib.import_module("amaranth_boards.ecpix5"), f"ECPIX5{size}Platform")()

    return Board(
        name=f"ecpix5-{size}f",
        description=f"ECPIX-5 with the {size}F",
        part=Part(f"LFE5UM5G-{size}F", "CABGA554", 8, *counts),
        platform=platform,
        oscillator_hz=100_000_000,
        configuration=clocked(configuration, hertz),
        variants=variants,
        wires=(
            # the FT2232H can do 12 Mbaud, but these clocks cannot; they make 4 exactly
            WirePins(wire="uart", options={"baud": 4_000_000}),
            WirePins(
                wire="spi",
                pins=PMOD_PINS,
                connector=("pmod", 0),
                attributes={"IO_TYPE": "LVCMOS33", "PULLMODE": "UP"},
                note="PMOD 0",
            ),
            WirePins(wire="usb-hs", note="its USB-C port"),
            # the KSZ9031 delays what it sends, but not the clock that it is given
            WirePins(
                wire="rgmii",
                pins=RGMII_PINS,
                attributes={"IO_TYPE": "LVCMOS33"},
                options={"tx_delay": 2e-9, "rx_delay": 0.0, "slots": slots},
                note="its Ethernet port, 1 Gbit/s",
            ),
        ),
        lights=(
            Light(resource="rgb_led", number=0, signal="g", states=("alive",)),
            Light(resource="rgb_led", number=1, signal="g", states=("running",)),
            Light(resource="rgb_led", number=2, signal="b", states=("receiving",)),
            Light(resource="rgb_led", number=3, signal="b", states=("sending",)),
            Light(resource="rgb_led", number=0, signal="r", states=("line_error",)),
        ),
        button="rst",
        dram=_CHIP,
        programmer=Programmer(board="ecpix5"),
        notes=f"USB and Ethernet need block RAMs: ecpix5-{size}f-ethernet leaves them free.",
    )


_WITH_ROOM = Variant(
    suffix="ethernet",
    description="ECPIX-5 with the 85F: block RAMs left for Ethernet or USB",
    configuration=clocked(LARGE_WITH_ROOM, 130_000_000),
)

_SIXTEEN_LANES = Variant(
    suffix="16-lanes",
    description="ECPIX-5 with the 85F: convolutions faster, fully connected layers slower",
    configuration=clocked(SIXTEEN_LANES, 130_000_000),
)

_WITH_LOGIC = Variant(
    suffix="ethernet",
    description="ECPIX-5 with the 45F: logic left for Ethernet",
    # with eight lanes 87 % of the LUTs are taken, and no route was found
    configuration=replace(clocked(MEDIUM, 90_000_000), lanes=4),
)

_TRAINING = Variant(
    suffix="training",
    description="ECPIX-5 with the 85F, for training",
    configuration=replace(clocked(LARGE, 100_000_000), halved_tables=1, training=1),
)

_TRAINING_DDR3 = Variant(
    suffix="training-ddr3",
    description="ECPIX-5 with the 85F and its DDR3, for training",
    # maps and errors need more room than weights, and programs have many instructions; narrower
    # words of weights, shared tables and parameters among the weights take a step no cycle more,
    # and with 2 % of the look-up tables less, place and route finds its wires
    configuration=replace(
        clocked(LARGE, 110_000_000),
        training=1,
        dram=_CHIP,
        dram_clock_hz=100_000_000,
        activation_bytes=1 << 17,
        weight_bytes=1 << 17,
        weight_rows=2,
        ninth_bits=0,
        halved_tables=1,
        instruction_words=1 << 13,
    ),
)


def _ddr3(size: str, configuration: Configuration, hertz: int) -> Variant:
    return Variant(
        suffix="ddr3",
        description=f"ECPIX-5 with the {size}F and its DDR3",
        configuration=replace(clocked(configuration, hertz), dram=_CHIP, dram_clock_hz=100_000_000),
    )


BOARDS = (
    _board(
        "45", ECP5_45F, MEDIUM, 4, (_WITH_LOGIC, _ddr3("45", MEDIUM_WITH_PRODUCTS, 100_000_000))
    ),
    _board(
        "85",
        ECP5_85F,
        LARGE,
        8,
        (_SIXTEEN_LANES, _WITH_ROOM, _TRAINING, _ddr3("85", LARGE, 112_500_000), _TRAINING_DDR3),
        140_000_000,
    ),
)
