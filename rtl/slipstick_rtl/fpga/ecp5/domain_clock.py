"""A clock domain of a wire, with a PLL of its own on an ECP5."""

from typing import Any

from amaranth.hdl import ClockSignal, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from .clock import find_pll, pll_instance


class Ecp5DomainClock(wiring.Component):
    """Drives the clock of a domain from the oscillator; who uses the domain resets it.

    Who holds it defines the domain: Amaranth 0.6 takes none from below.

    Parameters
    ----------
    oscillator_hz, hertz : int
    domain : str

    Members
    -------
    oscillator : In

    Raises
    ------
    ValueError
        If the PLL cannot make the clock.
    """

    oscillator: Signal

    def __init__(self, *, oscillator_hz: int, domain: str, hertz: int) -> None:
        self._pll = find_pll(oscillator_hz, hertz)
        self._domain, self._hertz = domain, hertz
        super().__init__({"oscillator": In(1)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        # without the attribute, Yosys forgets the name that the constraint goes by
        name = f"{self._domain}_{self._hertz // 1_000_000}_mhz"
        clock = Signal(name=name, attrs={"keep": "true"})
        m.submodules.pll = pll_instance(
            self._pll, oscillator=self.oscillator, clock=clock, locked=Signal(name="locked")
        )
        m.d.comb += ClockSignal(self._domain).eq(clock)
        platform.add_clock_constraint(clock, self._hertz)
        return m
