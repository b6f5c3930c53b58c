"""How many whole units a WRITE carries."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..config import Configuration
from .protocol import Space
from .spaces import unit_bytes


class UnitCounter(wiring.Component):
    """Divides a number of bytes by the unit of a space.

    All units are powers of two except a parameter word's: that one is subtracted, a word a cycle,
    so the count costs at most one cycle for each parameter word that will be written.

    Latency: 1 cycle, for PARAMETERS 2 + ``units`` cycles.

    Members
    -------
    start : In
        Takes ``bytes`` and ``space``.
    bytes, space : In
    done : Out
        ``units`` and ``whole`` are valid, from here until the next ``start``.
    units, whole : Out
        The quotient, and whether the remainder is zero.
    """

    start: Signal
    bytes: Signal
    space: Signal
    done: Signal
    units: Signal
    whole: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = configuration
        super().__init__(
            {
                "start": In(1),
                "bytes": In(16),
                "space": In(2),
                "done": Out(1),
                "units": Out(16),
                "whole": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        parameter_bytes = unit_bytes(self._configuration, Space.PARAMETERS)
        left = Signal(16)
        subtracting = Signal()
        difference = Signal(17)

        m.d.comb += [
            difference.eq(left - parameter_bytes),
            self.done.eq(~subtracting),
            self.whole.eq(left == 0),
        ]
        with m.If(self.start):
            m.d.sync += [left.eq(self.bytes), self.units.eq(0)]
            m.d.sync += subtracting.eq(self.space == Space.PARAMETERS)
            for space in set(Space) - {Space.PARAMETERS}:
                unit = unit_bytes(self._configuration, space)
                with m.If(self.space == space):
                    m.d.sync += self.units.eq(self.bytes >> exact_log2(unit))
                    m.d.sync += left.eq(self.bytes & (unit - 1))
        with m.Elif(subtracting):
            with m.If(difference[-1]):
                m.d.sync += subtracting.eq(0)
            with m.Else():
                m.d.sync += [left.eq(difference), self.units.eq(self.units + 1)]
        return m
