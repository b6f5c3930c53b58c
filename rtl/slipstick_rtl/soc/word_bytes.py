"""Between words of four bytes and the link's bytes."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..link.protocol import REQUEST_START, RESPONSE_START
from .axi_stream import Word
from .frame_follower import FrameFollower

_BYTES = 4


class RequestUnpacker(wiring.Component):
    """Takes words apart, a byte a cycle; a packet costs two cycles more.

    A frame that has not ended when its packet ends is filled with zeros, so that the device
    answers BAD_CRC at once, instead of waiting for the rest.

    Members
    -------
    i : In(stream of Word)
    o : Out(stream of bytes)
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self) -> None:
        super().__init__({"i": In(stream.Signature(Word)), "o": Out(stream.Signature(8))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.follower = follower = FrameFollower(start_byte=REQUEST_START)
        word, left = Signal(8 * _BYTES), Signal(_BYTES)  # bytes not yet given
        ending = Signal()  # the word ends a packet
        after = left & (left - 1)
        filling = ending & (left == 0) & follower.inside
        take = ~ending & ((left == 0) | (after == 0) & self.o.ready)
        m.d.comb += [
            self.o.valid.eq((left != 0) | filling),
            self.i.ready.eq(take),
            follower.data.eq(self.o.payload),
            follower.taken.eq(self.o.valid & self.o.ready),
        ]
        for index in reversed(range(_BYTES)):
            with m.If(left[index]):
                m.d.comb += self.o.payload.eq(word.word_select(index, 8))
        with m.If(self.o.ready):
            m.d.sync += left.eq(after)
        with m.If(ending & (left == 0) & ~follower.inside):
            m.d.sync += ending.eq(0)
        with m.If(take & self.i.valid):
            m.d.sync += [
                word.eq(self.i.p.data),
                left.eq(self.i.p.keep),
                ending.eq(self.i.p.last),
            ]
        return m


class ResponsePacker(wiring.Component):
    """Puts bytes together, one a cycle; each frame begins a word and ends a packet.

    Members
    -------
    i : In(stream of bytes)
        Responses, back to back.
    o : Out(stream of Word)
        Bytes that are not kept are 0.
    status, sequence : Out(8)
        Of the last response that has passed whole.
    """

    i: stream.Interface
    o: stream.Interface
    status: Signal
    sequence: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "i": In(stream.Signature(8)),
                "o": Out(stream.Signature(Word)),
                "status": Out(8),
                "sequence": Out(8),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.follower = follower = FrameFollower(start_byte=RESPONSE_START)
        held = Signal(8 * (_BYTES - 1))
        index = Signal(range(_BYTES))
        complete = follower.last | (index == _BYTES - 1)
        taken = self.i.valid & self.i.ready
        m.d.comb += [
            self.i.ready.eq(~complete | self.o.ready),
            self.o.valid.eq(self.i.valid & complete),
            self.o.p.data.eq(held),
            self.o.p.data.word_select(index, 8).eq(self.i.payload),
            self.o.p.keep.eq(Cat(index >= place for place in range(_BYTES))),
            self.o.p.last.eq(follower.last),
            follower.data.eq(self.i.payload),
            follower.taken.eq(taken),
        ]
        with m.If(taken):
            m.d.sync += [index.eq(Mux(complete, 0, index + 1)), held.eq(self.o.p.data)]
            with m.If(complete):
                m.d.sync += held.eq(0)
            with m.If(follower.last):
                m.d.sync += [self.status.eq(follower.kind), self.sequence.eq(follower.sequence)]
        return m
