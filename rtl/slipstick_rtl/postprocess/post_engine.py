"""The post engine: executes DRAIN, MAP and TABLE."""

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ..config import Configuration
from ..layouts import post_instruction
from ..primitives.resting import resting
from .control import PostControl, accumulator_read_layout, activation_read_layout
from .distances import BIAS_DISTANCE
from .issue import InstructionIssue
from .lanes import PostLanes, lane_fields
from .multiplier import VALUE_BITS
from .parameter_loader import ParameterLoader
from .parameter_queue import ParameterQueue
from .parameters import are_queued
from .requantization import field_of
from .table import TableLoader


class PostEngine(wiring.Component):
    """Moves results: DRAIN takes L accumulators a cycle, MAP L bytes of one tap a cycle.

    A DRAIN's steps follow those of the instruction before, and those of a slice those of the slice
    before, if its time has come and its parameters are there: they are read while what comes before
    is under way. A MAP and a TABLE start when all before has completed. MAP's reads pause in cycles
    that a write takes, and with ``halved_tables`` after a tap that is looked up.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    instructions : In(stream of post_instruction)
        In order; accepted before they start. Never HALT.
    matrix_done : In(16)
        Instructions that the other stream has completed, modulo 2^16.
    post_done : Out(16)
        Instructions completed here: the writes have landed, or the table is loaded.
    clear : In(1)
        Zeroes ``post_done``.
    busy : Out(1)
        An instruction has been accepted and has not completed.
    started, completed : Out(1)
        Pulses, a cycle long, for traces.
    phase : In(1)
        Toggles every cycle. A DRAIN's ``accumulator_read`` is at the memories, ``ACCUMULATOR_WAY``
        cycles later, where it is 0 if the word is odd and 1 if it is even, if there is one pixel.
    accumulator_read : Out(enable, bank, address)
    accumulator_data : In(32 x P x C)
        ``ACCUMULATOR_READ_LATENCY`` cycles later; pixel p, column c from bit 32 (p C + c) up.
    activation_read : Out(enable, address)
        A byte address, a multiple of L; never in a cycle with a write.
    activation_read_data : In(8 x L)
        ``ACTIVATION_READ_LATENCY`` cycles later.
    activation_write : Out(enable, address, data)
        To be read ``ACTIVATION_WRITE_LATENCY`` cycles later at the latest.
    parameter_reads, table_reads : Out(stream of 24-bit word addresses)
        Of weight memory.
    parameters_urgent : Out(1)
        For its choice.
    weight_data : In(8 x W x C)
        Byte (s, j), from bit 8 (s C + j) up, ``WEIGHT_READ_LATENCY`` + ``weight_skew(configuration,
        s, j)`` cycles after each transfer of either.
    weight_ninth : In(W x C)
        The ninth bits, likewise; without ``ninth_bits`` nothing looks at them.
    """

    instructions: stream.Interface
    matrix_done: Signal
    post_done: Signal
    clear: Signal
    phase: Signal
    busy: Signal
    started: Signal
    completed: Signal
    accumulator_read: data.View
    accumulator_data: Signal
    activation_read: data.View
    activation_read_data: Signal
    activation_write: data.View
    parameter_reads: stream.Interface
    parameters_urgent: Signal
    table_reads: stream.Interface
    weight_data: Signal
    weight_ninth: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = c = configuration
        self._issue = InstructionIssue(configuration=c)
        self._control = PostControl(configuration=c)
        self._parameters = ParameterLoader(configuration=c, bias_distance=BIAS_DISTANCE)
        self._queue = ParameterQueue(configuration=c) if are_queued(c) else None
        self._lanes = PostLanes(configuration=c)
        self._table = TableLoader(configuration=c)
        write = {"enable": 1, "address": range(c.activation_bytes), "data": 8 * c.lanes}
        super().__init__(
            {
                "instructions": In(stream.Signature(post_instruction(c))),
                "matrix_done": In(16),
                "post_done": Out(16),
                "clear": In(1),
                "phase": In(1),
                "busy": Out(1),
                "started": Out(1),
                "completed": Out(1),
                "accumulator_read": Out(accumulator_read_layout(c)),
                "accumulator_data": In(c.pixels * c.columns * VALUE_BITS),
                "activation_read": Out(activation_read_layout(c)),
                "activation_read_data": In(8 * c.lanes),
                "activation_write": Out(data.StructLayout(write)),
                "parameter_reads": Out(stream.Signature(24)),
                "parameters_urgent": Out(1),
                "table_reads": Out(stream.Signature(24)),
                "weight_data": In(8 * c.weight_word_bytes),
                "weight_ninth": In(c.weight_word_bytes),
            }
        )

    @property
    def parameter_period(self) -> int:
        """At least that many cycles lie between the starts of slices with their own parameters."""
        return self._parameters.period

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.issue = self._issue
        m.submodules.control = self._control
        m.submodules.parameters = self._parameters
        if self._queue is not None:
            m.submodules.queue = self._queue
        m.submodules.lanes = self._lanes
        works = self._table.load | ~self._table.done if self._configuration.silicon else None
        m.submodules.table = resting(self._table, works)
        self._connect_issue(m)
        self._connect_control(m)
        self._connect_weights(m)
        self._connect_lanes(m)
        return m

    def _connect_issue(self, m: Module) -> None:
        issue, parameters, queue = self._issue, self._parameters, self._queue
        if queue is None:
            connect(m, flipped(self.instructions), issue.instructions)
        else:
            self._hand_out(m, queue)
        m.d.comb += [
            issue.matrix_done.eq(self.matrix_done),
            issue.clear.eq(self.clear),
            issue.free.eq(self._control.free),
            issue.written.eq(self._control.written),
            issue.table_done.eq(self._table.done),
            issue.parameters_reading.eq(parameters.reading),
            issue.parameters_loaded.eq(parameters.loaded),
            *(
                getattr(self, name).eq(getattr(issue, name))
                for name in ("post_done", "busy", "started", "completed")
            ),
        ]

    def _hand_out(self, m: Module, queue: ParameterQueue) -> None:
        """Each instruction to the queue as soon as that can take it, then to be issued."""
        given, ahead, issued = self.instructions, queue.instructions, self._issue.instructions
        held = Signal()
        m.d.comb += [
            ahead.payload.eq(given.payload),
            ahead.valid.eq(given.valid & ~held),
            issued.payload.eq(given.payload),
            issued.valid.eq(given.valid & held),
            given.ready.eq(issued.ready & held),
        ]
        with m.If(ahead.valid & ahead.ready):
            m.d.sync += held.eq(1)
        with m.Elif(given.valid & given.ready):
            m.d.sync += held.eq(0)

    def _connect_control(self, m: Module) -> None:
        """All reads and writes are the loops' but those of weight memory."""
        control, issue = self._control, self._issue
        m.d.comb += [
            control.start.eq(issue.start),
            control.phase.eq(self.phase),
            control.started.eq(issue.started_late),
            *(
                getattr(control, name).eq(getattr(issue, name))
                for name in ("instruction", "draining", "slice", "final")
            ),
            self.accumulator_read.eq(control.accumulator_read),
            self.activation_read.eq(control.activation_read),
            self.activation_write.enable.eq(control.write.enable),
            self.activation_write.address.eq(control.write.address),
            self.activation_write.data.eq(self._lanes.results),
        ]

    def _connect_weights(self, m: Module) -> None:
        issue, parameters, table = self._issue, self._parameters, self._table
        elements = self.weight_ninth if self._configuration.ninth_bits else self.weight_data
        if self._queue is None:
            connect(m, parameters.reads, flipped(self.parameter_reads))
            m.d.comb += self.parameters_urgent.eq(1)
        else:
            connect(m, self._queue.reads, flipped(self.parameter_reads))
            m.d.comb += [
                self.parameters_urgent.eq(self._queue.urgent),
                Value.cast(self._queue.elements).eq(elements),
                parameters.reads.ready.eq(self._queue.ready),
                self._queue.take.eq(parameters.reads.valid & self._queue.ready),
                self._queue.again.eq(parameters.again),
                self._queue.ends.eq(parameters.ends),
            ]
            elements = Value.cast(self._queue.word)
        m.d.comb += Value.cast(self._lanes.elements).eq(elements)
        connect(m, table.reads, flipped(self.table_reads))
        m.d.comb += [
            parameters.wanted.eq(issue.parameters_wanted),
            parameters.address.eq(issue.instruction.parameter_address),
            parameters.slice.eq(issue.slice),
            parameters.final.eq(issue.final | ~issue.draining),
            parameters.started.eq(issue.has_parameters),
            table.load.eq(issue.start_table),
            table.first.eq(issue.instruction.table_address),
            table.words.eq(issue.instruction.table_words),
            table.weights.eq(self.weight_data),
        ]

    def _connect_lanes(self, m: Module) -> None:
        """They get what was read for an instruction, and from the loops what to do with it."""
        control, lanes, issue = self._control, self._lanes, self._issue
        layout = lane_fields(self._configuration)
        fields = Signal(layout, reset_less=True)
        with m.If(issue.first):
            m.d.sync += [
                Value.cast(fields[name]).eq(field_of(self._configuration, issue.instruction, name))
                for name in layout.members
            ]
        m.d.comb += [
            lanes.tap.eq(control.tap),
            lanes.begin.eq(issue.first),
            lanes.fields.eq(fields),
            lanes.take.eq(issue.has_parameters),
            lanes.arriving.eq(self._parameters.arriving),
            lanes.arriving_slice.eq(self._parameters.arriving_slice),
            lanes.table_write.eq(self._table.write),
            lanes.bytes.eq(self.activation_read_data),
            lanes.accumulators.eq(self.accumulator_data),
            lanes.pixel.eq(control.pixel),
            lanes.slice.eq(control.accumulator_slice),
        ]
