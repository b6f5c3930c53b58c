"""The compact link does nothing for a frame whose checksum is wrong, or whose status is not OK."""

from amaranth.hdl import Assert, Cat, Module, Mux, Signal, Value
from amaranth.lib.wiring import In
from slipstick_rtl.isa import STREAMS
from slipstick_rtl.link.protocol import (
    CRC_BYTES,
    HEADER_BYTES,
    REQUEST_START,
    RESPONSE_START,
    UNORDERED,
    UNSEALED,
    Command,
    Space,
    Status,
)

from .compact_link import CONFIGURATION, PROBES, CompactLinkUnderProof, Step
from .proof_link import crc32_step
from .registry import Proof

_ONES = (1 << 32) - 1
_RESIDUE = 0xDEBB20E3
"""Value of the CRC's register after the checksum of the bytes before it."""

_PAYLOAD = CONFIGURATION.payload_bytes
_HEADER = HEADER_BYTES - 1
"""Bytes of a header behind the start byte."""


class ActsOnlyOnWhatIsSound(CompactLinkUnderProof):
    """Each effect belongs to a frame that is right and in its turn, and is answered.

    The frame is what came since the link last was ``hunting``: its start byte, header, number of
    bytes and checksum are kept here, from the bytes at the port. An effect is a byte written, a
    region described, a run begun, a reset, another session, or another number that is the next.
    The ports below ``read_data`` are signals of the link.
    """

    session: Signal
    remainder: Signal
    next_sequence: Signal
    describes: Signal
    may_continue: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                **dict.fromkeys(("session", "remainder"), In(32)),
                "next_sequence": In(8),
                **dict.fromkeys(("describes", "may_continue"), In(1)),
            }
        )
        self._start = Signal(8)
        self._frame_header = Signal(32)
        self._count = Signal(17)
        self._register = Signal(32, init=_ONES)
        self._left = Signal(9, init=1)
        # as the frame found them
        self._seal = Signal(32)
        self._expected = Signal(8)
        self._continuable = Signal()

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        self._follow(m)
        self._assert_frame(m)
        self._assert_effects(m)
        self._assert_order(m)
        self._assert_answer(m)
        return m

    def _follow(self, m: Module) -> None:
        """The frame, as it comes; the checksum of a byte is counted a bit a cycle."""
        payload, register, left = self.i.payload, self._register, self._left
        with m.If(self.hunting):
            m.d.sync += [self._count.eq(0), left.eq(1), register.eq(_ONES)]
            m.d.sync += [
                self._seal.eq(self.session),
                self._expected.eq(self.next_sequence),
                self._continuable.eq(self.may_continue),
            ]
            with m.If(self.taken):
                m.d.sync += self._start.eq(payload)
        with m.Elif(self.taken):
            m.d.sync += [self._count.eq(self._count + 1), left.eq(Cat(payload, 1))]
            with m.If(self._count < _HEADER):
                m.d.sync += self._frame_header.eq(Cat(self._frame_header[8:], payload))
        with m.Elif(left != 1):
            m.d.sync += [left.eq(left >> 1), register.eq(crc32_step(register, left[0]))]

    @property
    def _sound(self) -> Value:
        """The frame's checksum, all of it counted, is right in the session that it found."""
        seal = Mux(self.asks(*UNSEALED), 0, self._seal)
        return (self._left == 1) & (self._register == _RESIDUE ^ seal)

    @property
    def _unjudged(self) -> Value:
        return self.hunting | self.in_request | self.at(Step.CHECK)

    @property
    def _undone(self) -> Value:
        """Nothing can have been done yet."""
        return self._unjudged | self.at(Step.JUDGE, Step.MEASURE, Step.EXECUTE)

    def _assert_frame(self, m: Module) -> None:
        """The link has the frame that came, as far as it has come."""
        count, length = self._count, self.header.length
        before = Mux(self.at(Step.HEADER), 0, _HEADER + Mux(self.at(Step.CHECKSUM), length, 0))
        whole = count == _HEADER + length + CRC_BYTES
        # the link counts the byte that is at hand
        in_part = count + 1 == before + self.index
        computing = self.in_request | self.at(Step.CHECK)
        unjudged = self._unjudged
        told = self.at(Step.START, Step.SEND_HEADER, Step.SEND_PAYLOAD, Step.SEND_CHECKSUM)
        # the checksum that is kept here is only that of all bytes if none comes too early
        m.d.comb += [
            Assert(self.hunting | ~self.taken | (self._left == 1), "a byte comes too early"),
            Assert(unjudged | (self._left == 1), "judged before it is counted"),
            Assert(
                ~computing | (self._left == self.bits) & (self.remainder == self._register),
                "another checksum",
            ),
            Assert(self.header.as_value() == self._frame_header, "another header"),
            Assert(self.hunting | (self._start == REQUEST_START), "no start of a frame"),
            Assert(Mux(self.in_request, in_part, self.hunting | whole), "bytes are lost"),
            Assert(unjudged | told | self._sound, "a wrong checksum is judged"),
            Assert(
                ~told | ((self.verdict == Status.BAD_CRC) == ~self._sound),
                "the verdict is wrong",
            ),
        ]

    def _assert_effects(self, m: Module) -> None:
        """Nothing is done but for a frame that is right, and nothing but what it asks for."""
        running, ran = Signal(), Signal()
        new_session = self._assert_session(m)
        m.d.sync += [running.eq(self.status.running), ran.eq((ran | self.run) & ~self.hunting)]
        acts = Cat(self.run, self.reset_run, self.writes.valid, self.describes, new_session).any()
        whole = self._count == _HEADER + self.header.length + CRC_BYTES
        right = ~self.hunting & whole & self._sound & (self.header.length <= _PAYLOAD)
        words = CONFIGURATION.instruction_words
        within = Cat(self.pcs[k] < words for k in range(len(STREAMS))).all()
        put = self.asks(Command.PUT)
        write = self.writes.payload
        in_memory = (write.space == Space.ACTIVATIONS) & (
            write.address < CONFIGURATION.activation_bytes
        )
        first = self._in_turn & ~self._repeated
        m.d.comb += [
            Assert(~acts | right, "an effect of a frame that is wrong"),
            Assert(~acts | self._in_turn, "an effect out of order"),
            Assert(~(self.run | self.writes.valid) | first, "a second effect"),
            Assert(~self.run | self.asks(Command.RUN, Command.RUN_GET), "a run not asked for"),
            Assert(~self.run | within & ~running & ~ran, "a run that the rules forbid"),
            Assert(~ran | ~self._undone | self.hunting, "it ran too early"),
            Assert(
                ~self.reset_run | self.asks(Command.RESET, Command.OPEN), "a reset not asked for"
            ),
            Assert(~self.describes | self.asks(Command.DEFINE), "a region not asked for"),
            Assert(
                ~self.writes.valid | put | self.asks(Command.WRITE), "a byte that is not asked for"
            ),
            Assert(~(self.writes.valid & put) | in_memory, "a byte beyond the memory"),
        ]

    def _assert_session(self, m: Module) -> Value:
        """Asserts when the session may change; tells whether it has changed in the cycle before.

        While its seal goes, it turns by a byte after each.
        """
        before, sealed = Signal(32), Signal()
        m.d.sync += sealed.eq(self.at(Step.SEND_CHECKSUM))
        with m.If(~self.at(Step.SEND_CHECKSUM)):
            m.d.sync += before.eq(self.session)
        turned = Signal(32)
        m.d.comb += turned.eq(before)
        with m.If(self.at(Step.SEND_CHECKSUM)):
            with m.Switch(self.index):
                for place in range(1, 1 + CRC_BYTES):
                    with m.Case(place):
                        m.d.comb += turned.eq(before.rotate_right(8 * (place - 1)))
        begun = self.session != turned
        m.d.comb += [
            Assert(~begun | self.asks(Command.OPEN), "a session not asked for"),
            Assert(~(begun & sealed), "the session is not whole again"),
            Assert(
                ~self._undone | self.hunting | (self.session == self._seal),
                "a session that begins too early",
            ),
        ]
        return begun

    @property
    def _ordered(self) -> Value:
        return ~self.asks(*UNORDERED)

    @property
    def _repeated(self) -> Value:
        return self._ordered & ((self.header.sequence + 1)[:8] == self._expected)

    @property
    def _in_turn(self) -> Value:
        return ~self._ordered | self._repeated | (self.header.sequence == self._expected)

    def _assert_order(self, m: Module) -> None:
        """The next number is one more than that of the last request executed."""
        number, after = self.next_sequence, (self.header.sequence + 1)[:8]
        counts = self._ordered | self.asks(Command.OPEN)
        same = self.may_continue == self._continuable
        kept, executed = number == self._expected, number == after
        told = self.at(Step.START, Step.SEND_HEADER, Step.SEND_PAYLOAD, Step.SEND_CHECKSUM)
        good = self.verdict == Status.OK
        run_get, put = self.asks(Command.RUN_GET), self.asks(Command.PUT)
        executes = self.at(Step.EXECUTE) & good | self.at(Step.MEASURE, Step.MOVE, Step.PREPARE)
        m.d.comb += [
            Assert(~executes | self._in_turn, "what is out of order is executed"),
            Assert(~self.at(Step.MOVE) | ~self._repeated, "bytes move for the second time"),
            Assert(~self._undone | self.hunting | kept, "it counts too early"),
            Assert(
                self.hunting | kept | counts & self._in_turn & executed,
                "another number is the next",
            ),
            Assert(~(self.at(Step.MOVE) & put) | kept, "a PUT is counted before its end"),
            Assert(
                ~(self.at(Step.MOVE) & ~put | self.at(Step.PREPARE)) | executed,
                "a request is counted too late",
            ),
            Assert(~(told & good & counts) | executed, "a request is not counted"),
            Assert(~(told & ~good & ~run_get) | kept, "a refused request is counted"),
            Assert(
                self.hunting | ~(self._unjudged | self.at(Step.JUDGE)) | same,
                "a PUT has another end before it is judged",
            ),
            Assert(self.hunting | self._in_turn | same, "a request out of order ends a PUT"),
        ]

    def _assert_answer(self, m: Module) -> None:
        """A request that came is answered once, unless it is SILENT and OK."""
        given, total, hunted, listened = Signal(17), Signal(17), Signal(init=1), Signal()
        was_quiet = Signal()
        sends = self.at(Step.SEND_HEADER, Step.SEND_PAYLOAD, Step.SEND_CHECKSUM)
        m.d.sync += [
            total.eq(HEADER_BYTES + self.answer + CRC_BYTES),
            hunted.eq(self.hunting),
            listened.eq(self.in_request),
            was_quiet.eq(self.at(Step.START) & self.quiet),
        ]
        with m.If(self.hunting):
            m.d.sync += given.eq(0)
        with m.Elif(self.o.valid & self.o.ready):
            m.d.sync += given.eq(given + 1)
        before = Signal(17)
        with m.Switch(self.step):
            with m.Case(Step.SEND_HEADER):
                m.d.comb += before.eq(1)
            with m.Case(Step.SEND_PAYLOAD):
                m.d.comb += before.eq(HEADER_BYTES)
            with m.Case(Step.SEND_CHECKSUM):
                m.d.comb += before.eq(HEADER_BYTES + self.answer)
        sent = Mux(sends, before + self.index - 1, 0)
        ends = Mux(listened | was_quiet, given == 0, given == total)
        payload, offered = self.o.payload, self.o.valid
        m.d.comb += [
            Assert(self.hunting | (given == sent), "the answer is out of step"),
            Assert(~self.hunting | hunted | ends, "a request without an answer of its own"),
            Assert(~self.hunting | ~hunted | (given == 0), "an answer of nothing"),
            Assert(~(offered | sends) | ~self.quiet & ~self.hunting, "an answer that nobody wants"),
            Assert(~(offered & (given == 0)) | (payload == RESPONSE_START), "no start"),
            Assert(~(offered & (given == 1)) | (payload == self.verdict), "another status"),
            Assert(~(offered & (given == 2)) | (payload == self.header.sequence), "another number"),
        ]
        self._assert_status(m)

    def _assert_status(self, m: Module) -> None:
        """Asserts that an effect is answered with OK, or is one that the protocol names."""
        acted = Signal()
        acts = Cat(self.run, self.reset_run, self.writes.valid, self.describes).any()
        m.d.sync += acted.eq((acted | acts) & ~self.hunting)
        late = self.asks(Command.RUN_GET) & self.region_flag
        unless = late & self.verdict.matches(Status.BUSY, Status.BAD_INSTRUCTION) | self.asks(
            Command.PUT
        ) & (self.verdict == Status.BAD_ADDRESS)
        m.d.comb += [
            Assert(~acted | ~self._undone | self.hunting, "it acted too early"),
            Assert(
                ~(acted | acts) | self.hunting | (self.verdict == Status.OK) | unless,
                "an effect of what is refused",
            ),
        ]


PROOFS = (
    Proof(
        name="compact_link_acts",
        component=ActsOnlyOnWhatIsSound,
        depth=2,
        probes={
            **PROBES,
            "session": "link._session",
            "remainder": "link.crc.remainder",
            "next_sequence": "link._next_sequence",
            "describes": "link._describes",
            "may_continue": "link._may_continue",
        },
    ),
)
