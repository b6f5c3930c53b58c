"""LiteDRAM's controller as one Verilog file, made when a design is.

Taken from LiteDRAM are controller, bank machines, refresh and crossbar. Around them are parts of
this project, which are small: ``SdrPins`` (a register per pin) and ``SdrInitialiser`` (the commands
after power-up). LiteDRAM leaves those commands to a processor or a host.
"""

from dataclasses import dataclass
from functools import cache

from ..primitives.migen_cores import core_verilog, require_core
from .chips import SdrChip


@dataclass(frozen=True, kw_only=True)
class LiteDramSettings:
    """Holds the settings that a controller is generated from.

    Parameters
    ----------
    chip : SdrChip
    hertz : int
        Of the clock of controller and chip.
    """

    chip: SdrChip
    hertz: int

    def __post_init__(self) -> None:
        if not 20_000_000 <= self.hertz <= 200_000_000:
            raise ValueError(f"hertz must be within 20..200 million, not {self.hertz}")

    @property
    def name(self) -> str:
        """Returns the name of the Verilog module."""
        return f"litedram_{self.chip.name.lower()}_{self.hertz}"

    @property
    def cas_latency(self) -> int:
        """Cycles from READ to data at the chip."""
        return self.chip.cas_latency(self.hertz)

    @property
    def refresh_cycles(self) -> int:
        """Cycles from one REFRESH to the next, a hundredth less than the chip allows.

        LiteDRAM itself rounds up: then some rows would not get theirs within 64 ms.
        """
        interval = self.chip.refresh_ms * 1e-3 / self.chip.rows
        return int(0.99 * interval * self.hertz)

    @property
    def read_latency(self) -> int:
        """Cycles from the controller's READ to its data: there are registers both ways."""
        return self.cas_latency + 2


@cache
def litedram_verilog(settings: LiteDramSettings) -> str:
    """Returns the Verilog of a controller, whose top is ``settings.name``.

    Raises
    ------
    ImportError
        If LiteDRAM is not installed; the message says how to install it.
    """
    require_core("litedram", ("litedram.core.controller",), purpose="DRAM", extra="dram")

    def make() -> str:
        from .litedram_core import convert

        return convert(settings)

    return core_verilog(make)
