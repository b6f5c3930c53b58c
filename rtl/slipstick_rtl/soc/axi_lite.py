"""AXI4-Lite: its signals, and a subordinate in front of registers."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .register_file import RegisterBus
from .registers import WORD_BITS, WORD_BYTES


class AxiLite(wiring.Signature):
    """The five channels of AXI4-Lite with 32 bits of data, from the manager's side.

    AWPROT and ARPROT, which a subordinate may ignore, are left out.

    Parameters
    ----------
    address_bits : int
        Of byte addresses.
    """

    def __init__(self, address_bits: int) -> None:
        super().__init__(
            {
                "awaddr": Out(address_bits),
                "awvalid": Out(1),
                "awready": In(1),
                "wdata": Out(WORD_BITS),
                "wstrb": Out(WORD_BYTES),
                "wvalid": Out(1),
                "wready": In(1),
                "bresp": In(2),
                "bvalid": In(1),
                "bready": Out(1),
                "araddr": Out(address_bits),
                "arvalid": Out(1),
                "arready": In(1),
                "rdata": In(WORD_BITS),
                "rresp": In(2),
                "rvalid": In(1),
                "rready": Out(1),
            }
        )


class AxiLiteSubordinate(wiring.Component):
    """Turns AXI4-Lite into accesses to registers, one after the other.

    A write's address and data may come in either order, any time apart. When a read and a write
    wait, they take turns. Each channel holds one transfer, so that no output depends on an input
    in the same cycle. A write is answered at the earliest 3 cycles after its address and data were
    taken, a read likewise. The two lowest address bits are ignored: accesses are whole words, of
    which a write changes the bytes of its strobes.

    Parameters
    ----------
    address_bits : int
        Of byte addresses, at least 3.

    Members
    -------
    axi : In(AxiLite)
    bus : Out(RegisterBus)
    """

    axi: Any
    bus: Any

    def __init__(self, *, address_bits: int) -> None:
        self._address_bits = address_bits
        super().__init__({"axi": In(AxiLite(address_bits)), "bus": Out(RegisterBus(address_bits))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        axi, bus = self.axi, self.bus
        write_address, read_address = Signal.like(bus.address), Signal.like(bus.address)
        address_held, data_held, read_held = Signal(), Signal(), Signal()
        write_answered, read_answered = Signal(), Signal()  # the bus answers in this cycle
        wrote_last = Signal()
        can_write = address_held & data_held & ~axi.bvalid & ~write_answered
        can_read = read_held & ~axi.rvalid & ~read_answered
        m.d.comb += [
            bus.write.eq(can_write & ~(can_read & wrote_last)),
            bus.read.eq(can_read & ~bus.write),
            axi.awready.eq(~address_held),
            axi.wready.eq(~data_held),
            axi.arready.eq(~read_held),
            bus.address.eq(read_address),
        ]
        with m.If(bus.write):
            m.d.comb += bus.address.eq(write_address)
            m.d.sync += [address_held.eq(0), data_held.eq(0), wrote_last.eq(1)]
        with m.If(bus.read):
            m.d.sync += [read_held.eq(0), wrote_last.eq(0)]
        with m.If(axi.awvalid & axi.awready):
            m.d.sync += [address_held.eq(1), write_address.eq(axi.awaddr[2:])]
        with m.If(axi.wvalid & axi.wready):
            m.d.sync += [data_held.eq(1), bus.write_data.eq(axi.wdata)]
            m.d.sync += bus.write_strobes.eq(axi.wstrb)
        with m.If(axi.arvalid & axi.arready):
            m.d.sync += [read_held.eq(1), read_address.eq(axi.araddr[2:])]

        m.d.sync += [write_answered.eq(bus.write), read_answered.eq(bus.read)]
        with m.If(write_answered):
            m.d.sync += [axi.bvalid.eq(1), axi.bresp.eq(bus.outcome)]
        with m.Elif(axi.bready):
            m.d.sync += axi.bvalid.eq(0)
        with m.If(read_answered):
            m.d.sync += [axi.rvalid.eq(1), axi.rresp.eq(bus.outcome), axi.rdata.eq(bus.read_data)]
        with m.Elif(axi.rready):
            m.d.sync += axi.rvalid.eq(0)
        return m
