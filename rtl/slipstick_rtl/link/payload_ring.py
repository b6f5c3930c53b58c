"""A ring of bytes that are read only after the frame that brought them has proved sound."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory, ReadPort, WritePort
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from ..memory.stream_queue import StreamQueue
from ..primitives.delay import delay

_FETCH_CYCLES = 2
"""The memory, and the register behind it."""

_ON_THE_WAY = _FETCH_CYCLES + 3
"""Bytes that may still come when ``room`` should end: fetched ones, what the queue's level does not
count yet, and what is fetched before ``room`` is a register."""

_QUEUE_BYTES = 2 * _ON_THE_WAY


class PayloadRing(wiring.Component):
    """First in, first out, with commit and revert.

    A byte comes out at the earliest five cycles after its commit; from then on one a cycle.

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

        A plain register right behind the memory, which is slow to answer, so that it becomes part
        of it; and a queue with room for all that is on the way when ``o`` stops.
        """
        m.submodules.queue = queue = StreamQueue(shape=8, depth=_QUEUE_BYTES)
        room, fetch = Signal(), Signal()
        m.d.comb += [
            fetch.eq(room & (read != committed)),
            port.addr.eq(read),
            port.en.eq(1),
            queue.i.payload.eq(delay(m, port.data, 1, "byte", reset_less=True)),
            queue.i.valid.eq(delay(m, fetch, _FETCH_CYCLES, "fetched")),
        ]
        m.d.sync += [read.eq(read + fetch), room.eq(queue.level <= _QUEUE_BYTES - _ON_THE_WAY)]
        connect(m, queue.o, flipped(self.o))
