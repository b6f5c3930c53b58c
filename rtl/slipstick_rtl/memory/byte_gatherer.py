"""Gathers bytes on their way to the activation memory into slices of L, while they wait."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..config import Configuration
from .port_arbiter import byte_write_layout, slice_write_layout


class ByteGatherer(wiring.Component):
    """Takes bytes one by one; gives what has come of a slice of L bytes, as soon as that is wanted.

    A byte can leave a cycle after it came. While a slice waits, bytes of the same slice join it: so
    a byte a cycle is taken where the other side takes a slice now and then.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    i : In(stream of byte_write_layout)
    o : Out(stream of slice_write_layout)
        Its payload gains bytes while it waits.
    whole : Out(1)
        No more bytes will join the slice: it has all, or the next byte is of another one.
    """

    i: stream.Interface
    o: stream.Interface
    whole: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._lanes = configuration.lanes
        super().__init__(
            {
                "i": In(stream.Signature(byte_write_layout(configuration))),
                "o": Out(stream.Signature(slice_write_layout(configuration))),
                "whole": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        lane_bits = exact_log2(self._lanes)
        held, byte = self.o.payload, self.i.payload
        own = Cat(byte.address[:lane_bits] == k for k in range(self._lanes))
        free = ~self.o.valid | self.o.ready
        joins = Signal()
        m.d.comb += [
            joins.eq(byte.address[lane_bits:] == held.address[lane_bits:]),
            self.o.valid.eq(held.mask.any()),
            self.i.ready.eq(free | joins),
            self.whole.eq(held.mask.all() | (self.i.valid & ~joins)),
        ]
        taken = Signal()
        m.d.comb += taken.eq(self.i.valid & self.i.ready)
        m.d.sync += held.mask.eq(Mux(free, 0, held.mask) | Mux(taken, own, 0))
        with m.If(taken):
            m.d.sync += held.address.eq(Cat(Const(0, lane_bits), byte.address[lane_bits:]))
            for k in range(self._lanes):
                with m.If(own[k]):
                    m.d.sync += held.data.word_select(k, 8).eq(byte.data)
        return m
