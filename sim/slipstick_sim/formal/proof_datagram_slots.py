"""Proves that datagrams leave their slots in the order of their numbers, and none twice."""

from amaranth.hdl import Array, Assert, Assume, Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2
from slipstick_rtl.phy.ethernet.datagram_slots import DatagramSlots

from .proof_link import keeps_protocol
from .registry import Proof

_SLOTS = 4
_BITS = exact_log2(_SLOTS)
_INPUTS = {"body": 32, "store": 1, "body_last": 1, "ending": 2, "ended": 1, "keep": 1, "clear": 1}
_PROBES = {"kept": 1, "writes": 1, "gone": 1, "spoilt": 1, "in_window": 1, "state": 3}
_EMPTY, _OFFERED = 0, 5
"""Numbers of the states in which no slot is read; the latter is the last one."""


class LeavesInOrder(wiring.Component):
    """The slots with any packets: the number of what is kept is noted beside each slot.

    ``kept``, ``writes``, ``gone``, ``spoilt``, ``in_window`` and ``state`` are signals of the
    slots.
    """

    number: Signal
    body: Signal
    store: Signal
    body_last: Signal
    ending: Signal
    ended: Signal
    keep: Signal
    clear: Signal
    o: stream.Interface
    kept: Signal
    writes: Signal
    gone: Signal
    spoilt: Signal
    in_window: Signal
    state: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "number": In(16),
                **{name: In(bits) for name, bits in (_INPUTS | _PROBES).items()},
                "o": Out(stream.Signature(8)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.slots = slots = DatagramSlots(slots=_SLOTS, slot_bytes=256)
        connect(m, slots.o, flipped(self.o))
        keeps_protocol(m, self.o, "o")
        m.d.comb += [getattr(slots, name).eq(getattr(self, name)) for name in ("number", *_INPUTS)]
        started = self._assume(m)
        ahead = (self.number - slots.next)[:16]
        taken = slots.waiting.bit_select(ahead[:_BITS], 1)
        self._assert_numbers(m, slots.next, slots.waiting)
        reading = ~self.state.matches(_EMPTY, _OFFERED)
        missed = Signal()
        m.d.sync += missed.eq((missed | self.store & ~self.writes) & ~self.ended)
        before = Signal(16, init=0xFFFF)
        m.d.sync += before.eq((self.number - slots.next)[:16])
        m.d.comb += [
            Assert(~self.kept | (ahead < _SLOTS), "a number beyond the window is kept"),
            Assert(~self.kept | ~taken, "a slot that is full is filled"),
            Assert(~self.writes | ~taken, "a full slot is written to"),
            Assert(~(started & ~self.spoilt) | ~taken, "a packet for a full slot is not spoilt"),
            Assert(~missed | self.spoilt, "a packet without all of its words is not spoilt"),
            Assert(~(self.kept & missed), "a datagram is kept without all of its words"),
            Assert(self.in_window == (before < _SLOTS), "another window"),
            Assert(self.state <= _OFFERED, "a state that there is not"),
            Assert(~reading | slots.waiting[0], "an empty slot is read"),
            Assert(~self.gone | reading, "a datagram goes that was not read"),
        ]
        return m

    def _assume(self, m: Module) -> Signal:
        """Assumes what the reader and owner ensure; tells whether a packet has stored a word."""
        started, stored, began = Signal(), Signal(), Signal()
        number = Signal(16)
        m.d.sync += [
            number.eq(self.number),
            stored.eq(self.store),
            started.eq((started | self.store) & ~self.ended),
            began.eq(1),
        ]
        m.d.comb += [
            Assume(~started | (self.number == number), "the number stays"),
            Assume(~self.ended | ~(stored | self.store), "a cycle passes before the end"),
            Assume(~self.keep | self.ended & started, "DATA has bytes"),
            Assume(~self.clear | self.ended & ~self.keep, "a grant is no DATA"),
            Assume(began | ~self.ended, "there was a packet"),
        ]
        return started

    def _assert_numbers(self, m: Module, following: Value, waiting: Value) -> None:
        """The number that was kept in a slot is the one whose turn comes with the slot."""
        numbers = Array(Signal(16, name=f"number_{slot}") for slot in range(_SLOTS))
        with m.If(self.kept):
            m.d.sync += numbers[self.number[:_BITS]].eq(self.number)
        for place in range(_SLOTS):
            number = (following + place)[:16]
            m.d.comb += Assert(
                ~waiting[place] | (numbers[number[:_BITS]] == number), "another datagram's turn"
            )
        last, went = Signal(16), Signal()
        cleared, came = Signal(), Signal()
        m.d.sync += [last.eq(following), went.eq(self.gone), cleared.eq(self.clear), came.eq(1)]
        with m.If(cleared):
            m.d.comb += Assert((following == 0) & (waiting == 0), "a grant leaves something")
        with m.Elif(came):
            m.d.comb += Assert(following == (last + went)[:16], "a number is left out")


PROOFS = (
    Proof(
        name="datagrams_leave_in_order",
        component=LeavesInOrder,
        depth=3,
        probes={
            **{name: f"slots.{name}" for name in _PROBES if name != "state"},
            "state": "slots.fsm_state",
        },
    ),
)
