"""The clocks of a USB port on an ECP5: 48 and 12 MHz from a PLL of its own."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from amaranth.hdl import ClockSignal, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.cdc import ResetSynchronizer
from amaranth.lib.wiring import In

from ..pll import within
from .clock import (
    INPUT_HZ,
    OSCILLATOR_HZ,
    OUTPUT_HZ,
    PHASE_DETECTOR_HZ,
    output_parameters,
    pll_cell,
)

PIN_HZ, PACKET_HZ = 48_000_000, 12_000_000
"""Clocks of the domains ``usb_io`` and ``usb``: four samples a bit, and a bit."""

TOLERANCE = Fraction(20, 10_000)
"""Largest relative error of the 48 MHz. USB 2.0 (7.1.11) allows a device 0.25 %; the oscillator
needs some of it."""

_DIVIDERS = range(1, 129)
_PIN_DIVIDERS = range(OSCILLATOR_HZ[0] // PIN_HZ, OSCILLATOR_HZ[1] // PIN_HZ + 1)


@dataclass(frozen=True)
class UsbPll:
    """Dividers: of the input, of the feedback, and of the VCO to the feedback and to 48 MHz."""

    input_divider: int
    feedback_divider: int
    output_divider: int
    pin_divider: int

    def pin_hz(self, input_hz: int) -> Fraction:
        """Computes the frequency that the settings make of the input, 48 MHz or near it."""
        vco = Fraction(input_hz * self.feedback_divider * self.output_divider, self.input_divider)
        return vco / self.pin_divider


def _within(hertz: float, limits: tuple[int, int]) -> bool:
    return limits[0] <= hertz <= limits[1]


def find_usb_pll(input_hz: int) -> UsbPll:
    """The settings nearest to 48 MHz with a fourth of it; the fastest phase detector of equals.

    25 MHz (ULX3S) gives 48.077 MHz, 0.16 % too fast; 48 MHz (OrangeCrab) is exact.

    Raises
    ------
    ValueError
        If the input is out of the PLL's range, or nothing lies within ``TOLERANCE``.
    """
    within("oscillator of an ECP5's PLL", input_hz, *INPUT_HZ)
    candidates = [
        UsbPll(input_divider, feedback_divider, output_divider, pin_divider)
        for input_divider in _DIVIDERS
        if _within(input_hz / input_divider, PHASE_DETECTOR_HZ)
        for feedback_divider in _DIVIDERS
        if _within(input_hz / input_divider * feedback_divider, OUTPUT_HZ)
        for output_divider in _DIVIDERS
        if _within(input_hz / input_divider * feedback_divider * output_divider, OSCILLATOR_HZ)
        for pin_divider in _PIN_DIVIDERS
    ]

    def error(pll: UsbPll) -> Fraction:
        return abs(pll.pin_hz(input_hz) / PIN_HZ - 1)

    best = min(candidates, key=lambda pll: (error(pll), pll.input_divider), default=None)
    if best is None or error(best) > TOLERANCE:
        raise ValueError(
            f"oscillator must be one of which the PLL makes {PIN_HZ / 1e6:g} MHz within"
            f" {float(TOLERANCE):.1%}, not {input_hz / 1e6:g} MHz"
        )
    return best


class Ecp5UsbClocks(wiring.Component):
    """Drives the domains ``usb_io`` and ``usb``, in reset until the PLL has locked.

    Who holds it defines the domains: Amaranth 0.6 takes none from below.

    Parameters
    ----------
    pll : UsbPll

    Members
    -------
    oscillator : In
    """

    oscillator: Signal

    def __init__(self, *, pll: UsbPll) -> None:
        self._pll = pll
        super().__init__({"oscillator": In(1)})

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        locked = Signal()
        pins = Signal(name="pins_48_mhz")
        packets = Signal(name="packets_12_mhz")
        pll = self._pll
        dividers = {
            "P": pll.output_divider,
            "S": pll.pin_divider,
            "S2": pll.pin_divider * PIN_HZ // PACKET_HZ,
        }
        m.submodules.pll = pll_cell(
            input_divider=pll.input_divider,
            feedback_divider=pll.feedback_divider,
            oscillator=self.oscillator,
            feedback=Signal(),
            locked=locked,
            **output_parameters(dividers),
            o_CLKOS=pins,
            o_CLKOS2=packets,
        )
        for name, clock, hertz in (("usb_io", pins, PIN_HZ), ("usb", packets, PACKET_HZ)):
            m.d.comb += ClockSignal(name).eq(clock)
            m.submodules[f"{name}_reset"] = ResetSynchronizer(~locked, domain=name)
            platform.add_clock_constraint(clock, round(hertz * (1 + TOLERANCE)))
        return m
