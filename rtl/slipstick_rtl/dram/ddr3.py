"""LiteDRAM's controller for DDR3 and its PHY for the ECP5, each as one Verilog file.

Taken from LiteDRAM are controller, bank machines, refresh, crossbar and PHY. What LiteDRAM leaves
to a processor, the commands after power-up and the read levelling, are parts of this project.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from ..primitives.migen_cores import core_verilog, require_core
from .chips import DDR3_RANGE_HZ, Ddr3Chip

PHASES = 2
"""Cycles of the chip's clock in one of the controller's."""
_PHY_READ_CYCLES = 10
"""Controller's cycles that the PHY's registers add to a READ: LiteDRAM's ``ECP5DDRPHY``."""


@dataclass(frozen=True, kw_only=True)
class Ddr3Settings:
    """Holds the settings that controller and PHY are generated from.

    Parameters
    ----------
    chip : Ddr3Chip
    hertz : int
        Of the controller's clock; the chip's is ``PHASES`` times as fast.
    """

    chip: Ddr3Chip
    hertz: int

    def __post_init__(self) -> None:
        least, most = DDR3_RANGE_HZ
        if not least <= self.hertz <= most:
            bounds = f"{least // 10**6}..{most // 10**6} million"
            raise ValueError(f"hertz must be within {bounds}, not {self.hertz}")

    @property
    def name(self) -> str:
        """Returns the name of the controller's Verilog module."""
        return f"litedram_{self.chip.name.lower()}_{self.hertz}"

    @property
    def phy_name(self) -> str:
        """Returns the name of the PHY's Verilog module."""
        return f"{self.name}_phy"

    @property
    def chip_hertz(self) -> int:
        """The chip's clock."""
        return PHASES * self.hertz

    @property
    def word_bits(self) -> int:
        """Counts the bits that one READ or WRITE moves."""
        return self.chip.BURST * self.chip.data_bits

    @property
    def word_address_bits(self) -> int:
        """Counts the bits of the address of a word of ``word_bits``."""
        return self.chip.word_address_bits - (self.chip.BURST.bit_length() - 1)

    @property
    def read_phase(self) -> int:
        """Phase in which READs are given: their data begin with a cycle of the controller."""
        return -self.chip.cas_latency % PHASES

    @property
    def write_phase(self) -> int:
        """The same for WRITEs."""
        return -self.chip.cas_write_latency % PHASES

    @property
    def read_latency(self) -> int:
        """Cycles from the controller's READ to its data."""
        return -(-self.chip.cas_latency // PHASES) + _PHY_READ_CYCLES

    @property
    def write_latency(self) -> int:
        """Cycles from the controller's WRITE to its data."""
        return -(-self.chip.cas_write_latency // PHASES)

    @property
    def refresh_cycles(self) -> int:
        """Cycles from one REFRESH to the next, a hundredth less than the chip allows."""
        return int(0.99e-9 * self.chip.refresh_ns * self.hertz)

    def cycles(self, time: str) -> int:
        """Controller's cycles of one of the chip's times, by its name.

        The first command may be in the last phase of its cycle, and the second in the first.
        """
        return -(-(self.chip.chip_cycles(time, self.chip_hertz) + PHASES - 1) // PHASES)


@cache
def ddr3_verilog(settings: Ddr3Settings) -> str:
    """Returns the Verilog of a controller, whose top is ``settings.name``.

    Raises
    ------
    ImportError
        If LiteDRAM is not installed; the message says how to install it.
    """

    def make() -> str:
        from .ddr3_core import convert_controller

        return convert_controller(settings)

    return _verilog(make)


@cache
def ddr3_phy_verilog(settings: Ddr3Settings) -> str:
    """Returns the Verilog of a PHY, whose top is ``settings.phy_name``.

    Raises
    ------
    ImportError
        If LiteDRAM is not installed; the message says how to install it.
    """

    def make() -> str:
        from .ddr3_core import convert_phy

        return convert_phy(settings)

    return _verilog(make)


def _verilog(make: Callable[[], str]) -> str:
    modules = ("litedram.core.controller", "litedram.phy.ecp5ddrphy")
    require_core("litedram", modules, purpose="DRAM", extra="dram")
    return _without_doubles(core_verilog(make))


def _without_doubles(text: str) -> str:
    """LiteX prints what is assigned to several signals at once as often as there are signals."""
    lines, seen = list[str](), set[str]()
    for line in text.splitlines(keepends=True):
        if line.startswith("assign {"):
            if line in seen:
                continue
            seen.add(line)
        lines.append(line)
    return "".join(lines)
