"""The compact link never locks up: in each cycle it comes nearer to the end of what it has begun.

How far it is from there is a number, its rank: the step that is at hand, the bytes that are left
in it, and the cycles until the next of them can move. It is shown to fall in each cycle in which
the neighbours do their part, and never to rise, from any state at all that the assertions allow,
until the link hunts for the next frame. A program that runs is no neighbour: the rank falls while
the link waits for its end, as its patience does.
"""

from amaranth.hdl import Assert, Cat, Module, Mux, Signal, Value
from amaranth.lib.wiring import In
from slipstick_rtl.link.compact.walker import SCAN_CYCLES
from slipstick_rtl.link.protocol import UNORDERED, WAIT_TIMEOUTS, Command, Status

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
from .registry import Proof

SILENCE_CYCLES = TIMEOUT_CYCLES + BUSY_CYCLES + 2
"""In which half a frame is forgotten, and the link hunts."""
SEND_CYCLES = BUSY_CYCLES + SCAN_CYCLES + 3
"""In which an answer that has begun offers its next byte, if memory gives what it was asked for."""
WAIT_CYCLES = WAIT_TIMEOUTS * (TIMEOUT_CYCLES + 1) + TIMEOUT_CYCLES
"""In which a request is executed or refused, however long the program runs."""

_ORDER = (
    (Step.HEADER,),
    (Step.PAYLOAD,),
    (Step.CHECKSUM,),
    (Step.CHECK,),
    (Step.JUDGE,),
    (Step.MEASURE,),
    (Step.EXECUTE,),
    (Step.MOVE, Step.PREPARE),
    (Step.START,),
    (Step.SEND_HEADER,),
    (Step.SEND_PAYLOAD,),
    (Step.SEND_CHECKSUM,),
    (Step.HUNT,),
)
"""No step comes after a later one, though some may be left out."""

_PLACE_BITS = CONFIGURATION.payload_bytes.bit_length()


