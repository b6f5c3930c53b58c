"""The clock of a ULPI chip that takes it from an ECP5: 60 MHz from a PLL of its own."""

from typing import Any

from amaranth.hdl import ClockSignal, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from .clock import Ecp5Pll, find_pll, pll_instance

ULPI_HZ = 60_000_000


def find_ulpi_pll(input_hz: int) -> Ecp5Pll:
    """The settings that make 60 MHz of the oscillator.

    Raises
    ------
    ValueError
        If the PLL cannot.
    """
    return find_pll(input_hz, ULPI_HZ)


class Ecp5UlpiClock(wiring.Component):
    """Drives the clock of the domain ``ulpi``; its reset is the port's.

    Who holds it defines the domain: Amaranth 0.6 takes none from below.

    Parameters
    ----------
    pll : Ecp5Pll

    Members
    -------
    oscillator : In
    """

    oscillator: Signal

    def __init__(self, *, pll: Ecp5Pll) -> None:
        self._pll = pll
        super().__init__({"oscillator": In(1)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        # without the attribute, Yosys forgets the name that the constraint goes by
        clock = Signal(name="ulpi_60_mhz", attrs={"keep": "true"})
        m.submodules.pll = pll_instance(
            self._pll, oscillator=self.oscillator, clock=clock, locked=Signal(name="locked")
        )
        m.d.comb += ClockSignal("ulpi").eq(clock)
        platform.add_clock_constraint(clock, ULPI_HZ)
        return m
