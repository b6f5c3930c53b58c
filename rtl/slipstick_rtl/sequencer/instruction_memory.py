"""The instruction memory: 32-bit words, shared by two fetchers."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..config import Configuration
from ..dma.layouts import INSTRUCTION_WORD
from ..latencies import INSTRUCTION_READ_LATENCY
from ..link.layouts import ByteWrite
from ..primitives.delay import delay
from ..primitives.resting import momentary_memory, read_register


class InstructionMemory(wiring.Component):
    """Gives each of two readers a word every other cycle, or every cycle if the other rests.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    write, write_enable : In
        A byte from the link.
    dma_writes : In(stream of INSTRUCTION_WORD)
        Only with DRAM: words, while the link writes none.
    request_0, address_0, grant_0, valid_0 : In, In, Out, Out
        Reader 0; its word is valid ``INSTRUCTION_READ_LATENCY`` cycles after the grant.
    request_1, address_1, grant_1, valid_1 : In, In, Out, Out
    word : Out
    """

    write: data.View
    request_0: Signal
    address_0: Signal
    grant_0: Signal
    valid_0: Signal
    request_1: Signal
    address_1: Signal
    grant_1: Signal
    valid_1: Signal
    write_enable: Signal
    dma_writes: stream.Interface
    word: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._depth = configuration.instruction_words
        self._has_dma, self._silicon = bool(configuration.dram), configuration.silicon
        ports: dict[str, Any] = {}
        if self._has_dma:
            ports["dma_writes"] = In(stream.Signature(INSTRUCTION_WORD))
        for k in range(2):
            ports |= {
                f"request_{k}": In(1),
                f"address_{k}": In(16),
                f"grant_{k}": Out(1),
                f"valid_{k}": Out(1),
            }
        super().__init__({"write": In(ByteWrite), "write_enable": In(1), "word": Out(32), **ports})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.memory = memory = momentary_memory(32, self._depth, silicon=self._silicon)
        writer, reader = memory.write_port(granularity=8), memory.read_port()
        bits = ceil_log2(self._depth)
        turn = Signal()
        m.d.sync += turn.eq(~turn)
        asked = self.request_0 | self.request_1 if self._silicon else None
        word = delay(
            m,
            read_register(m, reader.data, asked, "word"),
            INSTRUCTION_READ_LATENCY - 2,
            "later_word",
            reset_less=True,
        )
        m.d.comb += [
            writer.addr.eq(self.write.address[:bits]),
            writer.data.eq(self.write.data.replicate(4)),
            writer.en.eq(Mux(self.write_enable, 1 << self.write.offset[:2], 0)),
            self.grant_0.eq(self.request_0 & (~self.request_1 | turn)),
            self.grant_1.eq(self.request_1 & (~self.request_0 | ~turn)),
            reader.addr.eq(Mux(self.grant_0, self.address_0, self.address_1)[:bits]),
            reader.en.eq(1 if asked is None else asked),
            self.valid_0.eq(delay(m, self.grant_0, INSTRUCTION_READ_LATENCY, "granted_0")),
            self.valid_1.eq(delay(m, self.grant_1, INSTRUCTION_READ_LATENCY, "granted_1")),
            self.word.eq(word),
        ]
        if self._has_dma:
            given = self.dma_writes
            m.d.comb += given.ready.eq(~self.write_enable)
            with m.If(given.valid & given.ready):
                m.d.comb += [
                    writer.addr.eq(given.payload.address[:bits]),
                    writer.data.eq(given.payload.data),
                    writer.en.eq(~0),
                ]
        return m
