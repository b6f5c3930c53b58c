"""The compact link does nothing for a frame whose checksum is wrong, or whose status is not OK."""

from amaranth.hdl import Assert, Cat, Module, Mux, Signal, Value
from amaranth.lib.wiring import In
from slipstick_rtl.isa import STREAMS
from slipstick_rtl.link.protocol import CRC_BYTES, HEADER_BYTES, REQUEST_START, Command, Status

from .compact_link import CONFIGURATION, PROBES, CompactLinkUnderProof, Step
from .proof_link import crc32_step
from .registry import Proof

_ONES = (1 << 32) - 1
_RESIDUE = 0xDEBB20E3
"""Of the CRC's register, after the checksum of what came before."""

_PAYLOAD = CONFIGURATION.payload_bytes
_HEADER = HEADER_BYTES - 1
"""Bytes of a header behind the start byte."""


class ActsOnlyOnWhatIsSound(CompactLinkUnderProof):
    """Each effect belongs to a frame that is right, and is answered with OK.

    The frame is what came since the link last was ``hunting``: its start byte, header, number of
    bytes and checksum are kept here, from the bytes at the port. An effect is a byte written, a
    run begun, a reset, or another session. ``remainder`` and ``bits`` are those of the link's CRC.
    """

    session: Signal
    remainder: Signal

    def __init__(self) -> None:
        super().__init__({"session": In(32), "remainder": In(32)})
        self._start = Signal(8)
        self._frame_header = Signal(32)
        self._count = Signal(17)
        self._register = Signal(32, init=_ONES)
        self._left = Signal(9, init=1)

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        self._follow(m)
        self._assert_frame(m)
        self._assert_effects(m)
        return m

    def _follow(self, m: Module) -> None:
        """The frame, as it comes; the checksum of a byte is counted a bit a cycle."""
        payload, register, left = self.i.payload, self._register, self._left
        with m.If(self.hunting):
            m.d.sync += [self._count.eq(0), left.eq(1), register.eq(_ONES)]
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
        """The frame's checksum, all of it counted, is right in the session at hand."""
        command = self.header.command
        seal = Mux(command.matches(Command.IDENTIFY, Command.OPEN), 0, self.session)
        return (self._left == 1) & (self._register == _RESIDUE ^ seal)

    def _assert_frame(self, m: Module) -> None:
        """The link has the frame that came, as far as it has come."""
        count, length = self._count, self.header.length
        before = Mux(self.at(Step.HEADER), 0, _HEADER + Mux(self.at(Step.CHECKSUM), length, 0))
        whole = count == _HEADER + length + CRC_BYTES
        # the link counts the byte that is at hand
        in_part = count + 1 == before + self.index
        computing = self.in_request | self.at(Step.CHECK)
        unjudged = computing | self.hunting
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
            Assert(~self.at(Step.JUDGE) | self._sound, "a wrong checksum is judged"),
            Assert(
                unjudged | self.at(Step.JUDGE) | ((self.verdict == Status.BAD_CRC) == ~self._sound),
                "the verdict is wrong",
            ),
        ]

    def _assert_effects(self, m: Module) -> None:
        """Nothing is done but for a frame that is right, and nothing but what it asks for."""
        command, before, running = self.header.command, Signal(32), Signal()
        begun = self.session != before
        acts = self.run | self.reset_run | self.writes.valid | begun
        m.d.sync += [before.eq(self.session), running.eq(self.status.running)]
        whole = self._count == _HEADER + self.header.length + CRC_BYTES
        right = ~self.hunting & whole & self._sound & (self.header.length <= _PAYLOAD)
        words = CONFIGURATION.instruction_words
        within = Cat(self.pcs[k] < words for k in range(len(STREAMS))).all()
        resets = command.matches(Command.RESET, Command.OPEN)
        m.d.comb += [
            Assert(~acts | right, "an effect of a frame that is wrong"),
            Assert(~self.run | (command == Command.RUN), "a run not asked for"),
            Assert(~self.run | within & ~running, "a run that the rules forbid"),
            Assert(~self.reset_run | resets, "a reset not asked for"),
            Assert(~begun | (command == Command.OPEN), "a session not asked for"),
            Assert(~self.writes.valid | (command == Command.WRITE), "a byte not asked for"),
        ]
        self._assert_answer(m, acts)

    def _assert_answer(self, m: Module, acts: Value) -> None:
        """What had an effect is answered with OK; BAD_CRC says that the checksum is wrong."""
        acted, given = Signal(), Signal(2)
        m.d.sync += acted.eq((acted | acts) & ~self.hunting)
        with m.If(self.hunting):
            m.d.sync += given.eq(0)
        with m.Elif(self.o.valid & self.o.ready & (given != 2)):
            m.d.sync += given.eq(given + 1)
        sends = self.at(Step.SEND_HEADER, Step.SEND_PAYLOAD, Step.SEND_CHECKSUM)
        status_next = self.at(Step.SEND_HEADER) & (self.index == 1)
        sent = Mux(sends, Mux(status_next, 1, 2), 0)
        unjudged = self.in_request | self.at(Step.CHECK, Step.JUDGE)
        telling, status = self.o.valid & (given == 1), self.o.payload
        m.d.comb += [
            Assert(~acted | ~unjudged, "it acted too early"),
            Assert(self.hunting | (given == sent), "the answer is out of step"),
            Assert(
                ~(acted | acts & ~self.at(Step.JUDGE)) | (self.verdict == Status.OK),
                "an effect of what is refused",
            ),
            Assert(~telling | ((status == Status.BAD_CRC) == ~self._sound), "a wrong BAD_CRC"),
            Assert(~telling | ~acted | (status == Status.OK), "an effect, and no OK"),
        ]


PROOFS = (
    Proof(
        name="compact_link_acts",
        component=ActsOnlyOnWhatIsSound,
        depth=2,
        probes={**PROBES, "session": "link._session", "remainder": "link.crc.remainder"},
    ),
)
