"""Decides whether a request may be executed, and if not, why."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..config import Configuration
from ..isa import STREAMS
from .layouts import Arguments, FrameHeader, OpenArguments, RunArguments, SpaceArguments
from .protocol import Command, Space, Status
from .spaces import WRITE_ARGUMENTS, unit_count
from .unit_counter import UnitCounter

ARGUMENT_BYTES = {
    Command.IDENTIFY: 0,
    Command.WRITE: WRITE_ARGUMENTS,
    Command.READ: SpaceArguments.size // 8,
    Command.RUN: RunArguments.size // 8,
    Command.STATUS: 0,
    Command.RESET: 0,
    Command.OPEN: OpenArguments.size // 8,
}
"""Payload bytes that each command takes; WRITE's data come behind them."""


class _Rules(wiring.Component):
    """Which rules of :class:`RequestChecker` are broken; ``end`` is one past the last unit."""

    ORDER = (
        Status.BAD_COMMAND,
        Status.BAD_LENGTH,
        Status.BAD_SPACE,
        Status.BUSY,
        Status.BAD_LENGTH,
        Status.BAD_ADDRESS,
    )

    header: data.View
    arguments: data.View
    whole: Signal
    end: Signal
    running: Signal
    repeated: Signal
    broken: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = configuration
        super().__init__(
            {
                "header": In(FrameHeader),
                "arguments": In(Arguments),
                "whole": In(1),
                "end": In(25),
                "running": In(1),
                "repeated": In(1),
                "broken": Out(len(self.ORDER)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        configuration = self._configuration
        target = data.View(SpaceArguments, self.arguments.as_value()[: SpaceArguments.size])
        run_target = data.View(RunArguments, self.arguments.as_value()[: RunArguments.size])
        length = self.header.length

        # decoded a cycle ahead: header and arguments come long before the sum
        known, fits, write, read, run = Signal(), Signal(), Signal(), Signal(), Signal()
        elsewhere = Signal()
        limit = Signal(25)
        m.d.sync += [
            # what is not told is 0, so that nothing is an enable
            known.eq(0),
            fits.eq(0),
            limit.eq(0),
            write.eq(self.header.command == Command.WRITE),
            read.eq(self.header.command == Command.READ),
            run.eq((self.header.command == Command.RUN) & ~self.repeated),
            elsewhere.eq(target.space != Space.ACTIVATIONS),
        ]
        for command, argument_bytes in ARGUMENT_BYTES.items():
            with m.If(self.header.command == command):
                m.d.sync += [known.eq(1), fits.eq(length == argument_bytes)]
        with m.If(self.header.command == Command.WRITE):
            m.d.sync += fits.eq(length >= WRITE_ARGUMENTS)
        for space in Space:
            with m.If(target.space == space):
                m.d.sync += limit.eq(unit_count(configuration, space))

        words = configuration.instruction_words
        m.d.sync += self.broken.eq(
            Cat(
                ~known,
                ~fits,
                write & (target.space >= len(Space)) | read & elsewhere,
                run & self.running,
                write & ~self.whole | read & (target.count > configuration.payload_bytes),
                (write | read) & (self.end > limit)
                | run & Cat(run_target.pcs[k] >= words for k in range(len(STREAMS))).any(),
            )
        )
        return m


class RequestChecker(wiring.Component):
    """Judges a request whose checksum is right, before anything acts on it.

    The first rule that is broken decides, in this order:

    1. BAD_COMMAND: the command is unknown.
    2. BAD_LENGTH: the payload is not as long as its arguments (WRITE: shorter).
    3. BAD_SPACE: the space is unknown, or READ's is not ACTIVATIONS.
    4. BUSY: a RUN while a program runs.
    5. BAD_LENGTH: WRITE's data are not whole units; READ asks for more than ``payload_bytes``.
    6. BAD_ADDRESS: a byte written or read, or where RUN is to start, lies beyond the memory.

    A RUN that is ``repeated`` is OK whatever the state. Flags of RUN without a meaning are ignored.

    Latency: 3 cycles, for some WRITEs as :class:`UnitCounter` says more. Header and
    arguments hold from a cycle before ``start`` until ``done``.

    Members
    -------
    start : In
        Begins.
    header, arguments : In
    running, repeated : In
        A program runs; the request has the sequence number of the last RUN.
    done : Out
        Strobe: ``verdict`` (a Status) is valid.
    verdict : Out
    """

    start: Signal
    header: data.View
    arguments: data.View
    running: Signal
    repeated: Signal
    done: Signal
    verdict: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = configuration
        super().__init__(
            {
                "start": In(1),
                "header": In(FrameHeader),
                "arguments": In(Arguments),
                "running": In(1),
                "repeated": In(1),
                "done": Out(1),
                "verdict": Out(3),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.counter = counter = UnitCounter(configuration=self._configuration)
        m.submodules.rules = rules = _Rules(configuration=self._configuration)
        target = data.View(SpaceArguments, self.arguments.as_value()[: SpaceArguments.size])
        data_bytes = Signal(signed(17))
        counting, summed = Signal(), Signal()

        m.d.comb += [
            data_bytes.eq(self.header.length - WRITE_ARGUMENTS),
            counter.start.eq(self.start),
            counter.bytes.eq(Mux(data_bytes < 0, 0, data_bytes)),
            counter.space.eq(target.space),
            rules.header.eq(self.header),
            rules.arguments.eq(self.arguments),
            rules.whole.eq(counter.whole),
            rules.running.eq(self.running),
            rules.repeated.eq(self.repeated),
        ]
        is_write = self.header.command == Command.WRITE
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
