"""Decides whether a request may be executed, and if not, why."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..config import WRITE_ARGUMENTS, Configuration
from ..isa import STREAMS
from .layouts import (
    Arguments,
    Completions,
    FrameHeader,
    OpenArguments,
    RegionArgument,
    RunArguments,
    SpaceArguments,
)
from .protocol import REGION_BYTES, REGIONS, Command, Space, Status
from .spaces import spaces_of, unit_count
from .unit_counter import UnitCounter

REGION_ARGUMENTS = RegionArgument.size // 8
"""Payload bytes that name a region."""

_COUNT_BYTES = 2
"""Bytes of a DEFINE's count, behind the region's number: with them it can be judged."""

ARGUMENT_BYTES = {
    Command.IDENTIFY: 0,
    Command.WRITE: WRITE_ARGUMENTS,
    Command.READ: SpaceArguments.size // 8,
    Command.RUN: RunArguments.size // 8,
    Command.STATUS: 0,
    Command.RESET: 0,
    Command.OPEN: OpenArguments.size // 8,
    Command.DEFINE: REGION_ARGUMENTS + _COUNT_BYTES,
    Command.PUT: REGION_ARGUMENTS,
    Command.GET: REGION_ARGUMENTS,
    Command.RUN_GET: RunArguments.size // 8,
    Command.HOLD: Completions.size // 8,
}
"""Payload bytes that a command is judged by; behind them are the data of those that have some."""

_DEFINED_BYTES = REGION_BYTES - _COUNT_BYTES
"""Behind a DEFINE's arguments."""


def exceeds(value: Value, limit: int) -> Value:
    """Tells whether a value is larger than a power of two: without a carry."""
    bit = exact_log2(limit)
    return value[bit + 1 :].any() | value[bit] & value[:bit].any()


