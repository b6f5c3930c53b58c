"""Makes bytes of responses: frames them and adds the CRC on the fly."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.crc.catalog import CRC32_ETHERNET
from amaranth.lib.wiring import In, Out, connect, flipped

from .layouts import Response
from .protocol import CRC_BYTES, HEADER_BYTES, RESPONSE_START

_Byte = data.StructLayout({"data": 8, "covered": 1})


class _Output(wiring.Component):
    """A register on the way out, and the CRC over the bytes in it that are ``covered``.

    ``checksum`` counts a byte two cycles after ``i`` took it; ``restart`` begins a new one.
    """

    i: stream.Interface
    o: stream.Interface
    restart: Signal
    checksum: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "i": In(stream.Signature(_Byte)),
                "o": Out(stream.Signature(8)),
                "restart": In(1),
                "checksum": Out(32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        crc: Any = CRC32_ETHERNET(data_width=8).create()
        m.submodules.crc = crc
        m.d.comb += [
            self.i.ready.eq(~self.o.valid | self.o.ready),
            crc.start.eq(self.restart),
            crc.data.eq(self.o.payload),
            self.checksum.eq(crc.crc),
        ]
        m.d.sync += crc.valid.eq(self.i.valid & self.i.ready & self.i.p.covered)
        with m.If(self.i.ready):
            m.d.sync += [self.o.valid.eq(self.i.valid), self.o.payload.eq(self.i.p.data)]
        return m


class FrameTransmitter(wiring.Component):
    """Sends responses, one byte a cycle; a frame costs two cycles besides its bytes.

    Members
    -------
    session : In
        What the CRC of a response is sealed with, if it says so.
    responses : In(stream of Response)
    payload : In(stream of bytes)
        ``length`` bytes for each response; waited for, so a payload may come slowly.
    o : Out(stream of bytes)
    """

    session: Signal
    responses: stream.Interface
    payload: stream.Interface
    o: stream.Interface

    def __init__(self) -> None:
        super().__init__(
            {
                "session": In(8 * CRC_BYTES),
                "responses": In(stream.Signature(Response)),
                "payload": In(stream.Signature(8)),
                "o": Out(stream.Signature(8)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.output = output = _Output()
        connect(m, output.o, flipped(self.o))
        header = Signal(8 * HEADER_BYTES)
        sealed = Signal()
        remaining = Signal(16)
        index = Signal(range(max(HEADER_BYTES, CRC_BYTES)))
        byte = output.i
        sent = byte.valid & byte.ready
        with m.If(sent):
            m.d.sync += [header.eq(header >> 8), index.eq(index + 1)]

        with m.FSM():
            with m.State("wait for a response"):
                m.d.comb += [self.responses.ready.eq(1), output.restart.eq(1)]
                m.d.sync += [
                    header.eq(Cat(Const(RESPONSE_START, 8), self.responses.payload)),
                    sealed.eq(self.responses.p.sealed),
                    remaining.eq(self.responses.p.length),
                    index.eq(0),
                ]
                with m.If(self.responses.valid):
                    m.next = "send the header"
            with m.State("send the header"):
                m.d.comb += [byte.valid.eq(1), byte.p.covered.eq(index != 0)]
                m.d.comb += byte.p.data.eq(header[:8])
                with m.If(sent & (index == HEADER_BYTES - 1)):
                    m.next = "send the payload"
                    with m.If(remaining == 0):
                        m.next = "finish the checksum"
            with m.State("send the payload"):
                self._send_payload(m, byte, sent, remaining)
            with m.State("finish the checksum"):
                m.d.sync += index.eq(0)
                m.next = "send the checksum"
            with m.State("send the checksum"):
                self._send_checksum(m, output, sent, index, sealed)
        return m

    def _send_payload(
        self, m: Module, byte: stream.Interface, sent: Value, remaining: Signal
    ) -> None:
        """The payload's state: each byte as it comes."""
        m.d.comb += [byte.valid.eq(self.payload.valid), byte.p.covered.eq(1)]
        m.d.comb += byte.p.data.eq(self.payload.payload)
        m.d.comb += self.payload.ready.eq(byte.ready)
        with m.If(sent):
            m.d.sync += remaining.eq(remaining - 1)
        with m.If(sent & (remaining == 1)):
            m.next = "finish the checksum"

    def _send_checksum(
        self, m: Module, output: _Output, sent: Value, index: Signal, sealed: Signal
    ) -> None:
        """The checksum's state: byte by byte, sealed with the session if it shall be."""
        seal = self.session.word_select(index, 8) & sealed.replicate(8)
        m.d.comb += output.i.valid.eq(1)
        m.d.comb += output.i.p.data.eq(output.checksum.word_select(index, 8) ^ seal)
        with m.If(sent & (index == CRC_BYTES - 1)):
            m.next = "wait for a response"
