"""A filter of Ethernet frames: only whole, right ones for this board come through."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from .frame_check import FRAME_WORD, INCOMING_WORD, FrameCheck

WORDS = 512
"""Room for frames: one block RAM of an ECP5."""


class FrameFilter(wiring.Component):
    """Keeps each frame until it has ended, and then passes it on, or forgets it.

    LiteEth tells of a wrong check sequence with the last word of a frame, and its IP stack has
    answered or passed on most of it by then: of a short datagram, all. It takes packets for any IP
    address, and fragments. Its state machines lose their place in frames that are shorter than
    their headers. So here a frame is forgotten if

    - its check sequence is wrong, or it has less than 60 bytes without it,
    - there is no room for it: the MAC never waits,
    - it is neither for ``mac`` nor a broadcast, or is neither ARP nor IPv4,
    - of IPv4, if its header has options, it is a fragment, or its lengths do not fit each other,
    - it is neither UDP to the board's port nor ICMP,
    - it is for another IP address. UDP in a broadcast may be for any, as the board does not know
      how many bits of its address are the network's; so may DHCP's answers, if they have this MAC
      address in them.

    LiteEth checks the sum of the IP header after that. Nobody checks that of UDP.

    Parameters
    ----------
    dhcp : bool
        Answers to a DHCP client are accepted.

    Members
    -------
    i : In(stream)
        Always ready.
    o : Out(stream)
    mac, ip : In
        The board's own.
    """

    i: stream.Interface
    o: stream.Interface
    mac: Signal
    ip: Signal

    def __init__(self, *, dhcp: bool = False) -> None:
        self._dhcp = dhcp
        super().__init__(
            {
                "i": In(stream.Signature(INCOMING_WORD)),
                "o": Out(stream.Signature(FRAME_WORD)),
                "mac": In(48),
                "ip": In(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        word, taken = self.i.payload, self.i.valid
        m.submodules.check = check = FrameCheck(dhcp=self._dhcp)
        m.submodules.frames = frames = Memory(shape=36, depth=WORDS, init=[])
        write, read = frames.write_port(), frames.read_port()
        # one bit more than an address, so that full differs from empty
        head, begin, tail = (Signal(range(2 * WORDS)) for _ in range(3))
        next_head = Signal.like(head)
        full, overflowed = Signal(), Signal()
        m.d.comb += [
            self.i.ready.eq(1),
            check.word.eq(word),
            check.valid.eq(taken),
            check.mac.eq(self.mac),
            check.ip.eq(self.ip),
            full.eq((tail ^ head) == WORDS),
            write.addr.eq(tail[:-1]),
            write.data.eq(Cat(word.data, word.last_be & word.last.replicate(4))),
            write.en.eq(taken & ~full),
            next_head.eq(head + (self.o.valid & self.o.ready)),
            read.addr.eq(next_head[:-1]),
            Cat(self.o.payload.data, self.o.payload.last_be).eq(read.data),
            self.o.payload.last.eq(self.o.payload.last_be.any()),
        ]
        # begin is where the frame that is coming in begins: what is before it may be read
        m.d.sync += [head.eq(next_head), self.o.valid.eq(next_head != begin)]
        with m.If(taken):
            m.d.sync += [tail.eq(tail + ~full), overflowed.eq(overflowed | full)]
            with m.If(word.last):
                m.d.sync += overflowed.eq(0)
                with m.If(check.good & ~full & ~overflowed):
                    m.d.sync += begin.eq(tail + 1)
                with m.Else():
                    m.d.sync += tail.eq(begin)
        return m
