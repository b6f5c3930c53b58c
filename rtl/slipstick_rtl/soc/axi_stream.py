"""AXI4-Stream: its signals, and queues between it and the streams of this house."""

from typing import Any

from amaranth.hdl import Module, ShapeLike
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ..primitives.stream_queue import StreamQueue

BORDER_DEPTH = 4
"""Depth of the queues; they keep the timing paths of other designs out of this one."""

Byte = data.StructLayout({"data": 8})
"""Payload of a stream of bytes."""

Word = data.StructLayout({"data": 32, "keep": 4, "last": 1})
"""Up to four bytes, the first lowest; those whose ``keep`` is 0 are none; the end of a packet."""


class AxiStream(wiring.Signature):
    """One stream, from the side that sends.

    Parameters
    ----------
    layout : StructLayout
        Of a transfer; each field ``x`` is a signal ``tx``.
    """

    def __init__(self, layout: data.StructLayout) -> None:
        fields = {f"t{name}": Out(field) for name, field in layout.members.items()}
        super().__init__({**fields, "tvalid": Out(1), "tready": In(1)})


class AxiStreamInput(wiring.Component):
    """Transfers from outside, through a queue that adds two cycles.

    Parameters
    ----------
    layout : StructLayout
        Of a transfer.

    Members
    -------
    axi : In(AxiStream)
    o : Out(stream of the layout)
    """

    axi: Any
    o: stream.Interface

    def __init__(self, layout: data.StructLayout) -> None:
        self._layout = layout
        super().__init__({"axi": In(AxiStream(layout)), "o": Out(stream.Signature(layout))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = _queue(self._layout)
        connect(m, queue.o, flipped(self.o))
        m.d.comb += [queue.i.valid.eq(self.axi.tvalid), self.axi.tready.eq(queue.i.ready)]
        for name in self._layout.members:
            m.d.comb += queue.i.payload[name].eq(getattr(self.axi, f"t{name}"))
        return m


class AxiStreamOutput(wiring.Component):
    """Transfers to outside, through a queue that adds two cycles.

    Parameters
    ----------
    layout : StructLayout
        Of a transfer.

    Members
    -------
    i : In(stream of the layout)
    axi : Out(AxiStream)
    """

    i: stream.Interface
    axi: Any

    def __init__(self, layout: data.StructLayout) -> None:
        self._layout = layout
        super().__init__({"i": In(stream.Signature(layout)), "axi": Out(AxiStream(layout))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = _queue(self._layout)
        connect(m, flipped(self.i), queue.i)
        m.d.comb += [self.axi.tvalid.eq(queue.o.valid), queue.o.ready.eq(self.axi.tready)]
        for name in self._layout.members:
            m.d.comb += getattr(self.axi, f"t{name}").eq(queue.o.payload[name])
        return m


def _queue(shape: ShapeLike) -> StreamQueue:
    return StreamQueue(shape=shape, depth=BORDER_DEPTH)
