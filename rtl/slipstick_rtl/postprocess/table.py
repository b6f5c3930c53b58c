"""Tables of two functions of a byte, 512 entries, or of a code: copies, and the loader of all."""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..config import Configuration
from ..isa import POST_FIELDS
from ..latencies import BLOCK_COLUMNS, WEIGHT_READ_LATENCY, weight_skew
from ..primitives.delay import delay
from ..primitives.resting import momentary_memory, read_register
from ..primitives.stream_queue import StreamQueue

ENTRY_BITS = 32


def table_write(configuration: Configuration) -> data.StructLayout:
    """An entry for the tables of all lanes."""
    entries = 2 * configuration.table_codes
    return data.StructLayout({"enable": 1, "address": range(entries), "data": ENTRY_BITS})


class Table(wiring.Component):
    """One copy of the table.

    Parameters
    ----------
    configuration : Configuration
        With ``silicon`` it is read only where somebody wants an entry.

    Members
    -------
    write : In(table_write(configuration))
    byte : In(signed(8))
        A code of the number format.
    odd : In(1)
        Looks in the second half.
    enable : In(1)
        With ``silicon``: somebody wants the entry.
    entry : Out(signed(32))
        ``latency`` cycles later.
    """

    write: data.View
    byte: Signal
    odd: Signal
    enable: Signal
    entry: Signal

    latency = 2
    """Cycles: block RAM and its output register."""

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = c = configuration
        super().__init__(
            {
                "write": In(table_write(c)),
                "byte": In(signed(8)),
                "odd": In(1),
                **({"enable": In(1)} if c.silicon else {}),
                "entry": Out(signed(ENTRY_BITS)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m, c = Module(), self._configuration
        m.submodules.memory = memory = momentary_memory(
            signed(ENTRY_BITS), 2 * c.table_codes, silicon=c.silicon, style="block"
        )
        writer, reader = memory.write_port(), memory.read_port()
        asked = self.enable if c.silicon else None
        low = self.byte[: exact_log2(c.table_codes)]
        m.d.comb += [
            writer.en.eq(self.write.enable),
            writer.addr.eq(self.write.address),
            writer.data.eq(self.write.data),
            reader.en.eq(1 if asked is None else asked),
            # byte + 128, or code + half as many as there are
            reader.addr.eq(Cat(low[:-1], ~low[-1], self.odd)),
        ]
        m.d.comb += self.entry.eq(read_register(m, reader.data, asked, "entry"))
        return m


class TableLoader(wiring.Component):
    """Copies words of W x C bytes from weight memory into the tables, an entry a read.

    A word's entries arrive at different times and places, four neighbouring bytes each. So all
    words are read once for each of these places, from the earliest to the latest: entries arrive in
    the order of the reads, and which place they come from changes only with each turn.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    load : In(1)
        Starts; ``done`` falls in the next cycle.
    first : In(24)
        Word address, with ``load``.
    words : In(12)
        With ``load``.
    reads : Out(stream of 24-bit word addresses)
    weights : In(8 x W x C)
        Byte (s, j) WEIGHT_READ_LATENCY + weight_skew(configuration, s, j) cycles after each read.
    write : Out(table_write(configuration))
    done : Out(1)
        The last ``write`` has been given; it is on its way through the lanes' registers.
    """

    load: Signal
    first: Signal
    words: Signal
    reads: stream.Interface
    weights: Signal
    write: data.View
    done: Signal

    choice_latency = 4
    """Cycles: whose turn it is, a register for each place, those of a chain together, and all."""

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = c = configuration
        self._word_entries = c.weight_word_bytes // BLOCK_COLUMNS
        self._request = data.StructLayout({"address": 24, "turn": range(self._word_entries)})
        super().__init__(
            {
                "load": In(1),
                "first": In(POST_FIELDS["table_address"].width),
                "words": In(POST_FIELDS["table_words"].width),
                "reads": Out(stream.Signature(24)),
                "weights": In(8 * c.weight_word_bytes),
                "write": Out(table_write(c)),
                "done": Out(1),
            }
        )

    @property
    def _places(self) -> list[tuple[int, int]]:
        """(skew, place) of each entry of a word, the earliest first."""
        c, groups = self._configuration, self._configuration.columns // BLOCK_COLUMNS
        return sorted(
            (weight_skew(c, place // groups, place % groups * BLOCK_COLUMNS), place)
            for place in range(self._word_entries)
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        first, words = Signal.like(self.first), Signal.like(self.words)
        left = Signal.like(self.words)
        request, wanted = Signal(self._request), Signal()
        # whether the memory takes a request is known late in a cycle
        m.submodules.queue = queue = StreamQueue(shape=self._request, depth=4)
        oldest = queue.o.payload
        m.d.comb += [
            queue.i.valid.eq(wanted),
            queue.i.payload.eq(request),
            self.reads.valid.eq(queue.o.valid),
            self.reads.payload.eq(oldest.address),
            queue.o.ready.eq(self.reads.ready),
        ]
        queued, turn_end = wanted & queue.i.ready, left == 1
        with m.If(self.load):
            m.d.sync += [first.eq(self.first), words.eq(self.words)]
            m.d.sync += [request.turn.eq(0), wanted.eq(self.words.any())]
        with m.If(queued & turn_end):
            m.d.sync += request.turn.eq(request.turn + 1)
            m.d.sync += wanted.eq(request.turn != self._word_entries - 1)
        with m.If(self.load | (queued & turn_end)):
            m.d.sync += request.address.eq(Mux(self.load, self.first, first))
            m.d.sync += left.eq(Mux(self.load, self.words, words))
        with m.Elif(queued):
            m.d.sync += [request.address.eq(request.address + 1), left.eq(left - 1)]
        taken = self.reads.valid & self.reads.ready
        self._write(m, self._delay(m, taken, oldest.turn), words)
        coming = Signal(range(WEIGHT_READ_LATENCY + self._places[-1][0] + self.choice_latency + 2))
        m.d.sync += coming.eq(coming + taken - self.write.enable)
        under_way = self.load | wanted | queue.level.any() | coming.any()
        m.d.sync += self.done.eq(~under_way)
        return m

    def _delay(self, m: Module, taken: Value, turn: Value) -> Value:
        """An entry arrives in the next cycle: the reads, each entering a line as far from its end
        as it is late."""
        places = self._places
        line: Value = Const(0)
        for skew in reversed(range(places[-1][0] + 1)):
            here = [index for index, place in enumerate(places) if place[0] == skew]
            entering = taken & Cat(turn == index for index in here).any() if here else Const(0)
            register = Signal(name=f"coming_{skew}")
            m.d.sync += register.eq(line | entering)
            line = register
        return delay(m, line, WEIGHT_READ_LATENCY - 2, "arriving")

    def _write(self, m: Module, arriving: Value, words: Value) -> None:
        """Entries as they arrive, those of a turn from the same place."""
        entries = 2 * self._configuration.table_codes
        turn, word = Signal(range(self._word_entries)), Signal(range(entries))
        # registers, as much hangs on the next arrival's being a turn's last
        single, final, last_but_one = Signal(), Signal(), Signal.like(word)
        m.d.sync += [single.eq(words == 1), last_but_one.eq(words - 2)]
        with m.If(self.load):
            m.d.sync += [word.eq(0), turn.eq(0), final.eq(self.words == 1)]
        with m.Elif(arriving):
            m.d.sync += [word.eq(word + 1), final.eq(word == last_but_one)]
            with m.If(final):
                m.d.sync += [word.eq(0), turn.eq(turn + 1), final.eq(single)]
        place = Signal(range(self._word_entries))
        m.d.comb += place.eq(Array([Const(place, len(turn)) for _, place in self._places])[turn])
        address = Cat(place, word)[: len(self.write.address)]
        latency = self.choice_latency
        m.d.comb += [
            self.write.enable.eq(delay(m, arriving, latency, "choosing")),
            self.write.address.eq(delay(m, address, latency, "address", reset_less=True)),
            self.write.data.eq(self._choose(m, place)),
        ]

    def _choose(self, m: Module, place: Value) -> Value:
        """The four bytes of a place, from registers that are reset unless they are its own."""
        c = self._configuration
        groups = c.columns // BLOCK_COLUMNS
        entry: Value = Const(0, ENTRY_BITS)
        for chain in range(c.weight_rows):
            row: Value = Const(0, ENTRY_BITS)
            for group in range(groups):
                index = chain * groups + group
                own = Signal(ENTRY_BITS, name=f"own_{index}", reset_less=True)
                given = self.weights.word_select(index, ENTRY_BITS)
                # in a register, and as a reset takes it
                others = delay(m, place != index, 1, f"others_{index}", reset_less=True)
                m.d.sync += own.eq(Mux(others, 0, given))
                row = row | own
            entry = entry | delay(m, row, 1, f"row_{chain}", reset_less=True)
        return delay(m, entry, 1, "entry", reset_less=True)
