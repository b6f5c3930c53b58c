"""Hosts on lines that fail: what they are told is right, or an error with a code."""

import random
from collections.abc import Sequence
from contextlib import closing

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from slipstick.benchmarks.faults.__main__ import figures, passed
from slipstick.benchmarks.faults.boards import Board, ModelBoard, SimulatedBoard, open_board
from slipstick.benchmarks.faults.hosts import interrupt, share
from slipstick.benchmarks.faults.network import HARDWARE, HARDWARE_OF, small_work
from slipstick.benchmarks.faults.suite import FaultSuite
from slipstick.benchmarks.faults.transport import (
    Fault,
    FaultyTransport,
    Injection,
    RandomPlan,
    ScheduledPlan,
)
from slipstick.devices.link import LinkDevice, LinkError, Patience
from slipstick.devices.link.errors import CODES
from slipstick.devices.link.request_queue import RequestQueue
from slipstick.errors import DeviceError
from slipstick.runtime.executor import Execution
from slipstick_rtl.link.protocol import (
    CRC_BYTES,
    FLAGS,
    HEADER_BYTES,
    REQUEST_START,
    Command,
    Space,
    Status,
    encode,
    session_of,
)

WORK = small_work()
OPERATIONS = ("infer", "write", "read", "write_program", "identify")


def schedules_of(*faults: Fault) -> st.SearchStrategy[dict[int, list[Injection]]]:
    """Faults at some of the portions that hosts send and receive."""
    injections = st.builds(
        Injection,
        fault=st.sampled_from(faults),
        place=st.integers(0, (1 << 16) - 1),
        length=st.integers(1, 100),
        seed=st.integers(0, (1 << 30) - 1),
    )
    listed = st.lists(injections, min_size=1, max_size=3)
    return st.dictionaries(st.integers(0, 60), listed, max_size=8)


schedules = schedules_of(*Fault)
operations = st.lists(st.sampled_from(OPERATIONS), min_size=1, max_size=6)


@pytest.fixture
def board() -> ModelBoard:
    return ModelBoard(HARDWARE)


@pytest.fixture(scope="module")
def simulated():
    board = SimulatedBoard(HARDWARE)
    yield board
    board.close()


@pytest.mark.parametrize(("name", "faults"), [("model", 100), ("sim", 20)])
def test_faults_of_every_kind(name: str, faults: int, simulated: SimulatedBoard) -> None:
    board = simulated if name == "sim" else open_board(name, HARDWARE)
    torment(FaultSuite(board, WORK, seed=5), faults)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.thorough) if name == "streamed" else name
        for name in HARDWARE_OF
    ],
)
def test_faults_of_every_kind_on_other_hardware(name: str) -> None:
    """The compact engine; a network that is streamed."""
    work = small_work(hardware=HARDWARE_OF[name])
    assert work.program.is_streamed == (name == "streamed")
    with closing(open_board(name, HARDWARE_OF[name])) as board:
        torment(FaultSuite(board, work, seed=6), 10)


def torment(suite: FaultSuite, faults: int) -> None:
    """So many faults of every kind; all that hosts were told is right."""
    tally = suite.run(faults)
    assert passed(figures(suite, tally)), (tally.wrong, tally.unrecovered, tally.failed)
    assert tally.right.total() > 0 and len(tally.result_seconds) > 0
    assert set(tally.failed) <= {*CODES, "HOST_DIED"}
    assert tally.longest_seconds < 30
    assert suite.line.counts.total() >= len(Fault) * faults


def misbehaves(board: Board, schedule: dict, names: list[str]) -> list[str]:
    """Returns what goes wrong if these faults come while a host does this."""
    board.power_cycle()
    suite = FaultSuite(board, WORK, seed=1, plan=ScheduledPlan(schedule))
    for name in names:
        suite.attempt(name, getattr(suite, name))
    suite.line.calm()
    suite.recover()
    tally = suite.tally
    strange = [code for code in tally.failed if code not in (*CODES, "HOST_DIED")]
    return tally.wrong + tally.unrecovered + strange


@settings(max_examples=150, deadline=None, derandomize=True)
@given(schedules, operations)
def test_any_faults_on_the_model(schedule: dict, names: list[str]) -> None:
    assert not misbehaves(ModelBoard(HARDWARE), schedule, names)


def test_any_faults_on_the_gateware(simulated: SimulatedBoard) -> None:
    @settings(max_examples=50, deadline=None, derandomize=True)
    @given(schedules, operations)
    def holds(schedule: dict, names: list[str]) -> None:
        assert not misbehaves(simulated, schedule, names)

    holds()


