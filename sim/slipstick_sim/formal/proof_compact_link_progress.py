"""The compact link never locks up: in each cycle it comes nearer to the end of what it has begun.

How far it is from there is a number, its rank: the step that is at hand, the bytes that are left
in it, and the cycles until the next of them can move. It is shown to fall in each cycle in which
the neighbours do their part, and never to rise, from any state at all that the assertions allow,
until the link hunts for the next frame.
"""

from amaranth.hdl import Assert, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In
from slipstick_rtl.link.compact.rules import CompactRules
from slipstick_rtl.link.layouts import Arguments, FrameHeader

from .compact_link import (
    BUSY_CYCLES,
    CONFIGURATION,
    PROBES,
    TIMEOUT_CYCLES,
    CompactLinkUnderProof,
    Step,
)
from .proof_link import keeps_protocol
from .proof_link_execution import offers_stand
from .proof_link_progress import always_within
from .registry import Proof

SILENCE_CYCLES = TIMEOUT_CYCLES + BUSY_CYCLES + 2
"""In which half a frame is forgotten, and the link hunts."""
SEND_CYCLES = BUSY_CYCLES + 2
"""In which an answer that has begun offers its next byte, if memory gives what it was asked for."""
RULES_CYCLES = (2 << CONFIGURATION.payload_bytes.bit_length() - 1) + 3
"""In which the rules come to a verdict: a unit of a byte is counted in each."""

_ORDER = (
    (Step.HEADER,),
    (Step.PAYLOAD,),
    (Step.CHECKSUM,),
    (Step.CHECK,),
    (Step.JUDGE,),
    (Step.WRITE, Step.SETTLE),
    (Step.START,),
    (Step.SEND_HEADER,),
    (Step.SEND_PAYLOAD,),
    (Step.SEND_CHECKSUM,),
    (Step.HUNT,),
)
"""No step comes after a later one, though some may be left out."""

_FIRST_PLACE = 5
"""Of a WRITE's data in the payload, the first of which is number 1."""


