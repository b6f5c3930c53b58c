"""The post engine's control path: what is read, combined and written in every cycle."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..array.accumulators import part_origin
from ..config import Configuration
from ..isa import MapFlag, TrainingFlag
from ..latencies import ACCUMULATOR_READ_LATENCY, ACCUMULATOR_WAY
from ..layouts import post_instruction
from ..primitives.delay import delay
from ..primitives.resting import registered
from .addresses import AccumulatorCursor, AddressGenerator
from .distances import BYTE_DISTANCE, READ_DISTANCE, write_distance
from .lane import PostLane
from .lanes import TAP, PostLanes
from .loops import COUNTS, LoopNest
from .requantization import flag_of

_CURRENT = (
    "bank",
    "parts",
    "destination_row_step",
    "destination_column_step",
    "source_row_step",
    "source_column_step",
    "tap_step_y",
    "tap_step_x",
    "take_maximum",
    "use_table",
    "shift_taps",
    "table_words",
)
"""Fields of the slice under way that are looked at later than when it starts."""

_RESULT = data.StructLayout({"valid": 1, "end": 1})
"""A step that completes a result; the last of its instruction."""


def accumulator_read_layout(configuration: Configuration) -> data.StructLayout:
    """The read port of the accumulators; the address counts groups of P pixels."""
    return data.StructLayout(
        {"enable": 1, "bank": 1, "address": range(configuration.accumulator_depth)}
    )


def activation_read_layout(configuration: Configuration) -> data.StructLayout:
    """Port B of the activation memory; the address counts bytes and is a multiple of L."""
    return data.StructLayout({"enable": 1, "address": range(configuration.activation_bytes)})


class PostControl(wiring.Component):
    """The loop nest and the addresses that follow it, each at its distance in cycles.

    Only MAP's reads share a port with the writes: the nest pauses in cycles that a write takes, and
    nothing behind it ever stalls. The steps of a slice follow those of the one before, whosever
    they are: what is needed of an instruction is renewed where its first step comes by.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    free : Out(1)
        The nest has no step after this cycle.
    phase : In(1)
        As the engine has it.
    start : In(1)
        A slice begins; only if ``free``.
    started : In(1)
        ``start``, a cycle later.
    instruction : In(post_instruction)
        With ``start`` and ``started``; source and destination of the slice; DRAIN has one tap
        and no maximum, and its table is that of its results.
    draining, slice, final : In
        Likewise: it is DRAIN; its slice; there is none after it.
    activation_read : Out(enable, address)
    accumulator_read : Out(enable, bank, address)
    pixel : Out(range(P))
        Of the accumulators that arrive in the next cycle.
    accumulator_slice : Out(range(C / L))
    tap : Out(TAP)
        A cycle before its bytes.
    write : Out(enable, address)
        Of the results that leave the lanes.
    written : Out(1)
        A pulse, with the last write of an instruction.
    """

    free: Signal
    phase: Signal
    start: Signal
    started: Signal
    instruction: data.View
    draining: Signal
    slice: Signal
    final: Signal
    activation_read: data.View
    accumulator_read: data.View
    pixel: Signal
    accumulator_slice: Signal
    tap: data.View
    write: data.View
    written: Signal

    tap_distance = BYTE_DISTANCE - 1
    """Cycles from a step to ``tap``."""

    accumulator_distance = (
        BYTE_DISTANCE
        + PostLane.accumulator_delay
        - PostLanes.accumulator_latency
        - ACCUMULATOR_READ_LATENCY
    )
    """Cycles from a step to the read of its accumulators: they are combined when a tap would be."""

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = c = configuration
        self._unit_bits = exact_log2(c.lanes)
        self._unit_address_bits = exact_log2(c.activation_bytes) - self._unit_bits
        layout = post_instruction(c)
        self._current = data.StructLayout({name: layout.members[name] for name in _CURRENT})
        slices = range(c.columns // c.lanes)
        super().__init__(
            {
                "free": Out(1),
                "phase": In(1),
                "start": In(1),
                "started": In(1),
                "instruction": In(layout),
                "draining": In(1),
                "slice": In(slices),
                "final": In(1),
                "activation_read": Out(activation_read_layout(c)),
                "accumulator_read": Out(accumulator_read_layout(c)),
                "pixel": Out(range(c.pixels)),
                "accumulator_slice": Out(slices),
                "tap": Out(TAP),
                "write": Out(activation_read_layout(c)),
                "written": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.loops = loops = LoopNest()
        instruction, step = self.instruction, loops.step
        m.d.comb += [
            self.free.eq(loops.free),
            loops.load.eq(self.start),
            *(loops.counts[name].eq(instruction[name]) for name in COUNTS.members),
        ]
        current = Signal(self._current, reset_less=True)
        draining, final = Signal(), Signal()
        masked, next_masked = Signal(), self._is_masked(instruction)
        with m.If(self.started):
            m.d.sync += [current[name].eq(instruction[name]) for name in _CURRENT]
            m.d.sync += [draining.eq(self.draining), final.eq(self.final)]
            m.d.sync += masked.eq(next_masked)
        before = delay(m, step, READ_DISTANCE - 1, "step")
        reading = delay(m, before, 1, "reading")
        writes = self._follow_destination(m, reading, current, final)
        # a register: who has the activation memory's port hangs on it
        idle = Mux(self.started, self.draining & ~next_masked, draining & ~masked)
        reads = Signal()
        m.d.sync += reads.eq(before.valid & ~idle)
        m.d.comb += self.activation_read.enable.eq(reads)
        self._follow_source(m, reading, current)
        looked_up = self._stall(m, loops, writes)
        self._tell_lanes(m, reading, current, draining, looked_up)
        self._follow_accumulators(m, reading, current, draining)
        return m

    def _units(self, field: Value) -> Value:
        """A byte address or step in units of L bytes; what lies above the memory is cut off."""
        return field[self._unit_bits : self._unit_bits + self._unit_address_bits]

    def _is_masked(self, instruction: data.View) -> Value:
        """Tells whether a DRAIN reads bytes, which mask its accumulators."""
        if not self._configuration.training:
            return Const(0, 1)
        return flag_of(instruction, TrainingFlag.MASKED)

    def _stall(self, m: Module, loops: LoopNest, writes: list[data.View]) -> Value:
        """Lets the nest pause; whether the tap is looked up, at the read's distance.

        A step's read must not meet a write, and one that is looked up in halved tables takes two
        cycles. Two cycles ahead, as it is a register.
        """
        step = loops.step
        use_table, draining, reads, odd = Signal(2), Signal(), Signal(), Signal()
        with m.If(self.start):
            m.d.sync += [
                use_table.eq(self._tap_tables()),
                draining.eq(self.draining),
                reads.eq(~self.draining | self._is_masked(self.instruction)),
            ]
        looked_up = step.valid & Mux(step.odd, use_table[1], use_table[0])
        if self._configuration.products:
            multiplies = Signal()
            with m.If(self.start):
                m.d.sync += multiplies.eq(self._is_product(self.instruction))
            looked_up &= ~(multiplies & step.last)
        # writes[0] is at the read's distance
        meets = reads & writes[-1 - 1 - READ_DISTANCE].valid
        pause = looked_up if self._configuration.halved_tables else 0
        # of the step that is next: is its word odd, and would it be read out of turn
        next_odd = ~self.start & (odd ^ step.valid)
        out_of_turn = self._next_draining(draining) & (
            next_odd == self.phase ^ (1 + self.accumulator_distance + ACCUMULATOR_WAY) % 2
        )
        m.d.sync += [odd.eq(next_odd), loops.stall.eq(meets | pause | out_of_turn)]
        return delay(m, looked_up, READ_DISTANCE, "looked_up")

    def _tap_tables(self) -> Value:
        """``use_table`` of a MAP; a DRAIN's is of its results, if it has one."""
        use_table = self.instruction.use_table
        return Mux(self.draining, 0, use_table) if self._configuration.drain_tables else use_table

    def _next_draining(self, draining: Signal) -> Value:
        """Tells whether the next step reads words of the accumulators, each a single time."""
        if self._configuration.pixels > 1:
            return Const(0, 1)
        return Mux(self.start, self.draining, draining)

    def _tell_lanes(
        self, m: Module, step: data.View, current: data.View, draining: Value, looked_up: Value
    ) -> None:
        tap = Signal(TAP)
        maximum = current.take_maximum
        multiplies = self._is_product(current) & ~draining
        m.d.comb += [
            tap.valid.eq(step.valid),
            tap.draining.eq(draining),
            tap.looked_up.eq(looked_up),
            tap.odd.eq(step.odd),
            tap.shifted.eq(current.shift_taps),
            # a product takes the place of its factors
            tap.alone.eq(step.first | maximum | multiplies),
            tap.compared.eq(maximum & ~step.first),
            tap.subtracted.eq(maximum),
            *self._table_strobe(tap, step, current, draining),
            *self._product_strobes(tap, step, multiplies, looked_up),
            *self._training_strobes(tap, step, current),
            self.tap.eq(delay(m, tap, self.tap_distance - READ_DISTANCE, "tap", reset_less=True)),
        ]

    def _table_strobe(
        self, tap: data.View, step: data.View, current: data.View, draining: Value
    ) -> list[Any]:
        if not self._configuration.drain_tables:
            return []
        return [tap.tabulated.eq(step.valid & draining & current.use_table[0])]

    def _product_strobes(
        self, tap: data.View, step: data.View, multiplies: Value, looked_up: Value
    ) -> list[Any]:
        if not self._configuration.products:
            return []
        return [
            tap.factor.eq(looked_up & multiplies),
            tap.multiplied.eq(step.valid & step.last & multiplies),
        ]

    def _is_product(self, instruction: data.View) -> Value:
        """Tells whether a MAP multiplies."""
        if not self._configuration.products:
            return Const(0, 1)
        return flag_of(instruction, MapFlag.MULTIPLY)

    def _training_strobes(self, tap: data.View, step: data.View, current: data.View) -> list[Any]:
        if not self._configuration.training:
            return []
        noted, notes = (flag_of(current, flag) for flag in (TrainingFlag.NOTED, TrainingFlag.NOTES))
        return [
            tap.noting.eq(step.valid & step.last & noted & ~notes),
            tap.forgetting.eq(step.valid & step.end & noted & notes),
            tap.notes.eq(notes),
            tap.masked.eq(self._is_masked(current)),
        ]

    def _follow_source(self, m: Module, step: data.View, current: data.View) -> None:
        m.submodules.source = source = AddressGenerator(width=self._unit_address_bits, levels=4)
        m.d.comb += [
            source.load.eq(self.started),
            source.origin.eq(self._units(self.instruction.source)),
            source.steps[0].eq(self._units(current.tap_step_x)),
            source.steps[1].eq(self._units(current.tap_step_y)),
            source.steps[2].eq(self._units(current.source_column_step)),
            source.steps[3].eq(self._units(current.source_row_step)),
            source.advance.eq(step.valid),
            source.ends.eq(Cat(step.tap_row_end, step.last, step.row_end)),
            self.activation_read.address[self._unit_bits :].eq(source.address),
        ]

    def _follow_accumulators(
        self, m: Module, step: data.View, current: data.View, draining: Value
    ) -> None:
        """DRAIN's steps are results. Nothing of it changes sooner than a slice has begun here."""
        m.submodules.cursor = cursor = AccumulatorCursor(configuration=self._configuration)
        later = self.accumulator_distance - READ_DISTANCE
        read = delay(m, step, later, "accumulator_step")
        bank, part = Signal(), Signal.like(self.slice)
        depth = self._configuration.accumulator_depth
        origin = Signal(range(depth), reset_less=True)
        begins = delay(m, self.started & self.draining, later, "accumulator_begin")
        slice_under_way = Signal.like(self.slice)
        with m.If(self.started):
            m.d.sync += slice_under_way.eq(self.slice)
        with m.If(begins):
            m.d.sync += [bank.eq(current.bank[0]), part.eq(slice_under_way)]
            m.d.sync += origin.eq(part_origin(current, depth))
        m.d.comb += [
            cursor.load.eq(begins),
            cursor.advance.eq(read.valid),
            cursor.row_end.eq(read.row_end),
            self.accumulator_read.enable.eq(
                delay(m, step.valid & draining, later, "accumulator_read")
            ),
            self.accumulator_read.bank.eq(bank),
            self.accumulator_read.address.eq(cursor.address | origin),
            self.pixel.eq(delay(m, cursor.pixel, ACCUMULATOR_READ_LATENCY - 1, "pixel")),
            self.accumulator_slice.eq(delay(m, part, ACCUMULATOR_READ_LATENCY - 1, "part")),
        ]

    def _follow_destination(
        self, m: Module, step: data.View, current: data.View, final: Value
    ) -> list[data.View]:
        """The addresses travel beside the results; of these, every distance from the read's on."""
        m.submodules.destination = destination = AddressGenerator(
            width=self._unit_address_bits, levels=2
        )
        result = Signal(_RESULT, name="result")
        later = write_distance(self._configuration) - READ_DISTANCE
        m.d.comb += [
            result.valid.eq(step.valid & step.last),
            result.end.eq(step.end & final),
            destination.load.eq(self.started),
            destination.origin.eq(self._units(self.instruction.destination)),
            destination.steps[0].eq(self._units(current.destination_column_step)),
            destination.steps[1].eq(self._units(current.destination_row_step)),
            destination.advance.eq(result.valid),
            destination.ends.eq(step.row_end),
        ]
        results = [result]
        for distance in range(later):
            results.append(delay(m, results[-1], 1, f"result_{distance}"))
        written = results[-1]
        address: Value = destination.address
        for distance in range(later):
            # in standard cells only where there is a result
            valid = results[distance].valid if self._configuration.silicon else None
            address = registered(m, address, valid, f"destination_{distance}")
        m.d.comb += [
            self.write.enable.eq(written.valid),
            self.write.address[self._unit_bits :].eq(address),
            self.written.eq(written.valid & written.end),
        ]
        return results
