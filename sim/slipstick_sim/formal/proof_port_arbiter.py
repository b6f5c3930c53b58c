"""The arbiter of port B: who gets the activation memory, and which bytes are written."""

from dataclasses import replace
from functools import partial
from typing import Any

from amaranth.hdl import Assert, Assume, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, connect, flipped
from amaranth.utils import exact_log2
from slipstick_rtl.config import Configuration
from slipstick_rtl.memory.blocked_slices import BlockedSlices
from slipstick_rtl.memory.byte_gatherer import ByteGatherer
from slipstick_rtl.memory.port_arbiter import (
    PortArbiter,
    byte_write_layout,
    slice_write_layout,
    write_layout,
)

from .registry import Proof

CONFIGURATION = Configuration(rows=16, columns=4, lanes=4, activation_bytes=1 << 10)
WITH_DRAM = replace(CONFIGURATION, columns=8, lanes=4, dram="MT48LC16M16")
SMALL = Configuration(rows=8, columns=4, lanes=4, activation_bytes=1 << 10)


class WritesWhatIsAddressed(wiring.Component):
    """Compares what the banks are told with the access that was accepted a cycle before."""

    write: data.View
    read: Signal
    read_address: Signal
    link_writes: stream.Interface
    link_reads: stream.Interface

    def __init__(self, configuration: Configuration = CONFIGURATION) -> None:
        self._configuration = configuration
        address = exact_log2(configuration.activation_bytes)
        super().__init__(
            {
                "write": In(write_layout(self._configuration)),
                "read": In(1),
                "read_address": In(address),
                "link_writes": In(stream.Signature(slice_write_layout(self._configuration))),
                "link_reads": In(stream.Signature(address)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        arbiter: Any = PortArbiter(configuration=self._configuration)
        m.submodules.arbiter = arbiter
        connect(m, flipped(self.link_writes), arbiter.link_writes)
        connect(m, flipped(self.link_reads), arbiter.link_reads)
        link_write = self.link_writes.valid & self.link_writes.ready
        link_read = self.link_reads.valid & self.link_reads.ready
        both = self.link_writes.valid & self.link_reads.valid
        busy = self.write.enable | self.read
        bits, lane_bits = (
            exact_log2(self._configuration.banks),
            exact_log2(self._configuration.lanes),
        )
        used = Mux(self.write.enable, self.write.address, self.read_address)
        slot, link_slot = (
            address[lane_bits:bits] for address in (used, self.link_writes.payload.address)
        )
        beside = Signal()
        if self._configuration.dram:
            # a read may go on beside a write to other banks
            read_slot = self.link_reads.payload[lane_bits:bits]
            m.d.comb += beside.eq(self.write.enable & (slot != read_slot))
        m.d.comb += [
            arbiter.write.eq(self.write),
            arbiter.read.enable.eq(self.read),
            arbiter.read.address.eq(self.read_address),
            Assume(~(self.write.enable & self.read), "it writes or reads"),
            Assume(self.write.address[:lane_bits] == 0, "whole slices are written"),
            Assume(self.link_writes.payload.address[:lane_bits] == 0, "of one slice"),
            Assume(~both, "a read waits for the writes before it"),
            Assert(arbiter.busy == Mux(busy, 1 << slot, 0), "another slot is said to be busy"),
            Assert(~(busy & ~beside & link_read), "the link interferes"),
            Assert(~(busy & link_write & (slot == link_slot)), "the link's write interferes"),
            Assert(
                busy & (slot == link_slot) | link_write | ~self.link_writes.valid,
                "a link's write must wait",
            ),
            Assert(
                busy & ~beside | link_read | ~self.link_reads.valid,
                "the link starves",
            ),
        ]
        self._check_banks(m, arbiter, link_write, link_read)
        return m

    def _check_banks(self, m: Module, arbiter: Any, link_write: Value, link_read: Value) -> None:
        """Asserts what the banks get, one cycle later, byte by byte."""
        bits = exact_log2(self._configuration.banks)
        wrote, read, link_wrote, link_has_read = Signal(), Signal(), Signal(), Signal()
        address, link_address = Signal.like(self.read_address), Signal.like(self.read_address)
        link_sent, sent = Signal.like(self.write.data), Signal.like(self.write.data)
        mask = Signal(self._configuration.lanes)
        m.d.sync += [
            wrote.eq(self.write.enable),
            read.eq(self.read),
            link_wrote.eq(link_write),
            link_has_read.eq(link_read),
            address.eq(Mux(self.write.enable, self.write.address, self.read_address)),
            link_address.eq(
                Mux(link_write, self.link_writes.payload.address, self.link_reads.payload)
            ),
            link_sent.eq(self.link_writes.payload.data),
            mask.eq(self.link_writes.payload.mask),
            sent.eq(self.write.data),
        ]
        wanted = Mux(read, address, link_address)
        m.d.comb += [
            Assert(~(read | link_has_read) | (arbiter.byte == wanted[:bits]), "another byte"),
            Assert(arbiter.link_reading == link_has_read, "a link read is not told from others"),
        ]
        lane_bits = exact_log2(self._configuration.lanes)
        for k in range(self._configuration.banks):
            enable, told = arbiter.enables[k], arbiter.bytes.word_select(k, 8)
            row = arbiter.rows[k // self._configuration.lanes]
            here = address[lane_bits:bits] == k // self._configuration.lanes
            lane = k % self._configuration.lanes
            aimed = link_address[lane_bits:bits] == k // self._configuration.lanes
            by_engine, by_link = wrote & here, link_wrote & aimed & mask[lane]
            link_reads = link_has_read & (link_address[:bits] == k)
            own, theirs = sent.word_select(lane, 8), link_sent.word_select(lane, 8)
            m.d.comb += [
                Assert(
                    enable == by_engine | by_link, f"byte {k} is written when it must not, or not"
                ),
                Assert(~by_engine | (told == own), f"byte {k} is not what was sent"),
                Assert(~by_link | (told == theirs), f"byte {k} is not what the link sent"),
                Assert(
                    ~((wrote | read) & here) | (row == address[bits:]), f"another row of byte {k}"
                ),
                Assert(
                    ~(by_link | link_reads) | (row == link_address[bits:]),
                    f"another row of the link's byte {k}",
                ),
            ]


class KeepsEveryByte(wiring.Component):
    """The gatherer: of any one address, what was taken last is what was given last, or is held."""

    i: stream.Interface
    o_ready: Signal
    watched: Signal

    def __init__(self) -> None:
        address = exact_log2(CONFIGURATION.activation_bytes)
        super().__init__(
            {
                "i": In(stream.Signature(byte_write_layout(CONFIGURATION))),
                "o_ready": In(1),
                "watched": In(address),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.gatherer = gatherer = ByteGatherer(configuration=CONFIGURATION)
        connect(m, flipped(self.i), gatherer.i)
        lane_bits = exact_log2(CONFIGURATION.lanes)
        out, watched = gatherer.o, Signal.like(self.watched)
        known, taken, given, began = Signal(), Signal(8), Signal(8), Signal()
        m.d.sync += [watched.eq(self.watched), began.eq(1)]
        lane = self.watched[:lane_bits]
        aimed = out.p.address[lane_bits:] == self.watched[lane_bits:]
        held = out.valid & aimed & (out.p.mask >> lane)[0]
        byte = out.p.data.word_select(lane, 8)
        m.d.comb += [
            out.ready.eq(self.o_ready),
            Assume(~began | (watched == self.watched), "one address is watched"),
            Assert(out.p.address[:lane_bits] == 0, "the address of no slice"),
            Assert(~known | held | (given == taken), "a byte is lost"),
            Assert(~held | (known & (byte == taken)), "a byte is another one"),
        ]
        with m.If(self.i.valid & self.i.ready & (self.i.p.address == self.watched)):
            m.d.sync += [known.eq(1), taken.eq(self.i.p.data)]
        with m.If(held & out.ready):
            m.d.sync += given.eq(byte)
        return m


class KeepsTheOrderOfAPlace(wiring.Component):
    """The queue of blocked slices: what is written to an address last stays.

    Its memory is no part of an induction, so only the first cycles are looked at: enough for the
    queue to fill up, and for slices to pass it, to join it and to leave it.
    """

    i: stream.Interface
    busy: Signal
    watched: Signal

    def __init__(self) -> None:
        address = exact_log2(SMALL.activation_bytes)
        super().__init__(
            {
                "i": In(stream.Signature(slice_write_layout(SMALL))),
                "busy": In(SMALL.slots),
                "watched": In(address),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.blocked = blocked = BlockedSlices(configuration=SMALL, depth=2)
        connect(m, flipped(self.i), blocked.i)
        bits, lane_bits = exact_log2(SMALL.banks), exact_log2(SMALL.lanes)
        watched, given = Signal.like(self.watched), blocked.o.payload
        known, taken, written, began = Signal(), Signal(8), Signal(8), Signal()
        slot = given.address[lane_bits:bits]
        m.d.sync += [watched.eq(self.watched), began.eq(1)]
        m.d.comb += [
            blocked.busy.eq(self.busy),
            Assume(~began | (watched == self.watched), "one address is watched"),
            Assume(self.i.payload.address[:lane_bits] == 0, "of one slice"),
            Assert(~known | blocked.some | (written == taken), "a byte is lost or overtaken"),
            Assert(~(blocked.o.valid & self.busy.bit_select(slot, 1)), "a busy slot is written"),
        ]
        with m.If(self.i.valid & self.i.ready & self._is_aimed(self.i.payload)):
            m.d.sync += [known.eq(1), taken.eq(self._byte(self.i.payload))]
        with m.If(blocked.o.valid & self._is_aimed(given)):
            m.d.sync += written.eq(self._byte(given))
        return m

    def _lane(self) -> Value:
        return self.watched[: exact_log2(SMALL.lanes)]

    def _is_aimed(self, payload: data.View) -> Value:
        lane_bits = exact_log2(SMALL.lanes)
        its_slice = payload.address[lane_bits:] == self.watched[lane_bits:]
        return its_slice & payload.mask.bit_select(self._lane(), 1)

    def _byte(self, payload: data.View) -> Value:
        return payload.data.word_select(self._lane(), 8)


PROOFS = (
    Proof(name="port_arbiter", component=WritesWhatIsAddressed, depth=2),
    Proof(
        name="port_arbiter_with_dram",
        component=partial(WritesWhatIsAddressed, WITH_DRAM),
        depth=2,
    ),
    Proof(name="byte_gatherer", component=KeepsEveryByte, depth=3),
    Proof(name="blocked_slices", component=KeepsTheOrderOfAPlace, depth=9, bounded=True),
)
