"""The read queue: answers of a memory that cannot wait are never lost, and come in order."""

from typing import Any

from amaranth.hdl import Assert, Assume, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from slipstick_rtl.primitives.delay import delay
from slipstick_rtl.primitives.read_queue import ReadQueue

from .registry import Proof

MEMORY_LATENCY = 3
BITS = 8


class _Memory(wiring.Component):
    """A queue before a memory that answers each request, with its own address, in 3 cycles."""

    requests: stream.Interface
    o: stream.Interface
    ready: Signal
    under_way: Signal

    def __init__(self, *, depth: int) -> None:
        self._depth = depth
        super().__init__(
            {
                "requests": In(stream.Signature(BITS)),
                "ready": In(1),
                "o": Out(stream.Signature(BITS)),
                "under_way": Out(MEMORY_LATENCY),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        queue: Any = ReadQueue(address_bits=BITS, depth=self._depth)
        m.submodules.queue = queue
        connect(m, flipped(self.requests), queue.requests)
        connect(m, queue.o, flipped(self.o))
        asked = queue.memory_requests.valid & queue.memory_requests.ready
        m.d.sync += self.under_way.eq((self.under_way << 1) | asked)
        m.d.comb += [
            queue.memory_requests.ready.eq(self.ready),
            queue.memory_valid.eq(self.under_way[-1]),
            queue.memory_data.eq(
                delay(m, queue.memory_requests.payload, MEMORY_LATENCY, "address")
            ),
        ]
        return m


class NeverOverflows(wiring.Component):
    """Counts the answers owed; ``owed`` and ``level`` are the queue's own counts."""

    requests: stream.Interface
    o: stream.Interface
    ready: Signal
    owed: Signal
    level: Signal
    room: Signal

    def __init__(self, *, depth: int) -> None:
        self._depth = depth
        super().__init__(
            {
                "requests": In(stream.Signature(BITS)),
                "ready": In(1),
                "o": Out(stream.Signature(BITS)),
                "owed": In(range(depth + 1)),
                "level": In(range(depth + 1)),
                "room": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.memory = memory = _Memory(depth=self._depth)
        connect(m, flipped(self.requests), memory.requests)
        connect(m, memory.o, flipped(self.o))
        counted = Signal(range(self._depth + 2))
        asked = self.requests.valid & self.requests.ready
        m.d.sync += counted.eq(counted + asked - (self.o.valid & self.o.ready))
        under_way = sum(memory.under_way[k] for k in range(MEMORY_LATENCY))
        m.d.comb += [
            memory.ready.eq(self.ready),
            Assert(counted <= self._depth, "more answers owed than it can hold"),
            Assert(counted == self.owed, "it has lost count"),
            Assert(counted == self.level + under_way, "an answer is lost"),
            Assert(self.room | ~memory.under_way[-1], "the queue is written when full"),
            Assert(self.o.valid | (self.level <= 1), "an answer is held back"),
            Assert(~self.o.valid | (self.level != 0), "an answer from nowhere"),
        ]
        return m


class AnswersInOrder(wiring.Component):
    """One request, at any place in the order, has an address unlike the others, and is followed.

    The queue treats all payloads alike, so one bit is enough to tell the followed answer.
    """

    requests: stream.Interface
    o: stream.Interface
    ready: Signal

    def __init__(self, *, depth: int, cycles: int) -> None:
        self._depth = depth
        self._cycles = cycles
        super().__init__(
            {
                "requests": In(stream.Signature(1)),
                "ready": In(1),
                "o": Out(stream.Signature(8)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.memory = memory = _Memory(depth=self._depth)
        connect(m, memory.o, flipped(self.o))
        count = range(self._cycles + 1)
        asked, answered, place = Signal(count), Signal(count), Signal(count)
        followed = Signal()
        request = self.requests.valid & self.requests.ready
        answer = self.o.valid & self.o.ready
        chosen = self.requests.payload[0]
        m.d.sync += [
            asked.eq(asked + request),
            answered.eq(answered + answer),
            followed.eq(followed | (request & chosen)),
        ]
        with m.If(request & chosen):
            m.d.sync += place.eq(asked)
        m.d.comb += [
            memory.requests.valid.eq(self.requests.valid),
            memory.requests.payload.eq(self.requests.payload),
            self.requests.ready.eq(memory.requests.ready),
            memory.ready.eq(self.ready),
            Assume(~(followed & request & chosen), "one is followed"),
            Assert(answered <= asked, "an answer without a request"),
        ]
        expected = followed & (answered == place)
        with m.If(answer):
            m.d.comb += Assert(self.o.payload == expected, "another request's answer")
        return m


_QUEUE = "memory.queue"

PROOFS = (
    Proof(
        name="read_queue_never_overflows",
        component=lambda: NeverOverflows(depth=8),
        depth=3,
        probes={
            "owed": f"{_QUEUE}.owed",
            "level": f"{_QUEUE}.queue.level",
            "room": f"{_QUEUE}.queue.w_rdy",
        },
    ),
    Proof(
        name="read_queue_in_order",
        component=lambda: AnswersInOrder(depth=3, cycles=12),
        depth=12,
        bounded=True,
    ),
)
