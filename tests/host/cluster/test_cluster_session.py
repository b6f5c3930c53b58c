"""Images on the boards of a cluster: equal to one device, whatever fails meanwhile."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import failing_devices
import numpy as np
import pytest
from slipstick.cluster.board import Opener
from slipstick.cluster.opening import open_cluster_session
from slipstick.cluster.session import ClusterSession
from slipstick.devices import open_device
from slipstick.errors import DeviceError
from slipstick.examples.digits import MODEL, load_digits
from slipstick.session import InferenceSession

COUNT = 320


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    return np.concatenate([load_digits()[2]] * 2)[:COUNT]


@pytest.fixture(scope="module")
def expected(images: np.ndarray) -> np.ndarray:
    with InferenceSession(MODEL, "model") as session:
        return session.run(None, {session.get_inputs()[0].name: images})[0]


def run(
    processes: int,
    images: np.ndarray,
    *,
    opener: Opener = open_device,
    advance: Callable[[ClusterSession], object] = bool,
) -> tuple[np.ndarray, ClusterSession]:
    """Outputs, the session's figures, and the workers' own."""
    opened = open_cluster_session(Path(MODEL), f"local:{processes}", "model", None, opener=opener)
    with opened as session:
        feed = {session.program.inputs[0]: images}
        told = []

        def note(count: int) -> None:
            told.append(count)
            advance(session)

        outputs = session.run_batch(None, feed, note)[0]
        assert sum(told) == len(images)
        return outputs, session


class Killer:
    """Ends a worker process with signal 9, once."""

    def __init__(self) -> None:
        self.killed = 0

    def __call__(self, session: ClusterSession) -> None:
        if not self.killed:
            pids: Any = session.cluster.client.run(os.getpid)
            self.killed = min(pids.values())
            os.kill(self.killed, signal.SIGKILL)


def test_outputs_are_those_of_one_device(images, expected, capsys):
    outputs, session = run(2, images)
    np.testing.assert_array_equal(outputs, expected)
    assert session.boards == 2 and session.retried == 0 and session.busy_seconds > 0
    assert session.last_cycles is None
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "dashboard is at http://127.0.0.1:" in said


@pytest.mark.parametrize("processes", (1, 2))
def test_a_killed_worker_loses_nothing(processes, images, expected):
    killer = Killer()
    outputs, session = run(processes, images, opener=failing_devices.open_slow, advance=killer)
    np.testing.assert_array_equal(outputs, expected)
    assert killer.killed and 0 < session.retried < COUNT


def test_devices_that_fail_now_and_then(images, expected):
    outputs, session = run(2, images, opener=failing_devices.open_failing)
    np.testing.assert_array_equal(outputs, expected)
    assert session.retried > 0


def test_devices_that_always_fail(images):
    with pytest.raises(
        DeviceError,
        match=r"images \d+ to \d+ failed 5 times, .* model of .* the answer makes no sense",
    ):
        run(2, images, opener=failing_devices.open_broken)


def test_devices_that_are_not_there(images):
    with pytest.raises(DeviceError, match="device model is not there"):
        run(2, images, opener=failing_devices.open_absent)
