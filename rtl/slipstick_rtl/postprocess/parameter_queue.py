"""Reads parameters long before they are used: their words come from afar, and not all at once."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..config import Configuration
from ..isa import Opcode
from ..layouts import post_instruction
from ..memory.latencies import BLOCK_COLUMNS, WEIGHT_READ_LATENCY, weight_skew
from ..primitives.delay import delay
from ..primitives.small_memory import SmallMemory
from .parameters import element_bits, largest_skew

_PLACE_BITS = 5

QUEUE_WORDS = (1 << _PLACE_BITS) - 1
"""On their way and stored, at most: a block's words and many of the next."""

_RESERVE = 4
"""Words that may be read yet when it is noticed that there is no more room."""


class ParameterQueue(wiring.Component):
    """The words of the blocks of one instruction after the other, whole words again.

    The weight memory gives a word's elements by chains and groups of columns, cycles apart. Each of
    these has a small memory here. All that is read and not taken yet fits in them: so reads may be
    an instruction ahead, and nothing has to be taken when it comes.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    instructions : In(stream of post_instruction)
        In order. A DRAIN has a block for each of its slices, a MAP one, others none.
    reads : Out(stream of 24-bit word addresses)
        An address may be withdrawn until it is taken.
    urgent : Out(1)
        Less than a block is under way, or here: the reads should come before those of weights. If
        not, they had better take the cycles that those leave.
    elements : In
        [W][C]: of a word that was read, WEIGHT_READ_LATENCY + weight_skew cycles later.
    ready : Out(1)
        There is a word.
    take : In(1)
        It is taken; only if ``ready``.
    word : Out
        [W][C], ``QUEUE_LATENCY`` cycles after ``take``.
    """

    instructions: stream.Interface
    reads: stream.Interface
    urgent: Signal
    elements: data.View
    ready: Signal
    take: Signal
    word: data.View

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = c = configuration
        word = data.ArrayLayout(data.ArrayLayout(element_bits(c), c.columns), c.weight_rows)
        super().__init__(
            {
                "instructions": In(stream.Signature(post_instruction(c))),
                "reads": Out(stream.Signature(24)),
                "urgent": Out(1),
                "elements": In(word),
                "ready": Out(1),
                "take": In(1),
                "word": Out(word),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        taken = self.reads.valid & self.reads.ready
        self._read(m, taken)
        lines = [taken]
        for cycle in range(WEIGHT_READ_LATENCY + largest_skew(self._configuration)):
            lines.append(delay(m, lines[-1], 1, f"arriving_{cycle}"))
        self._store(m, lines[WEIGHT_READ_LATENCY:])
        # the last elements can be read in the cycle after their arrival
        stored = Signal(range(QUEUE_WORDS + 1))
        last = self.take & (stored == 1)
        m.d.sync += [
            stored.eq(stored + lines[-1] - self.take),
            self.ready.eq(lines[-1] | (stored.any() & ~last)),
        ]
        return m

    def _read(self, m: Module, taken: Value) -> None:
        """The words of the instruction at hand, as long as there is room."""
        c, given = self._configuration, self.instructions.payload
        active, room = Signal(), Signal()
        first = Signal.like(given.parameter_address, reset_less=True)
        word, blocks = (
            Signal(range(c.parameter_block_words)),
            Signal(range(c.columns // c.lanes + 1)),
        )
        used = Signal(range(QUEUE_WORDS + 1))
        begins, block_ends, ends = Signal(), Signal(), Signal()
        # registers: what is taken is known late in a cycle
        last_word, last_block = Signal(), Signal()
        draining = given.opcode == Opcode.DRAIN
        m.d.comb += [
            self.instructions.ready.eq(~active),
            begins.eq(
                self.instructions.valid & ~active & (draining | (given.opcode == Opcode.MAP))
            ),
            block_ends.eq(taken & last_word),
            ends.eq(block_ends & last_block),
        ]
        m.d.sync += [
            used.eq(used + taken - self.take),
            room.eq(used <= QUEUE_WORDS - _RESERVE),
            self.urgent.eq(used < min(c.parameter_block_words, QUEUE_WORDS - 2 * _RESERVE)),
            self.reads.valid.eq(room & ((active & ~ends) | begins)),
        ]
        with m.If(taken):
            m.d.sync += [
                word.eq(word + 1),
                last_word.eq(word == c.parameter_block_words - 2),
                self.reads.payload.eq(self.reads.payload + 1),
            ]
        with m.If(block_ends):
            m.d.sync += [
                word.eq(0),
                self.reads.payload.eq(first),
                blocks.eq(blocks - 1),
                last_block.eq(blocks == 2),
            ]
        with m.If(begins):
            m.d.sync += [
                active.eq(1),
                first.eq(given.parameter_address),
                self.reads.payload.eq(given.parameter_address),
                blocks.eq(Mux(draining, given.slices, 1)),
                last_block.eq(~draining | (given.slices == 1)),
            ]
        with m.Elif(ends):
            m.d.sync += active.eq(0)

    def _store(self, m: Module, arriving: list[Value]) -> None:
        """A memory for what comes at once: four columns of a chain."""
        c = self._configuration
        place, read_place = _place("place"), Signal(_PLACE_BITS)
        places: dict[int, Signal] = {}
        m.d.sync += read_place.eq(place)
        with m.If(self.take):
            m.d.sync += place.eq(_behind(place))
        for chain in range(c.weight_rows):
            for first in range(0, c.columns, BLOCK_COLUMNS):
                skew = weight_skew(c, chain, first)
                if skew not in places:
                    places[skew] = written = _place(f"written_{skew}")
                    with m.If(arriving[skew]):
                        m.d.sync += written.eq(_behind(written))
                mine = range(first, first + BLOCK_COLUMNS)
                given = Cat(Value.cast(self.elements[chain][j]) for j in mine)
                m.submodules[f"words_{chain}_{first}"] = words = SmallMemory(
                    width=len(given), depth=1 << _PLACE_BITS
                )
                m.d.comb += [
                    words.write_enable.eq(arriving[skew]),
                    words.write_address.eq(places[skew]),
                    words.i.eq(given),
                    words.address.eq(read_place),
                    Cat(Value.cast(self.word[chain][j]) for j in mine).eq(
                        delay(m, words.o, 1, f"word_{chain}_{first}", reset_less=True)
                    ),
                ]


def _place(name: str) -> Signal:
    """A place among the words; not 0, which follows itself."""
    return Signal(_PLACE_BITS, name=name, init=1)


def _behind(place: Signal) -> Value:
    """The place behind it: there are a dozen, and a shift register costs less than a counter."""
    return Cat(place[4] ^ place[2], place[:4])
