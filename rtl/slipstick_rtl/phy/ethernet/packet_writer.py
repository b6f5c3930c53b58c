"""Writes the board's datagrams, word by word."""

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .board_owner import REPLY_KIND
from .datagram_choice import SEND
from .datagrams import (
    ARRIVED_BYTES,
    HEADER_BYTES,
    LONGEST_SEND,
    MAGIC,
    PRESENCE_BYTES,
    VERSION,
    Kind,
)
from .packet_words import HEAD, HEAD_WORDS, SENT_WORD
from .send_buffer import SEND_WORDS

IDENTITY_BYTES = 12

_LEASE = HEAD_WORDS - 1
_LAST_OF_PRESENCE = HEAD_WORDS + PRESENCE_BYTES // 4 - 1
_ARRIVED = _LAST_OF_PRESENCE + 1
_BYTES = _ARRIVED + 1
"""Steps through a packet, a word each: the last of those that all have in common, then the presence
in an answer, or what has arrived and bytes in a SEND; the step of these stays."""

_MOST_BYTES = HEADER_BYTES + ARRIVED_BYTES + LONGEST_SEND
_GRANTED = Kind.GRANTED & (1 << REPLY_KIND) - 1

PACKET = data.StructLayout(
    {
        "kind": REPLY_KIND,
        "head": HEAD,
        "length": range(_MOST_BYTES + 1),
        "next": 16,
        "waiting": 16,
        "owned": 1,
    }
)
"""Fields of a packet that are kept while it is written."""


class PacketWriter(wiring.Component):
    """Sends a word per cycle, with a cycle of rest between packets.

    A packet says what holds in the cycle in which it begins; whose the board is, in the cycle that
    writes its second word, but GRANTED names the host itself.

    Parameters
    ----------
    identity : bytes
        12 bytes, as ``Identity.pack`` makes them.
    slots, slot_bytes : int
        Told to hosts.

    Members
    -------
    available, kind, to : In, take : Out
        As of ``DatagramChoice``.
    owned, owner : In
        As of ``BoardOwner``.
    next, waiting : In
        As of ``DatagramSlots``.
    ready, count, word : In; leaves, left, place, fetch : Out
        As of ``SendBuffer``.
    sent : Out(stream of SENT_WORD)

    Raises
    ------
    ValueError
        If the identity has not 12 bytes.
    """

    available: Signal
    kind: Signal
    to: data.View
    take: Signal
    owned: Signal
    owner: data.View
    next: Signal
    waiting: Signal
    ready: Signal
    count: Signal
    word: Signal
    leaves: Signal
    left: Signal
    place: Signal
    fetch: Signal
    sent: stream.Interface

    def __init__(self, *, identity: bytes, slots: int, slot_bytes: int) -> None:
        if len(identity) != IDENTITY_BYTES:
            raise ValueError(f"identity must have {IDENTITY_BYTES} bytes, not {len(identity)}")
        self._identity = identity
        self._slots = slots
        self._slot_bytes = slot_bytes
        super().__init__(
            {
                "available": In(1),
                "kind": In(REPLY_KIND),
                "to": In(HEAD),
                "take": Out(1),
                "owned": In(1),
                "owner": In(HEAD),
                "next": In(16),
                "waiting": In(slots),
                "ready": In(1),
                "count": In(range(LONGEST_SEND + 1)),
                "word": In(32),
                "leaves": Out(1),
                "left": Out(1),
                "place": Out(range(SEND_WORDS)),
                "fetch": Out(1),
                "sent": Out(stream.Signature(SENT_WORD)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        packet, leaves = Signal(PACKET), Signal()
        step, last = Signal(range(_BYTES + 1)), Signal()
        # a word is fetched two moves before it is sent
        place, last_place = Signal(range(SEND_WORDS + 2)), Signal(range(SEND_WORDS + 2))
        moves = ~self.sent.valid | self.sent.ready
        in_bytes = step == _BYTES
        m.d.comb += [
            self.leaves.eq(leaves),
            self.place.eq(place[: len(self.place)]),
            last.eq((step == _LAST_OF_PRESENCE) | (step == _ARRIVED) & ~leaves),
        ]
        with m.If(moves):
            m.d.sync += self.sent.valid.eq(0)
        with m.FSM():
            with m.State("rests"):
                m.d.sync += [step.eq(0), place.eq(0)]
                with m.If(self.available):
                    self._begin(m, packet, leaves, last_place)
                    m.next = "writes"
            with m.State("writes"), m.If(moves):
                m.d.comb += self.fetch.eq(1)
                m.d.sync += [
                    step.eq(step + ~in_bytes),
                    place.eq(place + (step.matches(_LEASE, _ARRIVED) | in_bytes)),
                    self.sent.valid.eq(1),
                    self.sent.p.last.eq(last),
                    self.sent.p.data.eq(self._word(m, packet, step)),
                ]
                with m.If((step == _LEASE) & (packet.kind == SEND)):
                    m.d.sync += step.eq(_ARRIVED)
                with m.If(in_bytes):
                    m.d.comb += last.eq(place == last_place)
                with m.If((step == 1) & (packet.kind != _GRANTED)):
                    self._name_owner(m, packet)
                with m.If(last):
                    m.d.comb += self.left.eq(leaves)
                    m.d.sync += leaves.eq(0)
                    m.next = "rests"
        return m

    def _begin(self, m: Module, packet: data.View, leaves: Signal, last_place: Signal) -> None:
        """Keeps what the packet is going to say, so that it is of one moment."""
        m.d.comb += self.take.eq(1)
        m.d.sync += [
            packet.kind.eq(self.kind),
            packet.head.eq(self.to),
            packet.next.eq(self.next),
            packet.waiting.eq(self.waiting),
            packet.owned.eq(1),
            packet.length.eq(HEADER_BYTES + PRESENCE_BYTES),
            last_place.eq((self.count + 7) >> 2),
        ]
        with m.If(self.kind == SEND):
            m.d.comb += self.leaves.eq(self.ready)
            m.d.sync += [leaves.eq(self.ready), packet.length.eq(HEADER_BYTES + ARRIVED_BYTES)]
            with m.If(self.ready):
                m.d.sync += packet.length.eq(self.count + HEADER_BYTES + ARRIVED_BYTES)

    def _name_owner(self, m: Module, packet: data.View) -> None:
        """The receiver's address, which has been sent, makes room for the owner's."""
        m.d.sync += [
            packet.head.address.eq(self.owner.address),
            packet.head.port.eq(self.owner.port),
            packet.owned.eq(self.owned),
        ]

    def _word(self, m: Module, packet: data.View, step: Signal) -> Value:
        head = packet.head
        kind = Cat(packet.kind, Const(Kind.HERE >> REPLY_KIND, 8 - REPLY_KIND))
        identity = (
            Const(int.from_bytes(self._identity[at : at + 4], "little"), 32)
            for at in range(0, IDENTITY_BYTES, 4)
        )
        words = (
            head.address,
            Cat(head.port, packet.length),
            Cat(Const(MAGIC, 16), Const(VERSION, 8), kind),
            Cat(head.number, head.lease),
            *identity,
            Cat(Const(self._slots, 8), packet.owned, Const(0, 7), Const(self._slot_bytes, 16)),
            Cat(head.address.word_select(byte, 8) for byte in (3, 2, 1, 0)),
            head.port,
            Cat(packet.next, packet.waiting),
            self.word,
        )
        word = Signal(32)
        with m.Switch(step):
            for at, value in enumerate(words):
                with m.Case(at):
                    m.d.comb += word.eq(value)
        return word
