"""From responses to bytes: frames them and adds the CRC on the fly."""

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.crc.catalog import CRC32_ETHERNET
from amaranth.lib.wiring import In, Out

from .layouts import Response
from .protocol import CRC_BYTES, HEADER_BYTES, RESPONSE_START


class FrameTransmitter(wiring.Component):
    """Sends responses, one byte a cycle; a frame costs two cycles besides its bytes.

    Members
    -------
    responses : In(stream of Response)
    payload : In(stream of bytes)
        ``length`` bytes for each response; waited for, so a payload may come slowly.
    o : Out(stream of bytes)
    """

    responses: stream.Interface
    payload: stream.Interface
    o: stream.Interface

    def __init__(self) -> None:
        super().__init__(
            {
                "responses": In(stream.Signature(Response)),
                "payload": In(stream.Signature(8)),
                "o": Out(stream.Signature(8)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.crc = crc = CRC32_ETHERNET(data_width=8).create()
        header = Signal(8 * HEADER_BYTES)
        remaining = Signal(16)
        index = Signal(range(max(HEADER_BYTES, CRC_BYTES)))
        byte, offered, covered = Signal(8), Signal(), Signal()
        room = ~self.o.valid | self.o.ready
        sent = offered & room

        # the CRC takes the byte from its register, a cycle late
        m.d.comb += crc.data.eq(self.o.payload)
        m.d.sync += crc.valid.eq(covered & sent)
        with m.If(room):
            m.d.sync += [self.o.valid.eq(offered), self.o.payload.eq(byte)]
        with m.If(sent):
            m.d.sync += index.eq(index + 1)

        with m.FSM():
            with m.State("wait for a response"):
                m.d.comb += [self.responses.ready.eq(1), crc.start.eq(1)]
                m.d.sync += [
                    header.eq(Cat(Const(RESPONSE_START, 8), self.responses.payload)),
                    remaining.eq(self.responses.p.length),
                    index.eq(0),
                ]
                with m.If(self.responses.valid):
                    m.next = "send the header"
            with m.State("send the header"):
                m.d.comb += [offered.eq(1), covered.eq(index != 0), byte.eq(header[:8])]
                with m.If(sent):
                    m.d.sync += header.eq(header >> 8)
                with m.If(sent & (index == HEADER_BYTES - 1)):
                    m.next = "send the payload"
                    with m.If(remaining == 0):
                        m.next = "finish the checksum"
            with m.State("send the payload"):
                m.d.comb += [
                    offered.eq(self.payload.valid),
                    covered.eq(1),
                    byte.eq(self.payload.payload),
                    self.payload.ready.eq(room),
                ]
                with m.If(sent):
                    m.d.sync += remaining.eq(remaining - 1)
                with m.If(sent & (remaining == 1)):
                    m.next = "finish the checksum"
            with m.State("finish the checksum"):
                m.d.sync += index.eq(0)
                m.next = "send the checksum"
            with m.State("send the checksum"):
                m.d.comb += [offered.eq(1), byte.eq(crc.crc.word_select(index, 8))]
                with m.If(sent & (index == CRC_BYTES - 1)):
                    m.next = "wait for a response"
        return m
