"""Walks along a region of the activation memory, one byte after the other."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .layouts import RegionTable


class RegionWalker(wiring.Component):
    """Knows where the next byte of a transfer lies; a step every cycle, also over gaps.

    A description is shifted in byte by byte, as ``RegionTable`` has it. Counters count down to the
    end of the run, of the plane and of the region; what depends on their being 0 is a register.

    Members
    -------
    shift : In
        Takes ``byte``, the next one of a description. Its address is lost.
    byte : In(8)
    begin : In
        To the beginning of the region that has been described.
    direct : In
        To ``start``, and on without gaps; never ``ended``.
    start : In(24)
    step : In
        To the next byte.
    address : Out(24)
        Of the byte at hand.
    ended : Out
        There is no such byte in the region.
    count : Out(16)
        Bytes of the region that a GET answers.
    """

    shift: Signal
    byte: Signal
    begin: Signal
    direct: Signal
    start: Signal
    step: Signal
    address: Signal
    ended: Signal
    count: Signal

    def __init__(self) -> None:
        self._run_last = Signal(16)
        self._runs_last = Signal(16)
        self._planes = Signal(16)
        self._gap = Signal(16)
        self._plane_gap = Signal(16)
        super().__init__(
            {
                "shift": In(1),
                "byte": In(8),
                "begin": In(1),
                "direct": In(1),
                "start": In(24),
                "step": In(1),
                "address": Out(24),
                "ended": Out(1),
                "count": Out(16),
            }
        )

    @property
    def _description(self) -> Value:
        """The registers in the order of ``RegionTable``; address and planes are counters, too."""
        fields = (
            self.count,
            self.address,
            self._run_last,
            self._runs_last,
            self._planes,
            self._gap,
            self._plane_gap,
        )
        assert [len(field) for field in fields] == [field.width for _, field in RegionTable]
        return Cat(fields)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        run_end, plane_end, region_end = Signal(), Signal(), Signal()
        flat = Signal()
        gap = Mux(plane_end, self._plane_gap, self._gap) & run_end.replicate(16)
        next_run = self.step & run_end
        next_plane = next_run & plane_end
        self._count(m, self._run_last, run_end, self.step & ~flat, next_run)
        self._count(m, self._runs_last, plane_end, next_run, next_plane)
        with m.If(self.begin):
            m.d.sync += [flat.eq(0), region_end.eq(self._planes == 0), self.ended.eq(0)]
        with m.Elif(next_plane):
            m.d.sync += [
                self._planes.eq(self._planes - 1),
                region_end.eq(self._planes == 1),
                self.ended.eq(self.ended | region_end),
            ]
        with m.If(self.step):
            m.d.sync += self.address.eq(self.address + gap + 1)
        with m.If(self.direct):
            m.d.sync += [self.address.eq(self.start), flat.eq(1), run_end.eq(0), self.ended.eq(0)]
        with m.If(self.shift):
            m.d.sync += self._description.eq(Cat(self._description[8:], self.byte))
        return m

    def _count(self, m: Module, last: Signal, end: Signal, step: Value, again: Value) -> None:
        """Counts from ``last`` to 0, where ``end`` is set; ``again`` begins anew."""
        left, single = Signal(16), Signal()
        with m.If(self.begin):
            m.d.sync += [left.eq(last), single.eq(last == 0), end.eq(last == 0)]
        with m.Elif(again):
            m.d.sync += [left.eq(last), end.eq(single)]
        with m.Elif(step):
            m.d.sync += [left.eq(left - 1), end.eq(left == 1)]
