"""Decides whether a compact link may execute a request: the rules of the golden endpoint."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ...config import WRITE_ARGUMENTS, Configuration
from ...isa import STREAMS
from ..layouts import (
    Arguments,
    FrameHeader,
    OpenArguments,
    RegionArgument,
    RunArguments,
    SpaceArguments,
)
from ..protocol import REGION_BYTES, REGIONS, UNORDERED, Command, Space, Status
from ..spaces import spaces_of, unit_count
from .walker import address_bits

_REGION = RegionArgument.size // 8
_ARGUMENT_BYTES = {
    Command.READ: SpaceArguments.size // 8,
    Command.RUN: RunArguments.size // 8,
    Command.OPEN: OpenArguments.size // 8,
    Command.DEFINE: _REGION + REGION_BYTES,
    Command.GET: _REGION,
    Command.RUN_GET: RunArguments.size // 8,
}
"""Payload bytes of the commands that have a fixed number of them, and not 0."""

_KNOWN = tuple(command for command in Command if command is not Command.HOLD)
"""An engine that runs from one memory has no inputs to be written over while it runs."""

_INPUTS = ("running", "bad_instruction", "whole", "may_continue")


def exceeds(value: Value, limit: int) -> Value:
    """It is larger; without a carry chain if the limit is a power of two."""
    if limit & (limit - 1):
        return value > limit
    place = exact_log2(limit)
    return value[place + 1 :].any() | value[place] & value[:place].any()


class CompactRules(wiring.Component):
    """Judges a request of at most ``payload_bytes`` whose CRC is right, in the same cycle.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    header, arguments : In
    next_sequence : In(8)
    running, bad_instruction : In
        Of the status.
    address, whole : In
        Of a WRITE or READ: the unit behind the last one, and that no part of a unit is left.
        While a region is written or read: the byte that is next.
    may_continue : In
        A PUT has ended where the next one may go on.
    early : Out
        What is refused whether a program runs or not.
    ordered, repeated : Out
        The command has a place in the order; the request is the last one, sent again.
    beyond : Out
        ``address`` is beyond what the command may reach.
    verdict : Out
        A Status.
    """

    header: data.View
    arguments: data.View
    next_sequence: Signal
    running: Signal
    bad_instruction: Signal
    address: Signal
    whole: Signal
    may_continue: Signal
    early: Signal
    ordered: Signal
    repeated: Signal
    beyond: Signal
    verdict: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = configuration
        super().__init__(
            {
                "header": In(FrameHeader),
                "arguments": In(Arguments),
                "next_sequence": In(8),
                **dict.fromkeys(_INPUTS, In(1)),
                "address": In(address_bits(configuration) + 1),
                **dict.fromkeys(("early", "ordered", "repeated", "beyond"), Out(1)),
                "verdict": Out(4),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        code = self.header.command.code
        known, is_next, ahead = Signal(), Signal(), Signal(8)
        m.d.comb += [
            ahead.eq(self.next_sequence - self.header.sequence),
            known.eq(code.matches(*_KNOWN)),
            self.ordered.eq(~code.matches(*UNORDERED)),
            self.repeated.eq(self.ordered & (ahead == 1)),
            is_next.eq(ahead == 0),
            self.early.eq(~known | self.ordered & ~is_next & ~self.repeated),
            self.beyond.eq(self.address > self._limit(m)),
        ]
        verdict: Value = Const(Status.OK, 4)
        rules = (
            (~known, Status.BAD_COMMAND),
            (self.early, Status.OUT_OF_ORDER),
            *self._rules(m),
        )
        for broken, status in reversed(rules):
            verdict = Mux(broken, Const(status, 4), verdict)
        m.d.comb += self.verdict.eq(verdict)
        return m

    def _limit(self, m: Module) -> Signal:
        """The largest address: of a WRITE or READ, one behind the last unit; of the bytes of a
        region, the last one."""
        c = self._configuration
        limit = Signal(address_bits(c))
        space = self.arguments[0][:2]
        with m.If(self.header.command.code.matches(Command.WRITE, Command.READ)):
            with m.Switch(space):
                for known in spaces_of(c):
                    with m.Case(known):
                        m.d.comb += limit.eq(unit_count(c, known))
        with m.Else():
            m.d.comb += limit.eq(c.activation_bytes - 1)
        return limit

    def _fits(self, m: Module) -> Value:
        """The payload has the length that the command takes."""
        code = self.header.command.code
        length = self.header.length[: self._configuration.payload_bytes.bit_length()]
        wanted = Signal(5)
        with m.Switch(code):
            for known, size in _ARGUMENT_BYTES.items():
                with m.Case(known):
                    m.d.comb += wanted.eq(size)
        long_enough = Mux(code == Command.WRITE, length >= WRITE_ARGUMENTS, length != 0)
        return Mux(code.matches(Command.WRITE, Command.PUT), long_enough, length == wanted)

    def _rules(self, m: Module) -> tuple[tuple[Value, Status], ...]:
        """Broken rules of a known command in its order, the first first."""
        c = self._configuration
        code = self.header.command.code
        flags = self.arguments[0]
        region = data.View(RegionArgument, flags)
        run = data.View(RunArguments, self.arguments.as_value()[: RunArguments.size])
        write, read = code == Command.WRITE, code == Command.READ
        run_get, put = code == Command.RUN_GET, code == Command.PUT
        no_flag = code.matches(Command.DEFINE, Command.GET)
        of_region = no_flag | run_get | put
        starts = (run_get | (code == Command.RUN)) & ~self.repeated
        counts = (
            (read, Cat(*self.arguments[4:6])),
            (code == Command.DEFINE, Cat(*self.arguments[1:3])),
        )
        too_much = Cat(of & exceeds(count, c.payload_bytes) for of, count in counts).any()
        words = c.instruction_words
        outside = Cat(run.pcs[k] >= words for k in range(len(STREAMS))).any()
        # the table has as many regions as the field has numbers
        assert REGIONS == 1 << len(region.region)
        elsewhere = (
            write & (flags >= len(spaces_of(self._configuration)))
            | read & (flags != Space.ACTIVATIONS)
            | of_region & (region.other != 0)
            | no_flag & region.flag
        )
        instruction = (code == Command.GET) | run_get & ~region.flag
        return (
            (self.header.command.waiting & self.running, Status.BUSY),
            (~self._fits(m), Status.BAD_LENGTH),
            (elsewhere, Status.BAD_SPACE),
            (starts & self.running, Status.BUSY),
            (write & ~self.whole | too_much, Status.BAD_LENGTH),
            ((write | read) & self.beyond | starts & outside, Status.BAD_ADDRESS),
            (
                put & region.flag & ~self.may_continue & ~self.repeated,
                Status.OUT_OF_ORDER,
            ),
            (instruction & self.bad_instruction, Status.BAD_INSTRUCTION),
        )
