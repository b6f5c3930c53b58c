"""Sets a board's adjustable supplies: pins whose mean voltage is right, then the regulators on."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from .supplies import AdjustableSupplies

COUNTER_BITS = 10
"""A pin's cycle is 1,024 clocks; at 100 MHz some 4,000 times the low pass's corner."""


class SupplyControl(wiring.Component):
    """Drives the pins of the regulators.

    Parameters
    ----------
    supplies : AdjustableSupplies
    clock_hz : int
        Of ``sync``.

    Members
    -------
    pdm : Out
        A bit per supply.
    enable : Out
        High when the pins' mean voltages have settled, and from then on.
    """

    pdm: Signal
    enable: Signal

    def __init__(self, *, supplies: AdjustableSupplies, clock_hz: int) -> None:
        self._supplies = supplies
        self._settling_cycles = round(supplies.settling_seconds * clock_hz)
        super().__init__({"pdm": Out(len(supplies.volts)), "enable": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        count = Signal(COUNTER_BITS)
        m.d.sync += count.eq(count + 1)
        for place, volts in enumerate(self._supplies.volts):
            high = round(self._supplies.duty(volts) * (1 << COUNTER_BITS))
            m.d.sync += self.pdm[place].eq(count < high)
        left = Signal(range(self._settling_cycles + 1), init=self._settling_cycles)
        with m.If(left != 0):
            m.d.sync += left.eq(left - 1)
        m.d.sync += self.enable.eq(left == 0)
        return m
