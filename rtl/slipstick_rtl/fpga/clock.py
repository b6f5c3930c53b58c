"""Defines the ports that the clocks of all FPGA families share, and finds the clock of a part."""

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from amaranth.hdl import Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .parts import Part

LATE_EIGHTHS = 5
"""Eighths of a cycle. At 97.5 MHz the pins of SDR SDRAM change 6.4 ns before its clock edge and 3.9
ns after it. What it sends is good from 6 ns behind an edge to 3 ns behind the next (data sheet of
MT48LC16M16A2-75, CAS latency 2); with 3.5 ns for both pins on the way, the FPGA's edge lies in
between."""


class BoardClock(wiring.Component):
    """Makes the core's clock from the oscillator's; each family's class says how it restarts.

    Parameters
    ----------
    port : amaranth.lib.io.SingleEndedPort
        The oscillator's.
    pll : object
        Settings of the family's PLL.

    Members
    -------
    restart : In
        High: begin anew; asynchronous.
    clock : Out
    ready : Out
        The core may take what the host says.
    oscillator : Out
        The pin.
    late : Out
        The same clock, ``LATE_EIGHTHS`` of a cycle later, if ``pll`` makes it.
    """

    restart: Signal
    clock: Signal
    ready: Signal
    oscillator: Signal
    late: Signal

    def __init__(self, *, port: Any, pll: Any) -> None:
        self._port = port
        self._pll = pll
        outputs = ("clock", "ready", "oscillator", "late")
        super().__init__({"restart": In(1), **{name: Out(1) for name in outputs}})


@dataclass(frozen=True)
class Clocking:
    """The way of a part from its oscillator to the core's clock.

    Parameters
    ----------
    find_pll : callable
        The settings of the PLL, from oscillator and clock in Hz; ValueError if it cannot.
    component : callable
        Makes the ``BoardClock``, from ``port`` and ``pll``.
    clocks : callable
        All clocks in Hz that the PLL makes of an oscillator, in no order.
    with_late : callable or None
        The settings of a PLL that makes ``BoardClock.late`` too; None: nobody has tried it.
    """

    find_pll: Callable[[int, int], Any]
    component: Callable[..., Any]
    clocks: Callable[[int], Iterable[Fraction]]
    with_late: Callable[[Any], Any] | None = None


def find_clocking(part: Part) -> Clocking:
    """Returns the clocking of a part: ``find_clocking`` of its family's module ``clock``.

    Raises
    ------
    ValueError
        If nothing is known of the part.
    """
    module = importlib.import_module(f".{part.family.lower()}.clock", __package__)
    return module.find_clocking(part.device)