def test_the_suite_finds_what_sessions_prevent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without sessions a reset board tells lies; without a reset none are found."""
    # a queue that opens no session, and only asks which number comes next
    begin = RequestQueue._begin
    monkeypatch.setattr(
        RequestQueue, "_begin", lambda queue: setattr(queue, "_begun", True) or begin(queue)
    )
    schedule, names = find(
        st.tuples(schedules_of(Fault.FLIP, Fault.DROP, Fault.BOARD_RESET), operations),
        lambda drawn: bool(misbehaves(ModelBoard(HARDWARE), *drawn)),
        settings=settings(
            max_examples=2000,
            deadline=None,
            derandomize=True,
            phases=[Phase.generate, Phase.shrink],
            database=None,
        ),
    )
    found = [injection.fault for listed in schedule.values() for injection in listed]
    assert Fault.BOARD_RESET in found, (schedule, names)


@pytest.mark.parametrize("bus", [False, True])
@pytest.mark.parametrize("name", ["model", "sim"])
def test_hosts_that_share_a_port(name: str, bus: bool, simulated: SimulatedBoard) -> None:
    board = simulated if name == "sim" else open_board(name, HARDWARE)
    tally = share(board, WORK, 11, hosts=3, operations=12, bus=bus)
    assert not tally.wrong
    assert set(tally.failed) <= set(CODES) and tally.failed["SESSION_LOST"]
    assert tally.right["inference"] and tally.sessions > 3


@pytest.mark.parametrize("host_dies", [True, False])
@pytest.mark.parametrize(("name", "step"), [("model", 7), ("sim", 101)])
def test_interrupted_at_every_place(
    name: str, step: int, host_dies: bool, simulated: SimulatedBoard
) -> None:
    board = simulated if name == "sim" else open_board(name, HARDWARE)
    told, after = [], 0
    while (said := interrupt(board, WORK, after, host_dies=host_dies)) != "finished":
        told.append(said)
        after += step
    program = WORK.program
    loaded = sum(len(image.data) for image in program.images)
    assert after > loaded + 2 * program.transferred().uploaded
    assert set(told) <= ({"died"} if host_dies else {"SESSION_LOST", "RUN_STOPPED", "right"})


def test_a_frame_within_a_payload(simulated: SimulatedBoard) -> None:
    """A payload may hold whole frames; the loss of one byte makes a board see the inner one."""
    place = bytes([Space.ACTIVATIONS, 0, 0, 0])
    inner = encode(REQUEST_START, Command.WRITE, 0, place + b"lies")
    outer = place[:1] + bytes([64, 0, 0]) + inner
    for board in (ModelBoard(HARDWARE), simulated):
        board.power_cycle()
        line = board.transport
        # without a session the attack succeeds
        line.send(encode(REQUEST_START, Command.WRITE, 0, outer)[1:])
        read = encode(REQUEST_START, Command.READ, 1, place + b"\4\0")
        line.receive(99, 0.1)
        board.forget()
        line.send(read)
        assert line.receive(99, 0.1)[5:9] == b"lies"
        # in a session it does not
        faulty = FaultyTransport(line, plan := RandomPlan(1))
        device = LinkDevice(faulty, configuration=HARDWARE, patience=board.patience)
        device.write(Space.ACTIVATIONS, 0, b"true")
        plan.draw = lambda: [Injection(Fault.DROP)]  # the first byte of each portion
        with pytest.raises(LinkError):
            device.write(Space.ACTIVATIONS, 64, inner)
        faulty.calm()
        assert device.read(0, 4) == b"true"


def test_an_answer_within_an_answer(board: ModelBoard) -> None:
    """Memory may hold what looks like the answer that a host waits for."""
    device = LinkDevice(board.transport, configuration=HARDWARE, patience=board.patience)
    device.write(Space.ACTIVATIONS, 0, bytes(range(16)))
    for sequence in range(256):
        lie = encode(0x5A, Status.OK, sequence, b"lies")
        board.core.write(Space.ACTIVATIONS, 100 + 13 * sequence, lie)
    plan = ScheduledPlan({1: [Injection(Fault.DROP)]})
    device = LinkDevice(
        FaultyTransport(board.transport, plan), configuration=HARDWARE, patience=board.patience
    )
    data = device.read(100, 13 * 256)
    assert data == board.core.read(100, 13 * 256)
    assert device.read(0, 4) == bytes(range(4))


def test_sessions_have_one_seal_each() -> None:
    seals = [0, 1, 0xFFFFFFFF, *random.Random(1).sample(range(1 << 32), 500)]
    assert session_of(0) == 0
    assert len({session_of(seal) for seal in seals}) == len(seals)


def test_answers_to_a_host_before_are_no_answers(board: ModelBoard) -> None:
    """Whatever number the new host's requests begin with."""
    board.core.write(Space.ACTIVATIONS, 0, b"old data")
    board.core.write(Space.ACTIVATIONS, 100, b"new data")
    read = bytes([Space.ACTIVATIONS, 0, 0, 0, 8, 0])
    for sequence in range(256):
        board.transport.send(encode(REQUEST_START, Command.READ, sequence, read))
    # too many answers for one silence: a line that is slow to begin
    stall = ScheduledPlan({0: [Injection(Fault.STALL, place=1 << 15)]})
    late = FaultyTransport(board.transport, stall, idle=board.idle)
    late.send(b"\0")
    patience = Patience(timeout_seconds=1.0, silence_seconds=0.0)
    device = LinkDevice(late, configuration=board.configuration, patience=patience)
    assert device.read(100, 8) == b"new data"


