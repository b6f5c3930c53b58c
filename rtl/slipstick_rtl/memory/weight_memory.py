"""The weight memory: words of C bytes, read by the weight loader first, then by table loads."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..config import Configuration
from ..link.layouts import ByteWrite
from ..primitives.delay import delay
from .latencies import WEIGHT_READ_LATENCY


class WeightMemory(wiring.Component):
    """One word a cycle out, one byte a cycle in.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    write, write_enable : In
        A byte from the link.
    loader_enable, loader_address : In
        The weight loader's read, always honoured.
    table_reads : In(stream)
        Word addresses of table loads, taken in cycles that the loader leaves.
    data : Out
        The word asked for WEIGHT_READ_LATENCY cycles ago.
    table_valid : Out
        ``data`` answers a transfer of ``table_reads``.
    """

    write: data.View
    write_enable: Signal
    loader_enable: Signal
    loader_address: Signal
    data: Signal
    table_valid: Signal
    table_reads: stream.Interface

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = c = configuration
        super().__init__(
            {
                "write": In(ByteWrite),
                "write_enable": In(1),
                "loader_enable": In(1),
                "loader_address": In(24),
                "table_reads": In(stream.Signature(24)),
                "data": Out(8 * c.columns),
                "table_valid": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        c = self._configuration
        m.submodules.memory = memory = Memory(shape=8 * c.columns, depth=c.weight_words, init=[])
        writer, reader = memory.write_port(granularity=8), memory.read_port()
        bits = ceil_log2(c.weight_words)
        # a byte is there two cycles later: long before a program can be started
        enables = Signal(c.columns)
        m.d.comb += enables.eq(Mux(self.write_enable, 1 << self.write.offset, 0))
        m.d.comb += [
            writer.addr.eq(delay(m, self.write.address[:bits], 1, "write_address")),
            writer.data.eq(delay(m, self.write.data, 1, "write_data").replicate(c.columns)),
            writer.en.eq(delay(m, enables, 1, "write_enables")),
            self.table_reads.ready.eq(~self.loader_enable),
            reader.en.eq(1),
            reader.addr.eq(
                Mux(self.loader_enable, self.loader_address, self.table_reads.payload)[:bits]
            ),
        ]
        accepted = self.table_reads.valid & self.table_reads.ready
        word = delay(m, reader.data, WEIGHT_READ_LATENCY - 1, "word", reset_less=True)
        m.d.comb += self.data.eq(word)
        m.d.comb += self.table_valid.eq(delay(m, accepted, WEIGHT_READ_LATENCY, "accepted"))
        return m
