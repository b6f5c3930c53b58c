"""Takes packets from the network, and says which are sound datagrams of a host."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from .datagrams import HEADER_BYTES, MAGIC, VERSION, Kind
from .packet_words import ADDRESS_WORDS, HEAD, HEAD_WORDS, PORT_AND_LENGTH, RECEIVED_WORD

KINDS = data.StructLayout(
    {
        kind.name.lower(): 1
        for kind in (Kind.DISCOVER, Kind.CLAIM, Kind.TAKE, Kind.RELEASE, Kind.DATA, Kind.POLL)
    }
)
"""The kinds that a host sends; at most one bit is set."""

_OURS = MAGIC | VERSION << 16
_START = data.StructLayout({"magic_and_version": 24, "kind": 8})
_NUMBER_AND_LEASE = data.StructLayout({"number": 16, "lease": 16})


class PacketReader(wiring.Component):
    """Takes a word per cycle, and rests for two cycles after each packet, to judge it.

    Parameters
    ----------
    slot_bytes : int
        Most bytes of a DATA.

    Members
    -------
    received : In(stream of RECEIVED_WORD)
    body : Out(32)
    store : Out
        Strobe: ``body`` is the next word behind the datagram's header.
    body_last : Out
        With ``store``: it is the packet's last word.
    ending : Out(2)
        With ``body_last``: bytes in the last word, less one.
    ended : Out
        Strobe: a packet has ended, right or wrong. ``head`` stays until the next cycle.
    head : Out(HEAD)
        Of the sender; ``number`` is there with the first ``store``, and all of it a cycle before
        ``ended``.
    kinds : Out(KINDS)
        Strobe, with ``ended``: what the packet is; zero if anything is wrong with it.
    """

    received: stream.Interface
    body: Signal
    store: Signal
    body_last: Signal
    ending: Signal
    ended: Signal
    head: data.View
    kinds: data.View

    def __init__(self, *, slot_bytes: int) -> None:
        self._slot_bytes = slot_bytes
        super().__init__(
            {
                "received": In(stream.Signature(RECEIVED_WORD)),
                "body": Out(32),
                "store": Out(1),
                "body_last": Out(1),
                "ending": Out(2),
                "ended": Out(1),
                "head": Out(HEAD),
                "kinds": Out(KINDS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        word = self.received.p
        most_words = HEAD_WORDS + self._slot_bytes // 4
        place = Signal(range(most_words + 2))  # of the next word, and then their number
        length = Signal(16)
        start = Signal(_START)
        damaged = Signal()
        found = self._look(m, place, length, start, damaged)
        m.d.comb += [
            self.body.eq(word.data),
            self.body_last.eq(word.last),
            self.ending.eq(length[:2] - 1),
        ]
        with m.FSM():
            with m.State("words"):
                m.d.comb += self.received.ready.eq(1)
                with m.If(self.received.valid):
                    self._keep_head(m, place, length, start)
                    # a packet that is too long stays too long
                    with m.If(place != most_words + 1):
                        m.d.sync += place.eq(place + 1)
                    m.d.comb += self.store.eq(place >= HEAD_WORDS)
                    m.d.sync += damaged.eq(word.error)
                    with m.If(word.last):
                        m.next = "judge"
            with m.State("judge"):
                m.d.sync += place.eq(0)
                m.next = "ended"
            with m.State("ended"):
                m.d.comb += [self.ended.eq(1), self.kinds.eq(found)]
                m.next = "words"
        return m

    def _keep_head(self, m: Module, place: Signal, length: Signal, start: data.View) -> None:
        word = self.received.p.data
        second = data.View(PORT_AND_LENGTH, word)
        fourth = data.View(_NUMBER_AND_LEASE, word)
        with m.Switch(place):
            with m.Case(0):
                m.d.sync += self.head.address.eq(word)
            with m.Case(ADDRESS_WORDS - 1):
                m.d.sync += [self.head.port.eq(second.port), length.eq(second.length)]
            with m.Case(ADDRESS_WORDS):
                m.d.sync += start.eq(word)
            with m.Case(HEAD_WORDS - 1):
                m.d.sync += [self.head.number.eq(fourth.number), self.head.lease.eq(fourth.lease)]

    def _look(
        self, m: Module, place: Signal, length: Signal, start: data.View, damaged: Signal
    ) -> Signal:
        """Recognises the kind of the packet, two cycles after its last word; only valid then.

        Each wide comparison ends in a register. Those of the words before the last are one cycle
        ahead of the sum.
        """
        bare, filled, ours = Signal(), Signal(), Signal()
        expected = Signal.like(place)
        kinds, found = Signal(KINDS), Signal(KINDS.size)
        beyond = (length - HEADER_BYTES - 1)[:16]  # bytes of the body, less one
        m.d.sync += [
            bare.eq(length == HEADER_BYTES),
            filled.eq(beyond[exact_log2(self._slot_bytes) :] == 0),
            # right if one of the two is; without a body there are -1 words before the last
            expected.eq((beyond >> 2) + HEAD_WORDS + 1),
            ours.eq(start.magic_and_version == _OURS),
            *(kinds[name].eq(start.kind == Kind[name.upper()]) for name in KINDS.members),
        ]
        whole = (place == expected) & ours & ~damaged
        fits = Cat((filled if name == "data" else bare) for name in KINDS.members)
        m.d.sync += found.eq(kinds.as_value() & fits & whole.replicate(KINDS.size))
        return found