def test_a_run_that_was_reset_is_no_result() -> None:
    """A network has several runs: each is asked whether it came to its end."""
    hardware = HARDWARE_OF["streamed"]
    work, board = small_work(hardware=hardware), ModelBoard(hardware)
    run, resets = board.core.run, [True]

    def run_and_reset(pcs: Sequence[int], clear: bool) -> None:
        run(pcs, clear)
        if resets:
            resets.pop()
            board.core.reset()

    board.core.run = run_and_reset  # pyright: ignore[reportAttributeAccessIssue]
    execution = Execution(work.program, LinkDevice(board.transport, configuration=hardware))
    message = "RUN_STOPPED: .* must complete [1-9].*, not 0 matrix"
    with pytest.raises(LinkError, match=message) as caught:
        execution.infer(work.feeds[0])
    assert caught.value.code == "RUN_STOPPED"
    values = execution.infer(work.feeds[0])
    assert (values["classes"] == work.expected[0]["classes"]).all()


class DeafOnce:
    """Loses the first answer to a request of a kind."""

    def __init__(self, board: ModelBoard, command: Command) -> None:
        self._inner = board.transport
        self._command, self._lose = command, True

    def send(self, data: bytes) -> None:
        self._inner.send(data)
        start = 0
        while start < len(data) and data[start] == REQUEST_START:
            command, length = data[start + 1] & ~FLAGS, data[start + 3] | data[start + 4] << 8
            start += HEADER_BYTES + length + CRC_BYTES
            if self._lose and command == self._command:
                self._inner.receive(1 << 10, 0)
                self._lose = False

    def receive(self, count: int, timeout_seconds: float) -> bytes:
        return self._inner.receive(count, timeout_seconds)

    def close(self) -> None:
        self._inner.close()


def test_a_run_without_an_answer_is_asked_again_and_run_once(board: ModelBoard) -> None:
    runs, run = [], board.core.run

    def count(pcs: Sequence[int], clear: bool) -> None:
        runs.append(pcs)
        run(pcs, clear)

    board.core.run = count  # pyright: ignore[reportAttributeAccessIssue]
    line = DeafOnce(board, Command.RUN_GET)
    execution = Execution(WORK.program, LinkDevice(line, configuration=board.configuration))
    values = execution.infer(WORK.feeds[1])
    assert (values["classes"] == WORK.expected[1]["classes"]).all()
    assert len(runs) == 1


def test_a_batch_with_lost_answers_is_whole(board: ModelBoard) -> None:
    """Images one behind the other; some answers never come, and their images are run again."""

    class Deaf(DeafOnce):
        def send(self, data: bytes) -> None:
            self._lose = draw.random() < 0.2
            super().send(data)

    for seed in range(20):
        draw = random.Random(seed)
        line = Deaf(board, Command.RUN_GET)
        execution = Execution(WORK.program, LinkDevice(line, configuration=board.configuration))
        order = [draw.randrange(len(WORK.feeds)) for _ in range(12)]
        names = WORK.feeds[0]
        inputs = {name: np.concatenate([WORK.feeds[k][name] for k in order]) for name in names}
        values = execution.infer_batch(inputs)
        expected = np.concatenate([WORK.expected[k]["classes"] for k in order])
        assert (values["classes"] == expected).all()


def test_unknown_boards_are_refused() -> None:
    with pytest.raises(DeviceError, match="must be one of model, sim, compact, streamed, not 'x'"):
        open_board("x", HARDWARE)
