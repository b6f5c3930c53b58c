"""Parameters on their way from the weight memory to the lanes: the reads, and a lane's registers."""

from dataclasses import dataclass

from amaranth.hdl import Array, Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..config import Configuration
from ..isa import POST_FIELDS
from ..memory.latencies import BLOCK_COLUMNS, WEIGHT_READ_LATENCY, weight_skew
from ..primitives.delay import delay
from .multiplier import FACTOR_BITS, VALUE_BITS
from .requantizer import Requantizer
from .rounding_shifter import SHIFT_BITS


@dataclass(frozen=True)
class ParameterField:
    """A part of a channel's parameters: its bits among them, those used, and when."""

    first_bit: int
    bits: int
    used_bits: int
    delay: int
    """Cycles from a result's bias to its use of this field."""


FIELDS = {
    "bias": ParameterField(0, 32, VALUE_BITS, 0),
    "multiplier": ParameterField(32, 32, FACTOR_BITS, Requantizer.multiplier_delay),
    "shift": ParameterField(64, 8, SHIFT_BITS, Requantizer.shift_delay),
}

STROBES = data.StructLayout(dict.fromkeys(FIELDS, 1))
"""What arrives, or what is taken."""


def element_bits(configuration: Configuration) -> int:
    """Bits of a parameter that one row of a chain's column holds."""
    return 1 if configuration.ninth_bits else 8


