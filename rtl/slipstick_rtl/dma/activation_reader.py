"""Slices of the activation memory become words of DRAM."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from ..config import Configuration
from ..primitives.stream_queue import StreamQueue
from .layouts import RUN, chunk_bytes
from .transfer import WORD_BYTES

_DEPTH = 8
"""Words on their way."""


class ActivationReader(wiring.Component):
    """Reads the chunks of runs, one a cycle, and makes words of them.

    A run begins with a chunk, and in a word of its own: the rest of its last word is zeros.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    runs : In(stream of RUN)
    requests : Out(stream of addresses)
        Of chunks.
    valid, chunk : In
        The chunk of each request, in order; it does not wait.
    words : Out(stream of WORD_BYTES)
    idle : Out
        No run is under way, and all its words have gone.
    """

    runs: stream.Interface
    requests: stream.Interface
    valid: Signal
    chunk: Signal
    words: stream.Interface
    idle: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._size = chunk_bytes(configuration)
        super().__init__(
            {
                "runs": In(stream.Signature(RUN)),
                "requests": Out(stream.Signature(24)),
                "valid": In(1),
                "chunk": In(8 * self._size),
                "words": Out(stream.Signature(8 * WORD_BYTES)),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        size, bits = self._size, exact_log2(self._size)
        parts = WORD_BYTES // size
        active, place = Signal(), Signal(24 - bits)
        # chunks behind the one at hand; whether there are none is known a cycle earlier
        left, last, tail = Signal(16 - bits), Signal(), Signal(bits)
        part = Signal(range(parts))
        # words that are being made or wait
        owed = Signal(range(_DEPTH + 1))
        mark = data.StructLayout({"bytes": bits + 1, "part": part.shape(), "ends": 1})
        m.submodules.marks = marks = StreamQueue(shape=mark, depth=_DEPTH * parts)
        m.submodules.queue = queue = StreamQueue(shape=8 * WORD_BYTES, depth=_DEPTH)
        begins_word = part == 0
        requested = self.requests.valid & self.requests.ready
        leaves = self.words.valid & self.words.ready
        m.d.comb += [
            self.requests.valid.eq(active & (~begins_word | (owed != _DEPTH))),
            self.requests.payload.eq(place << bits),
            # a cycle between runs, for the clock: the DRAM pauses for longer
            self.runs.ready.eq(~active),
            marks.i.valid.eq(requested),
            marks.i.payload.bytes.eq(Mux(last, tail + 1, size)),
            marks.i.payload.part.eq(part),
            marks.i.payload.ends.eq(last | (part == parts - 1)),
            self.idle.eq(~active & (owed == 0)),
        ]
        m.d.sync += owed.eq(owed + (requested & begins_word) - leaves)
        with m.If(requested):
            m.d.sync += [
                place.eq(place + 1),
                left.eq(left - 1),
                last.eq(left == 1),
                part.eq(Mux(marks.i.payload.ends, 0, part + 1)),
                active.eq(~last),
            ]
        with m.If(self.runs.valid & self.runs.ready):
            run = self.runs.payload
            m.d.sync += [
                active.eq(1),
                place.eq(run.chip[bits:]),
                left.eq(run.bytes >> bits),
                last.eq(run.bytes[bits:] == 0),
                tail.eq(run.bytes),
            ]
        # what comes back
        known = marks.o.payload
        masked = Cat(Mux(known.bytes > k, self.chunk.word_select(k, 8), 0) for k in range(size))
        word, held = Signal(8 * WORD_BYTES), Signal(8 * WORD_BYTES)
        with m.Switch(known.part):
            for k in range(parts):
                with m.Case(k):
                    below = held[: 8 * size * k]
                    m.d.comb += word.eq(Cat(below, masked))
        m.d.comb += [
            marks.o.ready.eq(self.valid),
            queue.i.valid.eq(self.valid & known.ends),
            queue.i.payload.eq(word),
        ]
        with m.If(self.valid):
            m.d.sync += held.eq(word)
        connect(m, queue.o, flipped(self.words))
        return m
