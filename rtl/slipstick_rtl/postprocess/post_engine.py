"""The post engine: executes DRAIN, MAP and TABLE."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ..config import Configuration
from ..layouts import POST_INSTRUCTION
from .control import PostControl, accumulator_read_layout, activation_read_layout
from .issue import InstructionIssue
from .lanes import PostLanes
from .multiplier import VALUE_BITS
from .parameters import PARAMETER_WRITE
from .table import TableLoader


class PostEngine(wiring.Component):
    """Moves results: DRAIN takes L accumulators a cycle, MAP L bytes of one tap a cycle.

    MAP's reads pause in cycles that a write takes. An instruction starts when the one before it has
    completed: from a result's last step to its write pass ``PostControl.latency`` cycles.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    instructions : In(stream of POST_INSTRUCTION)
        In order; accepted when they start. Never HALT.
    matrix_done : In(16)
        Instructions that the other stream has completed, modulo 2^16.
    post_done : Out(16)
        Instructions completed here: the writes have landed, or the table is loaded.
    clear : In(1)
        Zeroes ``post_done``.
    busy : Out(1)
        An instruction is under way.
    started, completed : Out(1)
        Pulses, a cycle long, for traces.
    accumulator_read : Out(enable, bank, address)
    accumulator_data : In(32 x P x C)
        ``ACCUMULATOR_READ_LATENCY`` cycles later; pixel p, column c from bit 32 (p C + c) up.
    activation_read : Out(enable, address)
        A byte address, a multiple of L; never in a cycle with a write.
    activation_read_data : In(8 x L)
        ``ACTIVATION_READ_LATENCY`` cycles later.
    activation_write : Out(enable, address, data)
        To be read ``ACTIVATION_WRITE_LATENCY`` cycles later at the latest.
    weight_read : Out(stream of 24-bit word addresses)
    weight_data : In(8 x C)
    weight_valid : In(1)
        Once for each request, in order.
    parameter_write : In(PARAMETER_WRITE)
    """

    instructions: stream.Interface
    matrix_done: Signal
    post_done: Signal
    clear: Signal
    busy: Signal
    started: Signal
    completed: Signal
    accumulator_read: data.View
    accumulator_data: Signal
    activation_read: data.View
    activation_read_data: Signal
    activation_write: data.View
    weight_read: stream.Interface
    weight_data: Signal
    weight_valid: Signal
    parameter_write: data.View

    def __init__(self, *, configuration: Configuration) -> None:
        self._issue = InstructionIssue()
        self._control = PostControl(configuration=configuration)
        self._lanes = PostLanes(configuration=configuration)
        self._table = TableLoader(configuration=configuration)
        lanes, columns = configuration.lanes, configuration.columns
        write = {"enable": 1, "address": range(configuration.activation_bytes), "data": 8 * lanes}
        super().__init__(
            {
                "instructions": In(stream.Signature(POST_INSTRUCTION)),
                "matrix_done": In(16),
                "post_done": Out(16),
                "clear": In(1),
                "busy": Out(1),
                "started": Out(1),
                "completed": Out(1),
                "accumulator_read": Out(accumulator_read_layout(configuration)),
                "accumulator_data": In(configuration.pixels * columns * VALUE_BITS),
                "activation_read": Out(activation_read_layout(configuration)),
                "activation_read_data": In(8 * lanes),
                "activation_write": Out(data.StructLayout(write)),
                "weight_read": Out(stream.Signature(24)),
                "weight_data": In(8 * columns),
                "weight_valid": In(1),
                "parameter_write": In(PARAMETER_WRITE),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.issue = self._issue
        m.submodules.control = self._control
        m.submodules.lanes = self._lanes
        m.submodules.table = self._table
        self._connect_issue(m)
        self._connect_control(m)
        self._connect_table(m)
        self._connect_lanes(m)
        return m

    def _connect_issue(self, m: Module) -> None:
        issue = self._issue
        connect(m, flipped(self.instructions), issue.instructions)
        m.d.comb += [
            issue.matrix_done.eq(self.matrix_done),
            issue.clear.eq(self.clear),
            issue.written.eq(self._control.written),
            issue.table_done.eq(self._table.done),
            *(
                getattr(self, name).eq(getattr(issue, name))
                for name in ("post_done", "busy", "started", "completed")
            ),
        ]

    def _connect_control(self, m: Module) -> None:
        """All reads and writes are the loops' but for the table's reads."""
        control = self._control
        m.d.comb += [
            control.start.eq(self._issue.start_loops),
            control.instruction.eq(self._issue.instruction),
            control.draining.eq(self._issue.draining),
            self.accumulator_read.eq(control.accumulator_read),
            self.activation_read.eq(control.activation_read),
            self.activation_write.enable.eq(control.write.enable),
            self.activation_write.address.eq(control.write.address),
            self.activation_write.data.eq(self._lanes.results),
        ]

    def _connect_table(self, m: Module) -> None:
        issue, table = self._issue, self._table
        connect(m, table.weight_read, flipped(self.weight_read))
        m.d.comb += [
            table.load.eq(issue.start_table),
            table.first.eq(issue.instruction.table_address),
            table.words.eq(issue.instruction.table_words),
            table.weight_data.eq(self.weight_data),
            table.weight_valid.eq(self.weight_valid),
        ]

    def _connect_lanes(self, m: Module) -> None:
        """They get the instruction, what was read for it, and from the loops what to do with it."""
        control, lanes = self._control, self._lanes
        m.d.comb += [
            lanes.instruction.eq(self._issue.instruction),
            lanes.draining.eq(self._issue.draining),
            lanes.parameter_write.eq(self.parameter_write),
            lanes.table_write.eq(self._table.write),
            lanes.bytes.eq(self.activation_read_data),
            lanes.odd.eq(control.odd),
            lanes.accumulators.eq(self.accumulator_data),
            lanes.pixel.eq(control.pixel),
            lanes.slice.eq(control.slice),
            lanes.valid.eq(control.tap.valid),
            lanes.first.eq(control.tap.first),
            lanes.parameter_address.eq(control.parameter_address),
        ]
