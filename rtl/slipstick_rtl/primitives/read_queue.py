"""A queue behind a memory that answers after a fixed time, so that its reader may be slow."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out


class ReadQueue(wiring.Component):
    """Passes requests on while there is room for every answer on its way.

    Parameters
    ----------
    address_bits : int
        Of a request.
    data_bits : int
        Of an answer.
    depth : int
        Answers held; at least the memory's latency for one answer a cycle.

    Members
    -------
    requests : In(stream)
    memory_requests : Out(stream)
    memory_data, memory_valid : In
        The memory's answers, in order.
    o : Out(stream)
        The same, with backpressure.
    """

    memory_data: Signal
    memory_valid: Signal
    requests: stream.Interface
    memory_requests: stream.Interface
    o: stream.Interface

    def __init__(self, *, address_bits: int, data_bits: int = 8, depth: int = 8) -> None:
        self._data_bits, self._depth = data_bits, depth
        super().__init__(
            {
                "requests": In(stream.Signature(address_bits)),
                "memory_requests": Out(stream.Signature(address_bits)),
                "memory_data": In(data_bits),
                "memory_valid": In(1),
                "o": Out(stream.Signature(data_bits)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = SyncFIFOBuffered(width=self._data_bits, depth=self._depth)
        # answers on their way or waiting
        owed = Signal(range(self._depth + 1))
        room = owed != self._depth
        asked = self.memory_requests.valid & self.memory_requests.ready
        taken = self.o.valid & self.o.ready
        m.d.sync += owed.eq(owed + asked - taken)
        m.d.comb += [
            self.memory_requests.payload.eq(self.requests.payload),
            self.memory_requests.valid.eq(self.requests.valid & room),
            self.requests.ready.eq(self.memory_requests.ready & room),
            queue.w_data.eq(self.memory_data),
            queue.w_en.eq(self.memory_valid),
            self.o.payload.eq(queue.r_data),
            self.o.valid.eq(queue.r_rdy),
            queue.r_en.eq(self.o.ready),
        ]
        return m
