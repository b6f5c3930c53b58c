"""The unit of logarithmic numbers: operations in, results out, as streams."""

from amaranth.hdl import Module, Shape, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ....primitives.delay import delay
from ....primitives.read_queue import ReadQueue
from ..formats import Lns
from .pipeline import LnsPipeline, request_layout, result_layout

QUEUE_CYCLES = 3
"""Cycles from the pipeline's end to the queue's, and back to the count of its free places."""


class LnsUnit(wiring.Component):
    """Multiplies, divides, adds, subtracts, compares, takes roots; adds with compensation.

    One operation a cycle goes in, and one result a cycle comes out, in order; a result may wait for
    its reader for any time. Bit for bit :class:`.arithmetic.LnsArithmetic`, on words.

    Parameters
    ----------
    lns : Lns
        5 to 20 bits, at most 14 of them fraction bits.
    compensated : bool
        With compensated additions: see :class:`.pipeline.LnsPipeline`.

    Members
    -------
    i : In(stream.Signature(request_layout(lns)))
    o : Out(stream.Signature(result_layout(lns)))

    Raises
    ------
    ValueError
        If the format has more fraction bits.
    """

    i: stream.Interface
    o: stream.Interface

    def __init__(self, *, lns: Lns, compensated: bool = True) -> None:
        self._lns = lns
        self._pipeline = LnsPipeline(lns, compensated=compensated)
        super().__init__(
            {
                "i": In(stream.Signature(request_layout(lns))),
                "o": Out(stream.Signature(result_layout(lns))),
            }
        )

    @property
    def lns(self) -> Lns:
        """The format."""
        return self._lns

    @property
    def pipeline_latency(self) -> int:
        """Cycles from an operation that is taken to the end of the pipeline."""
        return self._pipeline.latency

    @property
    def latency(self) -> int:
        """Cycles from an operation that is taken to its result, if that is awaited."""
        return self._pipeline.latency + 2

    @property
    def places(self) -> int:
        """Counts the queue's places: all that is under way fits, so the pipeline need not stop."""
        return self._pipeline.latency + QUEUE_CYCLES

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.pipeline = pipeline = self._pipeline
        request, result = (
            Shape.cast(layout).width
            for layout in (request_layout(self._lns), result_layout(self._lns))
        )
        m.submodules.queue = queue = ReadQueue(
            address_bits=request, data_bits=result, depth=self.places
        )
        begun = queue.memory_requests.valid
        m.d.comb += [
            queue.requests.payload.eq(self.i.payload),
            queue.requests.valid.eq(self.i.valid),
            self.i.ready.eq(queue.requests.ready),
            Value.cast(pipeline.i).eq(queue.memory_requests.payload),
            queue.memory_requests.ready.eq(1),
            queue.memory_valid.eq(delay(m, begun, pipeline.latency, "begun")),
            queue.memory_data.eq(pipeline.o),
            self.o.payload.eq(queue.o.payload),
            self.o.valid.eq(queue.o.valid),
            queue.o.ready.eq(self.o.ready),
        ]
        return m
