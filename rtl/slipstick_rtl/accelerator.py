"""The core: bytes of the link in, bytes of the link out; it knows no board."""

from typing import Any

from amaranth.hdl import Cat, Module, ResetInserter, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from .array.accumulators import Accumulators
from .array.matrix_engine import MatrixEngine
from .compact.engine import CompactEngine
from .config import Configuration
from .dma.dma_unit import DmaUnit
from .dma.transfer import TRANSFER_BYTES, DmaStatus
from .layouts import EVENTS
from .link.links import make_link
from .link.protocol import DEFAULT_TIMEOUT_CYCLES, Space
from .link.spaces import inner_number
from .memory.activation_memory import ActivationMemory
from .memory.weight_memory import WeightMemory
from .postprocess.post_engine import PostEngine
from .primitives.delay import delay
from .primitives.fanout import copy_of
from .primitives.read_queue import ReadQueue
from .sequencer.sequencer import Sequencer


class Accelerator(wiring.Component):
    """Link, sequencer, matrix engine, post engine and memories; or link and compact engine.

    Parameters
    ----------
    configuration : Configuration
    timeout_cycles : int
        Of the link: cycles without a byte after which half a frame is forgotten; at least 1.
    power_up_seconds : float, optional
        Before the first command to the DRAM; by default what chips want.

    Members
    -------
    i, o : In(stream), Out(stream)
        Bytes of the framed link (:mod:`slipstick_rtl.link.protocol`).
    running : Out
        A program runs.
    events : Out
        For profiles; unconnected it costs nothing.
    chip : Out(SdrSignature)
        Only with DRAM: its pins.
    """

    events: data.View
    i: stream.Interface
    o: stream.Interface
    running: Signal
    chip: Any

    def __init__(
        self,
        *,
        configuration: Configuration,
        timeout_cycles: int = DEFAULT_TIMEOUT_CYCLES,
        power_up_seconds: float | None = None,
    ) -> None:
        self._configuration = c = configuration
        self.link = make_link(c, timeout_cycles)
        self._compact = CompactEngine(configuration=c) if c.traits.shares_memory else None
        if self._compact is None:
            self.sequencer = Sequencer(configuration=c)
            self.matrix = MatrixEngine(configuration=c)
            self.accumulators = Accumulators(configuration=c)
            self.post = PostEngine(configuration=c)
            self.activations = ActivationMemory(configuration=c)
            self.weights = WeightMemory(configuration=c)
        self.dma = None
        if c.dram:
            self.dma = DmaUnit(configuration=c, power_up_seconds=power_up_seconds)
        chip = {"chip": Out(self.dma.chip.signature)} if self.dma is not None else {}
        super().__init__(
            {
                **chip,
                "i": In(stream.Signature(8)),
                "o": Out(stream.Signature(8)),
                "running": Out(1),
                "events": Out(EVENTS),
            }
        )

    @property
    def configuration(self) -> Configuration:
        """Returns the configuration that the core was made for."""
        return self._configuration

    def elaborate(self, platform: object) -> Module:
        m = Module()
        connect(m, self.link.i, flipped(self.i))
        connect(m, self.link.o, flipped(self.o))
        m.submodules.link = self.link
        m.d.comb += self.running.eq(self.link.status.running)
        if self._compact is not None:
            self._connect_compact(m, self._compact)
            return m
        # thousands of registers wait for these two; what sends instructions is reset first
        reset, reset_post = Signal(), Signal()
        m.d.sync += [reset.eq(self.link.reset_run), reset_post.eq(reset)]
        m.submodules.sequencer = ResetInserter(reset)(self.sequencer)
        m.submodules.matrix = ResetInserter(reset)(self.matrix)
        m.submodules.post = ResetInserter(reset_post)(self.post)
        m.submodules.accumulators = self.accumulators
        m.submodules.activations = self.activations
        m.submodules.weights = self.weights
        run = self._connect_run(m)
        self._connect_writes(m)
        if self.dma is not None:
            self._connect_dma(m, self.dma, *run)
        self._connect_reads(m)
        self._connect_matrix(m, platform)
        self._connect_post(m)
        return m

    def _connect_compact(self, m: Module, engine: CompactEngine) -> None:
        """The link, and behind it the engine that has all memories."""
        link = self.link
        reset = Signal()
        m.d.sync += reset.eq(link.reset_run)
        m.submodules.compact = ResetInserter(reset)(engine)
        connect(m, link.writes, engine.writes)
        connect(m, link.reads, engine.reads)
        connect(m, engine.read_data, link.read_data)
        m.d.comb += [
            engine.run.eq(link.run),
            engine.clear.eq(link.clear),
            engine.pcs.eq(link.pcs),
            link.status.eq(engine.status),
            self.events.eq(engine.events),
        ]

    def _connect_run(self, m: Module) -> tuple[Signal, Signal, Any]:
        """Returns what starts a run, what clears the counters then, and the status."""
        link, sequencer, matrix, post = self.link, self.sequencer, self.matrix, self.post
        connect(m, sequencer.matrix, matrix.instructions)
        connect(m, sequencer.post, post.instructions)
        # registers both ways: the link decodes requests and puts answers together beside them
        clear, status = Signal(), Signal.like(link.status)
        # what the link has written is in the memory before anything can read it
        starting, settled = Signal(), self.activations.link_settled
        m.d.sync += [
            starting.eq(link.run | (starting & ~settled & ~link.reset_run)),
            clear.eq(link.run & link.clear),
            link.status.eq(status),
        ]
        pcs = Signal.like(link.pcs)
        with m.If(link.run):
            m.d.sync += pcs.eq(link.pcs)
        starts, clears = Signal(), Signal()
        m.d.comb += [
            sequencer.pcs.eq(pcs),
            starts.eq(starting & settled),
            clears.eq(clear),
            sequencer.run.eq(starts),
            sequencer.matrix_busy.eq(matrix.busy),
            sequencer.matrix_streaming.eq(matrix.streaming),
            sequencer.post_busy.eq(post.busy),
            matrix.clear.eq(clears),
            post.clear.eq(clears),
            matrix.post_done.eq(post.post_done),
            post.matrix_done.eq(matrix.done),
            status.running.eq(sequencer.running | starting),
            status.bad_instruction.eq(sequencer.bad_instruction),
            status.done[0].eq(matrix.done),
            status.done[1].eq(post.post_done),
            status.cycles.eq(sequencer.cycles),
            status.stream_cycles.eq(sequencer.stream_cycles),
            self.events.matrix_start.eq(matrix.started),
            self.events.matrix_done.eq(matrix.completed),
            self.events.post_start.eq(post.started),
            self.events.post_done.eq(post.completed),
        ]
        return starts, clears, status

    def _connect_writes(self, m: Module) -> None:
        """The link's bytes go to the memory that they name; only the activations' may wait."""
        writes = self.link.writes
        byte, memory = writes.payload, self.activations
        into_activations = byte.space == Space.ACTIVATIONS
        # from registers, as these memories are all over the chip
        late = delay(m, byte, 2, "written")
        enable = delay(m, writes.valid & ~into_activations, 2, "writing")
        others = (
            (Space.INSTRUCTIONS, self.sequencer.write, self.sequencer.write_enable),
            (Space.WEIGHTS, self.weights.write, self.weights.write_enable),
        )
        for space, port, port_enable in others:
            m.d.comb += [port.eq(late), port_enable.eq(enable & (late.space == space))]
        m.d.comb += [
            memory.link_writes.valid.eq(writes.valid & into_activations),
            memory.link_writes.payload.address.eq(byte.address),
            memory.link_writes.payload.data.eq(byte.data),
            writes.ready.eq(~into_activations | memory.link_writes.ready),
        ]

    def _connect_dma(
        self, m: Module, dma: DmaUnit, starts: Signal, clears: Signal, status: Any
    ) -> None:
        """Instructions from the link; all memories; and runs, as the link's."""
        link, sequencer, memory, writes = (
            self.link,
            self.sequencer,
            self.activations,
            self.link.writes,
        )
        byte = writes.payload
        into_dma = byte.space == inner_number(Space.TRANSFERS)
        m.submodules.dma = dma
        connect(m, dma.chip, flipped(self.chip))
        connect(m, dma.weight_writes, self.weights.dma_writes)
        connect(m, dma.instruction_writes, sequencer.dma_writes)
        given, taken = dma.activation_writes, memory.dma_writes
        asked, read = dma.activation_reads, memory.dma_reads
        m.d.comb += [
            dma.bytes.valid.eq(writes.valid & into_dma),
            dma.bytes.payload.data.eq(byte.data),
            dma.bytes.payload.last.eq(byte.offset == TRANSFER_BYTES - 1),
            dma.bytes.payload.ends_word.eq(byte.offset[:3].all()),
            dma.clear.eq(link.reset_run),
            taken.valid.eq(given.valid),
            *(taken.payload[name].eq(given.payload[name]) for name in ("address", "data", "mask")),
            given.ready.eq(taken.ready),
            read.valid.eq(asked.valid),
            read.payload.eq(asked.payload),
            asked.ready.eq(read.ready),
            dma.activation_read_valid.eq(memory.dma_read_valid),
            dma.activation_chunk.eq(memory.dma_read_data),
            dma.activations_settled.eq(memory.link_settled),
            dma.running.eq(sequencer.running),
            dma.bad_instruction.eq(sequencer.bad_instruction),
            status.dma.eq(dma.status),
        ]
        with m.If(into_dma):
            m.d.comb += writes.ready.eq(dma.bytes.ready)
        with m.If(dma.busy):
            m.d.comb += status.running.eq(1)
        with m.If(dma.status != DmaStatus.OK):
            m.d.comb += status.bad_instruction.eq(1)
        # the cycles of a list, until the link itself begins a run
        by_list = Signal()
        with m.If(dma.listing):
            m.d.sync += by_list.eq(1)
        with m.Elif(link.run):
            m.d.sync += by_list.eq(0)
        with m.If(by_list):
            m.d.comb += status.cycles.eq(dma.cycles)
        with m.If(dma.run):
            m.d.comb += [starts.eq(1), clears.eq(1), sequencer.pcs.eq(dma.pcs)]

    def _connect_reads(self, m: Module) -> None:
        m.submodules.queue = queue = ReadQueue(
            address_bits=exact_log2(self._configuration.activation_bytes)
        )
        connect(m, queue.memory_requests, self.activations.link_reads)
        connect(m, queue.o, self.link.read_data)
        reads = self.link.reads
        m.d.comb += [
            queue.requests.valid.eq(reads.valid),
            queue.requests.payload.eq(reads.payload),
            reads.ready.eq(queue.requests.ready),
            queue.memory_data.eq(self.activations.link_read_data),
            queue.memory_valid.eq(self.activations.link_read_valid),
        ]

    def _connect_matrix(self, m: Module, platform: object) -> None:
        matrix = self.matrix
        phase = Signal()
        m.d.sync += phase.eq(~phase)
        # a register for each, as they lie apart
        phases = [copy_of(m, platform, ~phase, f"phase_{unit}") for unit in ("matrix", "post")]
        connect(m, matrix.weight_reads, self.weights.loader_reads)
        m.d.comb += [
            Cat(matrix.phase, self.post.phase).eq(Cat(phases)),
            matrix.weight_data.eq(self.weights.data),
            matrix.weight_ninth.eq(self.weights.ninth),
            self.activations.window_rows.eq(matrix.bank_rows),
            matrix.bank_bytes.eq(self.activations.window_data),
            self.accumulators.control.eq(matrix.control),
            self.accumulators.partial_sums.eq(matrix.partial_sums),
            self.accumulators.even_sums.eq(matrix.even_sums),
        ]

    def _connect_post(self, m: Module) -> None:
        post, memory = self.post, self.activations
        connect(m, post.parameter_reads, self.weights.parameter_reads)
        connect(m, post.table_reads, self.weights.table_reads)
        m.d.comb += [
            self.weights.parameters_urgent.eq(post.parameters_urgent),
            post.weight_data.eq(self.weights.data),
            post.weight_ninth.eq(self.weights.ninth),
            self.accumulators.read.eq(post.accumulator_read),
            post.accumulator_data.eq(self.accumulators.read_data),
            memory.read.eq(post.activation_read),
            post.activation_read_data.eq(memory.read_data),
            memory.write.eq(post.activation_write),
        ]
