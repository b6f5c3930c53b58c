"""The clock of an ECP5: PLL EHXPLLL, and a reset that travels on the chip's own network."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from typing import Any

from amaranth.hdl import Instance, Module, Signal
from amaranth.lib import io

from ..clock import LATE_EIGHTHS, BoardClock, Clocking
from ..pll import choose, within

INPUT_HZ = (8_000_000, 400_000_000)
PHASE_DETECTOR_HZ = (10_000_000, 400_000_000)
OSCILLATOR_HZ = (400_000_000, 800_000_000)
OUTPUT_HZ = (3_125_000, 400_000_000)
"""Frequency ranges from the data sheet of the ECP5 family, table of the sysCLOCK PLL."""

_DIVIDERS = range(1, 129)


@dataclass(frozen=True)
class Ecp5Pll:
    """Dividers: of the input, of the feedback, and from the PLL's oscillator to its first output,
    which is fed back; to the second output, if that is the core's clock, or 0. ``late``: a third
    output makes ``BoardClock.late``."""

    input_divider: int
    feedback_divider: int
    output_divider: int
    second_divider: int = 0
    late: bool = False

    @property
    def outputs(self) -> dict[str, int]:
        """Dividers of the outputs in use, by their letters in the names of the PLL's ports."""
        return {"P": self.output_divider} | ({"S": self.second_divider} if self.has_second else {})

    @property
    def late_output(self) -> dict[str, int | str]:
        """EHXPLLL's parameters for the third output: whole cycles of the PLL's oscillator, and
        eighths of them."""
        divider = self.second_divider or self.output_divider
        whole, eighths = divmod(LATE_EIGHTHS * divider, 8)
        return {
            **output_parameters({"S2": divider}),
            "p_CLKOS2_CPHASE": divider - 1 + whole,
            "p_CLKOS2_FPHASE": eighths,
        }

    @property
    def has_second(self) -> bool:
        """Tells whether the core's clock is the second output."""
        return self.second_divider > 0


def _detectors(input_hz: int) -> Iterator[tuple[int, Fraction]]:
    """Dividers of the input and what they give; the fastest first, for the least jitter."""
    for input_divider in _DIVIDERS:
        detector = Fraction(input_hz, input_divider)
        if PHASE_DETECTOR_HZ[0] <= detector <= PHASE_DETECTOR_HZ[1]:
            yield input_divider, detector


def _first_outputs(input_hz: int) -> Iterator[tuple[Fraction, Ecp5Pll]]:
    """The clocks of the output that is fed back: multiples of what the detector compares."""
    for input_divider, detector in _detectors(input_hz):
        for feedback_divider in _DIVIDERS:
            output = detector * feedback_divider
            if not OUTPUT_HZ[0] <= output <= OUTPUT_HZ[1]:
                continue
            # the oscillator near the middle of its range
            middle = sum(OSCILLATOR_HZ) // 2
            output_divider = min(_DIVIDERS, key=lambda n: abs(output * n - middle))
            if OSCILLATOR_HZ[0] <= output * output_divider <= OSCILLATOR_HZ[1]:
                yield output, Ecp5Pll(input_divider, feedback_divider, output_divider)


def _second_outputs(input_hz: int) -> Iterator[tuple[Fraction, Ecp5Pll]]:
    """The clocks of another output: multiples of the detector's, divided.

    The first output is then as slow as the detector's clock, and the oscillator any multiple.
    """
    for input_divider, detector in _detectors(input_hz):
        for multiple in _DIVIDERS:
            oscillator = detector * multiple
            if not OSCILLATOR_HZ[0] <= oscillator <= OSCILLATOR_HZ[1]:
                continue
            for divider in _DIVIDERS:
                if OUTPUT_HZ[0] <= oscillator / divider <= OUTPUT_HZ[1]:
                    yield oscillator / divider, Ecp5Pll(input_divider, 1, multiple, divider)


def find_pll(input_hz: int, output_hz: int) -> Ecp5Pll:
    """The settings that make one clock of another.

    Raises
    ------
    ValueError
        If a frequency is out of its range, or the PLL cannot make the output of the input.
    """
    within("oscillator of an ECP5's PLL", input_hz, *INPUT_HZ)
    within("clock from an ECP5's PLL", output_hz, *OUTPUT_HZ)
    return choose("ECP5", input_hz, output_hz, _candidates(input_hz))


