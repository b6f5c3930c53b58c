"""Finds where frames begin and end in a stream of the link's bytes."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..link.protocol import CRC_BYTES, HEADER_BYTES


class FrameFollower(wiring.Component):
    """Follows the frames of :mod:`slipstick_rtl.link.protocol`, whatever they contain.

    Parameters
    ----------
    start_byte : int
        With which a frame begins; other bytes between frames are skipped.

    Members
    -------
    data : In(8)
        A byte, while ``taken``.
    taken : In
    inside : Out
        A frame has begun and not ended, with the bytes taken before this cycle.
    last : Out
        ``data`` is, once taken, the last byte of a frame.
    kind, sequence : Out(8)
        Of the header, from its end to the next frame's beginning.
    """

    data: Signal
    taken: Signal
    inside: Signal
    last: Signal
    kind: Signal
    sequence: Signal

    def __init__(self, *, start_byte: int) -> None:
        self._start_byte = start_byte
        super().__init__(
            {
                "data": In(8),
                "taken": In(1),
                "inside": Out(1),
                "last": Out(1),
                "kind": Out(8),
                "sequence": Out(8),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        length_low = Signal(8)
        header = Cat(self.kind, self.sequence, length_low)
        remaining = Signal(17)
        with m.If(self.taken):
            m.d.sync += remaining.eq(remaining - 1)
        with m.FSM():
            with m.State("hunt for the start"):
                m.d.sync += remaining.eq(HEADER_BYTES - 1)
                with m.If(self.taken & (self.data == self._start_byte)):
                    m.next = "follow the header"
            with m.State("follow the header"):
                m.d.comb += self.inside.eq(1)
                with m.If(self.taken & (remaining != 1)):
                    m.d.sync += header.eq(Cat(header[8:], self.data))
                with m.If(self.taken & (remaining == 1)):
                    m.d.sync += remaining.eq(Cat(length_low, self.data) + CRC_BYTES)
                    m.next = "follow the rest"
            with m.State("follow the rest"):
                m.d.comb += [self.inside.eq(1), self.last.eq(remaining == 1)]
                with m.If(self.taken & self.last):
                    m.next = "hunt for the start"
        return m