class CompactLinkGoesOn(CompactLinkUnderProof):
    """The link under any bytes, and answers of memory that come at any time, once they are due.

    The ports below ``read_data`` are signals of the link.
    """

    idle: Signal
    forget: Signal
    settling: Signal
    place: Signal
    written: Signal
    busy: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "idle": In(range(TIMEOUT_CYCLES + 1)),
                "forget": In(1),
                "settling": In(2),
                "place": In(16),
                "written": In(1),
                "busy": In(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        owed = self.assume_memory(m)
        self._assert_states(m)
        together = Signal()
        m.d.comb += together.eq(
            Cat(self.o.ready, self.writes.ready, self.reads.ready).all()
            & (self.read_data.valid | ~owed)
        )
        self._assert_rank(m, together)
        self._assert_bounds(m, together)
        return m

    def _assert_states(self, m: Module) -> None:
        """The rest of what makes it so."""
        length, fetched = self.header.length, self.writes.valid | self.written
        m.d.comb += [
            Assert(
                ~self.at(Step.WRITE) | (self.place >= _FIRST_PLACE) & (self.place <= length + 1),
                "a place outside the payload",
            ),
            Assert(
                ~(self.at(Step.WRITE) & fetched) | (self.written == (self.place == length + 1)),
                "the end of a WRITE is lost",
            ),
            Assert(
                (self.in_request & ~self.busy & ~self.forget) | (self.idle == 0),
                "what is no silence is called so",
            ),
            Assert(~(self.hunting & self.forget), "it forgets what has not begun"),
            Assert(self.busy == self.bits[1:].any(), "busy without a byte"),
        ]

    def _busy_cycles(self) -> Value:
        return sum((self.bits[k:].any() for k in range(2, len(self.bits))), self.bits[1:].any())

    def _cycles(self, m: Module) -> Signal:
        """Until the next byte can move, or the next step can come."""
        busy, cycles = self._busy_cycles(), Signal(8)
        patience = busy + TIMEOUT_CYCLES - self.idle + 1
        with m.Switch(self.step):
            with m.Case(Step.HEADER, Step.PAYLOAD, Step.CHECKSUM):
                m.d.comb += cycles.eq(Mux(self.forget, 0, patience))
            with m.Case(Step.JUDGE):
                m.d.comb += cycles.eq(~self.rules_done)
            with m.Case(Step.WRITE):
                m.d.comb += cycles.eq(~(self.writes.valid | self.written))
            with m.Case(Step.SETTLE):
                m.d.comb += cycles.eq(self.settling)
            with m.Case(Step.SEND_PAYLOAD):
                m.d.comb += cycles.eq(busy + self.reads.valid)
            with m.Default():
                m.d.comb += cycles.eq(busy)
        return cycles

    def _rank(self, m: Module) -> Value:
        left, steps = Signal(17), Signal(4)
        with m.Switch(self.step):
            for number, names in enumerate(reversed(_ORDER)):
                with m.Case(*names):
                    m.d.comb += steps.eq(number)
        with m.Switch(self.step):
            with m.Case(Step.WRITE):
                m.d.comb += left.eq(self.header.length + 1 - self.place)
            with m.Case(Step.CHECK, Step.JUDGE, Step.SETTLE, Step.START, Step.HUNT):
                m.d.comb += left.eq(0)
            with m.Default():
                m.d.comb += left.eq(self.part_bytes - self.index)
        cycles = Mux(self.hunting, 0, self._cycles(m))
        return Cat(cycles, left, steps)

    def _assert_rank(self, m: Module, together: Value) -> None:
        """It falls, but while the rules are about their own, or a neighbour is not ready."""
        rank, before = self._rank(m), Signal(29)
        waited, hunted = Signal(), Signal(init=1)
        judging = self.at(Step.JUDGE) & ~self.rules_done
        m.d.sync += [
            before.eq(rank),
            hunted.eq(self.hunting),
            waited.eq(~(together | self.in_request) | judging),
        ]
        m.d.comb += [
            Assert(hunted | waited | (rank < before), "it comes no nearer to the end"),
            Assert(hunted | (rank <= before), "it goes farther from the end"),
        ]

    def _assert_bounds(self, m: Module, together: Value) -> None:
        """What that means at the ports, in cycles."""
        cycles = self._cycles(m)
        silent, refused, mute = Signal(8), Signal(8), Signal(8)
        sends = self.at(Step.START, Step.SEND_HEADER, Step.SEND_PAYLOAD, Step.SEND_CHECKSUM)
        listens = self.in_request | self.hunting
        m.d.sync += [
            silent.eq(Mux(self.in_request & ~self.i.valid, silent + 1, 0)),
            refused.eq(Mux(listens & self.i.valid & ~self.i.ready, refused + 1, 0)),
            mute.eq(Mux(sends & together & ~self.o.valid, mute + 1, 0)),
        ]
        m.d.comb += [
            Assert(
                ~self.in_request | (silent + cycles < SILENCE_CYCLES),
                "silence does not make it forget",
            ),
            Assert(
                ~listens | (refused + Mux(self.busy, self._busy_cycles(), 0) <= BUSY_CYCLES),
                "a byte is not taken",
            ),
            Assert(~sends | (mute + cycles < SEND_CYCLES), "the answer does not go on"),
        ]


class RulesDecide(wiring.Component):
    """The rules, whatever they are to judge."""

    header: data.View
    arguments: data.View
    start: Signal
    running: Signal
    repeated: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "header": In(FrameHeader),
                "arguments": In(Arguments),
                **dict.fromkeys(("start", "running", "repeated"), In(1)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.rules = rules = CompactRules(configuration=CONFIGURATION)
        for name in ("header", "arguments", "start", "running", "repeated"):
            m.d.comb += getattr(rules, name).eq(getattr(self, name))
        always_within(m, rules.done | self.start, RULES_CYCLES, "they do not decide", "rules")
        return m


class CompactLinkKeepsProtocol(CompactLinkUnderProof):
    """The link's three outputs, while memory keeps to it too."""

    def __init__(self) -> None:
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        self.assume_memory(m)
        offers_stand(m, self.read_data, "read_data")
        for name in ("o", "writes", "reads"):
            keeps_protocol(m, getattr(self, name), name)
        return m


PROOFS = (
    Proof(
        name="compact_link_goes_on",
        component=CompactLinkGoesOn,
        depth=2,
        probes={
            **PROBES,
            "idle": "link.idle",
            **{name: f"link.steps.{name}" for name in ("forget", "written", "busy")},
            "settling": "link.steps._settling",
            # it has no name of its own
            "place": "link.$like",
        },
    ),
    Proof(name="compact_rules_decide", component=RulesDecide, depth=RULES_CYCLES + 2),
    Proof(
        name="compact_link_streams",
        component=CompactLinkKeepsProtocol,
        depth=3,
        probes=PROBES,
    ),
)
