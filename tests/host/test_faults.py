"""Hosts on lines that fail: what they are told is right, or an error with a code."""

import pytest
from slipstick.devices.exchange import LinkError, Patience
from slipstick.devices.faults import SPOILING, Fault, FaultyTransport
from slipstick.devices.link import LinkDevice
from slipstick.devices.transport import LoopbackTransport
from slipstick.errors import DeviceError
from slipstick.execution import Execution
from slipstick.fault_benchmark import digits, figures, passed
from slipstick.fault_boards import ModelBoard, SimulatedBoard, open_board
from slipstick.fault_suite import FaultSuite
from slipstick_rtl.link.protocol import REQUEST_START, Command, Space, encode


@pytest.fixture(scope="module")
def network():
    return digits()


@pytest.fixture
def board(network):
    return ModelBoard(network[0].hardware)


class Echo:
    """An endpoint that gives back what it gets."""

    def feed(self, data: bytes) -> bytes:
        return data


@pytest.mark.parametrize(("name", "faults"), [("model", 60), ("sim", 8)])
def test_faults_of_every_kind(network, name: str, faults: int) -> None:
    program, feeds, expected = network
    board = open_board(name, program.hardware)
    suite = FaultSuite(board, program, feeds, expected, seed=5)
    tally = suite.run(faults)
    board.close()
    assert passed(figures(suite, tally)), (tally.wrong, tally.unrecovered, tally.failed)
    assert tally.right.total() > 0 and len(tally.recovery_seconds) > 0
    assert tally.longest_seconds < 30
    assert suite.line.counts.total() >= len(Fault) * faults


@pytest.mark.parametrize("fault", SPOILING)
def test_each_fault_changes_bytes(fault: Fault) -> None:
    sent = bytes(range(256))
    line = FaultyTransport(LoopbackTransport(Echo()), seed=2, rates={fault: 0.5})
    changed = 0
    for _ in range(50):
        line.send(sent)
        got = b""
        while data := line.receive(1 << 10, 0.1):
            got += data
        changed += got != sent
    assert changed >= 25
    assert set(line.counts) == {fault} and line.counts[fault] >= changed


def test_a_stall_holds_everything_back_and_loses_nothing() -> None:
    passed_seconds: list[float] = []
    line = FaultyTransport(
        LoopbackTransport(Echo()),
        seed=1,
        rates={Fault.STALL: 1.0},
        stall_seconds=5.0,
        idle=passed_seconds.append,
    )
    line.send(b"abc")
    assert line.receive(3, 1e-3) == b""
    line.rates = {}
    assert line.receive(3, 10.0) == b"abc"
    assert 0 < line.stalled_seconds < 5
    assert sum(passed_seconds) == pytest.approx(line.stalled_seconds)
    assert line.counts == {Fault.STALL: 1}


def test_a_disconnection_lasts_until_the_reconnection() -> None:
    line = FaultyTransport(LoopbackTransport(Echo()), seed=1, rates={Fault.DISCONNECT: 1.0})
    for action in (lambda: line.send(b"abc"), lambda: line.send(b""), lambda: line.receive(1, 0.1)):
        with pytest.raises(LinkError, match="DISCONNECTED: the faulty line"):
            action()
    assert not line.connected
    line.calm()
    line.reconnect()
    line.receive(99, 0.1)
    line.send(b"abc")
    assert line.receive(3, 0.1) == b"abc"


def test_rates_are_checked() -> None:
    with pytest.raises(ValueError, match=r"the rate of FLIP must be within 0\.\.1, not 1\.5"):
        FaultyTransport(LoopbackTransport(Echo()), seed=1, rates={Fault.FLIP: 1.5})


def test_answers_to_a_host_before_are_no_answers(board: ModelBoard) -> None:
    """Whatever number the new host's requests begin with."""
    board.core.write(Space.ACTIVATIONS, 0, b"old data")
    board.core.write(Space.ACTIVATIONS, 100, b"new data")
    read = bytes([Space.ACTIVATIONS, 0, 0, 0, 8, 0])
    for sequence in range(256):
        board.transport.send(encode(REQUEST_START, Command.READ, sequence, read))
    # too many answers for one silence: a line that is slow to begin
    late = FaultyTransport(
        board.transport, seed=1, rates={Fault.STALL: 1.0}, stall_seconds=0.5, idle=board.idle
    )
    late.send(b"\0")
    late.rates = {}
    patience = Patience(timeout_seconds=1.0, silence_seconds=0.0)
    device = LinkDevice(late, configuration=board.configuration, patience=patience)
    assert device.read(100, 8) == b"new data"


class ResettingLine:
    """Another host stops the run as soon as it begins, some times."""

    def __init__(self, board: ModelBoard, resets: int) -> None:
        self._board = board
        self._resets = resets

    def send(self, data: bytes) -> None:
        self._board.transport.send(data)
        if self._resets and data[:2] == bytes([REQUEST_START, Command.RUN]):
            self._resets -= 1
            self._board.core.reset()

    def receive(self, count: int, timeout_seconds: float) -> bytes:
        return self._board.transport.receive(count, timeout_seconds)

    def close(self) -> None:
        self._board.transport.close()


def test_a_run_that_was_reset_is_no_result(network, board: ModelBoard) -> None:
    program, feeds, expected = network
    line = ResettingLine(board, resets=1)
    execution = Execution(program, LinkDevice(line, configuration=board.configuration))
    with pytest.raises(LinkError, match="RUN_STOPPED: .* completed 0 of [1-9]") as caught:
        execution.infer(feeds[0])
    assert caught.value.code == "RUN_STOPPED"
    values = execution.infer(feeds[0])
    assert all((values[name] == expected[0][name]).all() for name in program.outputs)


class DeafOnce:
    """Loses the answer to the first RUN."""

    def __init__(self, board: ModelBoard) -> None:
        self._inner = board.transport
        self._lose = True
        self.runs = 0

    def send(self, data: bytes) -> None:
        self._inner.send(data)
        if data[:2] == bytes([REQUEST_START, Command.RUN]):
            self.runs += 1
            if self._lose:
                self._inner.receive(1 << 10, 0)
            self._lose = False

    def receive(self, count: int, timeout_seconds: float) -> bytes:
        return self._inner.receive(count, timeout_seconds)

    def close(self) -> None:
        self._inner.close()


def test_a_run_without_an_answer_starts_from_its_inputs_again(network, board: ModelBoard) -> None:
    program, feeds, expected = network
    line = DeafOnce(board)
    execution = Execution(program, LinkDevice(line, configuration=board.configuration))
    values = execution.infer(feeds[1])
    assert all((values[name] == expected[1][name]).all() for name in program.outputs)
    assert line.runs == 2


def test_unknown_boards_are_refused(network) -> None:
    with pytest.raises(DeviceError, match="the board must be one of model, sim, not 'x'"):
        open_board("x", network[0].hardware)
    assert SimulatedBoard.stall_seconds > 0
