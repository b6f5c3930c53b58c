"""Counts the whole units that a WRITE carries."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..config import Configuration
from .spaces import inner_number, spaces_of, unit_bytes


class UnitCounter(wiring.Component):
    """Divides a number of bytes by the unit of a space.

    Units that are no powers of two (of parameters, and of weights with ninth bits) are subtracted,
    one in two cycles (the difference has a register of its own), so the count costs at most two
    cycles for each unit that will be written.

    Latency: 1 cycle, for those spaces 3 + 2 * ``units`` cycles.

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
        spaces = spaces_of(self._configuration)
        sizes = {space: unit_bytes(self._configuration, space) for space in spaces}
        divided = {space: size for space, size in sizes.items() if size & (size - 1)}
        left, divisor = Signal(16), Signal(range(max(sizes.values()) + 1))
        subtracting, settled = Signal(), Signal()
        difference = Signal(17, reset_less=True)

        m.d.comb += [
            self.done.eq(~subtracting),
            self.whole.eq(left == 0),
        ]
        m.d.sync += [difference.eq(left - divisor), settled.eq(subtracting & ~settled)]
        with m.If(self.start):
            m.d.sync += settled.eq(0)
            m.d.sync += [left.eq(self.bytes), self.units.eq(0), subtracting.eq(0)]
            for space, size in sizes.items():
                with m.If(self.space == inner_number(space)):
                    if space in divided:
                        m.d.sync += [subtracting.eq(1), divisor.eq(size)]
                    else:
                        m.d.sync += self.units.eq(self.bytes >> exact_log2(size))
                        m.d.sync += left.eq(self.bytes & (size - 1))
        with m.Elif(settled):
            with m.If(difference[-1]):
                m.d.sync += subtracting.eq(0)
            with m.Else():
                m.d.sync += [left.eq(difference), self.units.eq(self.units + 1)]
        return m