def _candidates(input_hz: int) -> Iterator[tuple[Fraction, Ecp5Pll]]:
    return chain(_first_outputs(input_hz), _second_outputs(input_hz))


def clocks(input_hz: int) -> Iterator[Fraction]:
    """All clocks that the PLL makes of an oscillator, in Hz."""
    return (hertz for hertz, _ in _candidates(input_hz))


def output_parameters(dividers: Mapping[str, int]) -> dict[str, int | str]:
    """EHXPLLL's parameters for its outputs, by the letters of their names (``P``, ``S``, ...), all
    in phase."""
    return {
        f"p_CLKO{name}_{key}": value
        for name, divider in dividers.items()
        for key, value in (("DIV", divider), ("CPHASE", divider - 1), ("FPHASE", 0))
    } | {f"p_CLKO{name}_ENABLE": "ENABLED" for name in dividers}


def pll_cell(
    *,
    input_divider: int,
    feedback_divider: int,
    oscillator: Signal,
    feedback: Signal,
    locked: Signal,
    **others: Any,
) -> Instance:
    """EHXPLLL, whose first output is fed back.

    Parameters
    ----------
    input_divider, feedback_divider : int
    oscillator, feedback, locked : Signal
    **others
        Parameters of the outputs (``output_parameters``), and the ports of those that are in use.
    """
    return Instance(
        "EHXPLLL",
        a_ICP_CURRENT="12",
        a_LPF_RESISTOR="8",
        a_MFG_ENABLE_FILTEROPAMP="1",
        a_MFG_GMCREF_SEL="2",
        p_CLKI_DIV=input_divider,
        p_CLKFB_DIV=feedback_divider,
        p_FEEDBK_PATH="CLKOP",
        i_CLKI=oscillator,
        i_CLKFB=feedback,
        i_RST=0,
        i_STDBY=0,
        i_ENCLKOP=0,
        o_CLKOP=feedback,
        o_LOCK=locked,
        **others,
    )


def pll_instance(
    pll: Ecp5Pll,
    *,
    oscillator: Signal,
    clock: Signal,
    locked: Signal,
    late: Signal | None = None,
) -> Instance:
    """The PLL itself, from the oscillator to one clock, and to ``late`` if it makes that."""
    return pll_cell(
        input_divider=pll.input_divider,
        feedback_divider=pll.feedback_divider,
        oscillator=oscillator,
        feedback=Signal() if pll.has_second else clock,
        locked=locked,
        **output_parameters(pll.outputs),
        **(pll.late_output if pll.late else {}),
        **({"o_CLKOS": clock} if pll.has_second else {}),
        **({"o_CLKOS2": late} if pll.late else {}),
    )


class Ecp5Clock(BoardClock):
    """Makes the core's clock from the oscillator's; resets every register while it is not ready.

    The reset is the chip's global set/reset: it brings each register back to its initial value
    and takes no routing. It is held while the PLL is not locked or ``restart`` is high, and ends
    synchronously to the clock.

    ``ready`` is always high: whoever could see it low is in reset.
    """

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.buffer = buffer = io.Buffer(io.Direction.Input, self._port)
        locked = Signal()
        m.d.comb += [self.oscillator.eq(buffer.i), self.ready.eq(1)]
        m.submodules.pll = pll_instance(
            self._pll, oscillator=buffer.i, clock=self.clock, locked=locked, late=self.late
        )
        steady = locked & ~self.restart
        for stage in range(2):
            synchronised = Signal(name=f"steady_{stage}")
            # these two must not be reset by what they make
            m.submodules[f"steady_{stage}"] = Instance(
                "FD1S3AX", p_GSR="DISABLED", i_CK=self.clock, i_D=steady, o_Q=synchronised
            )
            steady = synchronised
        m.submodules.reset = Instance("SGSR", i_CLK=self.clock, i_GSR=steady)
        return m


def find_clocking(device: str) -> Clocking:
    """Returns the clocking of a device: all of the family have the same PLL."""
    return Clocking(find_pll, Ecp5Clock, clocks, with_late=lambda pll: replace(pll, late=True))
