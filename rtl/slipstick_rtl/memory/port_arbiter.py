"""Who uses port B of the activation memory: post-processor writes, its reads, then the link."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..config import Configuration
from ..primitives.resting import where


class PortArbiter(wiring.Component):
    """Turns requests into row addresses, write enables and write data for all banks.

    A slot is L banks side by side, which the post-processor uses together. A write of the link goes
    on beside it if it is to another slot.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    write, read : In
        The post-processor's; L bytes at a multiple of L; never both.
    link_writes, link_reads : In(stream)
        Bytes of a slice, and a byte; never both valid. A write is ready unless the post-processor
        uses its slot; a read, in cycles in which the post-processor wants nothing. With DRAM a
        read goes on beside the post-processor's write to another slot as well: a run may write
        every cycle, and the DMA's list must come to its next transfer meanwhile.
    busy : Out(B / L)
        The slots that the post-processor uses in this cycle.
    rows, enables, bytes : Out
        For the banks, one cycle later; ``rows`` has one of each slot.
    byte : Out
        Which byte of the row a read wants (its first, for L of them).
    link_reading : Out
        A link read goes to the banks in this cycle.
    reading : Out
        With ``silicon``: a read goes to a slot's banks in this cycle.
    """

    write: data.View
    read: data.View
    link_writes: stream.Interface
    link_reads: stream.Interface
    busy: Signal
    rows: data.View
    enables: Signal
    bytes: Signal
    byte: Signal
    link_reading: Signal
    reading: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = c = configuration
        address = exact_log2(c.activation_bytes)
        self._byte_bits = exact_log2(c.banks)
        super().__init__(
            {
                "write": In(write_layout(c)),
                "read": In(data.StructLayout({"enable": 1, "address": address})),
                "link_writes": In(stream.Signature(slice_write_layout(c))),
                "link_reads": In(stream.Signature(address)),
                "busy": Out(c.slots),
                "rows": Out(data.ArrayLayout(address - self._byte_bits, c.slots)),
                "enables": Out(c.banks),
                "bytes": Out(8 * c.banks),
                "byte": Out(self._byte_bits),
                "link_reading": Out(1),
                **({"reading": Out(c.slots)} if c.silicon else {}),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        c, bits = self._configuration, self._byte_bits
        lane_bits = exact_log2(c.lanes)
        written, wanted = self.link_writes.payload, self.link_reads.payload
        idle = ~self.write.enable & ~self.read.enable
        address = Mux(self.write.enable, self.write.address, self.read.address)
        # by the read: whether a write is valid is known late in the cycle
        link_address = Mux(self.link_reads.valid, wanted, written.address)
        slot, link_slot = address[lane_bits:bits], written.address[lane_bits:bits]
        beside = idle
        if c.dram:
            beside = idle | (self.write.enable & (slot != wanted[lane_bits:bits]))
        link_read = Signal()
        m.d.comb += [
            self.link_writes.ready.eq(idle | (slot != link_slot)),
            self.link_reads.ready.eq(beside),
            link_read.eq(self.link_reads.valid & self.link_reads.ready),
        ]
        results, sent = Signal(8 * c.lanes), Signal(8 * c.lanes)
        m.d.sync += self.byte.eq(Mux(self.read.enable, self.read.address, wanted)[:bits])
        # in standard cells only what is written
        with where(m, self.write.enable if c.silicon else None):
            m.d.sync += results.eq(self.write.data)
        with where(m, self.link_writes.valid if c.silicon else None):
            m.d.sync += sent.eq(written.data)
        m.d.sync += self.link_reading.eq(link_read)
        for k in range(c.slots):
            here = self.busy[k]
            m.d.comb += here.eq(~idle & (slot == k))
            by_link = Signal(name=f"by_link_{k}")
            theirs = Mux(self.link_writes.valid & (link_slot == k), written.mask, 0)
            enables = Mux(here, self.write.enable.replicate(c.lanes), theirs)
            m.d.sync += [
                self.rows[k].eq(Mux(here, address[bits:], link_address[bits:])),
                self.enables.word_select(k, c.lanes).eq(enables),
                by_link.eq(~here),
            ]
            if c.silicon:
                asked = link_read & (wanted[lane_bits:bits] == k)
                m.d.sync += self.reading[k].eq(asked | (self.read.enable & (slot == k)))
            # chosen after the registers: before them the choice would hang on the write's enable
            m.d.comb += self.bytes.word_select(k, 8 * c.lanes).eq(Mux(by_link, sent, results))
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


def slice_write_layout(configuration: Configuration) -> data.StructLayout:
    """A write of those bytes of L that ``mask`` says."""
    layout = write_layout(configuration)
    members = {"address": layout["address"].shape, "data": layout["data"].shape}
    return data.StructLayout({**members, "mask": configuration.lanes})


def byte_write_layout(configuration: Configuration) -> data.StructLayout:
    """A write of one byte."""
    return data.StructLayout({"address": exact_log2(configuration.activation_bytes), "data": 8})
