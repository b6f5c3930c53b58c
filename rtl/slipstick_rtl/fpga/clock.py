"""Defines the ports that the clocks of all FPGA families share, and finds the clock of a part."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .parts import Part


class BoardClock(wiring.Component):
    """From the oscillator's pin to the core's clock; each family's class says how it restarts.

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
    """

    restart: Signal
    clock: Signal
    ready: Signal
    oscillator: Signal

    def __init__(self, *, port: Any, pll: Any) -> None:
        self._port = port
        self._pll = pll
        super().__init__({"restart": In(1), "clock": Out(1), "ready": Out(1), "oscillator": Out(1)})


@dataclass(frozen=True)
class Clocking:
    """The way of a part from its oscillator to the core's clock.

    Parameters
    ----------
    find_pll : callable
        The settings of the PLL, from oscillator and clock in Hz; ValueError if it cannot.
    component : callable
        Makes the ``BoardClock``, from ``port`` and ``pll``.
    """

    find_pll: Callable[[int, int], Any]
    component: Callable[..., Any]


def find_clocking(part: Part) -> Clocking:
    """Returns the clocking of a part: ``find_clocking`` of its family's module ``clock``.

    Raises
    ------
    ValueError
        If nothing is known of the part.
    """
    module = importlib.import_module(f".{part.family.lower()}.clock", __package__)
    return module.find_clocking(part.device)
