"""The compact engine's sequencer: takes the instructions of both streams in turns."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..config import Configuration
from ..isa import STREAMS, WORDS_PER_INSTRUCTION, Opcode
from ..link.layouts import ProgramCounters

POLL_CYCLES = 4
"""Cycles to see that a stream must wait: choice, read of its word, the word, decision."""

FETCH_CYCLES = POLL_CYCLES + WORDS_PER_INSTRUCTION
"""Cycles from an instruction's end until the next one starts, if its stream's turn has come."""


class TurnFetcher(wiring.Component):
    """Reads the next instruction of one stream, then of the other; executes those that may start.

    An instruction whose ``wait`` is not over is left for the other stream's. HALT ends a stream; so
    does an opcode that it does not have, or the end of the memory, and then ``bad`` is set.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    run, clear : In
        Begin; with the completion counters at zero.
    pcs : In
    request, address : Out
        A 32-bit word of the instructions is read.
    word : In
        In the next cycle.
    write, index : Out
        ``word`` is that word of the instruction.
    is_post : Out
        Of this stream.
    opcode : Out(4)
    start : Out
        Strobe: the instruction is whole, and is to be executed.
    finished : In
        Strobe: it is.
    done : Out
    active, bad : Out
    """

    run: Signal
    clear: Signal
    pcs: data.View
    request: Signal
    address: Signal
    word: Signal
    write: Signal
    index: Signal
    is_post: Signal
    opcode: Signal
    start: Signal
    finished: Signal
    done: data.View
    active: Signal
    bad: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._words = configuration.instruction_words
        address = ceil_log2(self._words + WORDS_PER_INSTRUCTION)
        # of each stream
        self._counters = [Signal(address, name=f"pc_{k}", reset_less=True) for k in range(2)]
        self._alive = [Signal(name=f"alive_{k}") for k in range(2)]
        # of the instruction at hand
        self._asked = Signal(4)
        self._wait = Signal(16, reset_less=True)
        self._fits = Signal()
        outputs = ("request", "write", "is_post", "start", "active", "bad")
        super().__init__(
            {
                "run": In(1),
                "clear": In(1),
                "pcs": In(ProgramCounters),
                "finished": In(1),
                "address": Out(address),
                "word": In(32),
                "index": Out(4),
                "opcode": Out(4),
                "done": Out(data.ArrayLayout(16, len(STREAMS))),
                **dict.fromkeys(outputs, Out(1)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        ahead, whole = Signal(16), Signal()
        m.d.comb += [
            self.active.eq(Cat(self._alive).any()),
            ahead.eq(Mux(self.is_post, self.done[0], self.done[1]) - self._wait),
            whole.eq(self._asked == WORDS_PER_INSTRUCTION),
        ]
        m.d.sync += [self.write.eq(self.request), self.index.eq(self._asked)]
        with m.If(self.request):
            m.d.sync += [self._asked.eq(self._asked + 1), self.address.eq(self.address + 1)]
        with m.FSM():
            with m.State("choose"):
                self._choose(m)
            with m.State("ask for the first word"):
                m.d.comb += self.request.eq(1)
                m.d.sync += self._fits.eq(self.address <= self._words - WORDS_PER_INSTRUCTION)
                m.next = "take the first word"
            with m.State("take the first word"):
                m.d.sync += Cat(self.opcode, self._wait).eq(self.word)
                m.next = "decide"
            with m.State("decide"):
                self._decide(m, must_wait=ahead[-1])
            with m.State("ask for the rest"):
                m.d.comb += [self.request.eq(~whole), self.start.eq(whole & ~self.write)]
                with m.If(self.start):
                    m.next = "execute"
            with m.State("execute"), m.If(self.finished):
                self._complete(m)
        with m.If(self.run):
            self._begin(m)
        return m

    def _choose(self, m: Module) -> None:
        """Take the next instruction of the stream whose turn it is, if it has not ended."""
        turn = self.is_post
        m.d.sync += self._asked.eq(0)
        m.d.sync += self.address.eq(Mux(turn, self._counters[1], self._counters[0]))
        with m.If(Mux(turn, self._alive[1], self._alive[0])):
            m.next = "ask for the first word"
        with m.Elif(self.active):
            m.d.sync += turn.eq(~turn)

    def _decide(self, m: Module, *, must_wait: Value) -> None:
        """Read on, leave it for the other stream's, or end the stream."""
        turn = self.is_post
        m.next = "choose"
        with m.If(self._known() & self._fits):
            with m.If(must_wait):
                m.d.sync += turn.eq(~turn)
            with m.Else():
                m.next = "ask for the rest"
        with m.Else():
            m.d.sync += [Array(self._alive)[turn].eq(0), turn.eq(~turn)]
            m.d.sync += self.bad.eq(self.bad | ~self._fits | (self.opcode != Opcode.HALT))

    def _known(self) -> Value:
        """The stream has the opcode, which is not HALT."""
        known = [
            Cat(self.opcode == code for code in codes if code != Opcode.HALT).any()
            for codes in (kind.opcodes for kind in STREAMS.values())
        ]
        return Mux(self.is_post, known[1], known[0])

    def _complete(self, m: Module) -> None:
        """Count the instruction; it is the other stream's turn."""
        m.d.sync += self.is_post.eq(~self.is_post)
        m.next = "choose"
        for stream, counter in enumerate(self._counters):
            done = self.done[stream]
            with m.If(self.is_post == stream):
                m.d.sync += [done.eq(done + 1), counter.eq(self.address)]

    def _begin(self, m: Module) -> None:
        m.d.sync += [
            *(counter.eq(self.pcs[stream]) for stream, counter in enumerate(self._counters)),
            self.is_post.eq(0),
            self.bad.eq(0),
            *(stream.eq(1) for stream in self._alive),
        ]
        with m.If(self.clear):
            m.d.sync += self.done.eq(0)
