"""SDR SDRAM on the pins of a board."""

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import io, wiring
from amaranth.lib.wiring import In

from .chips import SdrChip
from .sdr_signals import SdrSignature

LATE_DOMAIN = "dram"
"""Its clock goes to the chips; ``BoardClock.late`` drives it."""

_RESOURCE = "sdram"


class SdrPins(wiring.Component):
    """A register per pin, both ways, and the chips' clock. Asks the platform for ``sdram``.

    Boards may lack the pins of ``cke``, ``cs_n`` and ``mask``: the chips then have them tied.

    Parameters
    ----------
    chip : SdrChip

    Members
    -------
    chip : In(SdrSignature)

    Raises
    ------
    ValueError
        While it is elaborated, if the board's pins are not as many as the chips'.
    """

    chip: Any

    def __init__(self, *, chip: SdrChip) -> None:
        super().__init__({"chip": In(SdrSignature(chip))})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        chip, pins = self.chip, platform.request(_RESOURCE, 0, dir="-")
        # the platform's names; it inverts those that are active low
        outputs = {
            "clk_en": chip.cke,
            "cs": ~chip.cs_n,
            "ras": ~chip.ras_n,
            "cas": ~chip.cas_n,
            "we": ~chip.we_n,
            "a": chip.address,
            "ba": chip.bank,
            "dqm": chip.mask,
        }
        for name, value in outputs.items():
            if not hasattr(pins, name):
                continue
            port = _checked(getattr(pins, name), name, len(value))
            m.submodules[name] = buffer = io.FFBuffer(io.Direction.Output, port)
            m.d.comb += buffer.o.eq(value)
        port = _checked(pins.dq, "dq", len(chip.data_o))
        m.submodules.dq = data = io.FFBuffer(io.Direction.Bidir, port)
        m.d.comb += [
            data.o.eq(chip.data_o),
            data.oe.eq(chip.data_oe),
            chip.data_i.eq(data.i),
        ]
        # a register of the pin's own, so the clock leaves as late as the rest
        clock: Any = io.DDRBuffer(io.Direction.Output, pins.clk, o_domain=LATE_DOMAIN)
        m.submodules.clk = clock
        m.d.comb += [clock.o[0].eq(1), clock.o[1].eq(0)]
        return m


def _checked(port: Any, name: str, bits: int) -> Any:
    if len(port) != bits:
        raise ValueError(f"pins {name} of the DRAM must be {bits}, not {len(port)}")
    return port
