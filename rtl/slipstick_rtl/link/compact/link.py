"""The link for small chips: one request at a time, its CRC bit by bit."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import connect, flipped
from amaranth.utils import ceil_log2

from ...config import WRITE_ARGUMENTS, Configuration
from ..interfaces import LinkInterface
from ..layouts import Arguments, OpenArguments, RegionArgument, RunArguments
from ..protocol import (
    CRC_BYTES,
    REGION_PITCH,
    REGIONS,
    RESIDUE,
    RESPONSE_START,
    RUN_CLEARS_COUNTERS,
    STATUS_BYTES,
    UNSEALED,
    WAIT_TIMEOUTS,
    Command,
    Space,
    Status,
)
from ..response_sender import IDENTITY_BYTES
from ..spaces import spaces_of, unit_bytes
from .answer import CompactAnswer
from .frames import CompactSteps
from .rules import CompactRules, exceeds
from .serial_crc import SerialCrc
from .walker import TABLE_SHIFT, CompactWalker

_REGION = RegionArgument.size // 8


class CompactLink(LinkInterface):
    """Does the same as :class:`slipstick_rtl.link.link.Link`, same ports, with fewer registers.

    A byte of a frame takes nine cycles, one of a WRITE or PUT three or four more on its way to
    memory. The next request waits in the byte stream until this one is answered. The payload and
    the table of regions lie in one memory, which a reset does not clear. The golden model is the
    same: ``slipstick_sim.golden.link``.

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
        If ``timeout_cycles`` is below 1.
    """

    def __init__(self, *, configuration: Configuration, timeout_cycles: int) -> None:
        if timeout_cycles < 1:
            raise ValueError(f"timeout_cycles must be at least 1, not {timeout_cycles}")
        self._configuration = configuration
        self._timeout_cycles = timeout_cycles
        self._payload_bits = configuration.payload_bytes.bit_length()
        self._crc = SerialCrc()
        self._steps = CompactSteps(answer_bits=self._payload_bits)
        self._rules = CompactRules(configuration=configuration)
        self._walker = CompactWalker(configuration=configuration)
        self._answer = CompactAnswer(configuration=configuration)
        self._arguments = Signal(Arguments)
        self._verdict = Signal(4)
        self._session = Signal(8 * CRC_BYTES)
        self._next_sequence = Signal(8)
        self._may_continue = Signal()
        # of the payload, from 0
        self._place = Signal(self._payload_bits)
        self._offset = Signal(4)
        self._code = Signal(4)
        # of a PUT: there is no such byte
        self._refused = Signal()
        self._stored = Signal(8)
        self._describes = Signal()
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.crc = self._crc
        m.submodules.steps = self._steps
        m.submodules.rules = self._rules
        m.submodules.walker = self._walker
        m.submodules.answer = self._answer
        code = self._steps.header.command.code
        m.d.comb += self._code.eq(Mux(code[4:].any(), 0, code[:4]))
        self._receive(m)
        self._wait(m)
        self._judge(m)
        self._execute(m)
        self._store(m)
        self._walk(m)
        self._move(m)
        self._read(m)
        self._send(m)
        return m

    def _command(self, *commands: Command) -> Value:
        return self._code.matches(*commands)

    @property
    def _region(self) -> data.View:
        """The region that the request names."""
        return data.View(RegionArgument, self._arguments[0])

    @property
    def _direct(self) -> Value:
        """The request names an address."""
        return self._command(Command.WRITE, Command.READ)

    def _receive(self, m: Module) -> None:
        """Bytes of requests, and their CRC."""
        steps, crc = self._steps, self._crc
        sealed = crc.crc == self._session ^ RESIDUE
        m.d.comb += [
            self.i.ready.eq((steps.hunting | steps.inside) & ~crc.busy & ~steps.forget),
            steps.byte.eq(self.i.payload),
            steps.taken.eq(self.i.valid & self.i.ready),
            steps.busy.eq(crc.busy),
            steps.sound.eq(Mux(self._command(*UNSEALED), crc.match_detected, sealed)),
            steps.too_long.eq(exceeds(steps.header.length, self._configuration.payload_bytes)),
        ]
        for place in range(len(self._arguments)):
            with m.If(steps.in_payload & steps.taken & (self._place == place)):
                m.d.sync += self._arguments[place].eq(self.i.payload)
        # RUN_GET's program counters have been taken by then
        for place, comes in ((4, self._walker.count_low), (5, self._walker.count_high)):
            with m.If(comes & self._command(Command.GET, Command.RUN_GET)):
                m.d.sync += self._arguments[place].eq(self._stored)

    def _wait(self, m: Module) -> None:
        """Patience: with half a frame, and with a program that runs."""
        steps = self._steps
        idle = Signal(range(self._timeout_cycles + 1))
        rounds = Signal(range(WAIT_TIMEOUTS + 1))
        expired = idle == self._timeout_cycles
        silent = steps.inside & self.i.ready & ~self.i.valid
        must_wait = Mux(
            steps.preparing,
            self._command(Command.RUN_GET) & self._region.flag,
            steps.header.command.waiting & ~self._rules.early,
        )
        m.d.comb += steps.hold.eq(
            (steps.judging | steps.preparing & ~self._walker.busy)
            & must_wait
            & self.status.running
            & (rounds != WAIT_TIMEOUTS)
        )
        m.d.sync += [
            idle.eq(Mux((silent | steps.hold) & ~expired, idle + 1, 0)),
            steps.forget.eq(expired),
        ]
        with m.If(~steps.hold):
            m.d.sync += rounds.eq(0)
        with m.Elif(steps.forget):
            m.d.sync += rounds.eq(rounds + 1)

    def _judge(self, m: Module) -> None:
        """The verdict, and what it lets happen."""
        steps, rules = self._steps, self._rules
        in_order = ~rules.early & ~(steps.header.command.waiting & self.status.running)
        m.d.comb += [
            rules.header.eq(steps.header),
            rules.arguments.eq(self._arguments),
            rules.next_sequence.eq(self._next_sequence),
            rules.running.eq(self.status.running),
            rules.bad_instruction.eq(self.status.bad_instruction),
            rules.address.eq(self._walker.address),
            rules.whole.eq(self._offset == 0),
            rules.may_continue.eq(self._may_continue),
            steps.good.eq(self._verdict == Status.OK),
            steps.measure.eq(in_order & self._direct),
            steps.transfer.eq(self._command(Command.WRITE, Command.PUT) & ~rules.repeated),
            steps.prepare.eq(
                self._command(Command.READ, Command.DEFINE, Command.GET, Command.RUN_GET)
            ),
            steps.quiet.eq(steps.header.command.silent & steps.good),
        ]
        # the last one counts
        with m.If(steps.judging | steps.measuring):
            m.d.sync += self._verdict.eq(rules.verdict)
        with m.Elif(steps.refuse):
            m.d.sync += self._verdict.eq(Mux(steps.sound, Status.BAD_LENGTH, Status.BAD_CRC))
        with m.Elif(self._refused):
            m.d.sync += self._verdict.eq(Status.BAD_ADDRESS)
        with m.Elif(steps.preparing & self._command(Command.RUN_GET) & self._region.flag):
            bad = Mux(self.status.bad_instruction, Status.BAD_INSTRUCTION, Status.OK)
            m.d.sync += self._verdict.eq(Mux(self.status.running, Status.BUSY, bad))

    def _execute(self, m: Module) -> None:
        """Starts and stops runs; keeps the next sequence number and the session."""
        steps, rules = self._steps, self._rules
        run = data.View(RunArguments, self._arguments.as_value()[: RunArguments.size])
        done = steps.execute & steps.good
        opens, put = self._command(Command.OPEN), self._command(Command.PUT)
        runs = self._command(Command.RUN, Command.RUN_GET)
        counts = rules.ordered | opens
        put_done = steps.moving & steps.moved & put & ~self._refused
        m.d.comb += [
            self.run.eq(done & runs & ~rules.repeated),
            self.clear.eq(self._command(Command.RUN_GET) | run.flags & RUN_CLEARS_COUNTERS),
            self.pcs.eq(run.pcs),
            self.reset_run.eq(done & (opens | self._command(Command.RESET))),
        ]
        with m.If(done & counts & ~put | put_done):
            m.d.sync += self._next_sequence.eq(steps.header.sequence + 1)
        with m.If(done & opens):
            m.d.sync += self._session.eq(self._arguments.as_value()[: OpenArguments.size])
        with m.Elif(steps.sealing & steps.sent):
            m.d.sync += self._session.eq(self._session.rotate_right(8))

    @property
    def _beyond(self) -> Value:
        """The byte of the region that is at hand does not exist."""
        return self._rules.beyond | self._walker.ended

    def _store(self, m: Module) -> None:
        """Payloads and the table of regions, in one memory: the payloads are in its upper half."""
        steps, walker = self._steps, self._walker
        half = ceil_log2(max(self._configuration.payload_bytes, REGIONS * REGION_PITCH))
        m.submodules.payload = memory = Memory(shape=8, depth=2 << half, init=[])
        writer, reader = memory.write_port(), memory.read_port()
        region, defines = Signal.like(self._region.region), self._command(Command.DEFINE)
        # a PUT that continues may name another, and come behind requests that have none
        with m.If(walker.start):
            m.d.sync += region.eq(self._region.region)
        pitch = ceil_log2(REGION_PITCH)
        described = (walker.place - TABLE_SHIFT - 1)[:pitch]
        payload_place = Cat(self._place, Const(0, half))[:half]
        table = Cat(Mux(defines, described, walker.place[:pitch]), region)
        field = Mux(
            self._direct | defines,
            Cat(walker.place[:pitch], Const(1 << half - pitch, half - pitch + 1)),
            table,
        )
        m.d.comb += [
            self._stored.eq(reader.data),
            reader.addr.eq(
                Mux(walker.busy | ~steps.moving, field, Cat(payload_place, Const(1, 1)))
            ),
            reader.en.eq(1),
            writer.addr.eq(Mux(steps.inside, Cat(payload_place, Const(1, 1)), table)),
            writer.data.eq(Mux(steps.inside, self.i.payload, reader.data)),
            self._describes.eq(walker.busy & defines),
            writer.en.eq(steps.in_payload & steps.taken | self._describes),
        ]

    @property
    def _continues(self) -> Value:
        return self._command(Command.PUT) & self._region.flag

    def _walk(self, m: Module) -> None:
        """Descriptions are read, and units passed by.

        An address is read before the verdict is known: that of a request which must wait, or is
        refused, is read for nothing. The walker's registers would hang on the whole verdict.
        """
        steps, walker = self._steps, self._walker
        measuring = steps.judging & self._direct & ~walker.busy
        begins = steps.transfer & ~self._continues | steps.prepare
        m.d.comb += [
            walker.direct.eq(self._direct),
            walker.counting.eq((steps.judging | steps.measuring) & self._command(Command.READ)),
            walker.byte.eq(self._stored),
            walker.start.eq(measuring | steps.execute & steps.good & begins),
            steps.walking.eq(walker.busy),
        ]

    def _move(self, m: Module) -> None:
        """Data of a WRITE or PUT out of the payload; before, the units of a WRITE are counted.

        Offers come from a register: what they hang on and what hangs on them are both long.
        """
        steps, walker, writes = self._steps, self._walker, self.writes
        write = self._command(Command.WRITE)
        behind, settled = Signal(), Signal()
        gone = Signal()
        passed = steps.measuring & write & ~walker.busy & ~behind
        step = gone | passed
        m.d.comb += [
            behind.eq(self._place == steps.header.length[: self._payload_bits]),
            settled.eq(steps.moving & ~walker.busy & ~gone & ~writes.valid),
            self._refused.eq(settled & ~behind & ~write & self._beyond),
            writes.payload.space.eq(Mux(write, self._arguments[0], Space.ACTIVATIONS)),
            writes.payload.address.eq(walker.address),
            writes.payload.offset.eq(self._offset),
            writes.payload.data.eq(self._stored),
            steps.measured.eq(~walker.busy & (behind | ~write)),
            steps.moved.eq(settled & (behind | self._refused)),
        ]
        m.d.sync += [
            writes.valid.eq(Mux(writes.valid, ~writes.ready, settled & ~steps.moved)),
            gone.eq(writes.valid & writes.ready),
        ]
        with m.If(steps.hunting):
            m.d.sync += self._place.eq(0)
        with m.Elif(steps.judging | steps.execute):
            m.d.sync += self._place.eq(Mux(write, WRITE_ARGUMENTS, _REGION))
        with m.Elif(steps.in_payload & steps.taken | step):
            m.d.sync += self._place.eq(self._place + 1)
        self._count_units(m, step)
        self._continue(m)

    def _count_units(self, m: Module, step: Value) -> None:
        """A step is one of a byte: of a PUT or an answer it is a unit."""
        steps, walker = self._steps, self._walker
        write = self._command(Command.WRITE)
        unit_end, last_offset = Signal(), Signal(4)
        with m.Switch(self._arguments[0][:2]):
            for space in spaces_of(self._configuration):
                with m.Case(space):
                    m.d.comb += last_offset.eq(unit_bytes(self._configuration, space) - 1)
        m.d.comb += [
            unit_end.eq(self._offset == last_offset),
            walker.step.eq(
                step & (unit_end | ~write) | steps.answering & steps.sent & self._answer.read
            ),
        ]
        with m.If(steps.judging | steps.execute):
            m.d.sync += self._offset.eq(0)
        with m.Elif(step & write):
            m.d.sync += self._offset.eq(Mux(unit_end, 0, self._offset + 1))

    def _continue(self, m: Module) -> None:
        """A PUT may go on where the one before it ended, if there is no other request between."""
        steps, rules = self._steps, self._rules
        put = self._command(Command.PUT)
        counts = rules.ordered | self._command(Command.OPEN)
        in_turn = ~rules.early & ~(steps.header.command.waiting & self.status.running)
        with m.If(steps.judging & ~steps.hold & in_turn & counts & ~put):
            m.d.sync += self._may_continue.eq(0)
        with m.Elif(steps.execute & steps.good & put & ~rules.repeated):
            m.d.sync += self._may_continue.eq(0)
        with m.Elif(steps.moving & steps.moved & put & ~self._refused):
            m.d.sync += self._may_continue.eq(1)

    def _read(self, m: Module) -> None:
        """Bytes of the activations, each asked for when the one before has been sent."""
        steps, reads, answer = self._steps, self.reads, self._answer
        connect(m, flipped(self.read_data), answer.read_data)
        asked = Signal()
        beyond = self._beyond & ~self._direct
        here = steps.answering & answer.read & ~answer.hold & ~asked
        m.d.comb += [
            answer.read.eq(self._command(Command.READ, Command.GET, Command.RUN_GET)),
            answer.hold.eq(self._walker.busy),
            reads.payload.eq(self._walker.address),
        ]
        m.d.sync += [
            # a byte takes longer
            answer.beyond.eq(beyond),
            reads.valid.eq(Mux(reads.valid, ~reads.ready, here & ~beyond)),
        ]
        with m.If(reads.valid & reads.ready):
            m.d.sync += asked.eq(1)
        with m.Elif(steps.sent):
            m.d.sync += asked.eq(0)

    def _send(self, m: Module) -> None:
        """The answer's bytes, and their CRC."""
        steps, crc, answer = self._steps, self._crc, self._answer
        length = Signal(self._payload_bits)
        with m.If(self._verdict == Status.OK):
            with m.Switch(steps.header.command.code):
                with m.Case(Command.IDENTIFY):
                    m.d.comb += length.eq(IDENTITY_BYTES)
                with m.Case(Command.STATUS):
                    m.d.comb += length.eq(STATUS_BYTES)
                with m.Case(Command.READ, Command.GET, Command.RUN_GET):
                    m.d.comb += length.eq(Cat(self._arguments[4:6]))
        sealed = (self._verdict != Status.BAD_CRC) & ~self._command(Command.IDENTIFY)
        header = Cat(Const(0, 8), self._verdict, Const(0, 4), steps.header.sequence, length)
        byte = Signal(8)
        with m.If(steps.beginning):
            m.d.comb += byte.eq(RESPONSE_START)
        with m.Elif(steps.in_header):
            place = (steps.index - 1)[:2]
            m.d.comb += byte.eq(Cat(header[8:], Const(0, 16))[:32].word_select(place, 8))
        with m.Elif(steps.answering):
            m.d.comb += byte.eq(answer.o.payload)
        with m.Else():
            # the checksum and the session move down by a byte when one has been sent
            m.d.comb += byte.eq(crc.crc[:8] ^ (self._session[:8] & sealed.replicate(8)))
        ready = Mux(steps.answering, answer.o.valid, 1)
        sending = steps.beginning | steps.in_header | steps.answering | steps.sealing
        m.d.comb += [
            steps.answer.eq(length),
            answer.status.eq(self.status),
            answer.load.eq(steps.in_header),
            answer.sequence.eq(self._next_sequence),
            answer.identify.eq(self._command(Command.IDENTIFY)),
            answer.index.eq(steps.index),
            answer.o.ready.eq(steps.answering & steps.sent),
            self.o.payload.eq(byte),
            self.o.valid.eq(sending & ready & ~crc.busy),
            steps.sent.eq(self.o.valid & self.o.ready),
            crc.start.eq(steps.hunting | steps.beginning),
            crc.data.eq(Mux(steps.inside, self.i.payload, byte)),
            # but for the last byte of the payload
            crc.shift.eq(steps.sealing & (steps.index[:3] != 1)),
            crc.valid.eq(
                steps.inside & steps.taken
                | (steps.in_header | steps.answering | steps.sealing) & steps.sent
            ),
        ]
