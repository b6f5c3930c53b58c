"""A board of the pool under a real server is killed while requests run."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np
import pytest
from server_process import INFER, SECONDS, Served, sample
from slipstick import InferenceSession
from slipstick.benchmarks.cluster.board_process import BoardProcess
from slipstick.targets import find_target

TARGET = "sim-medium"
CLIENTS = 6
DISTINCT = 48
BEFORE, AFTER = 60, 300
"""Answers before the board is killed, and after that."""


@pytest.fixture
def boards() -> Iterator[list[BoardProcess]]:
    with ExitStack() as stack:
        made = []
        for _ in range(2):
            made.append(BoardProcess(find_target(TARGET).configuration))
            stack.callback(made[-1].close)
        yield made


@pytest.fixture
def served(digits_path: Path, boards: list[BoardProcess]) -> Iterator[Served]:
    device = "pool:" + ",".join(board.device for board in boards)
    with closing(Served(f"digits={digits_path}", "--target", TARGET, "--device", device)) as made:
        yield made


class Clients:
    """Threads that ask for one image after the other, each over a connection of its own.

    Parameters
    ----------
    served : Served
    requests : list of (bytes, dict of str)
        Body and headers.
    expected : array
        Row number i: the codes of request number i.
    """

    def __init__(self, served: Served, requests: list, expected: np.ndarray) -> None:
        self._served, self._requests, self._expected = served, requests, expected
        self._end = threading.Event()
        self._counts = [0] * CLIENTS
        self.wrong: list[str] = []
        self._threads = [
            threading.Thread(target=self._run, args=(number,)) for number in range(CLIENTS)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def answered(self) -> int:
        """Right answers."""
        return sum(self._counts)

    def wait(self, answers: int) -> None:
        """Until so many more are there."""
        goal, deadline = self.answered + answers, time.monotonic() + SECONDS
        while self.answered < goal and not self.wrong:
            assert time.monotonic() < deadline, f"{self.answered} of {goal} answers are there"
            time.sleep(0.01)

    def end(self) -> None:
        """Waits for the answers to all that was asked."""
        self._end.set()
        for thread in self._threads:
            thread.join(SECONDS)
            assert not thread.is_alive(), "a request is not answered"

    def _run(self, client: int) -> None:
        number = client
        try:
            with closing(self._served.connect()) as connection:
                while not self._end.is_set():
                    connection.request("POST", INFER, *self._requests[number % DISTINCT])
                    response = connection.getresponse()
                    data = response.read()
                    codes = self._expected[number % DISTINCT].tobytes()
                    if response.status == 200 and data.endswith(codes):
                        self._counts[client] += 1
                    else:
                        self.wrong.append(f"request {number}: {response.status} {data[:300]!r}")
                    number += CLIENTS
        except Exception as error:
            self.wrong.append(f"request {number}: {error!r}")


def get(served: Served, place: str) -> str:
    with closing(served.connect()) as connection:
        connection.request("GET", place)
        return connection.getresponse().read().decode()


def metrics(served: Served) -> str:
    return get(served, "/metrics")


def test_no_request_is_lost_or_wrong(
    served: Served, boards: list[BoardProcess], bodies, digits_path: Path
) -> None:
    with InferenceSession(digits_path, "model", TARGET) as golden:
        shape = golden.get_inputs()[0].shape[1:]
        x = np.random.default_rng(26).integers(-128, 128, (DISTINCT, *shape)).astype(np.int8)
        (expected,) = golden.run(None, {bodies.input: x})
    assert len(np.unique(expected, axis=0)) > DISTINCT // 2
    binary = {"binary_data_output": True}
    requests = [bodies.binary(x[k : k + 1], parameters=binary) for k in range(DISTINCT)]
    clients = Clients(served, requests, expected)
    lost, alive = (board.device for board in boards)
    try:
        clients.wait(BEFORE)
        boards[0].kill()
        # a request may be on its way to it; then its silence has to last
        deadline = time.monotonic() + SECONDS
        while not sample(metrics(served), "slipstick_board_state", device=lost, state="failed"):
            assert time.monotonic() < deadline, "the board is not lost"
            clients.wait(20)
        clients.wait(AFTER)
    finally:
        clients.end()
    assert clients.wrong == []
    text = metrics(served)
    assert sample(text, "slipstick_requests_total") == clients.answered >= BEFORE + AFTER
    assert "slipstick_request_errors_total{" not in text
    assert sample(text, "slipstick_board_state", device=lost, state="failed") == 1
    assert sample(text, "slipstick_board_failures_total", device=lost) == 1
    assert sample(text, "slipstick_board_state", device=alive, state="failed") == 0
    assert sample(text, "slipstick_board_failures_total", device=alive) == 0
    assert sample(text, "slipstick_retried_images_total") > 0
    told = {board["name"]: board for board in json.loads(get(served, "/page/status"))["boards"]}
    assert told[lost]["state"] == "failed" and told[lost]["error"] and told[alive]["error"] == ""
    assert get(served, "/v2/health/ready") == '{"ready":true}'
