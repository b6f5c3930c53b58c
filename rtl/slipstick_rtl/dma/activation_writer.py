"""Words of DRAM become slices of the activation memory, from any byte on."""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..config import Configuration
from .layouts import RUN, chunk_bytes
from .transfer import WORD_BYTES


def chunk_write_layout(configuration: Configuration) -> data.StructLayout:
    """A write of those bytes of a chunk that ``mask`` says; the address is a multiple of it."""
    size = chunk_bytes(configuration)
    return data.StructLayout({"address": 24, "data": 8 * size, "mask": size})


class ActivationWriter(wiring.Component):
    """Puts the bytes of runs into chunks, one a cycle; a run that does not begin with a chunk may
    take one more.

    The words of a run are whole: what is left of its last one is dropped. That the memory takes a
    chunk does not reach the words in the same cycle: one that has to wait does so in a register.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    runs : In(stream of RUN)
    words : In(stream of WORD_BYTES)
    o : Out(stream of chunk_write_layout)
    idle : Out
        No run is under way.
    """

    runs: stream.Interface
    words: stream.Interface
    o: stream.Interface
    idle: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._size = chunk_bytes(configuration)
        super().__init__(
            {
                "runs": In(stream.Signature(RUN)),
                "words": In(stream.Signature(8 * WORD_BYTES)),
                "o": Out(stream.Signature(chunk_write_layout(configuration))),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        size, bits = self._size, exact_log2(self._size)
        parts = WORD_BYTES // size
        run = self.runs.payload
        active, first = Signal(), Signal()
        shift, place = Signal(bits), Signal(24 - bits)
        # chunks behind the one at hand: to be written, and to be taken; whether there are none is
        # known a cycle earlier, for the clock
        left, last = Signal(17 - bits), Signal()
        untaken, takes, takes_last = Signal(16 - bits), Signal(), Signal()
        tail = Signal(bits)
        part = Signal(range(parts))
        step = Signal()
        made, is_made = Signal.like(self.o.payload), Signal()
        spare, spares = Signal.like(self.o.payload), Signal()
        chunk: Any = Array(self.words.payload.word_select(k, 8 * size) for k in range(parts))[part]
        turned, before = Signal(8 * size), Signal(8 * size)
        m.d.comb += [
            step.eq(active & (~is_made | ~spares) & (~takes | self.words.valid)),
            self.words.ready.eq(step & takes & ((part == parts - 1) | takes_last)),
            # a cycle between runs, for the clock: the DRAM pauses for longer
            self.runs.ready.eq(~active),
            self.o.valid.eq(is_made | spares),
            self.o.payload.eq(Mux(spares, spare, made)),
            self.idle.eq(~active & ~self.o.valid),
        ]
        with m.If(spares):
            m.d.sync += spares.eq(~self.o.ready)
        with m.Else():
            m.d.sync += [spares.eq(is_made & ~self.o.ready), spare.eq(made), is_made.eq(0)]
        ways = Array(
            Cat(chunk[8 * (size - k) :], chunk[: 8 * (size - k)]) if k else chunk
            for k in range(size)
        )
        m.d.comb += turned.eq(ways[shift])
        with m.If(step):
            # whether a byte comes from this word, and not from the one before
            own = Cat(shift <= k for k in range(size))
            joined = Cat(
                Mux(own[k], turned.word_select(k, 8), before.word_select(k, 8)) for k in range(size)
            )
            m.d.sync += [
                is_made.eq(1),
                made.address.eq(place << bits),
                made.data.eq(joined),
                made.mask.eq(Cat((~last | (tail >= k)) & (~first | own[k]) for k in range(size))),
                before.eq(turned),
                place.eq(place + 1),
                first.eq(0),
                left.eq(left - 1),
                last.eq(left == 1),
                active.eq(~last),
            ]
            with m.If(takes):
                m.d.sync += [
                    part.eq(Mux(self.words.ready, 0, part + 1)),
                    untaken.eq(untaken - 1),
                    takes_last.eq(untaken == 1),
                    takes.eq(~takes_last),
                ]
        with m.If(self.runs.valid & self.runs.ready):
            begin = run.chip[:bits]
            # from the first chunk's first byte to the run's last one
            span = run.bytes + begin
            short = run.bytes[bits:] == 0
            m.d.sync += [
                active.eq(1),
                first.eq(1),
                shift.eq(begin),
                place.eq(run.chip[bits:]),
                tail.eq(span),
                left.eq(span >> bits),
                last.eq(short & (run.bytes[:bits] + begin < size)),
                untaken.eq(run.bytes >> bits),
                takes.eq(1),
                takes_last.eq(short),
                part.eq(0),
            ]
        return m
