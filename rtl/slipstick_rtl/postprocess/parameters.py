"""A lane's parameters, as they arrive from the weight memory and as they are in use."""

from amaranth.hdl import Array, Cat, Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..config import Configuration
from ..latencies import BLOCK_COLUMNS, WEIGHT_READ_LATENCY, weight_skew
from ..primitives.delay import delay
from ..primitives.resting import registered
from .fields import ParameterField
from .requantization import parameter_fields, strobes

QUEUE_LATENCY = 2
"""Cycles from taking a word of a :class:`ParameterQueue` to its elements: a register at the end."""

CHOOSER_LATENCY = 1
"""Cycles of a :class:`ColumnChooser`: four lanes' registers, as the lanes are all over the chip."""


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


def are_queued(configuration: Configuration) -> bool:
    """Parameters go through a :class:`ParameterQueue`, as their blocks have many words."""
    return bool(configuration.ninth_bits)


def arrival(configuration: Configuration, chain: int, column: int) -> int:
    """Cycles from the loader's read of a word until this element of it is at its lane."""
    read = WEIGHT_READ_LATENCY + weight_skew(configuration, chain, column)
    return (QUEUE_LATENCY if are_queued(configuration) else read) + CHOOSER_LATENCY


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
        [W] strobes: it belongs to this field.
    take : In(strobes)
        What has arrived comes into use.
    bias, and others : Out
        The bits that are used of each of ``parameter_fields``, in the cycle after its ``take``.
    """

    elements: data.View
    arriving: data.View
    take: data.View
    bias: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = configuration
        rows, strobe = configuration.weight_rows, strobes(configuration)
        self._fields = parameter_fields(configuration)
        super().__init__(
            {
                "elements": In(data.ArrayLayout(element_bits(configuration), rows)),
                "arriving": In(data.ArrayLayout(strobe, rows)),
                "take": In(strobe),
                **{name: Out(field.used_bits) for name, field in self._fields.items()},
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        size = element_bits(self._configuration)
        for name, field in self._fields.items():
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


class ColumnChooser(wiring.Component):
    """Chooses the elements and the strobes of four neighbouring lanes, a cycle later.

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
        [W] strobes
    """

    elements: data.View
    arriving: data.View
    slice: Signal
    lane_elements: data.View
    lane_arriving: data.View

    def __init__(self, *, configuration: Configuration, group: int) -> None:
        self._configuration, self._group = c, _ = configuration, group
        rows, size = c.weight_rows, element_bits(c)
        groups, lane = c.columns // BLOCK_COLUMNS, data.ArrayLayout(strobes(c), rows)
        super().__init__(
            {
                "elements": In(data.ArrayLayout(data.ArrayLayout(size, c.columns), rows)),
                "arriving": In(data.ArrayLayout(lane, groups)),
                "slice": In(range(c.columns // c.lanes)),
                "lane_elements": Out(data.ArrayLayout(data.ArrayLayout(size, rows), BLOCK_COLUMNS)),
                "lane_arriving": Out(lane),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        c = self._configuration
        slices = range(c.columns // c.lanes)
        columns = [self.arriving[(k * c.lanes) // BLOCK_COLUMNS + self._group] for k in slices]
        arriving = Array([Value.cast(view) for view in columns])[self.slice]
        m.d.comb += Value.cast(self.lane_arriving).eq(
            delay(m, arriving, 1, "lane_arriving", reset_less=True)
        )
        for lane in range(BLOCK_COLUMNS):
            first = self._group * BLOCK_COLUMNS + lane
            for chain in range(c.weight_rows):
                columns = [self.elements[chain][k * c.lanes + first] for k in slices]
                chosen = Array([Value.cast(element) for element in columns])[self.slice]
                # in standard cells only what somebody takes
                mine = arriving.word_select(chain, strobes(c).size).any() if c.silicon else None
                here = registered(m, chosen, mine, f"element_{lane}_{chain}_0")
                m.d.comb += self.lane_elements[lane][chain].eq(here)
        return m
