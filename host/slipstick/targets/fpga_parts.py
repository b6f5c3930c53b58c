"""The FPGAs of the boards: what they are called, and how much their vendors sell of what."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """An FPGA as place and route knows it, and its size.

    Parameters
    ----------
    device : str
        The vendor's name without package and speed.
    package : str
    speed : int
        Speed grade; on ECP5 6 is the slowest. Gowin's is in the package's name.
    luts : int
        Look-up tables of 4 inputs, as many as the vendor sells.
    block_rams : int
        On ECP5, EBRs of 18 kbit: 2 KiB in bytes of 8 bits.
    multipliers : int
        On ECP5, 18 x 18-bit multipliers; on Gowin, which has them as two halves each, 9 x 9-bit.
    large_ram_bytes : int
        RAM of larger blocks besides: on iCE40UP, 4 SPRAMs of 32 KiB.
    """

    device: str
    package: str
    speed: int
    luts: int
    block_rams: int
    multipliers: int
    large_ram_bytes: int = 0


_12F = (12_000, 32, 28)
"""LUTs, block RAMs, multipliers. The die is a 25F's, and the open tools would use all of it."""
_25F = (24_288, 56, 28)
_45F = (43_848, 108, 72)
_85F = (83_640, 208, 156)

ULX3S_12F = Part("LFE5U-12F", "CABGA381", 6, *_12F)
ULX3S_25F = Part("LFE5U-25F", "CABGA381", 6, *_25F)
ULX3S_45F = Part("LFE5U-45F", "CABGA381", 6, *_45F)
ULX3S_85F = Part("LFE5U-85F", "CABGA381", 6, *_85F)
ORANGECRAB_85F = Part("LFE5U-85F", "CSFBGA285", 8, *_85F)
ECPIX5_45F = Part("LFE5UM5G-45F", "CABGA554", 8, *_45F)
ECPIX5_85F = Part("LFE5UM5G-85F", "CABGA554", 8, *_85F)
ICESUGAR_PRO = Part("LFE5U-25F", "CABGA256", 6, *_25F)
ICEBREAKER = Part("iCE40UP5K", "SG48", 0, 5_280, 30, 8, 4 * 32_768)
TANG_NANO_9K = Part("GW1NR-9C", "GW1NR-LV9QN88PC6/I5", 6, 8_640, 26, 40)
TANG_NANO_20K = Part("GW2AR-18C", "GW2AR-LV18QN88C8/I7", 8, 20_736, 46, 96)
