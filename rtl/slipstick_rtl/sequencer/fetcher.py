"""The fetcher: reads one instruction stream from memory and hands it to an engine."""

from collections.abc import Collection

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..config import Configuration
from ..isa import WORDS_PER_INSTRUCTION, Opcode


class Fetcher(wiring.Component):
    """Fetches WORDS_PER_INSTRUCTION words, one a grant, and presents them until they are taken.

    HALT ends the stream; so does an opcode that the stream does not have, or the end of the
    memory, and then ``bad`` is set until the next start.

    Parameters
    ----------
    configuration : Configuration
    layout : data.StructLayout
        Of the stream's instructions.
    opcodes : collection of Opcode
        What the stream may hold.

    Members
    -------
    start, pc : In
        Begin at this word of the instruction memory.
    request, address, grant : Out, Out, In
        A read of the instruction memory; the word comes ``INSTRUCTION_READ_LATENCY`` cycles later.
    word, word_valid : In
    instructions : Out(stream)
    active : Out
        The stream has not ended.
    bad : Out
    """

    start: Signal
    pc: Signal
    request: Signal
    address: Signal
    grant: Signal
    word: Signal
    word_valid: Signal
    active: Signal
    bad: Signal
    instructions: stream.Interface

    def __init__(
        self,
        *,
        configuration: Configuration,
        layout: data.StructLayout,
        opcodes: Collection[Opcode],
    ) -> None:
        self._words = configuration.instruction_words
        self._opcodes = sorted(set(opcodes) - {Opcode.HALT})
        self._layout = layout
        super().__init__(
            {
                "start": In(1),
                "pc": In(16),
                "request": Out(1),
                "address": Out(16),
                "grant": In(1),
                "word": In(32),
                "word_valid": In(1),
                "instructions": Out(stream.Signature(layout)),
                "active": Out(1),
                "bad": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        words = [Signal(32, name=f"word_{k}") for k in range(WORDS_PER_INSTRUCTION)]
        asked = Signal(range(WORDS_PER_INSTRUCTION + 1))
        fits, whole = Signal(), Signal()
        m.d.comb += [
            self.request.eq(self.active & (asked != WORDS_PER_INSTRUCTION)),
            self.instructions.payload.eq(Cat(words)[: self._layout.size]),
        ]
        with m.If(self.request & self.grant):
            m.d.sync += [self.address.eq(self.address + 1), asked.eq(asked + 1)]
            m.d.sync += fits.eq(fits & (self.address < self._words))
        self._collect(m, words, whole)
        self._decide(m, whole=whole, fits=fits, opcode=words[0][:4])
        with m.If(self.instructions.valid & self.instructions.ready):
            m.d.sync += [asked.eq(0), whole.eq(0), self.instructions.valid.eq(0)]
        with m.If(self.start):
            m.d.sync += [
                self.address.eq(self.pc),
                self.active.eq(1),
                self.bad.eq(0),
                fits.eq(1),
                asked.eq(0),
                whole.eq(0),
            ]
        return m

    def _collect(self, m: Module, words: list[Signal], whole: Signal) -> None:
        """Each word to its place, from registers beside it: no wire enables all the places."""
        place = Signal(WORDS_PER_INSTRUCTION, init=1)
        landing = Signal(WORDS_PER_INSTRUCTION)
        late = Signal(32, reset_less=True)
        m.d.sync += [late.eq(self.word), landing.eq(Mux(self.word_valid, place, 0))]
        with m.If(self.start):
            m.d.sync += place.eq(1)
        with m.Elif(self.word_valid):
            m.d.sync += place.eq(place.rotate_left(1))
        for bit, word in zip(landing, words, strict=True):
            with m.If(bit):
                m.d.sync += word.eq(late)
        with m.If(landing[-1]):
            m.d.sync += whole.eq(1)

    def _decide(self, m: Module, *, whole: Value, fits: Signal, opcode: Value) -> None:
        """Present the instruction, or end the stream."""
        known = Cat(opcode == code for code in self._opcodes).any() & fits
        halt = (opcode == Opcode.HALT) & fits
        with m.If(self.active & whole & ~self.instructions.valid):
            m.d.sync += [
                self.instructions.valid.eq(known),
                self.active.eq(known),
                self.bad.eq(~known & ~halt),
            ]
