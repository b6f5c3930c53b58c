"""The link for small chips: one request at a time, its CRC bit by bit."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import connect, flipped

from ...config import Configuration
from ..interfaces import LinkInterface
from ..layouts import Arguments, OpenArguments, RunArguments, SpaceArguments
from ..protocol import (
    CRC_BYTES,
    RESIDUE,
    RESPONSE_START,
    RUN_CLEARS_COUNTERS,
    UNSEALED,
    Command,
    Space,
    Status,
)
from ..response_sender import IDENTITY_BYTES, STATUS_BYTES
from ..spaces import WRITE_ARGUMENTS, unit_bytes, units_per_frame
from .answer import CompactAnswer
from .frames import CompactSteps
from .rules import CompactRules
from .serial_crc import SerialCrc


class CompactLink(LinkInterface):
    """What :class:`slipstick_rtl.link.link.Link` does, with the same face, by fewer registers.

    A byte of a frame takes nine cycles, and the next request waits in the byte stream until this
    one is answered. The golden model is the same: ``slipstick_sim.golden.link``.

    Parameters
    ----------
    configuration : Configuration
    timeout_cycles : int
        Cycles without a byte after which a frame that has begun is forgotten; at least 1.

    Members
    -------
    As of ``Link``.

    Raises
    ------
    ValueError
        If ``payload_bytes`` cannot hold one unit of each space, or ``timeout_cycles`` is below 1.
    """

    def __init__(self, *, configuration: Configuration, timeout_cycles: int) -> None:
        if timeout_cycles < 1:
            raise ValueError(f"timeout_cycles must be at least 1, not {timeout_cycles}")
        for space in Space:
            units_per_frame(configuration, space)
        self._configuration = configuration
        self._timeout_cycles = timeout_cycles
        self._crc = SerialCrc()
        self._steps = CompactSteps()
        self._rules = CompactRules(configuration=configuration)
        self._answer = CompactAnswer(configuration=configuration)
        self._arguments = Signal(Arguments)
        self._verdict = Signal(3)
        self._session = Signal(8 * CRC_BYTES)
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.crc = self._crc
        m.submodules.steps = self._steps
        m.submodules.rules = self._rules
        m.submodules.answer = self._answer
        self._receive(m)
        self._judge(m)
        self._write(m)
        self._read(m)
        self._send(m)
        return m

    def _command(self, *commands: Command) -> Value:
        command = self._steps.header.command
        return Cat(command == code for code in commands).any()

    def _receive(self, m: Module) -> None:
        """Bytes of requests, their CRC and their timeout."""
        steps, crc = self._steps, self._crc
        idle = Signal(range(self._timeout_cycles + 1))
        expired = idle == self._timeout_cycles
        waiting = steps.inside & self.i.ready & ~self.i.valid
        sealed = crc.crc == self._session ^ RESIDUE
        m.d.comb += [
            self.i.ready.eq((steps.hunting | steps.inside) & ~crc.busy & ~steps.forget),
            steps.byte.eq(self.i.payload),
            steps.taken.eq(self.i.valid & self.i.ready),
            steps.busy.eq(crc.busy),
            steps.sound.eq(Mux(self._command(*UNSEALED), crc.match_detected, sealed)),
            steps.too_long.eq(steps.header.length > self._configuration.payload_bytes),
        ]
        m.d.sync += [
            idle.eq(Mux(waiting & ~expired, idle + 1, 0)),
            steps.forget.eq(expired),
        ]
        for place in range(len(self._arguments)):
            byte = self._arguments[place]
            with m.If(steps.in_payload & steps.taken & (steps.index == place + 1)):
                m.d.sync += byte.eq(self.i.payload)

    def _judge(self, m: Module) -> None:
        """The verdict, and what it lets happen at once."""
        steps, rules = self._steps, self._rules
        run = data.View(RunArguments, self._arguments.as_value()[: RunArguments.size])
        known, last = Signal(), Signal(8)
        repeated = known & (last == steps.header.sequence)
        runs, opens = self._command(Command.RUN), self._command(Command.OPEN)
        done = steps.execute & steps.good
        m.d.comb += [
            rules.header.eq(steps.header),
            rules.arguments.eq(self._arguments),
            rules.start.eq(steps.judge),
            rules.running.eq(self.status.running),
            rules.repeated.eq(repeated),
            steps.judged.eq(rules.done),
            steps.good.eq(rules.verdict == Status.OK),
            steps.write.eq(self._command(Command.WRITE)),
            steps.settle.eq(runs | opens | self._command(Command.RESET)),
            self.run.eq(done & runs & ~repeated),
            self.clear.eq(run.flags & RUN_CLEARS_COUNTERS),
            self.pcs.eq(run.pcs),
            self.reset_run.eq(done & (opens | self._command(Command.RESET))),
        ]
        with m.If(steps.refuse):
            m.d.sync += self._verdict.eq(Mux(steps.sound, Status.BAD_LENGTH, Status.BAD_CRC))
        with m.If(steps.execute):
            m.d.sync += self._verdict.eq(rules.verdict)
        with m.If(done & runs):
            m.d.sync += [known.eq(1), last.eq(steps.header.sequence)]
        with m.Elif(done & (self.reset_run | steps.write)):
            m.d.sync += known.eq(0)
        with m.If(done & opens):
            m.d.sync += self._session.eq(self._arguments.as_value()[: OpenArguments.size])

    def _write(self, m: Module) -> None:
        """Payloads into a memory of their own, and WRITE's data out of it."""
        steps, writes = self._steps, self.writes
        c = self._configuration
        m.submodules.payload = memory = Memory(shape=8, depth=c.payload_bytes, init=[])
        writer, reader = memory.write_port(), memory.read_port()
        target = data.View(SpaceArguments, self._arguments.as_value()[: SpaceArguments.size])
        place, fetched, beyond = Signal.like(steps.index), Signal(), Signal()
        offset, last_offset = Signal(4), Signal(4)
        m.d.comb += [
            writer.addr.eq(steps.index),
            writer.data.eq(self.i.payload),
            writer.en.eq(steps.in_payload & steps.taken),
            reader.addr.eq(place),
            reader.en.eq(1),
            writes.payload.space.eq(target.space),
            writes.payload.offset.eq(offset),
            writes.payload.data.eq(reader.data),
            writes.valid.eq(steps.writing & fetched & ~beyond),
            steps.written.eq(fetched & beyond),
        ]
        with m.Switch(target.space[:2]):
            for space in Space:
                with m.Case(space):
                    m.d.comb += last_offset.eq(unit_bytes(c, space) - 1)
        address = Signal.like(writes.p.address)
        m.d.comb += [
            writes.payload.address.eq(address),
        ]
        # like the byte, of the place in the cycle before
        m.d.sync += beyond.eq(place == steps.header.length + 1)
        m.d.sync += fetched.eq(steps.writing & ~(writes.valid & writes.ready))
        with m.If(steps.execute):
            m.d.sync += [place.eq(WRITE_ARGUMENTS + 1), address.eq(target.address), offset.eq(0)]
        with m.Elif(writes.valid & writes.ready):
            m.d.sync += [place.eq(place + 1), offset.eq(offset + 1)]
            with m.If(offset == last_offset):
                m.d.sync += [offset.eq(0), address.eq(address + 1)]

    def _read(self, m: Module) -> None:
        """A READ's bytes, each asked for when the one before has been sent."""
        steps, reads, answer = self._steps, self.reads, self._answer
        connect(m, flipped(self.read_data), answer.read_data)
        target = data.View(SpaceArguments, self._arguments.as_value()[: SpaceArguments.size])
        asked = Signal()
        m.d.comb += [
            reads.payload.eq(target.address + steps.index - 1),
            reads.valid.eq(steps.answering & answer.read & ~asked),
        ]
        with m.If(reads.valid & reads.ready):
            m.d.sync += asked.eq(1)
        with m.Elif(steps.sent):
            m.d.sync += asked.eq(0)

    def _send(self, m: Module) -> None:
        """The answer's bytes, and their CRC."""
        steps, crc, answer = self._steps, self._crc, self._answer
        target = data.View(SpaceArguments, self._arguments.as_value()[: SpaceArguments.size])
        good = self._verdict == Status.OK
        length = Signal(16)
        with m.If(good & self._command(Command.IDENTIFY)):
            m.d.comb += length.eq(IDENTITY_BYTES)
        with m.If(good & self._command(Command.STATUS)):
            m.d.comb += length.eq(STATUS_BYTES)
        with m.If(good & self._command(Command.READ)):
            m.d.comb += length.eq(target.count)
        header = Cat(Const(0, 8), self._verdict, Const(0, 5), steps.header.sequence, length)
        sealed = (self._verdict != Status.BAD_CRC) & ~self._command(Command.IDENTIFY)
        place = (steps.index - 1)[:2]
        seal = self._session.word_select(place, 8) & sealed.replicate(8)
        byte = Signal(8)
        with m.If(steps.beginning):
            m.d.comb += byte.eq(RESPONSE_START)
        with m.Elif(steps.in_header):
            m.d.comb += byte.eq(header[8:].word_select(place, 8))
        with m.Elif(steps.answering):
            m.d.comb += byte.eq(answer.o.payload)
        with m.Else():
            m.d.comb += byte.eq(crc.crc.word_select(place, 8) ^ seal)
        ready = Mux(steps.answering, answer.o.valid, 1)
        sending = steps.beginning | steps.in_header | steps.answering | steps.sealing
        m.d.comb += [
            steps.answer.eq(length),
            answer.load.eq(steps.beginning),
            answer.status.eq(self.status),
            answer.identify.eq(self._command(Command.IDENTIFY)),
            answer.read.eq(self._command(Command.READ)),
            answer.index.eq(steps.index),
            answer.o.ready.eq(steps.answering & steps.sent),
            self.o.payload.eq(byte),
            self.o.valid.eq(sending & ready & ~crc.busy),
            steps.sent.eq(self.o.valid & self.o.ready),
            crc.start.eq(steps.hunting | steps.beginning),
            crc.data.eq(Mux(steps.inside, self.i.payload, byte)),
            crc.valid.eq(
                steps.inside & steps.taken | (steps.in_header | steps.answering) & steps.sent
            ),
        ]
