"""Reads parameters long before they are used: their words come from afar, and not all at once."""

from functools import reduce
from operator import xor

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..config import PARAMETER_QUEUE_RESERVE, Configuration
from ..isa import Opcode
from ..latencies import BLOCK_COLUMNS, WEIGHT_READ_LATENCY, weight_skew
from ..layouts import post_instruction
from ..primitives.delay import delay
from ..primitives.fanout import copies_of
from ..primitives.small_memory import SmallMemory
from .parameters import element_bits, largest_skew

_FEEDBACK = {5: (4, 2), 6: (5, 4), 7: (6, 5), 8: (7, 5, 4, 3)}
"""By bits, those of a shift register whose sum makes it pass through all places but 0."""


class ParameterQueue(wiring.Component):
    """The words of the blocks of one instruction after the other, whole words again.

    The weight memory gives a word's elements by chains and groups of columns, cycles apart. Each of
    these has a small memory here. All that is read and not taken yet fits in them: so reads may be
    an instruction ahead, and nothing has to be taken when it comes. A block that holds parameters
    of several slices is read once, and stays until the last of them has taken it.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    instructions : In(stream of post_instruction)
        In order. A DRAIN and a MAP have a block, others none.
    reads : Out(stream of 24-bit word addresses)
        An address may be withdrawn until it is taken.
    urgent : Out(1)
        Less than a block is under way, or here, beyond one that may be in use: the reads should
        come before those of weights. If not, they had better take the cycles that those leave.
    elements : In
        [W][C]: of a word that was read, WEIGHT_READ_LATENCY + weight_skew cycles later.
    ready : Out(1)
        There is a word.
    take : In(1)
        It is taken; only if ``ready``.
    again : In(1)
        With ``take``: another slice takes the block once more.
    ends : In(1)
        With ``take``: it is the block's last word.
    word : Out
        [W][C], ``QUEUE_LATENCY`` cycles after ``take``.
    """

    instructions: stream.Interface
    reads: stream.Interface
    urgent: Signal
    elements: data.View
    ready: Signal
    take: Signal
    again: Signal
    ends: Signal
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
                "again": In(1),
                "ends": In(1),
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
        self._store(m, platform, lines[WEIGHT_READ_LATENCY:])
        # the last elements can be read in the cycle after their arrival
        capacity = self._configuration.parameter_queue_words
        stored, back = Signal(range(capacity + 1)), self._goes_back()
        last = self.take & (stored == 1) & ~back
        returned = back.replicate(len(stored)) & self._configuration.parameter_block_words
        m.d.sync += [
            stored.eq(stored + lines[-1] - self.take + returned),
            self.ready.eq(lines[-1] | (stored.any() & ~last)),
        ]
        return m

    def _goes_back(self) -> Value:
        """The next word is the block's first once more."""
        return self.take & self.again & self.ends

    def _read(self, m: Module, taken: Value) -> None:
        """The words of the instruction at hand, as long as there is room."""
        c, given = self._configuration, self.instructions.payload
        active, room = Signal(), Signal()
        word, last_word = Signal(range(c.parameter_block_words)), Signal()
        used = Signal(range(c.parameter_queue_words + 1))
        begins, ends = Signal(), Signal()
        urgent = (1 + (c.lanes < c.columns)) * c.parameter_block_words
        m.d.comb += [
            self.instructions.ready.eq(~active),
            begins.eq(
                self.instructions.valid
                & ~active
                & ((given.opcode == Opcode.DRAIN) | (given.opcode == Opcode.MAP))
            ),
            ends.eq(taken & last_word),
        ]
        # registers: what is taken is known late in a cycle
        m.d.sync += [
            used.eq(used + taken - (self.take & ~self.again)),
            room.eq(used <= c.parameter_queue_words - PARAMETER_QUEUE_RESERVE),
            self.urgent.eq(used < urgent),
            self.reads.valid.eq(room & ((active & ~ends) | begins)),
        ]
        with m.If(taken):
            m.d.sync += [
                word.eq(word + 1),
                last_word.eq(word == c.parameter_block_words - 2),
                self.reads.payload.eq(self.reads.payload + 1),
            ]
        with m.If(begins):
            m.d.sync += [
                active.eq(1),
                word.eq(0),
                self.reads.payload.eq(given.parameter_address),
            ]
        with m.Elif(ends):
            m.d.sync += active.eq(0)

    def _store(self, m: Module, platform: object, arriving: list[Value]) -> None:
        """A memory for what comes at once: four columns of a chain.

        Each has its own address to read: they stand below all columns of the array.
        """
        c = self._configuration
        place, first_place = self._place("place"), self._place("first_place")
        places: dict[int, Signal] = {}
        with m.If(self._goes_back()):
            m.d.sync += place.eq(first_place)
        with m.Elif(self.take):
            m.d.sync += place.eq(_behind(place))
            with m.If(self.ends):
                m.d.sync += first_place.eq(_behind(place))
        for chain in range(c.weight_rows):
            for first in range(0, c.columns, BLOCK_COLUMNS):
                skew = weight_skew(c, chain, first)
                if skew not in places:
                    places[skew] = written = self._place(f"written_{skew}")
                    with m.If(arriving[skew]):
                        m.d.sync += written.eq(_behind(written))
                mine = range(first, first + BLOCK_COLUMNS)
                given = Cat(Value.cast(self.elements[chain][j]) for j in mine)
                m.submodules[f"words_{chain}_{first}"] = words = SmallMemory(
                    width=len(given), depth=1 << len(place)
                )
                read_place = copies_of(m, platform, place, f"read_{chain}_{first}")
                m.d.comb += [
                    words.write_enable.eq(arriving[skew]),
                    words.write_address.eq(places[skew]),
                    words.i.eq(given),
                    words.address.eq(read_place),
                    Cat(Value.cast(self.word[chain][j]) for j in mine).eq(
                        delay(m, words.o, 1, f"word_{chain}_{first}", reset_less=True)
                    ),
                ]

    def _place(self, name: str) -> Signal:
        """A place among the words; not 0, which follows itself."""
        bits = self._configuration.parameter_queue_words.bit_length()
        return Signal(bits, name=name, init=1)


def _behind(place: Signal) -> Value:
    """The place behind it: there are a dozen, and a shift register costs less than a counter."""
    return Cat(reduce(xor, (place[bit] for bit in _FEEDBACK[len(place)])), place[:-1])
