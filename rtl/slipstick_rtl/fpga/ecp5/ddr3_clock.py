"""The clocks of DDR3 on an ECP5: the pins' clock, half of it for the controller, and a slow one."""

from typing import Any

from amaranth.hdl import ClockDomain, ClockSignal, Instance, Module, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.cdc import ResetSynchronizer
from amaranth.lib.wiring import In, Out

from ...dram.ddr3 import PHASES, Ddr3Settings
from ...dram.ddr3_memory import DDR3_DOMAIN
from .clock import find_pll, output_parameters, pll_cell

SLOW_DIVIDER = 6
"""Divides the pins' clock to the one that begins the PHY: 25 MHz of 150."""


class Ecp5Ddr3Clock(wiring.Component):
    """Drives the domain ``DDR3_DOMAIN`` from the oscillator, with a PLL of its own.

    Who holds it defines the domain: Amaranth 0.6 takes none from below.

    Parameters
    ----------
    oscillator_hz : int
    settings : Ddr3Settings

    Members
    -------
    oscillator : In
    stop, reset : In
        Of the PHY, which begins its pins' registers together.
    pins : Out
        The chip's clock, on the network that the pins' registers have.
    slow, slow_reset : Out
        The clock that begins the PHY.

    Raises
    ------
    ValueError
        If the PLL cannot make the clocks.
    """

    oscillator: Signal
    stop: Signal
    reset: Signal
    pins: Signal
    slow: Signal
    slow_reset: Signal

    def __init__(self, *, oscillator_hz: int, settings: Ddr3Settings) -> None:
        self._pll = find_pll(oscillator_hz, settings.chip_hertz)
        self._settings = settings
        inputs, outputs = ("oscillator", "stop", "reset"), ("pins", "slow", "slow_reset")
        super().__init__({name: In(1) for name in inputs} | {name: Out(1) for name in outputs})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        pll, hertz = self._pll, self._settings.chip_hertz
        # without the attribute, Yosys forgets the names that constraints go by
        fast, slow, half = (
            Signal(name=f"ddr3_{name}", attrs={"keep": "true"}) for name in ("fast", "slow", "half")
        )
        locked = Signal()
        divider = pll.second_divider or pll.output_divider
        m.submodules.pll = pll_cell(
            input_divider=pll.input_divider,
            feedback_divider=pll.feedback_divider,
            oscillator=self.oscillator,
            feedback=Signal() if pll.has_second else fast,
            locked=locked,
            **output_parameters(pll.outputs | {"S2": SLOW_DIVIDER * divider}),
            **({"o_CLKOS": fast} if pll.has_second else {}),
            o_CLKOS2=slow,
        )
        m.submodules.stopper = Instance(
            "ECLKSYNCB", i_ECLKI=fast, i_STOP=self.stop, o_ECLKO=self.pins
        )
        m.submodules.halver = Instance(
            "CLKDIVF",
            p_DIV=f"{PHASES}.0",
            i_ALIGNWD=0,
            i_CLKI=self.pins,
            i_RST=self.reset,
            o_CDIVX=half,
        )
        m.domains.slow = ClockDomain(local=True)
        m.submodules.reset = ResetSynchronizer(~locked | self.reset, domain=DDR3_DOMAIN)
        m.submodules.slow_reset = ResetSynchronizer(~locked, domain="slow")
        m.d.comb += [
            ClockSignal(DDR3_DOMAIN).eq(half),
            ClockSignal("slow").eq(slow),
            self.slow.eq(slow),
            self.slow_reset.eq(ResetSignal("slow")),
        ]
        for clock, divided in ((fast, 1), (half, PHASES), (slow, SLOW_DIVIDER)):
            platform.add_clock_constraint(clock, hertz // divided)
        return m
