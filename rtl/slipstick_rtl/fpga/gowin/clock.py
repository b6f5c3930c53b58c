"""The clock of a Gowin LittleBee or Arora: PLL rPLL, and the reset on the chip's own network."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from amaranth.hdl import Const, Instance, Module, Signal
from amaranth.lib import io

from ..clock import BoardClock, Clocking
from ..pll import choose, within

OUTPUT_DIVIDERS = (2, 4, 8, 16, 32, 48, 64, 80, 96, 112, 128)


@dataclass(frozen=True)
class GowinLimits:
    """Frequencies that a device's PLL can take and make, in Hz; and what the PLL calls the device.

    Parameters
    ----------
    device : str
    input_hz, detector_hz, oscillator_hz, output_hz : pair of int
        From the data sheet of the device, table of the PLL, for its speed grade.
    """

    device: str
    input_hz: tuple[int, int]
    detector_hz: tuple[int, int]
    oscillator_hz: tuple[int, int]
    output_hz: tuple[int, int]


GW1NR_9 = GowinLimits(
    "GW1NR-9C",
    (3_000_000, 400_000_000),
    (3_000_000, 400_000_000),
    (400_000_000, 1_200_000_000),
    (3_125_000, 600_000_000),
)
"""Speed grade C6/I5."""

GW2AR_18 = GowinLimits(
    "GW2AR-18C",
    (3_000_000, 500_000_000),
    (3_000_000, 500_000_000),
    (500_000_000, 1_250_000_000),
    (3_906_250, 625_000_000),
)
"""Speed grade C8/I7."""

LIMITS = (GW1NR_9, GW2AR_18)


@dataclass(frozen=True)
class GowinPll:
    """Dividers of input, feedback and output; the input's frequency; the device's name."""

    input_divider: int
    feedback_divider: int
    output_divider: int
    input_hz: int
    device: str


def _candidates(input_hz: int, limits: GowinLimits) -> Iterator[tuple[Fraction, GowinPll]]:
    """All that lies within the limits; the fastest phase detector first, for the least jitter."""
    for input_divider in range(1, 65):
        detector = Fraction(input_hz, input_divider)
        if not limits.detector_hz[0] <= detector <= limits.detector_hz[1]:
            continue
        for feedback_divider in range(1, 65):
            output = detector * feedback_divider
            if not limits.output_hz[0] <= output <= limits.output_hz[1]:
                continue
            for divider in OUTPUT_DIVIDERS:
                if limits.oscillator_hz[0] <= output * divider <= limits.oscillator_hz[1]:
                    settings = (input_divider, feedback_divider, divider, input_hz)
                    yield output, GowinPll(*settings, limits.device)
                    break


def pll_finder(limits: GowinLimits) -> Callable[[int, int], GowinPll]:
    """Makes the function that finds the settings of a device's PLL.

    Returns
    -------
    callable
        From the oscillator and the clock in Hz to the settings; ValueError if a frequency is out
        of its range, or the PLL cannot make the clock of the oscillator.
    """

    def find_pll(input_hz: int, output_hz: int) -> GowinPll:
        within(f"oscillator of a {limits.device}'s PLL", input_hz, *limits.input_hz)
        within(f"clock from a {limits.device}'s PLL", output_hz, *limits.output_hz)
        return choose(limits.device, input_hz, output_hz, _candidates(input_hz, limits))

    return find_pll


def clock_finder(limits: GowinLimits) -> Callable[[int], Iterator[Fraction]]:
    """Makes the function that lists all clocks in Hz that a device's PLL makes of an oscillator."""
    return lambda input_hz: (hertz for hertz, _ in _candidates(input_hz, limits))


class GowinClock(BoardClock):
    """Makes the core's clock from the oscillator's; resets every register while it is not ready.

    The reset is the chip's global set/reset, which brings each register back to its initial value
    and takes no routing. It reaches every register of the chip, so nothing can make its end
    synchronous; the core is at rest then, and no state that matters changes in the cycle of the
    end.

    ``ready`` is always high: whoever could see it low is in reset.
    """

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.buffer = buffer = io.Buffer(io.Direction.Input, self._port)
        locked, reset_n = Signal(), Signal()
        m.submodules.pll = Instance(
            "rPLL",
            p_FCLKIN=f"{self._pll.input_hz / 1e6:g}",
            p_DEVICE=self._pll.device,
            p_IDIV_SEL=self._pll.input_divider - 1,
            p_FBDIV_SEL=self._pll.feedback_divider - 1,
            p_ODIV_SEL=self._pll.output_divider,
            p_DYN_IDIV_SEL="false",
            p_DYN_FBDIV_SEL="false",
            p_DYN_ODIV_SEL="false",
            p_CLKFB_SEL="internal",
            p_DYN_DA_EN="false",
            p_PSDA_SEL="0000",
            p_DUTYDA_SEL="1000",
            i_CLKIN=buffer.i,
            i_CLKFB=0,
            i_RESET=0,
            i_RESET_P=0,
            i_FBDSEL=Const(0, 6),
            i_IDSEL=Const(0, 6),
            i_ODSEL=Const(0, 6),
            i_PSDA=Const(0, 4),
            i_DUTYDA=Const(0, 4),
            i_FDLY=Const(0, 4),
            o_CLKOUT=self.clock,
            o_LOCK=locked,
        )
        m.d.comb += [
            self.oscillator.eq(buffer.i),
            self.ready.eq(1),
            reset_n.eq(locked & ~self.restart),
        ]
        m.submodules.reset = Instance("GSR", i_GSRI=reset_n)
        return m


def find_clocking(device: str) -> Clocking:
    """Returns the clocking of a device.

    Raises
    ------
    ValueError
        If ``LIMITS`` does not have the device's PLL.
    """
    for limits in LIMITS:
        if limits.device == device:
            return Clocking(pll_finder(limits), GowinClock, clock_finder(limits))
    known = ", ".join(limits.device for limits in LIMITS)
    raise ValueError(f"device must be one of {known}, whose PLL is known, not {device}")
