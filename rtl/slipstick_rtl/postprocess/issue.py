"""Takes instructions in order, each when the other stream has come far enough."""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..config import Configuration
from ..isa import READING_FLAGS, Opcode
from ..latencies import ACTIVATION_WRITE_LATENCY
from ..layouts import post_instruction
from ..primitives.delay import delay
from .distances import FIELDS_PERIOD

_UNIT_FIELDS = ("source", "destination")
"""Address fields that grow by a unit of L bytes from slice to slice."""

_IN_FLIGHT_BITS = 3
"""One held, one in the loops, and their results on the way."""

_SETTLING_CYCLES = 3
"""Cycles from an instruction's start until the next one's, if ``settled`` comes at once."""


class InstructionIssue(wiring.Component):
    """Holds the next slice of the next instruction, and starts it when all it waits for is there.

    A DRAIN's slice starts in the cycle in which the nest becomes free, if its parameters are loaded
    and ``FIELDS_PERIOD`` have passed since the instruction before started. A MAP and a TABLE start
    when all instructions before have completed.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    instructions : In(stream of post_instruction)
        Accepted before they start: one waits here while another is under way. DRAIN, MAP and TABLE.
    matrix_done : In(16)
        An instruction starts when this less its ``wait`` is below 2^15, modulo 2^16.
    clear : In(1)
        Zeroes ``post_done``.
    post_done : Out(16)
    busy : Out(1)
        An instruction has been accepted and has not completed.
    started, completed : Out(1)
        Pulses, a cycle long: an instruction's first slice starts; its last write has landed.
    instruction : Out(post_instruction)
        The next, or the one that starts: from before ``start`` until the cycle after it. Source and
        destination are those of the slice, DRAIN has one tap.
    draining : Out(1)
        It is a DRAIN.
    slice : Out(range(C / L))
        Of a DRAIN.
    final : Out(1)
        Its last slice.
    parameters_wanted : Out(1)
        It needs parameters that are not being read yet.
    parameters_reading, parameters_loaded : In(1)
        They are read from now on; a slice that needs them may start.
    free : In(1)
        The loops have no step after this cycle.
    start : Out(1)
        The slice starts.
    first, has_parameters : Out(1)
        In the cycle after ``start``: it is an instruction's first slice; it has its own block.
    started_late : Out(1)
        ``start``, a cycle later.
    start_table : Out(1)
    written : In(1)
        A pulse: an instruction's last write is at the activation memory's port.
    table_done : In(1)
        The table is loaded; from the cycle after ``start_table`` on.
    """

    instructions: stream.Interface
    matrix_done: Signal
    clear: Signal
    post_done: Signal
    busy: Signal
    started: Signal
    completed: Signal
    instruction: data.View
    draining: Signal
    slice: Signal
    final: Signal
    parameters_wanted: Signal
    parameters_reading: Signal
    parameters_loaded: Signal
    free: Signal
    start: Signal
    started_late: Signal
    first: Signal
    has_parameters: Signal
    start_table: Signal
    written: Signal
    table_done: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = c = configuration
        inputs = ("clear", "parameters_reading", "parameters_loaded", "free", "written")
        inputs += ("table_done",)
        outputs = ("busy", "started", "completed", "draining", "final", "parameters_wanted")
        outputs += ("start", "started_late", "first", "has_parameters", "start_table")
        super().__init__(
            {
                "instructions": In(stream.Signature(post_instruction(c))),
                "matrix_done": In(16),
                "post_done": Out(16),
                "instruction": Out(post_instruction(c)),
                "slice": Out(range(c.columns // c.lanes)),
                **dict.fromkeys(inputs, In(1)),
                **dict.fromkeys(outputs, Out(1)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        holding, looping, first = Signal(), Signal(), Signal()
        go, go_table, fetched = Signal(), Signal(), Signal()
        needs_parameters = looping & (self.draining | first)
        started_table = delay(m, go_table, 1, "started_table")
        m.d.comb += [
            self.instructions.ready.eq(~holding),
            self.start.eq(go & self.free),
            self.started_late.eq(delay(m, self.start, 1, "start")),
            self.start_table.eq(go_table),
            self.started.eq((self.start & first) | go_table),
            self.parameters_wanted.eq(holding & needs_parameters & ~fetched),
        ]
        m.d.sync += [
            self.first.eq(self.start & first),
            self.has_parameters.eq(self.start & needs_parameters),
        ]
        waiting = holding & ~(self.start | self.started_late | go_table | started_table)
        ready = self._may_begin(m, holding, first) | (holding & ~first)
        ready &= ~needs_parameters | self.parameters_loaded
        m.d.sync += [go.eq(waiting & looping & ready), go_table.eq(waiting & ~looping & ready)]
        with m.If(self.parameters_reading):
            m.d.sync += fetched.eq(1)
        with m.Elif(self.started_late):
            m.d.sync += fetched.eq(0)
        self._hold(m, holding, looping, first)
        with m.If((self.started_late & self.final) | started_table):
            m.d.sync += holding.eq(0)
        return m

    def _may_begin(self, m: Module, holding: Value, first: Value) -> Value:
        """An instruction's first slice may start, as far as other instructions are concerned."""
        ahead, permitted, settled = Signal(16), Signal(), Signal(init=1)
        in_flight, table = Signal(_IN_FLIGHT_BITS), Signal()
        accepted = self.instructions.valid & self.instructions.ready
        landed = delay(m, self.written, ACTIVATION_WRITE_LATENCY, "written")
        m.d.comb += [
            ahead.eq(self.matrix_done - self.instruction.wait),
            self.completed.eq(landed | (table & self.table_done)),
            self.busy.eq(in_flight.any()),
        ]
        m.d.sync += [
            permitted.eq(holding & first & ~ahead[-1]),
            in_flight.eq(in_flight + accepted - self.completed),
        ]
        settles = delay(m, self.first, FIELDS_PERIOD - _SETTLING_CYCLES, "settles")
        with m.If(self.first):
            m.d.sync += settled.eq(0)
        with m.Elif(settles):
            m.d.sync += settled.eq(1)
        with m.If(self.start_table):
            m.d.sync += table.eq(1)
        with m.Elif(self.completed):
            m.d.sync += table.eq(0)
        with m.If(self.clear):
            m.d.sync += self.post_done.eq(0)
        with m.Elif(self.completed):
            m.d.sync += self.post_done.eq(self.post_done + 1)
        return permitted & settled & Mux(self._follows, ~table, in_flight == 1)

    @property
    def _follows(self) -> Value:
        """The instruction's steps may follow those of the one before: it reads nothing of it."""
        if not self._configuration.training:
            return self.draining
        flags = self.instruction.table_words
        return self.draining & ((flags & READING_FLAGS) == 0)

    def _hold(self, m: Module, holding: Signal, looping: Signal, first: Signal) -> None:
        """The instruction as it was accepted, and from slice to slice."""
        offered, held = self.instructions.payload, self.instruction
        is_drain = offered.opcode == Opcode.DRAIN
        # whether there is an instruction is of no matter but to ``holding``
        with m.If(~holding):
            m.d.sync += [
                holding.eq(self.instructions.valid),
                held.eq(offered),
                self.draining.eq(is_drain),
                looping.eq(is_drain | (offered.opcode == Opcode.MAP)),
                first.eq(1),
                self.final.eq(offered.slices == 1),
                self.slice.eq(0),
            ]
            with m.If(is_drain):
                m.d.sync += [
                    held.taps_y.eq(1),
                    held.taps_x.eq(1),
                    held.take_maximum.eq(0),
                ]
                if not self._configuration.drain_tables:
                    m.d.sync += held.use_table.eq(0)
        with m.If(self.started_late):
            m.d.sync += [
                first.eq(0),
                held.slices.eq(held.slices - 1),
                self.final.eq(held.slices == 2),
                self.slice.eq(self.slice + 1),
            ]
            for name in _UNIT_FIELDS:
                unit = held[name][exact_log2(self._configuration.lanes) :]
                m.d.sync += unit.eq(unit + 1)
