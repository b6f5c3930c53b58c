"""The post engine's datapath: L lanes, their tables and parameters, and what each does when."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..config import Configuration
from ..latencies import BLOCK_COLUMNS, RESULT_TABLE_LATENCY
from ..primitives.delay import delay
from ..primitives.fanout import copies_of, copy_of
from ..primitives.resting import registered, where
from .distances import BIAS_DISTANCE
from .lane import PostLane, control_delays
from .multiplier import VALUE_BITS
from .parameters import ColumnChooser, LaneParameters, element_bits
from .requantization import instruction_fields, lane_fields, parameter_fields, strobes
from .table import Table, table_write

TAP = data.StructLayout(
    {
        "valid": 1,
        "draining": 1,  # it is an accumulator
        "looked_up": 1,  # its byte goes through the table
        "odd": 1,  # ... the second half
        "shifted": 1,  # its byte is shifted
        "alone": 1,  # it takes the place of the taps before
        "compared": 1,  # ... if it is greater
        "subtracted": 1,  # for the comparison
        "noting": 1,  # training: what it completes is noted
        "forgetting": 1,  # ... or the notes are forgotten
        "notes": 1,  # it is the notes
        "tabulated": 1,  # its result goes through the table
        "masked": 1,  # an accumulator whose byte must be above 0
        "factor": 1,  # products: its entry is a factor
        "multiplied": 1,  # ... it is the product of the two before it
    }
)
"""A step of the loop nest, as the lanes see it."""

_QUARTERS = 4


class PostLanes(wiring.Component):
    """L lanes that work in step; fixed latency, no stall.

    With ``halved_tables`` lane i and lane L - 1 - i share a table, and the upper half of the lanes
    works a cycle behind the lower one; a tap that is looked up must then be followed by a cycle
    without one. (The array may go to the right with its first columns and back with the others: so
    these two may take their sums from the same place.)

    With ``drain_tables`` a result may go through the lane's table, ``RESULT_TABLE_LATENCY`` cycles,
    and all results take that long. No tap may be looked up in the cycle in which such a result
    is there: what is behind a DRAIN and looks taps up starts when that has completed.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    tap : In(TAP)
        A cycle before its bytes.
    begin : In(1)
        The cycle after an instruction's start; its first step is made in it, or later.
    fields : In(lane_fields)
        From the cycle after ``begin`` on, for at least ``FIELDS_PERIOD`` cycles.
    take : In(1)
        As ``begin``, of a slice with parameters of its own.
    elements, arriving, arriving_slice : In
        Parameters on their way from weight memory: see :class:`ColumnChooser`.
    table_write : In(table_write(configuration))
    bytes : In(8 x L)
    accumulators : In(32 x P x C)
        ``accumulator_latency`` cycles before the lanes take them.
    pixel : In(range(P))
        Which of them, with ``slice``; a cycle before the accumulators.
    slice : In(range(C / L))
    results : Out(8 x L)
    """

    tap: data.View
    begin: Signal
    fields: data.View
    take: Signal
    elements: data.View
    arriving: data.View
    arriving_slice: Signal
    table_write: data.View
    bytes: data.View
    accumulators: Signal
    pixel: Signal
    slice: Signal
    results: data.View

    accumulator_latency = 1
    """Cycles: the register behind the choice."""

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = c = configuration
        lanes, slices = c.lanes, range(c.columns // c.lanes)
        self._half = lanes // 2 if c.halved_tables else lanes
        self._platform: object = None
        arriving = data.ArrayLayout(strobes(c), c.weight_rows)
        elements = data.ArrayLayout(element_bits(c), c.columns)
        super().__init__(
            {
                "tap": In(TAP),
                "begin": In(1),
                "fields": In(lane_fields(c)),
                "take": In(1),
                "elements": In(data.ArrayLayout(elements, c.weight_rows)),
                "arriving": In(data.ArrayLayout(arriving, c.columns // BLOCK_COLUMNS)),
                "arriving_slice": In(slices),
                "table_write": In(table_write(c)),
                "bytes": In(data.ArrayLayout(8, lanes)),
                "accumulators": In(c.pixels * c.columns * VALUE_BITS),
                "pixel": In(range(c.pixels)),
                "slice": In(slices),
                "results": Out(data.ArrayLayout(8, lanes)),
            }
        )

    @property
    def _tables_together(self) -> int:
        """Tables whose entries come by the same register."""
        return max(BLOCK_COLUMNS, self._configuration.tables // _QUARTERS)

    @property
    def table_latency(self) -> int:
        """Cycles from ``table_write`` to the last of the tables.

        At most BYTE_DISTANCE: the first byte that an instruction looks up comes no earlier."""
        return -(-self._configuration.tables // self._tables_together)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._platform = platform
        c = self._configuration
        lanes = [PostLane(configuration=c) for _ in range(c.lanes)]
        busy = self._busy(m)
        for index, lane in enumerate(lanes):
            m.submodules[f"lane_{index}"] = lane
            late = self._is_late(index)
            if c.silicon:
                m.d.comb += lane.busy.eq(busy[late : late + PostLane.latency])
            byte = delay(m, self.bytes[index], late, f"late_byte_{index}", reset_less=True)
            early = int(bool(self._configuration.halved_tables)) - late
            m.d.comb += lane.byte.eq(byte)
            if not c.drain_tables:
                result = delay(m, lane.result, early, f"early_result_{index}", reset_less=True)
                m.d.comb += self.results[index].eq(result)
        self._control(m, lanes)
        self._give_fields(m, lanes)
        self._give_parameters(m, lanes)
        self._look_up(m, lanes)
        self._choose_accumulators(m, lanes)
        if c.training:
            self._take_notes(m, lanes)
        return m

    def _busy(self, m: Module) -> Value:
        """In silicon: bit k is 1 if there was a tap, or what counts as one, k + 1 cycles ago."""
        if not self._configuration.silicon:
            return Const(0, 0)
        tap, busy = self.tap, Signal(PostLane.latency + 1)
        begins = tap.valid | tap.noting | tap.forgetting | tap.notes
        m.d.sync += busy.eq(Cat(begins, busy[:-1]))
        return busy

    def _is_late(self, index: int) -> int:
        """1 for a lane that works a cycle behind."""
        return int(index >= self._half)

    def _quarter(self, index: int) -> int:
        """Lanes of a quarter share registers, so that no wire goes to all."""
        return index * _QUARTERS // self._configuration.lanes

    def _strobes(
        self, m: Module, value: Value, cycles: int, name: str, groups: int = _QUARTERS
    ) -> list[Value]:
        """``value`` for each quarter, or other group, that many cycles later, or one more.

        Without reset, as the lanes are all over the chip: after one, what is under way runs out
        long before the next instruction can come.
        """
        early = late = delay(m, value, cycles - 1, name, reset_less=True)
        if self._half < len(self.bytes):
            late = delay(m, early, 1, f"{name}_late", reset_less=True)
        first_lanes = [k * self._configuration.lanes // groups for k in range(groups)]
        return [
            copy_of(m, self._platform, late if self._is_late(first) else early, f"{name}_{first}")
            for first in first_lanes
        ]

    def _control(self, m: Module, lanes: list[PostLane]) -> None:
        tap = self.tap
        absent = tap.looked_up | tap.draining | tap.multiplied
        sources = {"absent": absent, "inverted": tap.subtracted}
        for name, cycles in control_delays(self._configuration).items():
            source = sources[name] if name in sources else tap[name]
            # one for each lane: two in succession may stand at both ends of the chip
            strobes = self._strobes(m, source, cycles + 1, name, len(lanes))
            for lane, strobe in zip(lanes, strobes, strict=True):
                m.d.comb += lane.control[name].eq(strobe)

    def _take_notes(self, m: Module, lanes: list[PostLane]) -> None:
        for name in ("noting", "forgetting"):
            strobes = self._strobes(m, self.tap[name], PostLane.noting_delay + 1, name)
            for index, lane in enumerate(lanes):
                m.d.comb += getattr(lane, name).eq(strobes[self._quarter(index)])

    def _give_fields(self, m: Module, lanes: list[PostLane]) -> None:
        """Each quarter's registers, renewed when an instruction's first result can need them."""
        delays = {
            name: field.delay for name, field in instruction_fields(self._configuration).items()
        }
        begins = {
            cycles: self._strobes(m, self.begin, BIAS_DISTANCE + cycles - 1, f"begin_{cycles}")
            for cycles in sorted(set(delays.values()))
        }
        fields, begun = self.fields, self.begin
        for quarter in range(_QUARTERS):
            # on from quarter to quarter: there is time
            if self._configuration.silicon:
                begun = delay(m, begun, 1, f"fields_begin_{quarter}")
            needed = begun if self._configuration.silicon else None
            fields = registered(m, fields, needed, f"fields_{quarter}_0")
            mine = [lane for k, lane in enumerate(lanes) if self._quarter(k) == quarter]
            for name, cycles in delays.items():
                field = fields[name]
                used = Signal.like(Value.cast(field), name=f"{name}_{quarter}", reset_less=True)
                with m.If(begins[cycles][quarter]):
                    m.d.sync += used.eq(Value.cast(field))
                m.d.comb += [Value.cast(getattr(lane, name)).eq(used) for lane in mine]

    def _give_parameters(self, m: Module, lanes: list[PostLane]) -> None:
        c = self._configuration
        takes = {
            name: self._strobes(m, self.take, BIAS_DISTANCE + field.delay - 1, f"take_{name}")
            for name, field in parameter_fields(c).items()
        }
        for group in range(c.lanes // BLOCK_COLUMNS):
            chooser = ColumnChooser(configuration=c, group=group)
            m.submodules[f"columns_{group}"] = chooser
            m.d.comb += [
                chooser.elements.eq(self.elements),
                chooser.arriving.eq(self.arriving),
                chooser.slice.eq(self.arriving_slice),
            ]
            for place in range(BLOCK_COLUMNS):
                index = group * BLOCK_COLUMNS + place
                parameters = LaneParameters(configuration=c)
                m.submodules[f"parameters_{index}"] = parameters
                m.d.comb += [
                    parameters.elements.eq(chooser.lane_elements[place]),
                    parameters.arriving.eq(chooser.lane_arriving),
                ]
                for name in takes:
                    m.d.comb += [
                        parameters.take[name].eq(takes[name][self._quarter(index)]),
                        getattr(lanes[index], name).eq(getattr(parameters, name)),
                    ]

    def _pass_on(self, m: Module, write: data.View, name: str) -> data.View:
        """A table's entry a cycle later; in silicon the register rests if there is none."""
        if not self._configuration.silicon:
            return delay(m, write, 1, name, reset_less=True)
        late: Any = Signal(write.shape(), name=name, reset_less=True)
        m.d.sync += late.enable.eq(write.enable)
        with m.If(write.enable):
            m.d.sync += [late.address.eq(write.address), late.data.eq(write.data)]
        return late

    def _look_up(self, m: Module, lanes: list[PostLane]) -> None:
        """Each table's byte: of its lane, or a cycle later that of the lane that shares it."""
        c = self._configuration
        write = self.table_write
        tabulated: list[Value] = []
        if c.drain_tables:
            cycles = PostLane.latency + 1
            tabulated = self._strobes(m, self.tap.tabulated, cycles, "tabulated", c.lanes)
        for index in range(c.tables):
            m.submodules[f"table_{index}"] = table = Table(configuration=c)
            odd = copy_of(m, self._platform, self.tap.odd, f"odd_{index}")
            if index % self._tables_together == 0:
                # on from a few tables to the next few: ``table_latency``
                write = self._pass_on(m, write, f"write_{index}")
            m.d.comb += [
                table.write.eq(write),
                table.byte.eq(self.bytes[index]),
                table.odd.eq(odd),
                lanes[index].entry.eq(table.entry),
            ]
            mine: Value = Const(0, 1)
            if c.silicon or c.halved_tables:
                mine = copy_of(m, self._platform, self.tap.looked_up, f"mine_{index}")
            if c.silicon:
                asked = mine
                if c.halved_tables:
                    asked |= delay(m, mine, 1, f"late_mine_{index}", reset_less=True)
                if c.drain_tables:
                    asked |= tabulated[index]
                m.d.comb += table.enable.eq(asked)
            if c.drain_tables:
                self._look_up_result(m, index, lanes[index], table, odd, tabulated[index])
            if c.halved_tables:
                upper = lanes[c.lanes - 1 - index]
                late_odd = delay(m, odd, 1, f"late_odd_{index}", reset_less=True)
                m.d.comb += [
                    table.byte.eq(Mux(mine, self.bytes[index], upper.byte)),
                    table.odd.eq(Mux(mine, odd, late_odd)),
                    upper.entry.eq(table.entry),
                ]

    def _look_up_result(
        self, m: Module, index: int, lane: PostLane, table: Table, odd: Value, tabulated: Value
    ) -> None:
        """A lane's result as it is, or the low byte of its entry in the first half of the table."""
        m.d.comb += [
            table.byte.eq(Mux(tabulated, lane.result, self.bytes[index])),
            table.odd.eq(odd & ~tabulated),
        ]
        names = (f"plain_{index}", f"tabulated_{index}")
        plain, chosen = (
            delay(m, value, Table.latency, name, reset_less=True)
            for value, name in zip((lane.result, tabulated), names, strict=True)
        )
        result = Mux(chosen, table.entry[: len(plain)], plain)
        later = RESULT_TABLE_LATENCY - Table.latency
        leaving = delay(m, result, later, f"result_{index}", reset_less=True)
        m.d.comb += self.results[index].eq(leaving)

    def _choose_accumulators(self, m: Module, lanes: list[PostLane]) -> None:
        """Those of a pixel and a slice; none where taps are bytes."""
        c = self._configuration
        cycles = PostLane.accumulator_delay - 1
        drained = delay(m, self.tap.draining, cycles, "draining", reset_less=True)
        draining = [copy_of(m, self._platform, drained, f"draining_{k}") for k in range(_QUARTERS)]
        pixel_bits, slice_bits = c.columns * VALUE_BITS, c.lanes * VALUE_BITS
        pixel = delay(m, self.pixel, 1, "pixel", reset_less=True)
        words = self.accumulators.word_select(pixel, pixel_bits)
        giving = delay(m, self.tap.notes, cycles + 1, "giving", reset_less=True)
        changes: Value | None = None
        if c.silicon:
            # a sum comes, or nothing but bytes does from now on
            valid = delay(m, self.tap.valid, cycles + 1, "accumulator_valid", reset_less=True)
            drains = delay(m, drained, 1, "drains", reset_less=True)
            before = Signal(name="drained_before", init=1)
            m.d.sync += before.eq(drains)
            changes = Mux(drains, valid, before)
        for index, lane in enumerate(lanes):
            chosen = Signal(VALUE_BITS, name=f"chosen_{index}", reset_less=True)
            choice = copies_of(m, self._platform, self.slice, f"slice_{index}")
            mine = words.word_select(choice, slice_bits).word_select(index, VALUE_BITS)
            drains = draining[self._quarter(index)]
            if c.training:
                drains &= self._passes(m, index)
                mine = Mux(giving, lane.notes, mine)
            with where(m, changes):
                with m.If(drains):
                    m.d.sync += chosen.eq(mine)
                with m.Else():
                    m.d.sync += chosen.eq(0)
            late = delay(m, chosen, self._is_late(index), f"late_{index}", reset_less=True)
            m.d.comb += lane.accumulator.eq(late)

    def _passes(self, m: Module, index: int) -> Value:
        """Tells whether an accumulator is not masked by its byte; a cycle after the byte."""
        above = (self.bytes[index] != 0) & ~self.bytes[index][-1]
        masked = delay(m, self.tap.masked, 1, f"masked_{index}", reset_less=True)
        return delay(m, above | ~masked, 1, f"passes_{index}", reset_less=True)