class _Rules(wiring.Component):
    """Finds the broken rules of :class:`RequestChecker`; ``end`` is one past the last unit."""

    ORDER = (
        Status.BAD_COMMAND,
        Status.OUT_OF_ORDER,
        Status.BUSY,
        Status.BAD_LENGTH,
        Status.BAD_SPACE,
        Status.BUSY,
        Status.BAD_LENGTH,
        Status.BAD_ADDRESS,
        Status.OUT_OF_ORDER,
        Status.BAD_INSTRUCTION,
    )
    TURN = 3
    """The first rules decide whether it is the request's turn."""

    header: data.View
    arguments: data.View
    filled: Signal
    data_bytes: Signal
    some_data: Signal
    whole: Signal
    end: Signal
    running: Signal
    bad_instruction: Signal
    unknown: Signal
    early: Signal
    repeated: Signal
    may_continue: Signal
    broken: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = configuration
        flags = ("running", "bad_instruction", "unknown", "early", "repeated", "may_continue")
        super().__init__(
            {
                "header": In(FrameHeader),
                "arguments": In(Arguments),
                "filled": In(1),
                "data_bytes": In(16),
                "some_data": In(1),
                "whole": In(1),
                "end": In(25),
                **dict.fromkeys(flags, In(1)),
                "broken": Out(len(self.ORDER)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        configuration = self._configuration
        arguments = self.arguments.as_value()
        target = data.View(SpaceArguments, arguments[: SpaceArguments.size])
        run_target = data.View(RunArguments, arguments[: RunArguments.size])
        region = data.View(RegionArgument, arguments[: RegionArgument.size])
        # the table has as many regions as the field has numbers
        assert REGIONS == 1 << len(region.region)
        code = self.header.command.code

        # decoded a cycle ahead: header and arguments come long before the sum
        fits, write, read, define, starts = Signal(), Signal(), Signal(), Signal(), Signal()
        goes_on, looks, elsewhere = Signal(), Signal(), Signal()
        too_much = Signal()
        limit = Signal(25)
        with_region = code.matches(Command.DEFINE, Command.PUT, Command.GET, Command.RUN_GET)
        flagless = code.matches(Command.DEFINE, Command.GET)
        m.d.sync += [
            # what is not told is 0, so that nothing is an enable
            limit.eq(0),
            fits.eq(
                self.filled
                & Mux(
                    code == Command.DEFINE,
                    self.data_bytes == _DEFINED_BYTES,
                    ~self.some_data | code.matches(Command.WRITE, Command.PUT),
                )
            ),
            write.eq(code == Command.WRITE),
            read.eq(code == Command.READ),
            define.eq(code == Command.DEFINE),
            starts.eq(code.matches(Command.RUN, Command.RUN_GET)),
            goes_on.eq((code == Command.PUT) & region.flag),
            looks.eq((code == Command.GET) | (code == Command.RUN_GET) & ~region.flag),
            elsewhere.eq(
                (code == Command.WRITE) & _is_unknown(target.space, configuration)
                | (code == Command.READ) & (target.space != Space.ACTIVATIONS)
                | with_region & (region.other != 0)
                | flagless & region.flag
            ),
            too_much.eq(
                Mux(
                    code == Command.READ,
                    exceeds(target.count, configuration.payload_bytes),
                    exceeds(arguments[RegionArgument.size :][:16], configuration.payload_bytes),
                )
            ),
        ]
        for space in spaces_of(configuration):
            with m.If(target.space == space):
                m.d.sync += limit.eq(unit_count(configuration, space))

        words = configuration.instruction_words
        new = starts & ~self.repeated
        m.d.sync += self.broken.eq(
            Cat(
                self.unknown,
                self.early,
                self.header.command.waiting & self.running,
                ~fits,
                elsewhere,
                new & self.running,
                write & ~self.whole | (read | define) & too_much,
                (write | read) & (self.end > limit)
                | new & Cat(run_target.pcs[k] >= words for k in range(len(STREAMS))).any(),
                goes_on & ~self.may_continue & ~self.repeated,
                looks & self.bad_instruction,
            )
        )
        return m


def _is_unknown(space: Value, configuration: Configuration) -> Value:
    known = spaces_of(configuration)
    if known == tuple(range(len(known))):
        return space >= len(known)
    return ~space.matches(*known)


class RequestChecker(wiring.Component):
    """Judges a request whose checksum is right, before anything acts on it.

    The first rule that is broken decides, in this order:

    1. BAD_COMMAND: the command is unknown.
    2. OUT_OF_ORDER: the number is neither the next nor the last one's, of a command with a place
       in the order.
    3. BUSY: a WAITING request while a program runs, which has waited long enough.
    4. BAD_LENGTH: the payload is not as long as its arguments (WRITE, PUT: shorter).
    5. BAD_SPACE: the space is unknown, or READ's is not ACTIVATIONS; or the region is unknown.
    6. BUSY: a RUN or RUN_GET while a program runs.
    7. BAD_LENGTH: WRITE's data are not whole units; READ asks for more than ``payload_bytes``, or a
       GET of the region of a DEFINE would.
    8. BAD_ADDRESS: a byte written or read by its address, or where a run is to start, lies beyond
       the memory. (Of a PUT this is found out when its bytes have their places.)
    9. OUT_OF_ORDER: a PUT that continues, with none before it.
    10. BAD_INSTRUCTION: a GET, or a RUN_GET that reads at once, and the last run met one.

    A ``repeated`` request breaks none of the rules 6 (BUSY), 8 as far as a run is concerned, and 9.
    Flags of RUN without a meaning are ignored.

    Latency: 3 cycles, for some WRITEs as :class:`UnitCounter` says more. All inputs hold from
    ``start`` until ``done``, but for those of the status.

    Members
    -------
    start : In
        Begins.
    header, arguments : In
    filled : In
        All arguments have come.
    data_bytes, some_data : In
        Payload bytes behind the arguments; that there are some.
    running, bad_instruction : In
        Of the status; to a HOLD nothing runs that has come far enough.
    unknown, early, repeated, may_continue : In
        As :class:`RequestOrder` has them.
    done : Out
        Strobe: ``verdict`` (a Status) is valid.
    verdict : Out
    in_turn : Out
        With ``done``: the first three rules hold.
    """

    start: Signal
    header: data.View
    arguments: data.View
    filled: Signal
    data_bytes: Signal
    some_data: Signal
    running: Signal
    bad_instruction: Signal
    unknown: Signal
    early: Signal
    repeated: Signal
    may_continue: Signal
    done: Signal
    verdict: Signal
    in_turn: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = configuration
        flags = ("running", "bad_instruction", "unknown", "early", "repeated", "may_continue")
        super().__init__(
            {
                "start": In(1),
                "header": In(FrameHeader),
                "arguments": In(Arguments),
                "filled": In(1),
                "data_bytes": In(16),
                "some_data": In(1),
                **dict.fromkeys(flags, In(1)),
                "done": Out(1),
                "verdict": Out(4),
                "in_turn": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.counter = counter = UnitCounter(configuration=self._configuration)
        m.submodules.rules = rules = _Rules(configuration=self._configuration)
        target = data.View(SpaceArguments, self.arguments.as_value()[: SpaceArguments.size])
        is_write = self.header.command.code == Command.WRITE
        counting = Signal()
        summed = Signal()

        m.d.comb += [
            counter.start.eq(self.start),
            counter.bytes.eq(Mux(is_write, self.data_bytes, 0)),
            counter.space.eq(target.space),
            rules.header.eq(self.header),
            rules.arguments.eq(self.arguments),
            rules.filled.eq(self.filled),
            rules.data_bytes.eq(self.data_bytes),
            rules.some_data.eq(self.some_data),
            rules.whole.eq(counter.whole),
            rules.running.eq(self.running),
            rules.bad_instruction.eq(self.bad_instruction),
            rules.unknown.eq(self.unknown),
            rules.early.eq(self.early),
            rules.repeated.eq(self.repeated),
            rules.may_continue.eq(self.may_continue),
            self.in_turn.eq(~rules.broken[: _Rules.TURN].any()),
        ]
        m.d.sync += [
            counting.eq(self.start | counting & ~counter.done),
            rules.end.eq(target.address + Mux(is_write, counter.units, target.count)),
            summed.eq(counting & counter.done),
            self.done.eq(summed),
        ]
        # the first broken rule has the last word
        for rule, status in reversed(list(enumerate(_Rules.ORDER))):
            with m.If(rules.broken[rule]):
                m.d.comb += self.verdict.eq(status)
        return m
