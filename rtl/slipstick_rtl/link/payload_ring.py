"""A ring of bytes that are read only after the frame that brought them has proved sound."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory, ReadPort, WritePort
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2


class PayloadRing(wiring.Component):
    """First in, first out, with commit and revert.

    A byte comes out at the earliest four cycles after its commit; from then on one a cycle.

    Parameters
    ----------
    depth : int
        A power of two of at least 4. At least ``depth - 2`` bytes can be held.

    Members
    -------
    data, write : In
        Stores a byte; not while ``full``.
    commit : In
        Releases all bytes written before this cycle.
    revert : In
        Forgets all bytes written since the last commit.
    full : Out
        No byte can be stored; waits for ``o``.
    o : Out(stream of bytes)
        Released bytes, in order.

    Raises
    ------
    ValueError
        If the depth is not a power of two of at least 4.
    """

    data: Signal
    write: Signal
    commit: Signal
    revert: Signal
    full: Signal
    o: stream.Interface

    def __init__(self, *, depth: int) -> None:
        if depth < 4 or depth & (depth - 1):
            raise ValueError(f"depth must be a power of two of at least 4, not {depth}")
        self._depth = depth
        super().__init__(
            {
                "data": In(8),
                "write": In(1),
                "commit": In(1),
                "revert": In(1),
                "full": Out(1),
                "o": Out(stream.Signature(8)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.memory = memory = Memory(shape=8, depth=self._depth, init=[])
        write_port = memory.write_port()
        read_port = memory.read_port()
        # one bit more than an address, so that a full ring differs from an empty one
        position_bits = exact_log2(self._depth) + 1
        written = Signal(position_bits)
        committed = Signal(position_bits)
        read = Signal(position_bits)
        self._store(m, write_port, written, committed, read)
        self._give(m, read_port, committed, read)
        return m

    def _store(
        self, m: Module, port: WritePort, written: Signal, committed: Signal, read: Signal
    ) -> None:
        """Bytes into the memory, and which of them count."""
        held = Signal.like(written)
        m.d.comb += [
            held.eq(written - read),
            port.addr.eq(written),
            port.data.eq(self.data),
            port.en.eq(self.write),
        ]
        # a cycle late, which the two places kept free make good
        m.d.sync += self.full.eq(held >= self._depth - 2)
        with m.If(self.revert):
            m.d.sync += written.eq(committed)
        with m.Elif(self.write):
            m.d.sync += written.eq(written + 1)
        with m.If(self.commit):
            m.d.sync += committed.eq(written)

    def _give(self, m: Module, port: ReadPort, committed: Signal, read: Signal) -> None:
        """Committed bytes out of the memory, to ``o``.

        A register right behind the memory, which is slow to answer; and a spare one, so that
        ``o.ready``, which may come late in the cycle, need not reach back to the memory.
        """
        fetched = Signal()
        word, word_valid = Signal(8), Signal()
        spare, spare_valid = Signal(8), Signal()
        send = ~self.o.valid | self.o.ready
        move = ~word_valid | ~spare_valid
        fetch = ~fetched | move
        m.d.comb += [port.addr.eq(read), port.en.eq(fetch)]
        with m.If(fetch):
            m.d.sync += [fetched.eq(read != committed), read.eq(read + (read != committed))]
        with m.If(move):
            m.d.sync += [word_valid.eq(fetched), word.eq(port.data)]
        with m.If(send):
            m.d.sync += [
                self.o.valid.eq(word_valid | spare_valid),
                self.o.payload.eq(Mux(spare_valid, spare, word)),
                spare_valid.eq(0),
            ]
        with m.Elif(~spare_valid):
            m.d.sync += [spare_valid.eq(word_valid), spare.eq(word)]
