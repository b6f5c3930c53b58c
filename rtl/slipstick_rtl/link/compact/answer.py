"""The payload of a compact link's answers: identity, status, or bytes of the activations."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...config import Configuration
from ..identity import Identity
from ..layouts import RunStatus
from ..protocol import STATUS_BYTES


class CompactAnswer(wiring.Component):
    """Gives the bytes of an answer's payload, one after the other.

    A byte of the status is of the cycle in which it goes: while a program runs, the counters of an
    answer are not all of one cycle.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
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
                **dict.fromkeys(("identify", "read", "beyond", "hold"), In(1)),
                "index": In(STATUS_BYTES.bit_length()),
                "read_data": In(stream.Signature(8)),
                "o": Out(stream.Signature(8)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        identity, state = Signal(8), Signal(8)
        status = self.status.as_value()
        # the two flags fill a byte of their own
        record = Cat(status[:2], Const(0, 6), status[2:], self.sequence)
        with m.Switch(self.index):
            for place, byte in enumerate(self._identity, 1):
                with m.Case(place):
                    m.d.comb += identity.eq(byte)
        with m.Switch(self.index):
            for place in range(STATUS_BYTES):
                with m.Case(place + 1):
                    m.d.comb += state.eq(record.word_select(place, 8))
        stored = self.read_data.payload & (~self.beyond).replicate(8)
        m.d.comb += [
            self.o.valid.eq(~self.hold & (~self.read | self.beyond | self.read_data.valid)),
            self.read_data.ready.eq(self.read & ~self.beyond & ~self.hold & self.o.ready),
            self.o.payload.eq(Mux(self.read, stored, Mux(self.identify, identity, state))),
        ]
        return m
