"""UDP packets between the clock of LiteEth and that of the core."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import AsyncFIFO, AsyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from .packet_words import RECEIVED_WORD, SENT_WORD

RECEIVED_WORDS = 33
"""Room for what comes while ``sync`` does not take it; more waits in the ``FrameFilter``."""

SENT_WORDS = 513
"""A block RAM of an ECP5: 2 KiB, longer than any packet, plus the buffer's word."""

_PACKETS = 8

DATAGRAM = data.StructLayout(
    {"data": 32, "last_be": 4, "last": 1, "ip_address": 32, "port": 16, "length": 16}
)
"""LiteEth's form: the other end's address and port, and the length, stay from the first word to the
last."""


class ReceivedCrossing(wiring.Component):
    """Puts the sender before each datagram from LiteEth, and takes it over to ``sync``.

    If ``sync`` does not take a word, LiteEth waits, and frames pile up in the filter before it.

    Domains: ``ethernet`` of LiteEth, and ``sync``.

    Members
    -------
    i : In(stream)
        Of ``ethernet``.
    error : In
        LiteEth's, with the last word. The filter lets nothing through that is wrong.
    o : Out(stream)
        Of ``sync``.
    """

    i: stream.Interface
    error: Signal
    o: stream.Interface

    def __init__(self) -> None:
        super().__init__(
            {
                "i": In(stream.Signature(DATAGRAM)),
                "error": In(1),
                "o": Out(stream.Signature(RECEIVED_WORD)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = AsyncFIFOBuffered(
            width=RECEIVED_WORD.size, depth=RECEIVED_WORDS, w_domain="ethernet", r_domain="sync"
        )
        given = self.i.payload
        word = Signal(RECEIVED_WORD)
        m.d.comb += [
            queue.w_data.eq(word),
            queue.w_en.eq(self.i.valid),
            self.o.payload.eq(queue.r_data),
            self.o.valid.eq(queue.r_rdy),
            queue.r_en.eq(self.o.ready),
        ]
        with m.FSM(domain="ethernet"):
            with m.State("sender's address"):
                m.d.comb += word.data.eq(given.ip_address)
                with m.If(self.i.valid & queue.w_rdy):
                    m.next = "sender's port and length"
            with m.State("sender's port and length"):
                m.d.comb += word.data.eq(Cat(given.port, given.length))
                with m.If(queue.w_rdy):
                    m.next = "payload"
            with m.State("payload"):
                m.d.comb += [
                    word.data.eq(given.data),
                    word.last.eq(given.last),
                    word.error.eq(given.last & self.error),
                    self.i.ready.eq(queue.w_rdy),
                ]
                with m.If(self.i.valid & queue.w_rdy & given.last):
                    m.next = "sender's address"
        return m


class SentCrossing(wiring.Component):
    """Takes packets over from ``sync``, each whole, and gives them to LiteEth as datagrams.

    The wire cannot wait within a frame, so a packet starts only when all of it is here.

    Domains: ``ethernet`` of LiteEth, and ``sync``.

    Members
    -------
    i : In(stream)
        Of ``sync``.
    o : Out(stream)
        Of ``ethernet``.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self) -> None:
        super().__init__(
            {"i": In(stream.Signature(SENT_WORD)), "o": Out(stream.Signature(DATAGRAM))}
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = AsyncFIFOBuffered(
            width=SENT_WORD.size, depth=SENT_WORDS, w_domain="sync", r_domain="ethernet"
        )
        # a token for each whole packet in the queue
        m.submodules.packets = packets = AsyncFIFO(
            width=1, depth=_PACKETS, w_domain="sync", r_domain="ethernet"
        )
        given = self.i.payload
        m.d.comb += [
            queue.w_data.eq(given),
            queue.w_en.eq(self.i.valid & (packets.w_rdy | ~given.last)),
            packets.w_en.eq(self.i.valid & given.last & queue.w_rdy),
            self.i.ready.eq(queue.w_rdy & (packets.w_rdy | ~given.last)),
        ]
        word = data.View(SENT_WORD, queue.r_data)
        out = self.o.payload
        address, port, length = Signal(32), Signal(16), Signal(16)
        m.d.comb += [
            out.ip_address.eq(address),
            out.port.eq(port),
            out.length.eq(length),
            out.data.eq(word.data),
            out.last.eq(word.last),
        ]
        with m.If(word.last):
            m.d.comb += out.last_be.eq(1 << (length - 1)[:2])
        with m.FSM(domain="ethernet"):
            with m.State("wait for a packet"):
                m.d.comb += packets.r_en.eq(1)
                with m.If(packets.r_rdy):
                    m.next = "receiver's address"
            with m.State("receiver's address"):
                m.d.comb += queue.r_en.eq(1)
                m.d.ethernet += address.eq(word.data)
                with m.If(queue.r_rdy):
                    m.next = "receiver's port and length"
            with m.State("receiver's port and length"):
                m.d.comb += queue.r_en.eq(1)
                m.d.ethernet += Cat(port, length).eq(word.data)
                with m.If(queue.r_rdy):
                    m.next = "payload"
            with m.State("payload"):
                m.d.comb += [self.o.valid.eq(queue.r_rdy), queue.r_en.eq(self.o.ready)]
                with m.If(queue.r_rdy & self.o.ready & word.last):
                    m.next = "wait for a packet"
        return m
