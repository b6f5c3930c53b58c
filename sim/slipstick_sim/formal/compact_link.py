"""Shares what the compact link's proofs need: the link, the signals seen, its grammar."""

from collections.abc import Mapping
from enum import IntEnum

from amaranth.hdl import Assert, Assume, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Member, Out, connect, flipped
from slipstick_rtl.config import Configuration
from slipstick_rtl.link.compact.link import CompactLink
from slipstick_rtl.link.compact.walker import SCAN_CYCLES
from slipstick_rtl.link.interfaces import AcceleratorInterface
from slipstick_rtl.link.layouts import Arguments, FrameHeader, RegionArgument
from slipstick_rtl.link.protocol import CRC_BYTES, HEADER_BYTES, Command, Status

CONFIGURATION = Configuration(
    engine="compact",
    rows=2,
    columns=8,
    lanes=1,
    activation_bytes=1 << 10,
    weight_bytes=1 << 10,
    parameter_words=16,
    instruction_words=64,
    payload_bytes=64,
)
TIMEOUT_CYCLES = 3
BUSY_CYCLES = 8
"""In which the checksum of a byte is computed."""

_LEAST_ARGUMENTS = {Command.WRITE: 4, Command.PUT: 1}
_ARGUMENTS = {
    Command.READ: 6,
    Command.RUN: 5,
    Command.OPEN: 4,
    Command.DEFINE: 16,
    Command.GET: 1,
    Command.RUN_GET: 5,
}
"""Bytes of the payloads, as the protocol says."""


class Step(IntEnum):
    """Steps of the link, in the order in which its FSM names them.

    Their outputs are asserted below.
    """

    HUNT = 0
    HEADER = 1
    PAYLOAD = 2
    CHECKSUM = 3
    CHECK = 4
    JUDGE = 5
    START = 6
    EXECUTE = 7
    MEASURE = 8
    MOVE = 9
    PREPARE = 10
    SEND_HEADER = 11
    SEND_PAYLOAD = 12
    SEND_CHECKSUM = 13


_OUTPUTS = {
    "hunting": (Step.HUNT,),
    "inside": (Step.HEADER, Step.PAYLOAD, Step.CHECKSUM),
    "in_payload": (Step.PAYLOAD,),
    "judging": (Step.JUDGE,),
    "measuring": (Step.MEASURE,),
    "execute": (Step.EXECUTE,),
    "moving": (Step.MOVE,),
    "preparing": (Step.PREPARE,),
    "in_header": (Step.SEND_HEADER,),
    "answering": (Step.SEND_PAYLOAD,),
    "sealing": (Step.SEND_CHECKSUM,),
}
_READS = Command.READ, Command.GET, Command.RUN_GET

PROBES = {
    "step": "link.steps.fsm_state",
    **{name: f"link.steps.{name}" for name in (*_OUTPUTS, "index", "header", "answer")},
    "bits": "link.crc.bits",
    "verdict": "link._verdict",
    "arguments": "link._arguments",
    "asked": "link.asked",
    "gone": "link.gone",
    "walking": "link.walker.busy",
    "scan_place": "link.walker.place",
    "whole_scan": "link.walker._whole",
    "past_end": "link.walker.ended",
    "past_memory": "link.rules.beyond",
    "nothing": "link.answer.beyond",
}
"""Signals of the link that each of the proofs sees."""


