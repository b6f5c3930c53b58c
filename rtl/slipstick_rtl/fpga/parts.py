"""The FPGAs: their names in the tools, and the resources that their vendors sell."""

from dataclasses import dataclass

FAMILIES = {"LFE5U": "ECP5", "iCE40": "iCE40", "GW": "Gowin"}
"""Families by how the names of their devices begin."""


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

    @property
    def family(self) -> str:
        """One of the values of ``FAMILIES``.

        Raises
        ------
        ValueError
            If the device is of none of them.
        """
        for prefix, family in FAMILIES.items():
            if self.device.startswith(prefix):
                return family
        raise ValueError(
            f"part must begin with one of {', '.join(FAMILIES)}, which the open tools know,"
            f" not {self.device}"
        )


ECP5_12F = (12_000, 32, 28)
"""LUTs, block RAMs, multipliers. The die is a 25F's, and the open tools would use all of it."""
ECP5_12F_DIE = (24_288, 32, 28)
"""The same with all look-up tables of the die."""
ECP5_25F = (24_288, 56, 28)
ECP5_45F = (43_848, 108, 72)
ECP5_85F = (83_640, 208, 156)
