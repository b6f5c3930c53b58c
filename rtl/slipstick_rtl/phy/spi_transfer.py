"""One SPI transfer, byte by byte: what to send next, and what of the received counts."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.crc import Algorithm
from amaranth.lib.wiring import In, Out

from ..primitives.replay_queue import POSITION_BITS
from .spi_protocol import (
    CRC_INITIAL,
    CRC_POLYNOMIAL,
    DEVICE_HEADER_BYTES,
    FILLER,
    FIRST_SLOT,
    HOST_HEADER_BYTES,
    HOST_START,
    TRAILER_BYTES,
)

FIELDS = data.StructLayout({name: POSITION_BITS for name in ("received", "count", "slots")})
"""Fields of a host header that are kept; its position is compared as it comes."""

TRAILER = FIRST_SLOT
"""Places count the bytes that the device sends, from 0 on, but not those in the slots."""


def _crc() -> Any:
    """``crc8`` as gateware, a byte a cycle."""
    algorithm = Algorithm(
        crc_width=8,
        polynomial=CRC_POLYNOMIAL,
        initial_crc=CRC_INITIAL,
        reflect_input=False,
        reflect_output=False,
        xor_output=0,
    )
    return algorithm(data_width=8).create()


class SpiTransfer(wiring.Component):
    """Follows the layout of :mod:`spi_protocol` from selection on; reset it between transfers.

    A header is judged within 4 cycles after its last byte, of the 32 that the next one takes.

    Parameters
    ----------
    depth_bits : int
        Told to the host.

    Members
    -------
    done : In
        Strobe: ``received`` is complete, and ``next`` is taken.
    received : In(8)
    next : Out(8)
        Valid while ``done``.
    taken, released, sent, written : In(16)
        The positions that the device is at.
    rewind : Out
        Strobe: the header is right, and ``sent`` and ``released`` must become ``position``.
    position : Out(16)
    refused : Out
        Strobe: a header with the right start broke a rule.
    given : In(8)
        The next byte to give, if ``available``.
    available : In
    give : Out
        Strobe: ``given`` is sent.
    store : Out
        Strobe: ``received`` is the host's next byte, and there is ``room``.
    room : In
    """

    done: Signal
    received: Signal
    next: Signal
    taken: Signal
    released: Signal
    sent: Signal
    written: Signal
    rewind: Signal
    position: Signal
    refused: Signal
    given: Signal
    available: Signal
    give: Signal
    store: Signal
    room: Signal

    def __init__(self, *, depth_bits: int) -> None:
        self._depth_bits = depth_bits
        super().__init__(
            {
                "done": In(1),
                "received": In(8),
                "next": Out(8),
                "taken": In(POSITION_BITS),
                "released": In(POSITION_BITS),
                "sent": In(POSITION_BITS),
                "written": In(POSITION_BITS),
                "rewind": Out(1),
                "position": Out(POSITION_BITS),
                "refused": Out(1),
                "given": In(8),
                "available": In(1),
                "give": Out(1),
                "store": Out(1),
                "room": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        place = Signal(range(TRAILER + TRAILER_BYTES + 1), init=1)  # of the byte that comes next
        in_slots = Signal()
        fields = Signal(FIELDS)
        started, sound = Signal(), Signal(init=1)
        m.submodules.host_crc = crc = _crc()
        m.d.comb += self.position.eq(fields.received)
        with m.FSM():
            with m.State("header"), m.If(self.done):
                m.d.sync += place.eq(place + 1)
                m.d.comb += [crc.data.eq(self.received), crc.valid.eq(place != 1)]
                self._check_byte(m, place, fields.as_value(), started, sound)
                with m.If(place == HOST_HEADER_BYTES):
                    m.next = "judge"
            self._judge(m, fields, crc.crc, sound)
            with m.State("decide"):
                m.d.comb += [self.rewind.eq(started & sound), self.refused.eq(started & ~sound)]
                m.next = "rest"
                with m.If(self.rewind):
                    m.next = "slots"
            with m.State("slots"):
                m.d.comb += in_slots.eq(fields.slots != 0)
                self._move(m, fields, in_slots)
                with m.If(self.done & ~in_slots):
                    m.d.sync += place.eq(place + 1)
                    m.next = "trailer"
            with m.State("trailer"), m.If(self.done):
                m.d.sync += place.eq(place + 1)
                with m.If(place == TRAILER + TRAILER_BYTES - 1):
                    m.next = "rest"
            with m.State("rest"):
                m.d.sync += place.eq(TRAILER + TRAILER_BYTES)
        self._report(m, place, in_slots)
        return m

    def _check_byte(
        self, m: Module, place: Signal, fields: Any, started: Signal, sound: Signal
    ) -> None:
        """A byte of the host's header: the one before ``place``."""
        with m.Switch(place):
            with m.Case(1):
                m.d.sync += started.eq(self.received == HOST_START)
            with m.Case(2):
                m.d.sync += sound.eq(sound & (self.received == self.taken[:8]))
            with m.Case(3):
                m.d.sync += sound.eq(sound & (self.received == self.taken[8:]))
            with m.Case(HOST_HEADER_BYTES):
                pass
            with m.Default():
                m.d.sync += fields.eq(Cat(fields[8:], self.received))

    def _judge(self, m: Module, fields: data.View, checksum: Value, sound: Signal) -> None:
        """The states that judge a whole header: one works out the distances, one compares them."""
        ahead, held = Signal(POSITION_BITS), Signal(POSITION_BITS)
        with m.State("judge"):
            m.d.sync += [
                ahead.eq(fields.received - self.released),
                held.eq(self.sent - self.released),
            ]
            m.next = "compare"
        with m.State("compare"):
            rules = (checksum == 0) & (ahead <= held) & (fields.count <= fields.slots)
            m.d.sync += sound.eq(sound & rules)
            m.next = "decide"

    def _move(self, m: Module, fields: data.View, in_slots: Signal) -> None:
        """A byte each way: the one of the slot before, and the one of the next slot."""
        slot_over, full, dry = Signal(), Signal(), Signal()
        mine = slot_over & (fields.count != 0)
        m.d.comb += [
            self.store.eq(self.done & mine & ~full & self.room),
            self.give.eq(self.done & in_slots & ~dry & self.available),
        ]
        with m.If(self.done):
            m.d.sync += [slot_over.eq(in_slots), full.eq(full | mine & ~self.room)]
            with m.If(mine):
                m.d.sync += fields.count.eq(fields.count - 1)
            with m.If(in_slots):
                m.d.sync += [fields.slots.eq(fields.slots - 1), dry.eq(dry | ~self.available)]

    def _report(self, m: Module, place: Signal, in_slots: Signal) -> None:
        """The bytes of header and trailer: two for each number, read at once."""
        m.submodules.device_crc = crc = _crc()
        word, high, report = Signal(POSITION_BITS), Signal(8), Signal(8)
        checked = Signal()
        words = {
            2: self.taken,
            4: self.released,
            6: self.written,
            TRAILER: self.sent,
            TRAILER + 2: self.taken,
            TRAILER + 4: self.written,
        }
        m.d.comb += [
            report.eq(FILLER),
            checked.eq(1),
            self.next.eq(Mux(in_slots, Mux(self.give, self.given, FILLER), report)),
            crc.data.eq(report),
            crc.valid.eq(self.done & checked & ~in_slots),
            crc.start.eq(self.rewind),
        ]
        with m.If(self.done):
            m.d.sync += high.eq(word[8:])
        with m.Switch(place):
            with m.Case(1):
                m.d.comb += report.eq(self._depth_bits)
            for first, value in words.items():
                with m.Case(first):
                    m.d.comb += [word.eq(value), report.eq(value[:8])]
                with m.Case(first + 1):
                    m.d.comb += report.eq(high)
            with m.Case(DEVICE_HEADER_BYTES - 1, TRAILER + TRAILER_BYTES - 1):
                m.d.comb += [report.eq(crc.crc), checked.eq(0)]
            with m.Default():
                m.d.comb += checked.eq(0)
