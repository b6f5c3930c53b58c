"""Takes instructions in order, each when the other stream has come far enough."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..isa import Opcode
from ..layouts import POST_INSTRUCTION
from ..memory.latencies import ACTIVATION_WRITE_LATENCY
from ..primitives.delay import delay


class InstructionIssue(wiring.Component):
    """Holds the instruction under way, starts the part that executes it, and counts the completed.

    An opcode that the post engine does not know does nothing and completes.

    Members
    -------
    instructions : In(stream of POST_INSTRUCTION)
        Accepted when the instruction starts: when ``matrix_done`` less its ``wait`` is below 2^15,
        modulo 2^16.
    matrix_done : In(16)
    clear : In(1)
        Zeroes ``post_done``.
    post_done : Out(16)
    busy : Out(1)
        An instruction is under way.
    started, completed : Out(1)
        Pulses, a cycle long.
    instruction : Out(POST_INSTRUCTION)
        The one under way; DRAIN with one tap.
    draining : Out(1)
        It is DRAIN.
    start_loops, start_table : Out(1)
        Pulses, in the first cycle of ``instruction``.
    written : In(1)
        A pulse: the loops' last write is at the activation memory's port.
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
    start_loops: Signal
    start_table: Signal
    written: Signal
    table_done: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "instructions": In(stream.Signature(POST_INSTRUCTION)),
                "matrix_done": In(16),
                "clear": In(1),
                "post_done": Out(16),
                "busy": Out(1),
                "started": Out(1),
                "completed": Out(1),
                "instruction": Out(POST_INSTRUCTION),
                "draining": Out(1),
                "start_loops": Out(1),
                "start_table": Out(1),
                "written": In(1),
                "table_done": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        offered = self.instructions
        ahead = Signal(16)
        permitted = Signal()
        opcode = offered.payload.opcode
        uses_loops = Signal()
        landed = delay(m, self.written, ACTIVATION_WRITE_LATENCY, "written")
        m.d.comb += ahead.eq(self.matrix_done - offered.payload.wait)
        # of the instruction offered in the last cycle: not if that one has just been taken
        m.d.sync += permitted.eq(offered.valid & ~offered.ready & ~ahead[-1])

        with m.FSM() as fsm:
            with m.State("waiting for an instruction"), m.If(offered.valid & permitted):
                m.d.comb += [offered.ready.eq(1), self.started.eq(1)]
                m.d.sync += [
                    self.instruction.eq(offered.payload),
                    self.draining.eq(opcode == Opcode.DRAIN),
                    uses_loops.eq((opcode == Opcode.DRAIN) | (opcode == Opcode.MAP)),
                    self.start_loops.eq((opcode == Opcode.DRAIN) | (opcode == Opcode.MAP)),
                    self.start_table.eq(opcode == Opcode.TABLE),
                ]
                with m.If(opcode == Opcode.DRAIN):
                    m.d.sync += [self.instruction.taps_y.eq(1), self.instruction.taps_x.eq(1)]
                m.next = "starting"
            with m.State("starting"):
                m.d.sync += [self.start_loops.eq(0), self.start_table.eq(0)]
                m.next = "executing"
            with m.State("executing"):
                m.d.comb += self.completed.eq(landed | (~uses_loops & self.table_done))
                with m.If(self.completed):
                    m.next = "waiting for an instruction"
        m.d.comb += self.busy.eq(~fsm.ongoing("waiting for an instruction"))
        with m.If(self.clear):
            m.d.sync += self.post_done.eq(0)
        with m.Elif(self.completed):
            m.d.sync += self.post_done.eq(self.post_done + 1)
        return m
