"""Threads that share a session, and sessions that share a device: no result is another's."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest
from random_networks import NetworkBuilder
from slipstick.compiler import compile_graph
from slipstick.devices import Device, open_device
from slipstick.errors import DeviceError
from slipstick.examples.digits import MODEL, load_digits
from slipstick.program import Program
from slipstick.session import InferenceSession
from slipstick.targets import find_target

TARGET = "sim-small"
THREADS, RUNS = 6, 20


def random_program(seed: int) -> Program:
    builder = NetworkBuilder(seed, 6, 5, 3)
    builder.same_conv2d(3, 8)
    builder.fully_connected(10)
    return compile_graph(builder.graph(), find_target(TARGET).configuration)


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    return load_digits()[2][: THREADS * RUNS]


def at_once(work: Callable[[int], np.ndarray]) -> list[np.ndarray]:
    """Each thread does every so many-th piece of work."""
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(work, range(THREADS * RUNS)))


@pytest.mark.parametrize("device", ["model", "sim"])
def test_threads_share_a_session(device: str, images: np.ndarray) -> None:
    count = THREADS * (RUNS if device == "model" else 4)
    with InferenceSession(MODEL, device, TARGET) as session:
        name = session.get_inputs()[0].name
        wanted = [session.run(None, {name: image[None]})[0] for image in images[:count]]
        with ThreadPoolExecutor(THREADS) as pool:
            made = list(pool.map(lambda at: session.run(None, {name: at[None]})[0], images[:count]))
    np.testing.assert_array_equal(np.concatenate(made), np.concatenate(wanted))


def test_threads_run_batches_of_one_session(images: np.ndarray) -> None:
    with InferenceSession(MODEL, "model", TARGET) as session:
        name = session.get_inputs()[0].name
        (wanted,) = session.run(None, {name: images})
        made = at_once(lambda at: session.run(None, {name: np.roll(images, at, 0)[:9]})[0])
    for at, rows in enumerate(made):
        np.testing.assert_array_equal(rows, np.roll(wanted, at, 0)[:9])


def feeds_of(program: Program, seed: int, count: int = 1) -> dict[str, np.ndarray]:
    (name,) = program.inputs
    shape = (count, *program.tensors[name].shape[1:])
    codes = np.random.default_rng(seed).integers(-128, 128, shape)
    return {name: codes.astype(np.int8)}


def alone(program: Program, feeds: dict[str, np.ndarray]) -> np.ndarray:
    """Of a device that nobody else uses."""
    with InferenceSession(program, "model") as session:
        return session.run(None, feeds)[0]


@pytest.mark.parametrize("device", ["model", "sim"])
def test_two_sessions_take_turns_on_one_device(device: str) -> None:
    """The other one's weights are in its memories each time."""
    programs = [random_program(seed) for seed in (1, 2)]
    with closing(open_device(device, find_target(TARGET).configuration)) as shared:
        sessions = [InferenceSession(program, shared) for program in programs]
        for turn in range(4):
            for session, program in zip(sessions, programs, strict=True):
                for count in (1, 3):
                    feeds = feeds_of(program, turn, count)
                    np.testing.assert_array_equal(
                        session.run(None, feeds)[0], alone(program, feeds)
                    )


def test_threads_of_two_sessions_share_a_device() -> None:
    programs = [random_program(seed) for seed in (1, 2)]
    feeds = [[feeds_of(program, seed) for seed in range(RUNS)] for program in programs]
    wanted = [
        [alone(program, one) for one in own] for program, own in zip(programs, feeds, strict=True)
    ]
    with closing(open_device("model", find_target(TARGET).configuration)) as shared:
        sessions = [InferenceSession(program, shared) for program in programs]

        def work(at: int) -> np.ndarray:
            which, turn = at % 2, at // 2 % RUNS
            return sessions[which].run(None, feeds[which][turn])[0]

        for at, made in enumerate(at_once(work)):
            np.testing.assert_array_equal(made, wanted[at % 2][at // 2 % RUNS])


class Interrupted(Exception):
    """Of a thread that is stopped while its run goes on."""


def test_a_run_that_was_left_does_not_reach_the_other_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    programs = [random_program(seed) for seed in (1, 2)]
    with closing(open_device("sim", find_target(TARGET).configuration)) as shared:
        first, second = (InferenceSession(program, shared) for program in programs)
        feeds = [feeds_of(program, 3) for program in programs]

        def leave(request: object) -> None:
            raise Interrupted

        with monkeypatch.context() as patch:
            patch.setattr(shared, "answer", leave)
            with pytest.raises(Interrupted):
                first.run(None, feeds[0])
        for session, program, one in (
            (second, programs[1], feeds[1]),
            (first, programs[0], feeds[0]),
        ):
            np.testing.assert_array_equal(session.run(None, one)[0], alone(program, one))


def test_closing_waits_for_those_who_run(images: np.ndarray) -> None:
    session = InferenceSession(MODEL, "model", TARGET)
    name = session.get_inputs()[0].name
    (wanted,) = session.run(None, {name: images})

    def work(at: int) -> np.ndarray | None:
        if at == THREADS * 3:
            session.close()
        try:
            return session.run(None, {name: images[at : at + 1]})[0]
        except DeviceError as error:
            assert "is closed" in str(error)
            return None

    made = at_once(lambda at: np.zeros(0) if (rows := work(at)) is None else rows)
    assert any(not rows.size for rows in made) and made[0].size
    for at, rows in enumerate(made):
        assert not rows.size or (rows == wanted[at : at + 1]).all()


def test_a_device_closed_under_a_session_is_an_error() -> None:
    program = random_program(1)
    shared: Device = open_device("sim", find_target(TARGET).configuration)
    session = InferenceSession(program, shared)
    shared.close()
    with pytest.raises(DeviceError):
        session.run(None, feeds_of(program, 1))