class CompactLinkUnderProof(AcceleratorInterface):
    """A compact link, its face, and the signals of it that ``PROBES`` names.

    Asserts in which states the link can be, as far as frames and steps go: what the proofs that
    are made of it all need.

    Parameters
    ----------
    members : Mapping[str, Member]
        What else a proof sees.
    """

    i: stream.Interface
    o: stream.Interface
    step: Signal
    hunting: Signal
    index: Signal
    header: data.View
    answer: Signal
    bits: Signal
    verdict: Signal
    arguments: data.View
    asked: Signal
    gone: Signal
    walking: Signal
    scan_place: Signal
    whole_scan: Signal
    past_end: Signal
    past_memory: Signal
    nothing: Signal

    def __init__(self, members: Mapping[str, Member]) -> None:
        flags = ("asked", "gone", "walking", "whole_scan", "past_end", "past_memory", "nothing")
        super().__init__(
            {
                "i": In(stream.Signature(8)),
                "o": Out(stream.Signature(8)),
                "step": In(4),
                **dict.fromkeys(_OUTPUTS, In(1)),
                "index": In(16),
                "header": In(FrameHeader),
                "answer": In(CONFIGURATION.payload_bytes.bit_length()),
                "bits": In(BUSY_CYCLES + 1),
                "verdict": In(4),
                "arguments": In(Arguments),
                "scan_place": In(5),
                **dict.fromkeys(flags, In(1)),
                **members,
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.link = link = CompactLink(
            configuration=CONFIGURATION, timeout_cycles=TIMEOUT_CYCLES
        )
        for name in ("i", "read_data"):
            connect(m, flipped(getattr(self, name)), getattr(link, name))
        for name in ("o", "writes", "reads"):
            connect(m, getattr(link, name), flipped(getattr(self, name)))
        for name in ("run", "pcs", "clear", "reset_run"):
            m.d.comb += getattr(self, name).eq(getattr(link, name))
        m.d.comb += link.status.eq(self.status)
        self._assert_steps(m)
        self._assert_verdict(m)
        self._assert_scans(m)
        self._assert_writes(m)
        return m

    def at(self, *steps: Step) -> Value:
        """One of these steps is at hand."""
        return self.step.matches(*steps)

    def asks(self, *commands: Command) -> Value:
        """The request has one of these commands."""
        return self.header.command.code.matches(*commands)

    @property
    def taken(self) -> Value:
        """A byte comes."""
        return self.i.valid & self.i.ready

    @property
    def in_request(self) -> Value:
        """A request has begun, and not all of it has come."""
        return self.at(*_OUTPUTS["inside"])

    @property
    def region_flag(self) -> Value:
        """CONTINUES or AFTER."""
        return data.View(RegionArgument, self.arguments[0]).flag

    @property
    def quiet(self) -> Value:
        """A request that has been executed gets no answer."""
        return self.header.command.silent & (self.verdict == Status.OK)

    @property
    def part_bytes(self) -> Value:
        """Bytes of the part of a frame that is at hand."""
        data_bytes = Mux(self.at(Step.PAYLOAD), self.header.length, self.answer)
        heads = self.at(Step.HEADER, Step.SEND_HEADER)
        return Mux(
            self.at(Step.PAYLOAD, Step.SEND_PAYLOAD),
            data_bytes,
            Mux(heads, HEADER_BYTES - 1, CRC_BYTES),
        )

    @property
    def checksum_cycles(self) -> Value:
        """Until the checksum of the last byte is there."""
        return sum((self.bits[k:].any() for k in range(2, len(self.bits))), self.bits[1:].any())

    @property
    def scan_cycles(self) -> Value:
        """Until a description has been read."""
        return Mux(self.walking, SCAN_CYCLES - self.scan_place, 0)

    @property
    def beyond(self) -> Value:
        """The byte that is to be read does not exist."""
        return (self.past_memory | self.past_end) & ~self.asks(Command.READ)

    def assume_memory(self, m: Module) -> Signal:
        """Assumes that memory gives a byte only where it owes one; true while it does."""
        owed = Signal()
        with m.If(self.reads.valid & self.reads.ready):
            m.d.sync += owed.eq(1)
        with m.Elif(self.read_data.valid & self.read_data.ready):
            m.d.sync += owed.eq(0)
        m.d.comb += [
            Assume(~self.read_data.valid | owed, "memory gives only what it owes"),
            Assert(self.asked == owed, "it waits for what is not owed"),
        ]
        self._assert_reads(m)
        return owed

    def _assert_steps(self, m: Module) -> None:
        for name, steps in _OUTPUTS.items():
            m.d.comb += Assert(getattr(self, name) == self.at(*steps), f"{name} is another step's")
        counted = self.in_request | self.at(Step.SEND_HEADER, Step.SEND_PAYLOAD, Step.SEND_CHECKSUM)
        within = (self.index >= 1) & (self.index <= self.part_bytes)
        m.d.comb += [
            Assert(self.step <= max(Step), "it is in no step"),
            Assert(~counted | within, "the part of a frame has another length"),
            Assert(self.bits != 0, "the end of a byte is lost"),
        ]

    def _assert_verdict(self, m: Module) -> None:
        """Asserts that what is executed was good, and of its command's form."""
        length, good = self.header.length, self.verdict == Status.OK
        fits = Signal()
        with m.Switch(self.header.command.code):
            for known in (command for command in Command if command is not Command.HOLD):
                with m.Case(known):
                    if known in _LEAST_ARGUMENTS:
                        m.d.comb += fits.eq(length >= _LEAST_ARGUMENTS[known])
                    else:
                        m.d.comb += fits.eq(length == _ARGUMENTS.get(known, 0))
        short = length <= CONFIGURATION.payload_bytes
        judged = self.at(Step.EXECUTE) & good
        after = self.asks(Command.RUN_GET) & self.region_flag
        late = after & self.verdict.matches(Status.BUSY, Status.BAD_INSTRUCTION)
        m.d.comb += [
            Assert(
                ~self.at(Step.JUDGE, Step.MEASURE, Step.EXECUTE, Step.MOVE, Step.PREPARE) | short,
                "what is too long is judged",
            ),
            Assert(~(judged | self.at(Step.MOVE, Step.PREPARE)) | fits, "it is not of the form"),
            Assert(
                ~self.at(Step.MOVE) | good & self.asks(Command.WRITE, Command.PUT),
                "bytes move for what is not good",
            ),
            Assert(
                ~self.at(Step.PREPARE) | (good | late) & self.asks(*_READS, Command.DEFINE),
                "a description is read for what is not good",
            ),
            Assert(~self.at(Step.MEASURE) | self.asks(Command.WRITE, Command.READ), "it measures"),
        ]

    def _assert_scans(self, m: Module) -> None:
        """Asserts when a description is read; the last one of an answer ends within its checksum.

        An address is read before the verdict: of a request that is refused, it ends within the
        header of the answer.
        """
        left, place = self.checksum_cycles, self.scan_place
        first = Mux(self.index == 1, BUSY_CYCLES, 2 * BUSY_CYCLES + 1) - left
        direct = self.whole_scan & self.asks(Command.WRITE, Command.READ)
        in_header = Mux(self.index == 2, BUSY_CYCLES, 2 * BUSY_CYCLES + 1) - left
        for_nothing = (self.verdict != Status.OK) & (
            self.at(Step.EXECUTE, Step.START)
            | self.at(Step.SEND_HEADER) & (self.index == 1)
            | self.at(Step.SEND_HEADER) & (self.index <= 3) & (place >= in_header)
        )
        judged = direct & (self.at(Step.JUDGE) | for_nothing)
        m.d.comb += [
            Assert(Mux(self.walking, place < SCAN_CYCLES, place == 0), "a scan without an end"),
            Assert(
                ~(self.walking & self.whole_scan)
                | self.at(Step.MEASURE, Step.MOVE, Step.PREPARE)
                | judged,
                "a description is read anew",
            ),
            Assert(
                ~self.walking
                | self.at(Step.MEASURE, Step.MOVE, Step.PREPARE, Step.SEND_PAYLOAD)
                | self.at(Step.SEND_CHECKSUM) & (self.index <= 2) & (place >= first)
                | judged,
                "a description is read too late",
            ),
        ]

    def _assert_writes(self, m: Module) -> None:
        """Asserts when bytes are written."""
        offered, gone = self.writes.valid, self.gone
        m.d.comb += [
            Assert(~(offered | gone) | self.at(Step.MOVE), "a byte moves alone"),
            Assert(~(offered & gone), "a byte moves twice"),
            Assert(~((offered | gone) & self.walking), "a byte moves too early"),
        ]

    def _assert_reads(self, m: Module) -> None:
        """Asserts when bytes are read."""
        settled = ~self.walking & (self.checksum_cycles < BUSY_CYCLES)
        reads = self.reads.valid | self.asked
        awaited = self.at(Step.SEND_PAYLOAD) & self.asks(*_READS) & ~self.walking
        m.d.comb += [
            Assert(~reads | awaited, "a byte is read alone"),
            Assert(~(self.reads.valid & self.asked), "a byte is read twice"),
            Assert(~reads | ~self.beyond & ~self.nothing, "a byte is read that does not exist"),
            Assert(
                ~(self.at(Step.SEND_PAYLOAD) & settled) | (self.nothing == self.beyond),
                "it does not know what exists",
            ),
        ]
