"""Shares what the compact link's proofs need: the link, the signals seen, its grammar."""

from collections.abc import Mapping
from enum import IntEnum

from amaranth.hdl import Assert, Assume, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Member, Out, connect, flipped
from slipstick_rtl.config import Configuration
from slipstick_rtl.link.compact.link import CompactLink
from slipstick_rtl.link.interfaces import AcceleratorInterface
from slipstick_rtl.link.layouts import FrameHeader
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

_ARGUMENTS = {Command.READ: 6, Command.RUN: 5, Command.OPEN: 4}
_WRITE_ARGUMENTS = 4
"""Bytes of the payloads, as the protocol says."""


class Step(IntEnum):
    """Of the link, in the order in which its FSM names them; their outputs are asserted below."""

    HUNT = 0
    HEADER = 1
    PAYLOAD = 2
    CHECKSUM = 3
    CHECK = 4
    START = 5
    JUDGE = 6
    WRITE = 7
    SETTLE = 8
    SEND_HEADER = 9
    SEND_PAYLOAD = 10
    SEND_CHECKSUM = 11


_OUTPUTS = {
    "hunting": (Step.HUNT,),
    "inside": (Step.HEADER, Step.PAYLOAD, Step.CHECKSUM),
    "in_payload": (Step.PAYLOAD,),
    "writing": (Step.WRITE,),
    "beginning": (Step.START,),
    "in_header": (Step.SEND_HEADER,),
    "answering": (Step.SEND_PAYLOAD,),
    "sealing": (Step.SEND_CHECKSUM,),
}

PROBES = {
    "step": "link.steps.fsm_state",
    **{name: f"link.steps.{name}" for name in (*_OUTPUTS, "index", "header", "answer")},
    "bits": "link.crc.bits",
    "rules_done": "link.rules.done",
    "rules_verdict": "link.rules.verdict",
    "verdict": "link._verdict",
    "asked": "link.asked",
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
    rules_done: Signal
    rules_verdict: Signal
    verdict: Signal
    asked: Signal

    def __init__(self, members: Mapping[str, Member]) -> None:
        super().__init__(
            {
                "i": In(stream.Signature(8)),
                "o": Out(stream.Signature(8)),
                "step": In(4),
                **dict.fromkeys(_OUTPUTS, In(1)),
                "index": In(16),
                "header": In(FrameHeader),
                "answer": In(16),
                "bits": In(BUSY_CYCLES + 1),
                "rules_done": In(1),
                "rules_verdict": In(3),
                "verdict": In(3),
                "asked": In(1),
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
        return m

    def at(self, *steps: Step) -> Value:
        """One of these steps is at hand."""
        return self.step.matches(*steps)

    @property
    def taken(self) -> Value:
        """A byte comes."""
        return self.i.valid & self.i.ready

    @property
    def in_request(self) -> Value:
        """A request has begun, and not all of it has come."""
        return self.at(*_OUTPUTS["inside"])

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

    def assume_memory(self, m: Module) -> Signal:
        """Assumes that memory gives a byte only where it owes one; true while it does."""
        owed = Signal()
        with m.If(self.reads.valid & self.reads.ready):
            m.d.sync += owed.eq(1)
        with m.Elif(self.read_data.valid & self.read_data.ready):
            m.d.sync += owed.eq(0)
        awaited = self.at(Step.SEND_PAYLOAD) & (self.header.command == Command.READ)
        m.d.comb += [
            Assume(~self.read_data.valid | owed, "memory gives only what it owes"),
            Assert(self.asked == owed, "it waits for what is not owed"),
            Assert(~owed | awaited, "a byte is owed and not awaited"),
        ]
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
        """What is written or settles was good, and of its command's form."""
        length, command = self.header.length, self.header.command
        fits = Signal()
        with m.Switch(command):
            with m.Case(Command.WRITE):
                m.d.comb += fits.eq(length >= _WRITE_ARGUMENTS)
            for known in Command:
                with m.Case(known):
                    m.d.comb += fits.eq(length == _ARGUMENTS.get(known, 0))
        short = length <= CONFIGURATION.payload_bytes
        judged = self.at(Step.JUDGE) & self.rules_done & (self.rules_verdict == Status.OK)
        acting = self.at(Step.WRITE, Step.SETTLE)
        m.d.comb += [
            Assert(~(self.at(Step.JUDGE) | acting) | short, "what is too long is judged"),
            Assert(~judged | fits, "the rules find good what is not of the form"),
            Assert(~acting | fits & (self.verdict == Status.OK), "a step for what is not good"),
            Assert(self.rules_verdict != Status.BAD_CRC, "the rules judge the checksum"),
        ]
