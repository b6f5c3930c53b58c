"""Reads the parameters of the next slice while the one before is under way."""

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..config import Configuration
from ..isa import POST_FIELDS
from ..latencies import BLOCK_COLUMNS
from ..primitives.delay import delay
from .parameters import CHOOSER_LATENCY, arrival, words_of
from .requantization import parameter_fields, strobes

_ACCEPTANCE_CYCLES = 4
"""Cycles from an instruction's start until the next one's first parameters can be read."""


class ParameterLoader(wiring.Component):
    """Reads the block of a slice as soon as its first words cannot meet those in use before.

    Parameters
    ----------
    configuration : Configuration
    bias_distance : int
        Cycles from ``start`` until the bias in use is renewed.

    Members
    -------
    wanted : In(1)
        The slice to be started next needs a block that has not been read.
    address : In(24)
        First word of it.
    slice : In(range(C / L))
    final : In(1)
        The slice is the last that has this block.
    reading : Out(1)
        The reads begin: a pulse, after which ``wanted`` belongs to another slice.
    loaded : Out(1)
        A slice that starts now, or later, has its parameters in time.
    started : In(1)
        It has started in the cycle before.
    reads : Out(stream of 24-bit word addresses)
        Of weight memory, or, if parameters ``are_queued``, the words that the queue has next.
    again, ends : Out(1)
        Of the word that is read: a slice behind reads it once more; it is the block's last.
    arriving : Out
        [C / 4][W] strobes: what these four columns of each chain of the words are that come to the
        choosers.
    arriving_slice : Out
        Which columns are the lanes'.
    """

    wanted: Signal
    address: Signal
    slice: Signal
    final: Signal
    reading: Signal
    loaded: Signal
    started: Signal
    reads: stream.Interface
    again: Signal
    ends: Signal
    arriving: data.View
    arriving_slice: Signal

    def __init__(self, *, configuration: Configuration, bias_distance: int) -> None:
        self._configuration = c = configuration
        self._fields = parameter_fields(c)
        self._distances = {
            name: bias_distance + field.delay for name, field in self._fields.items()
        }
        chains = data.ArrayLayout(strobes(c), c.weight_rows)
        slices = range(c.columns // c.lanes)
        groups = c.columns // BLOCK_COLUMNS
        super().__init__(
            {
                "wanted": In(1),
                "address": In(POST_FIELDS["parameter_address"].width),
                "slice": In(slices),
                "final": In(1),
                "reading": Out(1),
                "loaded": Out(1),
                "started": In(1),
                "reads": Out(stream.Signature(24)),
                "again": Out(1),
                "ends": Out(1),
                "arriving": Out(data.ArrayLayout(chains, groups)),
                "arriving_slice": Out(slices),
            }
        )

    @property
    def loading_cycles(self) -> int:
        """Cycles from the last word's read until the slice may start, at least 2."""
        c = self._configuration
        latest = arrival(c, c.weight_rows - 1, c.columns - 1) + 1
        last = c.parameter_block_words - 1
        late = (
            latest - (last - words_of(c, chain, field)[-1]) - self._distances[name]
            for name, field in self._fields.items()
            for chain in range(c.weight_rows)
            if words_of(c, chain, field)
        )
        return max(2, *late)

    @property
    def release_cycles(self) -> int:
        """Cycles from a slice's start until the next one's first word may be read.

        The next instruction is accepted in the meantime.
        """
        c = self._configuration
        cycles = [
            # the upper half of the lanes takes its parameters a cycle later
            self._distances[name]
            + c.halved_tables
            - arrival(c, chain, 0)
            - words_of(c, chain, field)[0]
            for name, field in self._fields.items()
            for chain in range(c.weight_rows)
            if words_of(c, chain, field)
        ]
        if c.lanes < c.columns:
            # the choice of columns must not change while words arrive
            latest = arrival(c, c.weight_rows - 1, c.columns - 1)
            cycles.append(latest + 1 - self.loading_cycles)
        return max(_ACCEPTANCE_CYCLES, *cycles)

    @property
    def period(self) -> int:
        """At least that many cycles lie between the starts of two slices with their own blocks."""
        words = self._configuration.parameter_block_words
        return self.release_cycles + words - 1 + self.loading_cycles

    def elaborate(self, platform: object) -> Module:
        m = Module()
        words = self._configuration.parameter_block_words
        word = Signal(range(words))
        free = Signal(init=1)
        request = self.reads
        taken = request.valid & request.ready
        last = taken & self.ends
        m.d.comb += self.reading.eq(free & self.wanted)
        with m.If(delay(m, self.started, self.release_cycles - 3, "released")):
            m.d.sync += free.eq(1)
        with m.If(taken):
            # a register: the queue's places and words hang on it
            m.d.sync += [
                request.payload.eq(request.payload + 1),
                word.eq(word + 1),
                self.ends.eq(word == words - 2),
            ]
        with m.If(last):
            m.d.sync += request.valid.eq(0)
        with m.If(self.reading):
            m.d.sync += [
                free.eq(0),
                request.valid.eq(1),
                request.payload.eq(self.address),
                word.eq(0),
                self.ends.eq(words == 1),
                self.arriving_slice.eq(self.slice),
                self.again.eq(~self.final),
            ]
        with m.If(delay(m, last, self.loading_cycles - 2, "arrived")):
            m.d.sync += self.loaded.eq(1)
        with m.If(self.started):
            m.d.sync += self.loaded.eq(0)
        self._announce(m, taken, word)
        return m

    def _announce(self, m: Module, taken: Value, word: Value) -> None:
        """Drives ``arriving``; chains that have the same fields in the same words share a line."""
        c = self._configuration
        lines: dict[tuple[range, ...], list[data.View]] = {}
        for chain in range(c.weight_rows):
            words = tuple(words_of(c, chain, field) for field in self._fields.values())
            if words not in lines:
                arrives = Signal(strobes(c), name=f"strobes_{chain}")
                m.d.comb += [
                    arrives[name].eq(
                        taken & (word >= here.start) & (word < here.stop) if here else 0
                    )
                    for name, here in zip(self._fields, words, strict=True)
                ]
                lines[words] = [arrives]
            line = lines[words]
            for group in range(c.columns // BLOCK_COLUMNS):
                distance = arrival(c, chain, group * BLOCK_COLUMNS) - CHOOSER_LATENCY
                while len(line) <= distance:
                    line.append(delay(m, line[-1], 1, f"strobes_{chain}_{len(line)}"))
                m.d.comb += self.arriving[group][chain].eq(line[distance])
