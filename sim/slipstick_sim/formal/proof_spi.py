"""SPI transfers: whatever the controller sends, and whenever it stops, no byte is lost."""

from typing import Any

from amaranth.hdl import Assert, Assume, Module, Mux, ResetInserter, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, connect, flipped
from slipstick_rtl.phy.spi_transfer import SpiTransfer
from slipstick_rtl.primitives.replay_queue import POSITION_BITS, ReplayQueue

from .registry import Proof

DEPTH_BITS = 3


class PositionsStayInOrder(wiring.Component):
    """A controller that sends anything, selects the chip whenever it likes, and acknowledges.

    The queue's rule, that it is rewound to what it keeps and has given, is the transfer's promise.
    """

    done: Signal
    selected: Signal
    received: Signal
    room: Signal
    i: stream.Interface

    def __init__(self) -> None:
        super().__init__(
            {
                "done": In(1),
                "selected": In(1),
                "received": In(8),
                "room": In(1),
                "i": In(stream.Signature(8)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        transfer: Any = SpiTransfer(depth_bits=DEPTH_BITS)
        m.submodules.transfer = ResetInserter(~self.selected)(transfer)
        m.submodules.replay = replay = ReplayQueue(depth_bits=DEPTH_BITS)
        connect(m, flipped(self.i), replay.i)
        taken = Signal(POSITION_BITS)
        m.d.sync += taken.eq(taken + transfer.store)
        kept, given = Signal(POSITION_BITS), Signal(POSITION_BITS)
        back = Signal(POSITION_BITS)
        m.d.comb += [
            transfer.done.eq(self.done & self.selected),
            transfer.received.eq(self.received),
            transfer.taken.eq(taken),
            transfer.released.eq(replay.released),
            transfer.sent.eq(replay.sent),
            transfer.written.eq(replay.written),
            transfer.available.eq(replay.o.valid),
            transfer.given.eq(replay.o.payload),
            transfer.room.eq(self.room),
            replay.o.ready.eq(transfer.give),
            replay.rewind.eq(transfer.rewind & self.selected),
            replay.position.eq(transfer.position),
            kept.eq(replay.written - replay.released),
            given.eq(replay.sent - replay.released),
            back.eq(transfer.position - replay.released),
            Assert(kept <= 1 << DEPTH_BITS, "more is kept than there is room for"),
            Assert(given <= kept, "a byte is given before it came"),
            Assert(~transfer.rewind | (back <= given), "what was not given is acknowledged"),
            Assert(~(transfer.rewind & transfer.give), "a byte leaves while the place changes"),
            Assert(~replay.o.valid | (given < kept), "a byte is offered before it came"),
            Assert(~transfer.give | replay.o.valid, "a byte from nowhere is given"),
            Assert(~transfer.store | (self.room & self.done), "a byte is taken without room"),
        ]
        return m


class GivesInOrder(wiring.Component):
    """Any one byte, by its number: what is given there is what came there, as often as wished."""

    number: Signal
    i: stream.Interface
    ready: Signal
    rewind: Signal
    position: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "number": In(POSITION_BITS),
                "i": In(stream.Signature(8)),
                "ready": In(1),
                "rewind": In(1),
                "position": In(POSITION_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.replay = replay = ReplayQueue(depth_bits=1)
        connect(m, flipped(self.i), replay.i)
        number, chosen = Signal(POSITION_BITS), Signal()
        came, byte = Signal(), Signal(8)
        m.d.sync += [chosen.eq(1), number.eq(Mux(chosen, number, self.number))]
        arrives = self.i.valid & self.i.ready & (replay.written == number) & chosen
        with m.If(arrives):
            m.d.sync += [came.eq(1), byte.eq(self.i.payload)]
        given = replay.sent - replay.released
        back = (self.position - replay.released)[:POSITION_BITS]
        here = replay.o.valid & (replay.sent == number)
        m.d.comb += [
            replay.o.ready.eq(self.ready),
            replay.rewind.eq(self.rewind),
            replay.position.eq(self.position),
            Assume(self.i.payload[1:] == 0, "a bit is enough to tell a byte from another"),
            Assume(~self.rewind | (back <= given[:POSITION_BITS]), "rewound to what was given"),
            Assume(~(self.rewind & self.ready), "no byte leaves meanwhile"),
            Assert(~(here & chosen & (number != 0)) | came, "a byte before it came"),
            Assert(~(here & came) | (replay.o.payload == byte), "another byte than came"),
        ]
        return m


PROOFS = (
    Proof(name="spi_positions", component=PositionsStayInOrder, depth=4),
    Proof(name="replay_queue_in_order", component=GivesInOrder, depth=10, bounded=True),
)
