"""The board's end of the datagrams: the link's bytes, for one host at a time."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from .board_owner import BoardOwner
from .datagram_choice import DatagramChoice
from .datagram_slots import DatagramSlots, check_slots
from .datagrams import SLOT_BYTES, SLOTS
from .packet_reader import PacketReader
from .packet_words import RECEIVED_WORD, SENT_WORD
from .packet_writer import PacketWriter
from .send_buffer import SendBuffer

QUIET_CYCLES = 300
"""3 us of 100 MHz: longer than any rest in the link's answers."""


class EthernetPort(wiring.Component):
    """Passes bytes between the link and a host, by the rules of :mod:`.datagrams`.

    A word per cycle each way. ``received`` rests for two cycles after each packet and waits for
    nothing else: what finds no room is dropped. ``o`` gives a byte per cycle, with four cycles of
    rest between datagrams.

    Parameters
    ----------
    identity : bytes
        12 bytes, as ``Identity.pack`` makes them.
    lease_cycles : int
        Cycles of ``sync`` that make ``LEASE_SECONDS``.
    slots, slot_bytes : int
        Powers of two, 2..16 and 256..1024.
    quiet_cycles : int
        Bytes of ``i`` are sent when it pauses for so long, or when there are ``LONGEST_SEND``.

    Members
    -------
    i, o : In(stream of bytes), Out(stream of bytes)
        To and from the host. Without an owner, bytes of ``i`` are taken and lost.
    received : In(stream of RECEIVED_WORD)
    sent : Out(stream of SENT_WORD)
        Packets, as :mod:`.packet_words` says. Words wait for ``ready`` alone.
    owned : Out
        A lease is alive.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """

    i: stream.Interface
    o: stream.Interface
    received: stream.Interface
    sent: stream.Interface
    owned: Signal

    def __init__(
        self,
        *,
        identity: bytes,
        lease_cycles: int,
        slots: int = SLOTS,
        slot_bytes: int = SLOT_BYTES,
        quiet_cycles: int = QUIET_CYCLES,
    ) -> None:
        check_slots(slots, slot_bytes)
        sizes = {"slots": slots, "slot_bytes": slot_bytes}
        self._reader = PacketReader(slot_bytes=slot_bytes)
        self._owner = BoardOwner(lease_cycles=lease_cycles)
        self._slots = DatagramSlots(**sizes)
        self._buffer = SendBuffer(quiet_cycles=quiet_cycles)
        self._writer = PacketWriter(identity=identity, **sizes)
        super().__init__(
            {
                "i": In(stream.Signature(8)),
                "o": Out(stream.Signature(8)),
                "received": In(stream.Signature(RECEIVED_WORD)),
                "sent": Out(stream.Signature(SENT_WORD)),
                "owned": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.reader = reader = self._reader
        m.submodules.board_owner = owner = self._owner
        m.submodules.slots = slots = self._slots
        m.submodules.buffer = buffer = self._buffer
        m.submodules.choice = choice = DatagramChoice()
        m.submodules.writer = writer = self._writer
        connect(m, flipped(self.received), reader.received)
        connect(m, slots.o, flipped(self.o))
        connect(m, flipped(self.i), buffer.i)
        connect(m, writer.sent, flipped(self.sent))
        for source, sink, names in (
            (reader, owner, ("head", "kinds")),
            (reader, slots, ("body", "store", "body_last", "ending", "ended")),
            (reader, choice, ("head",)),
            (owner, choice, ("reply", "present", "owner")),
            (owner, writer, ("owned", "owner")),
            (choice, writer, ("available", "kind", "to")),
            (writer, choice, ("take", "left")),
            (slots, writer, ("next", "waiting")),
            (buffer, choice, ("ready",)),
            (buffer, writer, ("ready", "count", "word")),
            (writer, buffer, ("leaves", "left", "place", "fetch")),
        ):
            m.d.comb += [getattr(sink, name).eq(getattr(source, name)) for name in names]
        changes = owner.granted | owner.released
        m.d.comb += [
            slots.number.eq(reader.head.number),
            slots.keep.eq(owner.data),
            slots.clear.eq(owner.granted),
            buffer.enable.eq(owner.present),
            buffer.clear.eq(changes),
            choice.clear.eq(changes),
            choice.report.eq(owner.poll | slots.report),
            self.owned.eq(owner.owned),
        ]
        return m
