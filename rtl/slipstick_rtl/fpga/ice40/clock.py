"""The clock of an iCE40: PLL SB_PLL40, and a wait until all that it clocks can be trusted."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from amaranth.hdl import ClockDomain, ClockSignal, Instance, Module, Signal
from amaranth.lib.cdc import FFSynchronizer

from ..clock import BoardClock, Clocking
from ..pll import choose, within

INPUT_HZ = (10_000_000, 133_000_000)
PHASE_DETECTOR_HZ = (10_000_000, 133_000_000)
OSCILLATOR_HZ = (533_000_000, 1_066_000_000)
OUTPUT_HZ = (16_000_000, 275_000_000)
"""Frequency ranges from the data sheets of the iCE40 families, tables of the sysCLOCK PLL."""

_FILTER_HZ = (17_000_000, 26_000_000, 44_000_000, 66_000_000, 101_000_000, 133_000_001)
"""Phase detector frequencies below which the filter settings 1, 2, ... 6 are right."""

MEMORY_SECONDS = 15e-6
"""Block RAM reads as zero for some 3 us after the configuration."""
PRESSED_SECONDS = 2e-3
"""Time that a button must be down: it bounces."""


@dataclass(frozen=True)
class Ice40Pll:
    """The PLL's parameters as the primitive takes them, and the frequency that they make."""

    divr: int
    divf: int
    divq: int
    filter_range: int
    output_hz: int


def _candidates(input_hz: int) -> Iterator[tuple[Fraction, Ice40Pll]]:
    for divr in range(16):
        detector = Fraction(input_hz, divr + 1)
        if not PHASE_DETECTOR_HZ[0] <= detector <= PHASE_DETECTOR_HZ[1]:
            continue
        filter_range = 1 + next(n for n, limit in enumerate(_FILTER_HZ) if detector < limit)
        for divf in range(128):
            oscillator = detector * (divf + 1)
            if not OSCILLATOR_HZ[0] <= oscillator <= OSCILLATOR_HZ[1]:
                continue
            for divq in range(1, 7):
                output = oscillator / 2**divq
                if OUTPUT_HZ[0] <= output <= OUTPUT_HZ[1]:
                    yield output, Ice40Pll(divr, divf, divq, filter_range, round(output))


def find_pll(input_hz: int, output_hz: int) -> Ice40Pll:
    """The settings that make one clock of another, with the feedback path "SIMPLE".

    Raises
    ------
    ValueError
        If a frequency is out of its range, or the PLL cannot make the output of the input.
    """
    within("oscillator of an iCE40's PLL", input_hz, *INPUT_HZ)
    within("clock from an iCE40's PLL", output_hz, *OUTPUT_HZ)
    return choose("iCE40", input_hz, output_hz, _candidates(input_hz))


def clocks(input_hz: int) -> Iterator[Fraction]:
    """All clocks that the PLL makes of an oscillator, in Hz."""
    return (hertz for hertz, _ in _candidates(input_hz))


class Ice40Clock(BoardClock):
    """Makes the core's clock from the oscillator's, whose pin is one of the PLL's own.

    The chip has no reset network, and a reset of every register would take look-up tables. The
    registers have their initial values after configuration, and while the PLL settles nothing
    moves that could leave a state that matters; so it is enough to hold what comes from the host
    until ``ready``. A restart configures the chip anew, from its flash.

    ``restart`` must be high for ``PRESSED_SECONDS``; ``ready`` says that the clock is steady and
    the memories can be read; ``oscillator`` is always low, for the PLL takes the whole pin.
    """

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        locked = Signal()
        m.submodules.pll = Instance(
            "SB_PLL40_PAD",
            p_FEEDBACK_PATH="SIMPLE",
            p_DIVR=self._pll.divr,
            p_DIVF=self._pll.divf,
            p_DIVQ=self._pll.divq,
            p_FILTER_RANGE=self._pll.filter_range,
            i_PACKAGEPIN=self._port.io,
            i_RESETB=1,
            i_BYPASS=0,
            o_PLLOUTGLOBAL=self.clock,
            o_LOCK=locked,
        )
        m.domains.clocking = ClockDomain("clocking", reset_less=True, local=True)
        m.d.comb += ClockSignal("clocking").eq(self.clock)
        self._wait(m, "locked", locked, MEMORY_SECONDS, self.ready)
        pressed = Signal()
        self._wait(m, "pressed", self.restart, PRESSED_SECONDS, pressed)
        m.submodules.boot = Instance("SB_WARMBOOT", i_S1=0, i_S0=0, i_BOOT=pressed)
        return m

    def _wait(self, m: Module, name: str, pin: Signal, seconds: float, steady: Signal) -> None:
        """Raises ``steady`` when the signal has been high for a time."""
        cycles = max(1, round(seconds * self._pll.output_hz))
        high = Signal(name=f"{name}_high")
        time = Signal(range(cycles + 1), name=f"{name}_time")
        m.submodules[name] = FFSynchronizer(pin, high, o_domain="clocking")
        with m.If(~high):
            m.d.clocking += [time.eq(0), steady.eq(0)]
        with m.Elif(time == cycles):
            m.d.clocking += steady.eq(1)
        with m.Else():
            m.d.clocking += time.eq(time + 1)


def find_clocking(device: str) -> Clocking:
    """Returns the clocking of a device: all of the family have the same PLL."""
    return Clocking(find_pll, Ice40Clock, clocks)
