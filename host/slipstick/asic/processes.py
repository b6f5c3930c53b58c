"""Open processes that shuttles run, as far as a die's size can be told without their libraries."""

from collections.abc import Mapping
from dataclasses import dataclass

from .macros import Macro


@dataclass(frozen=True)
class Process:
    """Names of a process, and the areas from which a die is estimated.

    Parameters
    ----------
    name : str
    librelane : str
        Pattern of its names in LibreLane's configuration.
    openroad : str
        Its platform in OpenROAD-flow-scripts.
    cells : mapping of float
        Square micrometres of the smallest cell for each of Yosys' gates.
    stored_bit : float
        Square micrometres of cells for a bit of a memory of flip-flops: a flip-flop, a choice that
        holds or writes, and three quarters of a choice that reads.
    macro_bit, macro_fixed : float
        Square micrometres of a macro with one port: for each bit, and besides.
    second_port : float
        Factor of a macro with two ports.
    """

    name: str
    librelane: str
    openroad: str
    cells: Mapping[str, float]
    stored_bit: float
    macro_bit: float
    macro_fixed: float
    second_port: float

    def macro_area(self, macro: Macro) -> float:
        """Square micrometres of a memory macro, without a halo."""
        area = self.macro_fixed + self.macro_bit * macro.size
        return area * (self.second_port if macro.ports > 1 else 1.0)


def _cells(inverter: float, nand: float, three: float, xor: float, mux: float, flip_flop: float):
    """Areas by the names of Yosys' gates."""
    return {
        "$_NOT_": inverter,
        "$_NAND_": nand,
        "$_NOR_": nand,
        "$_AOI3_": three,
        "$_OAI3_": three,
        "$_XOR_": xor,
        "$_XNOR_": xor,
        "$_MUX_": mux,
        "$_DFF_P_": flip_flop,
    }


PROCESSES = (
    Process(
        # sky130_fd_sc_hd: inv_1, nand2_1, a21oi_1, xor2_1, mux2_1, dfxtp_1. Macros by the sizes of
        # sky130_sram_1kbyte_1rw1r_32x256_8 and sky130_sram_2kbyte_1rw1r_32x512_8, which have two
        # ports; there are none with one
        name="sky130",
        librelane="sky130*",
        openroad="sky130hd",
        cells=_cells(3.7536, 3.7536, 5.0048, 8.7584, 11.2608, 20.0192),
        stored_bit=20.0192 + 1.75 * 11.2608,
        macro_bit=11.453,
        macro_fixed=96_889.0,
        second_port=1.0,
    ),
    Process(
        # sg13g2_stdcell: inv_1, nand2_1, a21oi_1, xor2_1, mux2_1, dfrbpq_1. Macros by the sizes of
        # RM_IHPSG13_1P_256x8_c3 (236.80 x 74.10 um) and 1P_1024x16_c2 (236.80 x 336.46 um); those
        # with two ports by RM_IHPSG13_2P_64x22_c2 (39,383.9 um2)
        name="ihp-sg13g2",
        librelane="ihp-sg13g2*",
        openroad="ihp-sg13g2",
        cells=_cells(5.4432, 7.2576, 9.072, 14.5152, 18.144, 48.9888),
        stored_bit=48.9888 + 1.75 * 18.144,
        macro_bit=4.3337,
        macro_fixed=8_671.6,
        second_port=2.668,
    ),
)
