"""The compact engine's sequencer: takes the instructions of both streams in turns."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..config import Configuration
from ..isa import MATRIX_OPCODES, POST_OPCODES, WORDS_PER_INSTRUCTION, Opcode

POLL_CYCLES = 4
"""To see that a stream must wait: the choice, the read of its word, the word, the decision."""

FETCH_CYCLES = POLL_CYCLES + WORDS_PER_INSTRUCTION
"""From the end of an instruction until the next one starts, if its stream's turn has come."""


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
    matrix_pc, post_pc : In
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
    matrix_done, post_done : Out
    active, bad : Out
    """

    run: Signal
    clear: Signal
    matrix_pc: Signal
    post_pc: Signal
    request: Signal
    address: Signal
    word: Signal
    write: Signal
    index: Signal
    is_post: Signal
    opcode: Signal
    start: Signal
    finished: Signal
    matrix_done: Signal
    post_done: Signal
    active: Signal
    bad: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._words = configuration.instruction_words
        address = ceil_log2(self._words + WORDS_PER_INSTRUCTION)
        outputs = ("request", "write", "is_post", "start", "active", "bad")
        super().__init__(
            {
                "run": In(1),
                "clear": In(1),
                "matrix_pc": In(16),
                "post_pc": In(16),
                "finished": In(1),
                "address": Out(address),
                "word": In(32),
                "index": Out(4),
                "opcode": Out(4),
                "matrix_done": Out(16),
                "post_done": Out(16),
                **dict.fromkeys(outputs, Out(1)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        counters = [Signal.like(self.address, name=f"pc_{k}", reset_less=True) for k in range(2)]
        alive = [Signal(name=f"alive_{k}") for k in range(2)]
        turn, asked = self.is_post, Signal(4)
        wait = Signal(16, reset_less=True)
        fits, whole = Signal(), Signal()
        opcode = self.opcode
        done = (self.matrix_done, self.post_done)
        ahead = Signal(16)
        m.d.comb += [
            self.active.eq(Cat(alive).any()),
            ahead.eq(Mux(turn, done[0], done[1]) - wait),
            whole.eq(asked == WORDS_PER_INSTRUCTION),
        ]
        m.d.sync += [self.write.eq(self.request), self.index.eq(asked)]
        with m.If(self.request):
            m.d.sync += [asked.eq(asked + 1), self.address.eq(self.address + 1)]
        with m.FSM():
            with m.State("choose"):
                m.d.sync += [asked.eq(0), self.address.eq(Mux(turn, counters[1], counters[0]))]
                with m.If(Mux(turn, alive[1], alive[0])):
                    m.next = "ask for the first word"
                with m.Elif(self.active):
                    m.d.sync += turn.eq(~turn)
            with m.State("ask for the first word"):
                m.d.comb += self.request.eq(1)
                m.d.sync += fits.eq(self.address <= self._words - WORDS_PER_INSTRUCTION)
                m.next = "take the first word"
            with m.State("take the first word"):
                m.d.sync += Cat(opcode, wait).eq(self.word)
                m.next = "decide"
            with m.State("decide"):
                m.next = "choose"
                with m.If(self._known(turn) & fits):
                    with m.If(ahead[-1]):
                        m.d.sync += turn.eq(~turn)
                    with m.Else():
                        m.next = "ask for the rest"
                with m.Else():
                    m.d.sync += [Array(alive)[turn].eq(0), turn.eq(~turn)]
                    m.d.sync += self.bad.eq(self.bad | ~fits | (opcode != Opcode.HALT))
            with m.State("ask for the rest"):
                m.d.comb += [self.request.eq(~whole), self.start.eq(whole & ~self.write)]
                with m.If(self.start):
                    m.next = "execute"
            with m.State("execute"):
                with m.If(self.finished):
                    m.d.sync += turn.eq(~turn)
                    m.next = "choose"
                    for stream in range(2):
                        with m.If(turn == stream):
                            m.d.sync += [
                                done[stream].eq(done[stream] + 1),
                                counters[stream].eq(self.address),
                            ]
        with m.If(self.run):
            m.d.sync += [counters[0].eq(self.matrix_pc), counters[1].eq(self.post_pc)]
            m.d.sync += [turn.eq(0), self.bad.eq(0), *(stream.eq(1) for stream in alive)]
            with m.If(self.clear):
                m.d.sync += [counter.eq(0) for counter in done]
        return m

    def _known(self, turn: Value) -> Value:
        """The stream has the opcode, which is not HALT."""
        known = [
            Cat(self.opcode == code for code in codes if code != Opcode.HALT).any()
            for codes in (MATRIX_OPCODES, POST_OPCODES)
        ]
        return Mux(turn, known[1], known[0])