class CompactLinkGoesOn(CompactLinkUnderProof):
    """The link under any bytes, and answers of memory that come at any time, once they are due.

    The ports below ``read_data`` are signals of the link.
    """

    idle: Signal
    forget: Signal
    rounds: Signal
    hold: Signal
    early: Signal
    place: Signal
    busy: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "idle": In(range(TIMEOUT_CYCLES + 1)),
                "rounds": In(range(WAIT_TIMEOUTS + 1)),
                "place": In(_PLACE_BITS),
                **dict.fromkeys(("forget", "hold", "early", "busy"), In(1)),
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
        self._assert_waiting(m)
        return m

    def _assert_states(self, m: Module) -> None:
        """The rest of what makes it so."""
        waits = self.at(Step.JUDGE, Step.PREPARE)
        counts = self.in_request & ~self.busy | waits
        at_end = self.header.length - (self.writes.valid | self.gone)
        m.d.comb += [
            Assert(~self.at(Step.MOVE) | (self.place <= at_end), "a place outside the payload"),
            Assert(counts & ~self.forget | (self.idle == 0), "what is no silence is called so"),
            Assert(~(self.hunting & self.forget), "it forgets what has not begun"),
            Assert(self.busy == self.bits[1:].any(), "busy without a byte"),
            Assert(~self.hold | waits & self.status.running, "it waits for nothing"),
            Assert((self.rounds == 0) | waits, "its patience is not new"),
            Assert(self.rounds + (self.hold & self.forget) <= WAIT_TIMEOUTS, "it waits too long"),
        ]

    @property
    def _patience(self) -> Value:
        """Cycles until the link refuses what waits."""
        rounds = WAIT_TIMEOUTS - self.rounds - self.forget
        return rounds * (TIMEOUT_CYCLES + 1) + TIMEOUT_CYCLES - self.idle

    def _cycles(self, m: Module) -> Signal:
        """Until the next byte can move, or the next step can come."""
        busy, cycles = self.checksum_cycles, Signal(8)
        silence = busy + TIMEOUT_CYCLES - self.idle + 1
        wait = Mux(self.hold, self._patience, 0)
        asking = Mux(self.asked | ~self.walking & self.beyond, 0, Mux(self.reads.valid, 1, 2))
        reads = self.asks(Command.READ, Command.GET, Command.RUN_GET)
        with m.Switch(self.step):
            with m.Case(Step.HEADER, Step.PAYLOAD, Step.CHECKSUM):
                m.d.comb += cycles.eq(Mux(self.forget, 0, silence))
            with m.Case(Step.JUDGE):
                m.d.comb += cycles.eq(wait)
            with m.Case(Step.MEASURE):
                m.d.comb += cycles.eq(self.scan_cycles)
            with m.Case(Step.MOVE):
                offers = Mux(self.writes.valid, 1, 2 + self.scan_cycles)
                m.d.comb += cycles.eq(Mux(self.gone, 0, offers))
            with m.Case(Step.PREPARE):
                m.d.comb += cycles.eq(Mux(self.walking, WAIT_CYCLES + self.scan_cycles, wait))
            with m.Case(Step.SEND_PAYLOAD):
                m.d.comb += cycles.eq(busy + self.scan_cycles + Mux(reads, asking, 0))
            with m.Default():
                m.d.comb += cycles.eq(busy)
        return cycles

    def _rank(self, m: Module, cycles: Value) -> Value:
        left, steps = Signal(17), Signal(4)
        with m.Switch(self.step):
            for number, names in enumerate(reversed(_ORDER)):
                with m.Case(*names):
                    m.d.comb += steps.eq(number)
        with m.Switch(self.step):
            with m.Case(Step.MEASURE, Step.MOVE):
                m.d.comb += left.eq((self.header.length - self.place)[:_PLACE_BITS])
            with m.Case(Step.CHECK, Step.JUDGE, Step.EXECUTE, Step.PREPARE, Step.START, Step.HUNT):
                m.d.comb += left.eq(0)
            with m.Default():
                m.d.comb += left.eq(self.part_bytes - self.index)
        return Cat(Mux(self.hunting, 0, cycles), left, steps)

    def _assert_rank(self, m: Module, together: Value) -> None:
        """It falls, but while a neighbour is not ready."""
        cycles = self._cycles(m)
        rank, before = self._rank(m, cycles), Signal(29)
        waited, hunted = Signal(), Signal(init=1)
        alone = self.in_request | self.at(
            Step.CHECK, Step.JUDGE, Step.MEASURE, Step.EXECUTE, Step.PREPARE
        )
        m.d.sync += [before.eq(rank), hunted.eq(self.hunting), waited.eq(~(together | alone))]
        m.d.comb += [
            Assert(hunted | waited | (rank < before), "it comes no nearer to the end"),
            Assert(hunted | (rank <= before), "it goes farther from the end"),
        ]

    def _assert_bounds(self, m: Module, together: Value) -> None:
        """Asserts the bounds at the ports, in cycles, that follow from the rank."""
        cycles = self._cycles(m)
        silent, refused, mute, held = Signal(8), Signal(8), Signal(8), Signal(8)
        sends = self.at(Step.START, Step.SEND_HEADER, Step.SEND_PAYLOAD, Step.SEND_CHECKSUM)
        listens = self.in_request | self.hunting
        m.d.sync += [
            silent.eq(Mux(self.in_request & ~self.i.valid, silent + 1, 0)),
            refused.eq(Mux(listens & self.i.valid & ~self.i.ready, refused + 1, 0)),
            mute.eq(Mux(sends & together & ~self.o.valid, mute + 1, 0)),
            held.eq(Mux(self.hold, held + 1, 0)),
        ]
        m.d.comb += [
            Assert(
                ~self.in_request | (silent + cycles < SILENCE_CYCLES),
                "silence does not make it forget",
            ),
            Assert(
                ~listens | (refused + Mux(self.busy, self.checksum_cycles, 0) <= BUSY_CYCLES),
                "a byte is not taken",
            ),
            Assert(~sends | (mute + cycles < SEND_CYCLES), "the answer does not go on"),
            Assert(~self.hold | (held + cycles <= WAIT_CYCLES), "it waits too long for a program"),
        ]

    def _assert_waiting(self, m: Module) -> None:
        """A WAITING request in its turn is executed when the program has ended, and not before."""
        code = self.header.command.code
        judged, ran, patient, early = Signal(), Signal(), Signal(), Signal()
        m.d.sync += [
            judged.eq(self.at(Step.JUDGE)),
            ran.eq(self.status.running),
            patient.eq(self.rounds != WAIT_TIMEOUTS),
            early.eq(self.early),
        ]
        waiting = judged & self.header.command.waiting & ~early
        begins = self.at(Step.EXECUTE, Step.MEASURE)
        refused = self.at(Step.EXECUTE) & (self.verdict == Status.BUSY)
        m.d.comb += [
            Assert(~waiting | (self.at(Step.JUDGE) == (ran & patient)), "it waits, or does not"),
            Assert(~(waiting & begins & ran) | refused, "a program runs, and it is executed"),
            Assert(
                ~judged | ~early | ~code.matches(*UNORDERED) | ~self.at(Step.JUDGE),
                "what has no place in the order waits for one",
            ),
        ]


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
            "rounds": "link.rounds",
            "place": "link._place",
            "early": "link.rules.early",
            **{name: f"link.steps.{name}" for name in ("forget", "hold", "busy")},
        },
    ),
    Proof(
        name="compact_link_streams",
        component=CompactLinkKeepsProtocol,
        depth=3,
        probes=PROBES,
    ),
)
