"""The activation memory: B byte-wide banks, a port for windows and a port for everything else."""

from typing import Any

from amaranth.hdl import Array, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from ..config import Configuration
from ..primitives.delay import delay
from ..primitives.resting import momentary_memory, read_register
from ..primitives.stream_queue import StreamQueue
from .blocked_slices import BlockedSlices
from .byte_gatherer import ByteGatherer
from .port_arbiter import PortArbiter, byte_write_layout, slice_write_layout, write_layout

QUEUE_DEPTH = 4
"""Requests that a queue of the link holds. A write in a queue is done before any read."""

WINDOW_READ_LATENCY = 2
"""Cycles from a bank's row address to its byte: block RAM and its output register."""


class ActivationMemory(wiring.Component):
    """Byte ``a`` lies in bank ``a mod B``, row ``a div B``.

    Port A gives P x B bytes per cycle, every bank at its own row. Port B moves L aligned bytes a
    cycle for the post-processor, and a byte for the link, which waits if it wants the same banks.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    window_rows : In
        [P][B] row addresses, one per bank.
    window_data : Out
        [P][B] bytes in bank order, WINDOW_READ_LATENCY cycles later.
    write : In
        ``enable, address, data`` of L bytes at a multiple of L.
    read : In
        ``enable, address``; must not be enabled together with ``write``.
    read_data : Out
        L bytes, ACTIVATION_READ_LATENCY cycles after ``read``.
    link_writes, link_reads : In(stream)
        One byte a transfer; they wait for the post-processor (``PortArbiter``).
    link_settled : Out(1)
        Every byte that ``link_writes`` took is in the memory, or gets there before anything that
        begins in this cycle can read it.
    link_read_data, link_read_valid : Out
        The byte of each transfer of ``link_reads``, in order.
    dma_writes : In(stream of slice_write_layout), dma_reads : In(stream of addresses)
        Only with DRAM: slices of L bytes. They take turns with the link's.
    dma_read_valid, dma_read_data : Out
        The slice of each transfer of ``dma_reads``, in order. It does not wait.
    """

    window_rows: data.View
    window_data: data.View
    write: data.View
    read: data.View
    read_data: Signal
    link_read_data: Signal
    link_read_valid: Signal
    link_writes: stream.Interface
    link_reads: stream.Interface
    link_settled: Signal
    dma_writes: stream.Interface
    dma_reads: stream.Interface
    dma_read_valid: Signal
    dma_read_data: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = c = configuration
        address = exact_log2(c.activation_bytes)
        row = address - exact_log2(c.banks)
        dma = {
            "dma_writes": In(stream.Signature(slice_write_layout(c))),
            "dma_reads": In(stream.Signature(address)),
            "dma_read_valid": Out(1),
            "dma_read_data": Out(8 * c.lanes),
        }
        super().__init__(
            {
                **(dma if c.dram else {}),
                "window_rows": In(data.ArrayLayout(data.ArrayLayout(row, c.banks), c.pixels)),
                "window_data": Out(data.ArrayLayout(data.ArrayLayout(8, c.banks), c.pixels)),
                "write": In(write_layout(c)),
                "read": In(data.StructLayout({"enable": 1, "address": address})),
                "read_data": Out(8 * c.lanes),
                "link_writes": In(stream.Signature(byte_write_layout(c))),
                "link_reads": In(stream.Signature(address)),
                "link_settled": Out(1),
                "link_read_data": Out(8),
                "link_read_valid": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.arbiter = arbiter = PortArbiter(configuration=self._configuration)
        self._queue_link(m, arbiter)
        m.d.comb += [arbiter.write.eq(self.write), arbiter.read.eq(self.read)]
        row_bytes = Signal(8 * self._configuration.banks)
        for k in range(self._configuration.banks):
            self._add_bank(m, k, arbiter, row_bytes.word_select(k, 8))
        self._choose(m, arbiter, row_bytes)
        return m

    def _queue_link(self, m: Module, arbiter: PortArbiter) -> None:
        """Queues: the link does not hang on what the post-processor does in the same cycle."""
        c = self._configuration
        given, asked = self.link_writes, self.link_reads
        m.submodules.link_writes = writes = StreamQueue(
            shape=given.payload.shape(), depth=QUEUE_DEPTH
        )
        m.submodules.link_reads = reads = StreamQueue(
            shape=asked.payload.shape(), depth=QUEUE_DEPTH
        )
        m.submodules.gatherer = gatherer = ByteGatherer(configuration=c)
        connect(m, flipped(given), writes.i)
        connect(m, flipped(asked), reads.i)
        connect(m, writes.o, gatherer.i)
        some, whole, room = Signal(), Signal(), Signal()
        slices = stream.Signature(slice_write_layout(c)).create()
        m.d.comb += whole.eq(gatherer.whole)
        if c.slots > 1:
            # between registers: the gatherer does not hang on whose turn a slot is
            m.submodules.blocked = blocked = BlockedSlices(configuration=c)
            # a part of a slice, only where nothing waits and no byte joins it
            enters = whole | ~(blocked.some | writes.o.valid)
            m.d.comb += [
                blocked.i.valid.eq(slices.valid & enters),
                blocked.i.payload.eq(slices.payload),
                slices.ready.eq(blocked.i.ready & enters),
                room.eq(blocked.i.ready),
                blocked.busy.eq(arbiter.busy),
                arbiter.link_writes.valid.eq(blocked.o.valid),
                arbiter.link_writes.payload.eq(blocked.o.payload),
                some.eq(blocked.some | slices.valid),
            ]
        else:
            connect(m, slices, arbiter.link_writes)
            m.d.comb += [room.eq(arbiter.link_writes.ready), some.eq(slices.valid)]
        m.d.comb += [
            slices.valid.eq(gatherer.o.valid),
            slices.payload.eq(gatherer.o.payload),
            gatherer.o.ready.eq(slices.ready),
            arbiter.link_reads.valid.eq(reads.o.valid & ~some),
            arbiter.link_reads.payload.eq(reads.o.payload),
            reads.o.ready.eq(arbiter.link_reads.ready & ~some),
            self.link_read_valid.eq(delay(m, arbiter.link_reading, 4, "link_reading")),
        ]
        m.d.sync += self.link_settled.eq(~(writes.some | gatherer.o.valid | some))
        if c.dram:
            self._add_dma(m, arbiter, slices, gatherer, reads, some, whole, room)

    def _add_dma(
        self,
        m: Module,
        arbiter: PortArbiter,
        slices: Any,
        gatherer: ByteGatherer,
        reads: StreamQueue,
        some: Signal,
        whole: Signal,
        room: Signal,
    ) -> None:
        """The DMA's slices where the link has none; its reads likewise."""
        given, asked, own = self.dma_writes, self.dma_reads, Signal()
        m.d.comb += [
            own.eq(~gatherer.o.valid),
            # a whole slice enters wherever there is room: it hangs on nothing of the gatherer's
            given.ready.eq(room & own),
            asked.ready.eq(arbiter.link_reads.ready & ~some & ~reads.o.valid),
            self.dma_read_data.eq(self.read_data),
        ]
        with m.If(own):
            m.d.comb += [
                slices.valid.eq(given.valid),
                slices.payload.eq(given.payload),
                whole.eq(1),
            ]
        with m.If(~reads.o.valid):
            m.d.comb += [
                arbiter.link_reads.valid.eq(asked.valid & ~some),
                arbiter.link_reads.payload.eq(asked.payload),
            ]
        # whose the read is, beside it: the link's byte is chosen a cycle behind the slice
        is_own = delay(m, ~reads.o.valid, 1, "read_is_dma")
        by_dma, by_link = arbiter.link_reading & is_own, arbiter.link_reading & ~is_own
        m.d.comb += [
            self.dma_read_valid.eq(delay(m, by_dma, 3, "dma_reading")),
            self.link_read_valid.eq(delay(m, by_link, 4, "link_reading_own")),
        ]

    def _add_bank(self, m: Module, k: int, arbiter: PortArbiter, row_byte: Value) -> None:
        """Bank ``k``: its windows of port A, and its byte ``row_byte`` of port B's row."""
        c = self._configuration
        m.submodules[f"bank_{k}"] = bank = momentary_memory(
            8, c.activation_bytes // c.banks, silicon=c.silicon
        )
        writer, reader = bank.write_port(), bank.read_port()
        row = arbiter.rows[k // c.lanes]
        asked = arbiter.reading[k // c.lanes] if c.silicon else None
        # the same address on both lets synthesis map them to one port of a block RAM
        m.d.comb += [
            writer.addr.eq(row),
            writer.data.eq(arbiter.bytes.word_select(k, 8)),
            writer.en.eq(arbiter.enables[k]),
            reader.addr.eq(row),
            reader.en.eq(1 if asked is None else asked),
            # no reset: then it is the block RAM's own register
            row_byte.eq(read_register(m, reader.data, asked, f"row_byte_{k}")),
        ]
        for p in range(c.pixels):
            window = bank.read_port()
            byte = delay(m, window.data, 1, f"window_{p}_{k}", reset_less=True)
            m.d.comb += [
                window.addr.eq(self.window_rows[p][k]),
                window.en.eq(1),
                self.window_data[p][k].eq(byte),
            ]

    def _choose(self, m: Module, arbiter: PortArbiter, row_bytes: Signal) -> None:
        """Chooses from port B's row the L bytes of the post-processor's read or the link's byte."""
        lanes = self._configuration.lanes
        byte = delay(m, arbiter.byte, 2, "byte")
        slot = byte[exact_log2(lanes) :]
        slots = [row_bytes.word_select(k, 8 * lanes) for k in range(self._configuration.slots)]
        m.d.sync += self.read_data.eq(Array(slots)[slot])
        # out of L, not of B: the link's byte is chosen a cycle later
        lane = delay(m, byte[: exact_log2(lanes)], 1, "lane")
        m.d.sync += self.link_read_data.eq(self.read_data.word_select(lane, 8))
