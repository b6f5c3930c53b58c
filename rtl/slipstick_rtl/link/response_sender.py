"""Sends a response's header, then its payload from a record or from memory."""

import struct

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .identity import Identity
from .layouts import Response
from .protocol import STATUS_BYTES

IDENTITY_BYTES = struct.calcsize(Identity.FORMAT)
RECORD_BYTES = max(IDENTITY_BYTES, STATUS_BYTES)


class ResponseSender(wiring.Component):
    """One response at a time.

    Members
    -------
    start : In
        Takes ``header``, ``record`` and ``from_memory``.
    header : In(Response)
    record : In
        The payload unless ``from_memory``, byte 0 lowest.
    from_memory : In
        The payload comes from ``read_data``.
    done : Out
        Strobe: header and payload have been handed over.
    read_data : In(stream of bytes)
    responses, response_data : Out(stream of Response, of bytes)
    """

    start: Signal
    header: data.View
    record: Signal
    from_memory: Signal
    done: Signal
    read_data: stream.Interface
    responses: stream.Interface
    response_data: stream.Interface

    def __init__(self) -> None:
        super().__init__(
            {
                "start": In(1),
                "header": In(Response),
                "record": In(8 * RECORD_BYTES),
                "from_memory": In(1),
                "done": Out(1),
                "read_data": In(stream.Signature(8)),
                "responses": Out(stream.Signature(Response)),
                "response_data": Out(stream.Signature(8)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        record = Signal(8 * RECORD_BYTES, reset_less=True)
        from_memory = Signal()
        left, some = Signal(16), Signal()

        with m.FSM():
            with m.State("wait"):
                m.d.sync += [
                    self.responses.payload.eq(self.header),
                    record.eq(self.record),
                    from_memory.eq(self.from_memory),
                    left.eq(self.header.length),
                ]
                with m.If(self.start):
                    m.next = "send the header"
            with m.State("send the header"):
                m.d.comb += self.responses.valid.eq(1)
                m.d.sync += some.eq(left != 0)
                with m.If(self.responses.ready):
                    m.next = "send the payload"
            with m.State("send the payload"):
                m.d.comb += [
                    self.response_data.payload.eq(
                        Mux(from_memory, self.read_data.payload, record[:8])
                    ),
                    self.response_data.valid.eq(some & (self.read_data.valid | ~from_memory)),
                    self.read_data.ready.eq(some & self.response_data.ready & from_memory),
                    self.done.eq(~some),
                ]
                with m.If(self.response_data.valid & self.response_data.ready):
                    m.d.sync += [left.eq(left - 1), some.eq(left != 1)]
                # whether there is a byte is known late; while a record is sent there is always one
                with m.If(self.response_data.ready):
                    m.d.sync += record.eq(record >> 8)
                with m.If(self.done):
                    m.next = "wait"
        return m
