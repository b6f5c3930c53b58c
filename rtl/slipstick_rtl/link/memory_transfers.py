"""The transfers of WRITE and READ: bytes with their addresses."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..config import Configuration
from .layouts import ByteWrite
from .protocol import Space
from .spaces import unit_bytes


class MemoryWriter(wiring.Component):
    """Gives every byte of a WRITE its place, one byte a cycle.

    Members
    -------
    start : In
        Takes ``space``, ``address`` (of the first unit) and ``count`` (bytes).
    space, address, count : In
    busy : Out
        Bytes are left.
    data : In(stream of bytes)
        Taken only while ``busy``.
    writes : Out(stream of ByteWrite)
    """

    start: Signal
    space: Signal
    address: Signal
    count: Signal
    busy: Signal
    data: stream.Interface
    writes: stream.Interface

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = configuration
        super().__init__(
            {
                "start": In(1),
                "space": In(2),
                "address": In(24),
                "count": In(16),
                "busy": Out(1),
                "data": In(stream.Signature(8)),
                "writes": Out(stream.Signature(ByteWrite)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        place = Signal(ByteWrite)
        # of the unit: its last byte is next, and what is known of the unit for that
        ends, single, before_last = Signal(), Signal(), Signal(10)
        left = Signal(16)

        m.d.comb += [
            self.writes.payload.eq(place),
            self.writes.p.data.eq(self.data.payload),
            self.writes.valid.eq(self.busy & self.data.valid),
            self.data.ready.eq(self.busy & self.writes.ready),
        ]
        with m.If(self.start):
            m.d.sync += [
                place.space.eq(self.space),
                place.address.eq(self.address),
                place.offset.eq(0),
                left.eq(self.count),
                self.busy.eq(self.count != 0),
            ]
            for space in Space:
                with m.If(self.space == space):
                    unit = unit_bytes(self._configuration, space)
                    m.d.sync += [
                        before_last.eq(Const(unit - 2, len(before_last))),
                        Cat(single, ends).eq(Const(0b11 if unit == 1 else 0, 2)),
                    ]
        with m.Elif(self.writes.valid & self.writes.ready):
            m.d.sync += [
                left.eq(left - 1),
                self.busy.eq(left != 1),
                place.offset.eq(place.offset + 1),
                ends.eq(Mux(ends, single, place.offset == before_last)),
            ]
            with m.If(ends):
                m.d.sync += [place.offset.eq(0), place.address.eq(place.address + 1)]
        return m


class MemoryReader(wiring.Component):
    """Asks for the bytes of a READ, one address a cycle; the bytes go elsewhere.

    Members
    -------
    start : In
        Takes ``address`` and ``count`` (bytes).
    address, count : In
    reads : Out(stream of byte addresses)
    """

    start: Signal
    address: Signal
    count: Signal
    reads: stream.Interface

    def __init__(self) -> None:
        super().__init__(
            {
                "start": In(1),
                "address": In(24),
                "count": In(16),
                "reads": Out(stream.Signature(24)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        left = Signal(16)
        with m.If(self.start):
            m.d.sync += [
                self.reads.payload.eq(self.address),
                left.eq(self.count),
                self.reads.valid.eq(self.count != 0),
            ]
        with m.Elif(self.reads.valid & self.reads.ready):
            m.d.sync += [
                self.reads.payload.eq(self.reads.payload + 1),
                left.eq(left - 1),
                self.reads.valid.eq(left != 1),
            ]
        return m
