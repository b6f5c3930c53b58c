"""The payload of a compact link's answers: identity, status, or bytes of the activations."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...config import Configuration
from ..identity import Identity
from ..layouts import RunStatus
from ..response_sender import STATUS_BYTES


class CompactAnswer(wiring.Component):
    """Gives the bytes of an answer's payload, one after the other.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    load : In
        Takes ``status``: the counters of an answer are all of one cycle.
    status : In(RunStatus)
    identify, read : In
        The payload is the identity, or comes from ``read_data``; else it is the status.
    index : In
        Of the byte, from 1 up, modulo 16.
    read_data : In(stream of bytes)
    o : Out(stream of bytes)
    """

    load: Signal
    status: data.View
    identify: Signal
    read: Signal
    index: Signal
    read_data: stream.Interface
    o: stream.Interface

    def __init__(self, *, configuration: Configuration) -> None:
        self._identity = Identity.of(configuration).pack()
        super().__init__(
            {
                "load": In(1),
                "status": In(RunStatus),
                "identify": In(1),
                "read": In(1),
                "index": In(4),
                "read_data": In(stream.Signature(8)),
                "o": Out(stream.Signature(8)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        record = Signal(8 * STATUS_BYTES)
        identity = Signal(8)
        status = self.status.as_value()
        with m.Switch(self.index):
            for place, byte in enumerate(self._identity, 1):
                with m.Case(place):
                    m.d.comb += identity.eq(byte)
        m.d.comb += [
            self.o.valid.eq(~self.read | self.read_data.valid),
            self.read_data.ready.eq(self.read & self.o.ready),
            self.o.payload.eq(
                Mux(self.read, self.read_data.payload, Mux(self.identify, identity, record[:8]))
            ),
        ]
        with m.If(self.load):
            # the two flags fill a byte of their own
            m.d.sync += record.eq(Cat(status[:2], Const(0, 6), status[2:]))
        with m.Elif(self.o.ready):
            m.d.sync += record.eq(record >> 8)
        return m
