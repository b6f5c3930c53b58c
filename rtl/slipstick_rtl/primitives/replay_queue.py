"""A queue that keeps what it gave until it is told that it may forget it."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

POSITION_BITS = 16


class ReplayQueue(wiring.Component):
    """First in, first out, and again from any place that was not released.

    A byte can leave two cycles after it came, one a cycle; after ``rewind`` the next is there a
    cycle later.

    Parameters
    ----------
    depth_bits : int
        The queue holds 2^depth_bits bytes, 1..15 bits: given or not, but not released.

    Members
    -------
    i : In(stream of bytes)
        Stalls while the queue is full.
    o : Out(stream of bytes)
    released, sent, written : Out(16)
        Numbers of bytes since reset, modulo 2^16: the first that is kept, the next on ``o``, the
        next on ``i``.
    rewind : In
        Strobe: forgets the bytes before ``position`` and goes on there. No byte may leave in the
        same cycle.
    position : In(16)
        From ``released`` to ``sent``.

    Raises
    ------
    ValueError
        If ``depth_bits`` is out of range.
    """

    i: stream.Interface
    o: stream.Interface
    released: Signal
    sent: Signal
    written: Signal
    rewind: Signal
    position: Signal

    def __init__(self, *, depth_bits: int) -> None:
        if not 1 <= depth_bits < POSITION_BITS:
            raise ValueError(f"depth_bits must be within 1..{POSITION_BITS - 1}, not {depth_bits}")
        self._depth_bits = depth_bits
        super().__init__(
            {
                "i": In(stream.Signature(8)),
                "o": Out(stream.Signature(8)),
                "released": Out(POSITION_BITS),
                "sent": Out(POSITION_BITS),
                "written": Out(POSITION_BITS),
                "rewind": In(1),
                "position": In(POSITION_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        bits = self._depth_bits
        m.submodules.memory = memory = Memory(shape=8, depth=1 << bits, init=[])
        write, read = memory.write_port(), memory.read_port()
        # whole numbers are equal as soon as these parts of them are: at most 2^bits lie between
        full = (self.written ^ self.released)[: bits + 1] == 1 << bits
        given = self.o.valid & self.o.ready
        following = Signal(POSITION_BITS)
        m.d.comb += [
            self.i.ready.eq(~full),
            write.en.eq(self.i.valid & self.i.ready),
            write.addr.eq(self.written),
            write.data.eq(self.i.payload),
            following.eq(Mux(self.rewind, self.position, self.sent + given)),
            read.addr.eq(following),
            read.en.eq(1),
            self.o.payload.eq(read.data),
        ]
        m.d.sync += [
            self.written.eq(self.written + write.en),
            self.sent.eq(following),
            # a byte written in this cycle is not read yet
            self.o.valid.eq(following[: bits + 1] != self.written[: bits + 1]),
        ]
        with m.If(self.rewind):
            m.d.sync += self.released.eq(self.position)
        return m
