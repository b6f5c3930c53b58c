"""The arbiter of port B: who gets the activation memory, and which bytes are written."""

from typing import Any

from amaranth.hdl import Array, Assert, Assume, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, connect, flipped
from amaranth.utils import exact_log2
from slipstick_rtl.config import Configuration
from slipstick_rtl.memory.port_arbiter import PortArbiter, byte_write_layout, write_layout

from .registry import Proof

CONFIGURATION = Configuration(rows=16, columns=4, lanes=4, activation_bytes=1 << 10)


class WritesWhatIsAddressed(wiring.Component):
    """Compares what the banks are told with the access that was accepted a cycle before."""

    write: data.View
    read: Signal
    read_address: Signal
    link_writes: stream.Interface
    link_reads: stream.Interface

    def __init__(self) -> None:
        address = exact_log2(CONFIGURATION.activation_bytes)
        super().__init__(
            {
                "write": In(write_layout(CONFIGURATION)),
                "read": In(1),
                "read_address": In(address),
                "link_writes": In(stream.Signature(byte_write_layout(CONFIGURATION))),
                "link_reads": In(stream.Signature(address)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        arbiter: Any = PortArbiter(configuration=CONFIGURATION)
        m.submodules.arbiter = arbiter
        connect(m, flipped(self.link_writes), arbiter.link_writes)
        connect(m, flipped(self.link_reads), arbiter.link_reads)
        link_write = self.link_writes.valid & self.link_writes.ready
        link_read = self.link_reads.valid & self.link_reads.ready
        busy = self.write.enable | self.read
        lane_bits = exact_log2(CONFIGURATION.lanes)
        m.d.comb += [
            arbiter.write.eq(self.write),
            arbiter.read.enable.eq(self.read),
            arbiter.read.address.eq(self.read_address),
            Assume(~(self.write.enable & self.read), "it writes or reads"),
            Assume(self.write.address[:lane_bits] == 0, "whole slices are written"),
            Assert(~(busy & (link_write | link_read)), "the link interferes"),
            Assert(~(link_write & link_read), "the link writes and reads at once"),
            Assert(busy | link_write | ~self.link_writes.valid, "a link's write must wait"),
            Assert(busy | link_write | link_read | ~self.link_reads.valid, "the link starves"),
        ]
        self._check_banks(m, arbiter, link_write, link_read)
        return m

    def _check_banks(self, m: Module, arbiter: Any, link_write: Value, link_read: Value) -> None:
        """What the banks see, one cycle later, byte by byte."""
        bits = exact_log2(CONFIGURATION.rows)
        address = Signal.like(self.read_address)
        first, last = Signal(bits), Signal(bits)
        writes, link_wrote, accessed, reads = Signal(), Signal(), Signal(), Signal()
        sent = Signal.like(self.write.data)
        where = Mux(
            self.write.enable,
            self.write.address,
            Mux(
                self.read,
                self.read_address,
                Mux(link_write, self.link_writes.payload.address, self.link_reads.payload),
            ),
        )
        count = Mux(self.write.enable, CONFIGURATION.lanes, 1)
        m.d.sync += [
            address.eq(where),
            first.eq(where[:bits]),
            last.eq(where[:bits] + count - 1),
            writes.eq(self.write.enable | link_write),
            link_wrote.eq(link_write),
            reads.eq(link_read),
            accessed.eq(self.write.enable | self.read | link_write | link_read),
            sent.eq(Mux(self.write.enable, self.write.data, self.link_writes.payload.data)),
        ]
        m.d.comb += [
            Assert(~accessed | (Cat(arbiter.byte, arbiter.row) == address), "another address"),
            Assert(arbiter.link_reading == reads, "a link read is not told from others"),
        ]
        lanes = Array(sent.word_select(k, 8) for k in range(CONFIGURATION.lanes))
        for k in range(CONFIGURATION.rows):
            enable, byte = arbiter.enables[k], arbiter.bytes.word_select(k, 8)
            addressed = writes & (first <= k) & (k <= last)
            expected = Mux(link_wrote, sent[:8], lanes[k % CONFIGURATION.lanes])
            m.d.comb += [
                Assert(enable == addressed, f"byte {k} is written when it must not, or not"),
                Assert(~enable | (byte == expected), f"byte {k} is not what was sent"),
            ]


PROOFS = (Proof(name="port_arbiter", component=WritesWhatIsAddressed, depth=2),)
