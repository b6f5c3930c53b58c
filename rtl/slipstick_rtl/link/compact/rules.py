"""Decides whether a compact link may execute a request: the rules of ``RequestChecker``."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ...config import Configuration
from ...isa import STREAMS
from ..layouts import Arguments, FrameHeader, OpenArguments, RunArguments, SpaceArguments
from ..protocol import Command, Space, Status
from ..spaces import WRITE_ARGUMENTS, unit_bytes, unit_count

_ARGUMENT_BYTES = {
    Command.READ: SpaceArguments.size // 8,
    Command.RUN: RunArguments.size // 8,
    Command.OPEN: OpenArguments.size // 8,
}
"""Of the commands that have a fixed number, but none."""


class CompactRules(wiring.Component):
    """Judges a request of at most ``payload_bytes``; header and arguments hold meanwhile.

    The units of a WRITE are counted by subtraction, one a cycle.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    header, arguments : In
    start : In
        Begins.
    running, repeated : In
        A program runs; the sequence number is that of the last RUN.
    done : Out
        ``verdict`` holds, from here until the next start.
    verdict : Out
        A Status.
    """

    header: data.View
    arguments: data.View
    start: Signal
    running: Signal
    repeated: Signal
    done: Signal
    verdict: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = configuration
        super().__init__(
            {
                "header": In(FrameHeader),
                "arguments": In(Arguments),
                "start": In(1),
                "running": In(1),
                "repeated": In(1),
                "done": Out(1),
                "verdict": Out(3),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        c = self._configuration
        bits = c.payload_bytes.bit_length()
        target = data.View(SpaceArguments, self.arguments.as_value()[: SpaceArguments.size])
        space = target.space[:2]
        is_write = self.header.command == Command.WRITE
        left, units, unit = Signal(bits), Signal(bits), Signal(bits)
        counting = Signal()
        with m.Switch(space):
            for known in Space:
                with m.Case(known):
                    m.d.comb += unit.eq(unit_bytes(c, known))
        short = left < unit
        with m.If(self.start):
            m.d.sync += [left.eq(self.header.length - WRITE_ARGUMENTS), units.eq(0)]
            m.d.sync += counting.eq(1)
        with m.Elif(counting & is_write & ~short):
            m.d.sync += [left.eq(left - unit), units.eq(units + 1)]
        with m.Else():
            m.d.sync += counting.eq(0)
        m.d.sync += self.done.eq(~counting & ~self.start)
        beyond = self._beyond(m, target, Mux(is_write, units, target.count))
        self._judge(m, whole=left == 0, beyond=beyond)
        return m

    def _beyond(self, m: Module, target: data.View, count: Value) -> Value:
        """A WRITE or READ of so many units reaches beyond its memory."""
        c = self._configuration
        largest = max(unit_count(c, space) for space in Space)
        bits = largest.bit_length()
        end, limit = Signal(bits + 1), Signal(bits + 1)
        m.d.comb += end.eq(target.address[:bits] + count[:bits])
        with m.Switch(target.space[:2]):
            for space in Space:
                with m.Case(space):
                    m.d.comb += limit.eq(unit_count(c, space))
        return (end > limit) | target.address[bits:].any()

    def _judge(self, m: Module, *, whole: Value, beyond: Value) -> None:
        c = self._configuration
        command, length = self.header.command, self.header.length
        target = data.View(SpaceArguments, self.arguments.as_value()[: SpaceArguments.size])
        run = data.View(RunArguments, self.arguments.as_value()[: RunArguments.size])
        is_write, is_read = command == Command.WRITE, command == Command.READ
        runs = (command == Command.RUN) & ~self.repeated
        wanted = Signal(3)
        with m.Switch(command):
            for known, size in _ARGUMENT_BYTES.items():
                with m.Case(known):
                    m.d.comb += wanted.eq(size)
        fits = Mux(is_write, length >= WRITE_ARGUMENTS, length == wanted)
        elsewhere = target.space != Space.ACTIVATIONS
        known = Cat(command == code for code in Command).any()
        words = c.instruction_words
        outside = Cat(run.pcs[k] >= words for k in range(len(STREAMS))).any()
        rules = (
            (~known, Status.BAD_COMMAND),
            (~fits, Status.BAD_LENGTH),
            (is_write & (target.space >= len(Space)) | is_read & elsewhere, Status.BAD_SPACE),
            (runs & self.running, Status.BUSY),
            (is_write & ~whole | is_read & (target.count > c.payload_bytes), Status.BAD_LENGTH),
            ((is_write | is_read) & beyond | runs & outside, Status.BAD_ADDRESS),
        )
        verdict: Value = Const(Status.OK, 3)
        for broken, status in reversed(rules):
            verdict = Mux(broken, Const(status, 3), verdict)
        m.d.sync += self.verdict.eq(verdict)
