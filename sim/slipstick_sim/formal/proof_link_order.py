"""Proves that no request is executed out of order, and that no wait is without an end."""

from typing import Any

from amaranth.hdl import Assert, Assume, Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from slipstick_rtl.link.layouts import Arguments, FrameHeader, RegionArgument, Request
from slipstick_rtl.link.protocol import UNORDERED, WAIT_TIMEOUTS, Command, Status
from slipstick_rtl.link.request_checker import RequestChecker
from slipstick_rtl.link.request_order import RequestOrder
from slipstick_rtl.link.request_queue import RequestQueue
from slipstick_rtl.link.run_patience import RunPatience

from .proof_link import keeps_protocol
from .proof_link_execution import SMALL, offers_stand
from .proof_link_progress import always_within
from .registry import Proof

_FLAGS = ("start", "filled", "some_data", "running", "bad_instruction", "executed")
_HELD = ("filled", "some_data")


class JudgesInOrder(wiring.Component):
    """The checker and the order together, judging one request after the other.

    ``counting`` and ``summed`` are signals of the checker: a request is judged.
    """

    header: data.View
    arguments: data.View
    data_bytes: Signal
    start: Signal
    filled: Signal
    some_data: Signal
    running: Signal
    bad_instruction: Signal
    executed: Signal
    counting: Signal
    summed: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "header": In(FrameHeader),
                "arguments": In(Arguments),
                "data_bytes": In(16),
                **dict.fromkeys((*_FLAGS, "counting", "summed"), In(1)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.checker = checker = RequestChecker(configuration=SMALL)
        m.submodules.order = order = RequestOrder()
        m.d.comb += [
            *(getattr(checker, name).eq(getattr(self, name)) for name in _FLAGS[:-1]),
            *(
                getattr(checker, name).eq(getattr(order, name))
                for name in ("unknown", "early", "repeated", "may_continue")
            ),
            checker.header.eq(self.header),
            checker.arguments.eq(self.arguments),
            checker.data_bytes.eq(self.data_bytes),
            order.header.eq(self.header),
            order.in_turn.eq(checker.done & checker.in_turn),
            order.good.eq(checker.verdict == Status.OK),
            order.executed.eq(self.executed),
        ]
        busy = self.counting | self.summed | checker.done
        self._assume(m, busy)
        self._assert_verdicts(m, checker, order)
        self._assert_order(m, order)
        return m

    def _assume(self, m: Module, busy: Value) -> None:
        """Assumes what the reader ensures: a request stays until it is judged.

        Its number may be the next one or not.
        """
        held = Cat(self.header.as_value(), self.arguments.as_value(), self.data_bytes)
        held = Cat(held, *(getattr(self, name) for name in _HELD))
        before, executed, began = Signal.like(held), Signal(), Signal()
        m.d.sync += [before.eq(held), executed.eq(self.executed), began.eq(1)]
        m.d.comb += [
            Assume(~busy | (held == before), "a request that is judged stays"),
            Assume(~((busy | self.start) & self.executed), "none is executed meanwhile"),
            Assume(~(busy & self.start), "one at a time"),
            Assume(began | ~self.executed, "there was a request"),
            # it was the header of the one before in the cycle before
            Assume(~(self.executed | executed) | (held == before), "the last header stays"),
        ]

    def _assert_verdicts(self, m: Module, checker: RequestChecker, order: RequestOrder) -> None:
        code = self.header.command.code
        ran, next_before = Signal(), Signal(8)
        m.d.sync += [ran.eq(self.running), next_before.eq(order.next_sequence)]
        ahead = (order.next_sequence - self.header.sequence)[:8]
        ordered = ~code.matches(*UNORDERED)
        is_next, repeated = ahead == 0, ordered & (ahead == 1)
        known, starts = code.matches(*Command), code.matches(Command.RUN, Command.RUN_GET)
        flag = self.arguments.as_value()[RegionArgument.size - 1]
        may_continue = Signal()
        m.d.sync += may_continue.eq(order.may_continue)
        good = checker.done & (checker.verdict == Status.OK)
        turn = known & (~ordered | is_next | repeated) & ~(self.header.command.waiting & ran)
        goes_on = (code == Command.PUT) & flag & ~repeated
        m.d.comb += [
            Assert(~good | known, "an unknown command is OK"),
            Assert(~good | ~ordered | is_next | repeated, "it is OK out of order"),
            Assert(~good | ~(self.header.command.waiting & ran), "it does not wait"),
            Assert(~(good & starts & ~repeated & ran), "a run amid another one"),
            Assert(~(good & goes_on) | may_continue, "a PUT goes on after nothing"),
            Assert(~checker.done | (checker.in_turn == turn), "another turn"),
            Assert(
                ~checker.done
                | ~known
                | (ahead == 0)
                | repeated
                | ~ordered
                | (checker.verdict == Status.OUT_OF_ORDER),
                "out of order, and refused for something else",
            ),
        ]

    def _assert_order(self, m: Module, order: RequestOrder) -> None:
        """The next number is behind the last one that was executed, and nothing else."""
        code = self.header.command.code
        next_before, sequence = Signal(8), Signal(8)
        counted = Signal()
        m.d.sync += [
            next_before.eq(order.next_sequence),
            sequence.eq(self.header.sequence),
            counted.eq(self.executed & (~code.matches(*UNORDERED) | (code == Command.OPEN))),
        ]
        behind = (sequence + 1)[:8]
        m.d.comb += Assert(
            order.next_sequence
            == Value.cast(counted).replicate(8) & behind
            | ~Value.cast(counted).replicate(8) & next_before,
            "another next number",
        )


class WaitsForOpen(wiring.Component):
    """The queue: offers stand, and nothing comes in while an OPEN is not done."""

    i: stream.Interface
    o: stream.Interface
    opening: Signal

    def __init__(self) -> None:
        request = stream.Signature(Request)
        super().__init__({"i": In(request), "o": Out(request), "opening": In(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = RequestQueue()
        connect(m, flipped(self.i), queue.i)
        connect(m, queue.o, flipped(self.o))
        offers_stand(m, self.i, "i")
        keeps_protocol(m, self.o, "o")
        executing = Signal()
        with m.If(self.o.ready):
            m.d.sync += executing.eq(self._opens(self.o))
        m.d.comb += [
            Assert(
                ~(self._opens(self.o) | executing & ~self.o.ready) | ~(self.i.valid & self.i.ready),
                "a request comes in behind an OPEN that is not done",
            ),
            Assert(~(self._opens(self.o) | executing) | self.opening, "an OPEN is forgotten"),
        ]
        return m

    def _opens(self, port: Any) -> Value:
        good = port.p.verdict == Status.OK
        return port.valid & good & (port.p.header.command.code == Command.OPEN)


class PatienceEnds(wiring.Component):
    """No request waits longer than a number of cycles, here with a timeout of one."""

    waiting: Signal
    waited: Signal

    def __init__(self) -> None:
        super().__init__({"waiting": In(1), "waited": In(range(WAIT_TIMEOUTS + 1))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.patience = patience = RunPatience(timeout_cycles=1)
        m.d.comb += [
            patience.waiting.eq(self.waiting & ~patience.expired),
            Assert(self.waited <= WAIT_TIMEOUTS + 1, "the counter runs over"),
        ]
        always_within(
            m,
            ~self.waiting | patience.expired,
            WAIT_TIMEOUTS + 3,
            "a request waits for ever",
            "patience",
        )
        return m


PROOFS = (
    Proof(
        name="requests_in_order",
        component=JudgesInOrder,
        depth=6,
        probes={name: f"checker.{name}" for name in ("counting", "summed")},
    ),
    Proof(
        name="request_queue_waits_for_open",
        component=WaitsForOpen,
        depth=2,
        probes={"opening": "queue.opening"},
    ),
    Proof(
        name="patience_ends",
        component=PatienceEnds,
        depth=WAIT_TIMEOUTS + 4,
        probes={"waited": "patience.waited"},
    ),
)
