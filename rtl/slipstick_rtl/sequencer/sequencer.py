"""The sequencer: two fetchers over one memory, and the counters of a run."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ..config import Configuration
from ..dma.layouts import INSTRUCTION_WORD
from ..isa import MATRIX_OPCODES, POST_OPCODES, STREAMS
from ..layouts import MATRIX_INSTRUCTION, post_instruction
from ..link.layouts import ByteWrite, ProgramCounters
from .fetcher import Fetcher
from .instruction_memory import InstructionMemory
from .repeater import Repeater

MATRIX_STEPS = {"weight_address": "weight_step", "origin": "origin_step"}
"""Fields that grow with each turn of a CONVOLVE, and those that say by how much."""

POST_STEPS = {"destination": "destination_step", "parameter_address": "parameter_step"}
"""Likewise of a DRAIN."""


class Sequencer(wiring.Component):
    """Starts both streams, feeds the engines, and counts the cycles until all is done.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    write, write_enable : In
        A byte of the instruction memory from the link.
    dma_writes : In(stream of INSTRUCTION_WORD)
        Only with DRAM: words, while the link writes none.
    run, pcs : In
    matrix, post : Out(stream)
        Instructions for the engines.
    matrix_busy, post_busy : In
        Work is under way there.
    matrix_streaming : In
        The array gets a vector in this cycle.
    running, bad_instruction : Out
    cycles, stream_cycles : Out
        Since ``run``: all; those with a vector, and those with the post engine busy.
    """

    write: data.View
    write_enable: Signal
    run: Signal
    pcs: data.View
    matrix_busy: Signal
    post_busy: Signal
    matrix_streaming: Signal
    running: Signal
    bad_instruction: Signal
    cycles: Signal
    stream_cycles: data.View
    dma_writes: stream.Interface
    matrix: stream.Interface
    post: stream.Interface

    def __init__(self, *, configuration: Configuration) -> None:
        self._memory = InstructionMemory(configuration=configuration)
        self._has_dma = bool(configuration.dram)
        post_layout = post_instruction(configuration)
        self._matrix = Fetcher(
            configuration=configuration, layout=MATRIX_INSTRUCTION, opcodes=MATRIX_OPCODES
        )
        self._post = Fetcher(configuration=configuration, layout=post_layout, opcodes=POST_OPCODES)
        # a bank is free for a turn when the turn that filled it last has been drained
        self._repeaters = (
            Repeater(layout=MATRIX_INSTRUCTION, steps=MATRIX_STEPS, fills=True),
            Repeater(layout=post_layout, steps=POST_STEPS, fills=False),
        )
        dma = {"dma_writes": In(stream.Signature(INSTRUCTION_WORD))} if configuration.dram else {}
        super().__init__(
            {
                **dma,
                "write": In(ByteWrite),
                "write_enable": In(1),
                "run": In(1),
                "pcs": In(ProgramCounters),
                "matrix": Out(stream.Signature(MATRIX_INSTRUCTION)),
                "post": Out(stream.Signature(post_layout)),
                "matrix_busy": In(1),
                "post_busy": In(1),
                "matrix_streaming": In(1),
                "running": Out(1),
                "bad_instruction": Out(1),
                "cycles": Out(32),
                "stream_cycles": Out(data.ArrayLayout(32, len(STREAMS))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.memory = memory = self._memory
        m.submodules.matrix, m.submodules.post = matrix, post = self._matrix, self._post
        m.d.comb += [memory.write.eq(self.write), memory.write_enable.eq(self.write_enable)]
        if self._has_dma:
            connect(m, flipped(self.dma_writes), memory.dma_writes)
        ports = (
            (matrix, memory.request_0, memory.address_0, memory.grant_0, memory.valid_0),
            (post, memory.request_1, memory.address_1, memory.grant_1, memory.valid_1),
        )
        for fetcher, request, address, grant, valid in ports:
            m.d.comb += [
                fetcher.start.eq(self.run),
                request.eq(fetcher.request),
                address.eq(fetcher.address),
                fetcher.grant.eq(grant),
                fetcher.word.eq(memory.word),
                fetcher.word_valid.eq(valid),
            ]
        m.submodules.repeat_matrix, m.submodules.repeat_post = self._repeaters
        repeat_matrix, repeat_post = self._repeaters
        connect(m, matrix.instructions, repeat_matrix.i)
        connect(m, post.instructions, repeat_post.i)
        connect(m, repeat_matrix.o, flipped(self.matrix))
        connect(m, repeat_post.o, flipped(self.post))
        m.d.comb += [
            matrix.pc.eq(self.pcs[0]),
            post.pc.eq(self.pcs[1]),
            self.bad_instruction.eq(matrix.bad | post.bad),
        ]
        under_way = Signal()
        fetching = matrix.active | post.active | repeat_matrix.busy | repeat_post.busy
        m.d.comb += under_way.eq(fetching | self.matrix_busy | self.post_busy)
        m.d.sync += self.running.eq(self.run | under_way)
        with m.If(self.run):
            m.d.sync += [self.cycles.eq(0), self.stream_cycles.eq(0)]
        with m.Elif(self.running):
            m.d.sync += [
                self.cycles.eq(self.cycles + 1),
                *(
                    self.stream_cycles[stream].eq(self.stream_cycles[stream] + working)
                    for stream, working in enumerate((self.matrix_streaming, self.post_busy))
                ),
            ]
        return m
