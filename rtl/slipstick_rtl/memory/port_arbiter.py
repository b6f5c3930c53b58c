"""Who uses port B of the activation memory: post-processor writes, its reads, then the link."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..config import Configuration


class PortArbiter(wiring.Component):
    """Turns requests into one row address, write enables and write data for all banks.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    write, read : In
        The post-processor's; L bytes at a multiple of L; never both.
    link_writes, link_reads : In(stream)
        Bytes; ready in cycles that the post-processor leaves, writes before reads.
    row, enables, bytes : Out
        For the banks, one cycle later.
    byte : Out
        Which byte of the row a read wants (its first, for L of them).
    link_reading : Out
        A link read goes to the banks in this cycle.
    """

    write: data.View
    read: data.View
    link_writes: stream.Interface
    link_reads: stream.Interface
    row: Signal
    enables: Signal
    bytes: Signal
    byte: Signal
    link_reading: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = c = configuration
        address = exact_log2(c.activation_bytes)
        self._byte_bits = exact_log2(c.rows)
        super().__init__(
            {
                "write": In(write_layout(c)),
                "read": In(data.StructLayout({"enable": 1, "address": address})),
                "link_writes": In(stream.Signature(byte_write_layout(c))),
                "link_reads": In(stream.Signature(address)),
                "row": Out(address - self._byte_bits),
                "enables": Out(c.rows),
                "bytes": Out(8 * c.rows),
                "byte": Out(self._byte_bits),
                "link_reading": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        c, bits = self._configuration, self._byte_bits
        lane_bits = exact_log2(c.lanes)
        idle = ~self.write.enable & ~self.read.enable
        link_write = self.link_writes.valid & idle
        link_read = self.link_reads.valid & idle & ~self.link_writes.valid
        address = Signal(exact_log2(c.activation_bytes))
        written = self.link_writes.payload
        m.d.comb += [
            self.link_writes.ready.eq(idle),
            self.link_reads.ready.eq(idle & ~self.link_writes.valid),
            address.eq(Mux(self.link_writes.valid, written.address, self.link_reads.payload)),
        ]
        with m.If(self.write.enable):
            m.d.comb += address.eq(self.write.address)
        with m.Elif(self.read.enable):
            m.d.comb += address.eq(self.read.address)
        by_link, results, byte = Signal(), Signal(8 * c.lanes), Signal(8)
        # each of its own address: which of them it is comes late
        slot = self.write.address[lane_bits:bits]
        slot_enables = Cat((slot == k).replicate(c.lanes) for k in range(c.rows // c.lanes))
        byte_enables = Cat(written.address[:bits] == k for k in range(c.rows))
        m.d.sync += [
            self.row.eq(address[bits:]),
            self.byte.eq(address[:bits]),
            self.enables.eq(Mux(self.write.enable, slot_enables, Mux(link_write, byte_enables, 0))),
            by_link.eq(~self.write.enable),
            results.eq(self.write.data),
            byte.eq(written.data),
            self.link_reading.eq(link_read),
        ]
        # chosen after the registers: before them the choice would hang on the write's enable
        chosen = Mux(by_link, byte.replicate(c.lanes), results)
        m.d.comb += self.bytes.eq(chosen.replicate(c.rows // c.lanes))
        return m


def write_layout(configuration: Configuration) -> data.StructLayout:
    """A write of L bytes."""
    return data.StructLayout(
        {
            "enable": 1,
            "address": exact_log2(configuration.activation_bytes),
            "data": 8 * configuration.lanes,
        }
    )


def byte_write_layout(configuration: Configuration) -> data.StructLayout:
    """A write of one byte."""
    return data.StructLayout({"address": exact_log2(configuration.activation_bytes), "data": 8})
