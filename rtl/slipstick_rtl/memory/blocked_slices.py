"""Sets slices aside that must wait for their banks, so that those behind them go on."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..config import Configuration
from ..primitives.stream_queue import StreamQueue
from .port_arbiter import slice_write_layout

BLOCKED_DEPTH = 17
"""Slices: the post-processor may keep a slot for as many cycles as they have rows of B bytes. One
is in the register of the queue; the other 16 need no comparison at the end of their memory."""


class BlockedSlices(wiring.Component):
    """Passes slices on in their order, but for those whose slot is busy: these wait in a queue.

    The post-processor writes a slice of its results' channels after the other, so a layer with a
    pixel pitch of a multiple of B keeps it in one slot for many cycles. All slices that wait are of
    one slot, and leave as soon as it is free. Those of other slots pass them meanwhile; those of
    the same slot join them.

    A slice can leave in the cycle after it came, and one leaves per cycle.

    Parameters
    ----------
    configuration : Configuration
        Of two slots at least.
    depth : int
        Slices that can wait.

    Members
    -------
    i : In(stream of slice_write_layout)
        Its ready is a register.
    busy : In(B / L)
        The slots that the post-processor uses in this cycle.
    o : Out(valid, payload of slice_write_layout)
        A slice of a slot that is not busy: it is written in this cycle.
    some : Out(1)
        Slices are in here; a function of registers.
    """

    i: stream.Interface
    busy: Signal
    o: data.View
    some: Signal

    def __init__(self, *, configuration: Configuration, depth: int = BLOCKED_DEPTH) -> None:
        self._configuration, self._depth = configuration, depth
        layout = slice_write_layout(configuration)
        super().__init__(
            {
                "i": In(stream.Signature(layout)),
                "busy": In(configuration.slots),
                "o": Out(data.StructLayout({"valid": 1, "payload": layout})),
                "some": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        layout = slice_write_layout(self._configuration)
        m.submodules.queue = queue = StreamQueue(shape=layout, depth=self._depth)
        # two registers: whether there is room does not hang on whose turn a slot is
        offered = Signal(data.StructLayout({"valid": 1, "payload": layout}))
        behind = Signal.like(offered)
        queued_slot, same = Signal(range(self._configuration.slots)), Signal()
        free = ~self._busy(offered.payload)
        leaves_queue = queue.o.valid & ~self._busy(queue.o.payload)
        joins, passes, leaves = queue.some & same, Signal(), Signal()
        m.d.comb += [
            passes.eq(offered.valid & ~joins & free & ~leaves_queue),
            queue.i.valid.eq(offered.valid & Mux(queue.some, same, ~free)),
            queue.i.payload.eq(offered.payload),
            queue.o.ready.eq(leaves_queue),
            leaves.eq(passes | queue.i.valid & queue.i.ready),
            self.o.valid.eq(leaves_queue | passes),
            self.o.payload.eq(Mux(leaves_queue, queue.o.payload, offered.payload)),
            self.some.eq(queue.some | offered.valid | behind.valid),
            self.i.ready.eq(~behind.valid),
        ]
        following = Mux(behind.valid, behind.payload, self.i.payload)
        waited_for = Mux(queue.some, queued_slot, self._slot(offered.payload))
        # compared as it comes. With an empty queue it has no meaning: no slice stays before that.
        m.d.sync += queued_slot.eq(waited_for)
        with m.If(~behind.valid):
            m.d.sync += behind.payload.eq(self.i.payload)
        with m.If(leaves | ~offered.valid):
            m.d.sync += [
                offered.valid.eq(behind.valid | self.i.valid),
                offered.payload.eq(following),
                same.eq(self._slot(data.View(layout, following)) == waited_for),
                behind.valid.eq(0),
            ]
        with m.Elif(self.i.valid):
            m.d.sync += behind.valid.eq(1)
        return m

    def _slot(self, payload: data.View) -> Value:
        lane_bits = exact_log2(self._configuration.lanes)
        return payload.address[lane_bits : exact_log2(self._configuration.banks)]

    def _busy(self, payload: data.View) -> Value:
        return self.busy.bit_select(self._slot(payload), 1)