def words_of(configuration: Configuration, chain: int, field: ParameterField) -> range:
    """The words of a block in which a chain holds elements of a field."""
    c, size = configuration, element_bits(configuration)
    first, end = field.first_bit // size, (field.first_bit + field.bits) // size
    return range(-(-(first - chain) // c.weight_rows), -(-(end - chain) // c.weight_rows))


def largest_skew(configuration: Configuration) -> int:
    """Cycles that a word's last byte comes after its first."""
    return weight_skew(configuration, configuration.weight_rows - 1, configuration.columns - 1)


class LaneParameters(wiring.Component):
    """A lane's parameters: those in use, and those of the next slice as they arrive.

    What arrives is shifted into registers, a row for each chain and field; what is in use is a copy
    of them, of each field renewed when the slice's first result can need it.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    elements : In
        [W]: what each chain's column of this lane has.
    arriving : In
        [W] STROBES: it belongs to this field.
    take : In(STROBES)
        What has arrived comes into use.
    bias : Out(32)
    multiplier : Out(31)
    shift : Out(6)
        In the cycle after ``take`` of their field.
    """

    elements: data.View
    arriving: data.View
    take: data.View
    bias: Signal
    multiplier: Signal
    shift: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = configuration
        rows = configuration.weight_rows
        super().__init__(
            {
                "elements": In(data.ArrayLayout(element_bits(configuration), rows)),
                "arriving": In(data.ArrayLayout(STROBES, rows)),
                "take": In(STROBES),
                **{name: Out(field.used_bits) for name, field in FIELDS.items()},
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        size = element_bits(self._configuration)
        for name, field in FIELDS.items():
            elements: dict[int, Value] = {}
            for chain in range(self._configuration.weight_rows):
                words = words_of(self._configuration, chain, field)
                if not words:
                    continue
                row = Signal(size * len(words), name=f"{name}_{chain}", reset_less=True)
                with m.If(self.arriving[chain][name]):
                    m.d.sync += row.eq(Cat(row[size:], self.elements[chain]))
                for index, word in enumerate(words):
                    element = word * self._configuration.weight_rows + chain
                    elements[element] = row.word_select(index, size)
            used = Signal(field.used_bits, name=f"{name}_used", reset_less=True)
            with m.If(self.take[name]):
                m.d.sync += used.eq(Cat(elements[k] for k in sorted(elements)))
            m.d.comb += getattr(self, name).eq(used)
        return m


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
    reading : Out(1)
        The reads begin: a pulse, after which ``wanted`` belongs to another slice.
    loaded : Out(1)
        A slice that starts now, or later, has its parameters in time.
    started : In(1)
        It has started in the cycle before.
    reads : Out(stream of 24-bit word addresses)
    arriving : Out
        [C / 4][W] STROBES: what these four columns of each chain of the weight memory's data are.
    arriving_slice : Out
        Which columns are the lanes'.
    """

    wanted: Signal
    address: Signal
    slice: Signal
    reading: Signal
    loaded: Signal
    started: Signal
    reads: stream.Interface
    arriving: data.View
    arriving_slice: Signal

    def __init__(self, *, configuration: Configuration, bias_distance: int) -> None:
        self._configuration = c = configuration
        self._distances = {name: bias_distance + field.delay for name, field in FIELDS.items()}
        slices = range(c.columns // c.lanes)
        groups = c.columns // BLOCK_COLUMNS
        super().__init__(
            {
                "wanted": In(1),
                "address": In(POST_FIELDS["parameter_address"].width),
                "slice": In(slices),
                "reading": Out(1),
                "loaded": Out(1),
                "started": In(1),
                "reads": Out(stream.Signature(24)),
                "arriving": Out(
                    data.ArrayLayout(data.ArrayLayout(STROBES, c.weight_rows), groups)
                ),
                "arriving_slice": Out(slices),
            }
        )

    @property
    def loading_cycles(self) -> int:
        """From the last word's read until the slice may start, at least 2."""
        c = self._configuration
        arrival = WEIGHT_READ_LATENCY + largest_skew(c) + 1
        last = c.parameter_block_words - 1
        late = (
            arrival - (last - words_of(c, chain, field)[-1]) - self._distances[name]
            for name, field in FIELDS.items()
            for chain in range(c.weight_rows)
            if words_of(c, chain, field)
        )
        return max(2, *late)

    @property
    def release_cycles(self) -> int:
        """From a slice's start until the next one's first word may be read, at least 3."""
        c = self._configuration
        cycles = [
            # the upper half of the lanes takes its parameters a cycle later
            self._distances[name]
            + c.halved_tables
            - WEIGHT_READ_LATENCY
            - weight_skew(c, chain, 0)
            - words_of(c, chain, field)[0]
            for name, field in FIELDS.items()
            for chain in range(c.weight_rows)
            if words_of(c, chain, field)
        ]
        if c.lanes < c.columns:
            # the choice of columns must not change while words arrive
            cycles.append(WEIGHT_READ_LATENCY + largest_skew(c) + 1 - self.loading_cycles)
        return max(3, *cycles)

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
        last = taken & (word == words - 1)
        m.d.comb += self.reading.eq(free & self.wanted)
        with m.If(delay(m, self.started, self.release_cycles - 3, "released")):
            m.d.sync += free.eq(1)
        with m.If(taken):
            m.d.sync += [request.payload.eq(request.payload + 1), word.eq(word + 1)]
        with m.If(last):
            m.d.sync += request.valid.eq(0)
        with m.If(self.reading):
            m.d.sync += [
                free.eq(0),
                request.valid.eq(1),
                request.payload.eq(self.address),
                word.eq(0),
                self.arriving_slice.eq(self.slice),
            ]
        with m.If(delay(m, last, self.loading_cycles - 2, "arrived")):
            m.d.sync += self.loaded.eq(1)
        with m.If(self.started):
            m.d.sync += self.loaded.eq(0)
        self._announce(m, taken, word)
        return m

    def _announce(self, m: Module, taken: Value, word: Value) -> None:
        """What arrives where: chains that have the same fields in the same words share registers."""
        c = self._configuration
        lines: dict[tuple[range, ...], list[data.View]] = {}
        for chain in range(c.weight_rows):
            words = tuple(words_of(c, chain, field) for field in FIELDS.values())
            if words not in lines:
                strobes = Signal(STROBES, name=f"strobes_{chain}")
                m.d.comb += [
                    strobes[name].eq(
                        taken & (word >= here.start) & (word < here.stop) if here else 0
                    )
                    for name, here in zip(FIELDS, words, strict=True)
                ]
                lines[words] = [strobes]
            line = lines[words]
            for group, arriving in enumerate(self.arriving):
                distance = WEIGHT_READ_LATENCY + weight_skew(c, chain, group * BLOCK_COLUMNS)
                while len(line) <= distance:
                    line.append(delay(m, line[-1], 1, f"strobes_{chain}_{len(line)}"))
                m.d.comb += arriving[chain].eq(line[distance])


class ColumnChooser(wiring.Component):
    """Which elements, and which strobes, are those of four neighbouring lanes.

    Parameters
    ----------
    configuration : Configuration
    group : int
        Of lanes: 4 group ... 4 group + 3.

    Members
    -------
    elements : In
        [W][C], as the weight memory has them.
    arriving : In
        Of the loader.
    slice : In
    lane_elements : Out
        [4][W]
    lane_arriving : Out
        [W] STROBES
    """

    elements: data.View
    arriving: data.View
    slice: Signal
    lane_elements: data.View
    lane_arriving: data.View

    def __init__(self, *, configuration: Configuration, group: int) -> None:
        self._configuration, self._group = c, _ = configuration, group
        rows, size = c.weight_rows, element_bits(c)
        groups = c.columns // BLOCK_COLUMNS
        super().__init__(
            {
                "elements": In(data.ArrayLayout(data.ArrayLayout(size, c.columns), rows)),
                "arriving": In(data.ArrayLayout(data.ArrayLayout(STROBES, rows), groups)),
                "slice": In(range(c.columns // c.lanes)),
                "lane_elements": Out(data.ArrayLayout(data.ArrayLayout(size, rows), BLOCK_COLUMNS)),
                "lane_arriving": Out(data.ArrayLayout(STROBES, rows)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        c = self._configuration
        slices = range(c.columns // c.lanes)
        strobes = [self.arriving[(k * c.lanes) // BLOCK_COLUMNS + self._group] for k in slices]
        m.d.comb += Value.cast(self.lane_arriving).eq(
            Array([Value.cast(view) for view in strobes])[self.slice]
        )
        for lane in range(BLOCK_COLUMNS):
            first = self._group * BLOCK_COLUMNS + lane
            for chain in range(c.weight_rows):
                columns = [self.elements[chain][k * c.lanes + first] for k in slices]
                m.d.comb += self.lane_elements[lane][chain].eq(
                    Array([Value.cast(element) for element in columns])[self.slice]
                )
        return m
