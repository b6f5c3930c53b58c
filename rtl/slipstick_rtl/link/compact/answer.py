"""The payload of a compact link's answers: identity, status, or bytes of the activations."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...config import Configuration
from ..identity import Identity
from ..layouts import RunStatus
from ..protocol import STATUS_BYTES

_FLAGS, _PART = 4, 32
"""Bits of a status: its flags, and each of the parts behind them."""


class CompactAnswer(wiring.Component):
    """Gives the bytes of an answer's payload, one after the other.

    A part of the status is of the cycle in which its first byte becomes the next one: the state,
    the counters of completed instructions together, and each counter of cycles.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    load : In
        The answer has begun, but not its payload.
    status : In(RunStatus)
    sequence : In(8)
        The next one, behind the status.
    identify, read : In
        The payload is the identity, or comes from ``read_data``; else it is the status.
    beyond : In
        With ``read``: there is no such byte in memory, and a zero comes instead.
    hold : In
        No byte goes.
    index : In
        Of the byte, from 1 up, modulo 32.
    read_data : In(stream of bytes)
    o : Out(stream of bytes)
    """

    load: Signal
    status: data.View
    sequence: Signal
    identify: Signal
    read: Signal
    beyond: Signal
    hold: Signal
    index: Signal
    read_data: stream.Interface
    o: stream.Interface

    def __init__(self, *, configuration: Configuration) -> None:
        self._identity = Identity.of(configuration).pack()
        super().__init__(
            {
                "status": In(RunStatus),
                "sequence": In(8),
                **dict.fromkeys(("load", "identify", "read", "beyond", "hold"), In(1)),
                "index": In(STATUS_BYTES.bit_length()),
                "read_data": In(stream.Signature(8)),
                "o": Out(stream.Signature(8)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        identity, rest = Signal(8), Signal(_PART)
        with m.Switch(self.index[:4]):
            for place, byte in enumerate(self._identity, 1):
                with m.Case(place):
                    m.d.comb += identity.eq(byte)
        status = self.status.as_value()
        flags, counters = status[:_FLAGS], status[_FLAGS:]
        with m.If(self.load):
            m.d.sync += rest[:8].eq(flags)
        with m.Elif(self.o.ready):
            m.d.sync += rest.eq(rest >> 8)
            # the state fills a byte of its own, and then come the parts
            with m.If(self.index[:2] == 1):
                m.d.sync += rest.eq(counters.word_select(self.index[2:4], _PART))
        state = Mux(self.index == STATUS_BYTES, self.sequence, rest[:8])
        stored = self.read_data.payload & (~self.beyond).replicate(8)
        m.d.comb += [
            self.o.valid.eq(~self.hold & (~self.read | self.beyond | self.read_data.valid)),
            self.read_data.ready.eq(self.read & ~self.beyond & ~self.hold & self.o.ready),
            self.o.payload.eq(Mux(self.read, stored, Mux(self.identify, identity, state))),
        ]
        return m
