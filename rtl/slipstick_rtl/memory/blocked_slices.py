"""Sets slices aside that must wait for their banks, so that those behind them go on."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..config import Configuration
from ..primitives.stream_queue import StreamQueue
from .port_arbiter import slice_write_layout

BLOCKED_DEPTH = 17
"""Slices: the post-processor may keep a slot for as many cycles as they have rows of R bytes. One
is in the register of the queue; the other 16 need no comparison at the end of their memory."""


class BlockedSlices(wiring.Component):
    """Passes slices on in their order, but for those that are refused: these wait in a queue.

    The post-processor writes a slice of its results' channels after the other, so a layer with a
    pixel pitch of a multiple of R keeps it in one slot for many cycles. All slices that wait are of
    one slot. Those of other slots pass them; those of the same slot join them.

    Parameters
    ----------
    configuration : Configuration
    depth : int
        Slices that can wait.

    Members
    -------
    i : In(stream of slice_write_layout)
        Its payload may gain bytes while it waits.
    whole : In(1)
        No more bytes will join the slice that is offered.
    o : Out(stream of slice_write_layout)
        What is offered changes from cycle to cycle.
    some : Out(1)
        Slices wait.
    """

    i: stream.Interface
    whole: Signal
    o: stream.Interface
    some: Signal

    def __init__(self, *, configuration: Configuration, depth: int = BLOCKED_DEPTH) -> None:
        self._configuration, self._depth = configuration, depth
        layout = slice_write_layout(configuration)
        super().__init__(
            {
                "i": In(stream.Signature(layout)),
                "whole": In(1),
                "o": Out(stream.Signature(layout)),
                "some": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        c = self._configuration
        queue = StreamQueue(shape=slice_write_layout(c), depth=self._depth)
        m.submodules.queue = queue
        slot = self.i.payload.address[exact_log2(c.lanes) : exact_log2(c.rows)]
        queued_slot = Signal.like(slot)
        joins, passes, may_wait = Signal(), Signal(), Signal()
        turn, once = Signal(), Signal()
        taken = passes & self.o.ready
        refused = queue.o.valid & ~self.o.ready
        m.d.comb += [
            self.some.eq(queue.some),
            joins.eq(self.some & (slot == queued_slot)),
            # only whole slices, where others wait: parts would take the cycles of those
            passes.eq(self.i.valid & ~joins & (~queue.o.valid | turn & self.whole)),
            may_wait.eq(self.i.valid & self.whole & queue.i.ready & (~self.some | joins)),
            self.o.valid.eq(passes | queue.o.valid),
            self.o.payload.eq(Mux(passes, self.i.payload, queue.o.payload)),
            self.i.ready.eq(taken | may_wait),
            queue.i.valid.eq(may_wait & ~taken),
            queue.i.payload.eq(self.i.payload),
            queue.o.ready.eq(~passes & self.o.ready),
        ]
        # Whose slice is refused twice gives way. Not after once: a post-processor that uses two
        # slots by turns would refuse both, one in every even cycle, the other in every odd one.
        m.d.sync += once.eq(refused & ~once)
        with m.If(taken):
            m.d.sync += turn.eq(0)
        with m.Elif(refused & once):
            m.d.sync += turn.eq(~passes)
        with m.If(~self.some):
            m.d.sync += queued_slot.eq(slot)
        return m
