"""LiteDRAM's controller as one Verilog file, made when a design is.

Taken from LiteDRAM are controller, bank machines, refresh and crossbar. Around them are parts of
this project, which are small: ``SdrPins`` (a register per pin) and ``SdrInitialiser`` (the commands
after power-up). LiteDRAM leaves those commands to a processor or a host.
"""

import importlib
import warnings
from dataclasses import dataclass
from functools import cache

from .chips import SdrChip


@dataclass(frozen=True, kw_only=True)
class LiteDramSettings:
    """What a controller is made from.

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
        """Of the Verilog module."""
        return f"litedram_{self.chip.name.lower()}_{self.hertz}"

    @property
    def cas_latency(self) -> int:
        """Cycles from READ to data at the chip."""
        return self.chip.cas_latency(self.hertz)

    @property
    def refresh_cycles(self) -> int:
        """From one REFRESH to the next, a hundredth less than the chip allows.

        LiteDRAM itself rounds up: then some rows would not get theirs within 64 ms.
        """
        interval = self.chip.refresh_ms * 1e-3 / self.chip.rows
        return int(0.99 * interval * self.hertz)

    @property
    def read_latency(self) -> int:
        """Cycles from the controller's READ to its data: there are registers both ways."""
        return self.cas_latency + 2


def check_litedram() -> None:
    """Raises ImportError, with how to install it, if LiteDRAM, LiteX or Migen is missing."""
    try:
        with warnings.catch_warnings():
            # invalid escape sequences and such
            warnings.simplefilter("ignore")
            importlib.import_module("litedram.core.controller")
    except ModuleNotFoundError as error:
        raise ImportError(
            f"DRAM needs the Python package litedram ({error}): pip install 'slipstick[dram]'",
            name="litedram",
        ) from error


@cache
def litedram_verilog(settings: LiteDramSettings) -> str:
    """Returns the Verilog of a controller, whose top is ``settings.name``.

    Raises
    ------
    ImportError
        If LiteDRAM is not installed; the message says how to install it.
    """
    check_litedram()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from .litedram_core import convert

        text = convert(settings)
    # before and after the module stands when it was made, and by which commit of what folder
    return text[text.index("`timescale") : text.rindex("endmodule")] + "endmodule\n"
