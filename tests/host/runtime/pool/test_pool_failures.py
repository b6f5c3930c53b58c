"""A pool whose boards die, hang or err: nothing is lost, doubled, swapped or wrong."""

import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from failing_boards import FailingRunner, Fate
from slipstick.devices import Device
from slipstick.errors import DeviceError, InputError
from slipstick.program import Program
from slipstick.runtime.arrivals import Ready
from slipstick.runtime.pool.board import BoardState
from slipstick.runtime.pool.execution import PoolExecution
from slipstick.runtime.pool.work import Batch, Work, WorkQueue
from slipstick.targets import find_target

CONFIGURATION = find_target("sim-small").configuration
PROGRAM = cast(
    Program, SimpleNamespace(name="fake", outputs=("y",), variables=(), batch=1, inputs=("x",))
)


@dataclass(eq=False)
class FakeDevice:
    configuration: Any = CONFIGURATION


def pool_of(fates: Sequence[Fate]) -> PoolExecution:
    devices = [cast(Device, FakeDevice()) for _ in fates]

    def reopen(number: int, broken: Device) -> Device:
        if fates[number].dead:
            raise DeviceError("still no answer")
        return broken

    return PoolExecution(
        PROGRAM,
        [f"board {number}" for number in range(len(fates))],
        devices,
        lambda number, device: FailingRunner(fates[number]),
        reopen,
        [FailingRunner(fate) for fate in fates],
    )


@pytest.fixture
def pool(request: pytest.FixtureRequest):
    made: list[PoolExecution] = []

    def make(*fates: Fate) -> PoolExecution:
        made.append(pool_of(fates))
        return made[-1]

    yield make
    for each in made:
        each.close()


def images(count: int, first: int = 0) -> np.ndarray:
    return np.arange(first, first + count)[:, np.newaxis]


def right(x: np.ndarray) -> np.ndarray:
    return 3 * x + 1


def test_boards_share_a_batch_by_their_rates(pool) -> None:
    fast, slow = Fate(seconds=0.2e-3), Fate(seconds=2e-3)
    made = pool(fast, slow)
    told: list[int] = []
    result = made.infer_batch({"x": images(1200)}, ("y",), told.append)
    assert np.array_equal(result["y"], right(images(1200))) and sum(told) == 1200
    assert fast.runs > 2 * slow.runs > 0
    assert made.retried == 0
    for board in made.boards():
        assert board.state is BoardState.IDLE and board.rate > 0 and not board.failures


@pytest.mark.parametrize(("count", "least", "most"), [(2000, 50, 256), (64, 4, 8), (3, 1, 1)])
def test_parts_of_a_batch_are_worth_their_cost(count: int, least: int, most: int) -> None:
    """20 ms each, if there are enough for four parts per board; boards of 2,500 images a second."""
    queue = WorkQueue()
    queue.boards.extend(_Steady() for _ in range(4))
    queue.working.update(range(4))
    batch = Batch({"x": images(count)}, ("y",))
    queue.add(batch)
    sizes = []
    while batch.remaining:
        work = queue.take(len(sizes) % 4)
        assert work is not None
        sizes.append(work.images)
    assert sum(sizes) == count
    assert least <= min(sizes[:-1]) and max(sizes) <= most


class _Steady:
    """A board whose rate is known."""

    def __init__(self) -> None:
        self.rate: float | None = 2500.0
        self.mark = 0.0

    def ahead_of(self, work: Work) -> tuple[int, int]:
        return 0, 0


@pytest.mark.parametrize("seed", range(3))
def test_errors_at_random(pool, seed: int) -> None:
    fates = [Fate(error_rate=rate, seed=seed) for rate in (0.02, 0.1, 0.02)]
    # slow, or it could take all images on a busy machine
    made = pool(Fate(seconds=0.5e-3), *fates)
    for start in (0, 500):
        result = made.infer_batch({"x": images(500, start)}, ("y",))
        assert np.array_equal(result["y"], right(images(500, start)))
    singles = [made.submit({"x": images(1, number)}) for number in range(300)]
    for number, future in enumerate(singles):
        assert np.array_equal(future.result(10)["y"], right(images(1, number)))
    assert made.retried > 0
    assert sum(board.failures for board in made.boards()) > 0


def test_board_dies_and_comes_back(pool) -> None:
    fates = [Fate(seconds=1e-3), Fate(seconds=1e-3)]
    made = pool(*fates)

    def kill() -> None:
        time.sleep(0.05)
        fates[0].dead = True

    killer = threading.Thread(target=kill)
    killer.start()
    result = made.infer_batch({"x": images(400)}, ("y",))
    killer.join()
    assert np.array_equal(result["y"], right(images(400)))
    dead, alive = made.boards()
    assert dead.state is BoardState.FAILED and "answer" in dead.error and dead.failures == 1
    assert alive.failures == 0
    fates[0].dead = False
    before, end = fates[0].runs, time.monotonic() + 10
    while fates[0].runs == before and time.monotonic() < end:
        made.infer_batch({"x": images(100)}, ("y",))
    assert made.boards()[0].state is not BoardState.FAILED and fates[0].runs > before


def test_others_compute_what_a_hung_board_has(pool) -> None:
    hung, alive = Fate(), Fate()
    made = pool(hung, alive)
    made.infer_batch({"x": images(64)}, ("y",))
    hung.hung.clear()
    start = time.monotonic()
    for first in (0, 100):
        result = made.infer_batch({"x": images(100, first)}, ("y",))
        assert np.array_equal(result["y"], right(images(100, first)))
    future = made.submit({"x": images(1)})
    assert np.array_equal(future.result(10)["y"], right(images(1)))
    assert time.monotonic() - start < 5
    hung.hung.set()


def test_all_boards_dead_is_an_error_that_names_them(pool) -> None:
    made = pool(Fate(), Fate())
    made.infer_batch({"x": images(8)}, ("y",))
    for board in made._boards:
        cast(FailingRunner, board._runner).fate.dead = True
    futures = [made.submit({"x": images(1)}) for _ in range(5)]
    with pytest.raises(DeviceError, match="none of 2 boards works: board 0: .*; board 1: .*answer"):
        made.infer_batch({"x": images(100)}, ("y",))
    for future in futures:
        with pytest.raises(DeviceError, match="answer"):
            future.result(20)


def test_image_that_fails_everywhere_is_its_own_error(pool) -> None:
    def wrong(values: dict[str, np.ndarray]) -> bool:
        return bool(values["x"].reshape(-1)[0] == 41)

    made = pool(*(Fate(wrong=wrong) for _ in range(3)))
    futures = [made.submit({"x": images(1, number)}) for number in range(60)]
    for number, future in enumerate(futures):
        if number == 41:
            with pytest.raises(DeviceError, match="likes this image"):
                future.result(20)
        else:
            assert np.array_equal(future.result(20)["y"], right(images(1, number)))


def test_stream_keeps_the_order(pool) -> None:
    fates = [Fate(seconds=1e-4, error_rate=0.03, seed=5), Fate(seconds=1e-3), Fate()]
    made = pool(*fates)
    found = [v["y"] for v in made.infer_stream(Ready({"x": images(1, k)} for k in range(400)))]
    assert np.array_equal(np.concatenate(found), right(images(400)))


def test_stream_that_is_left_early_leaves_the_boards_free(pool) -> None:
    made = pool(Fate(seconds=1e-3), Fate(seconds=1e-3))
    stream = made.infer_stream(Ready({"x": images(1, k)} for k in range(1000)))
    for number in range(5):
        assert np.array_equal(next(stream)["y"], right(images(1, number)))
    stream.close()
    result = made.infer_batch({"x": images(10)}, ("y",))
    assert np.array_equal(result["y"], right(images(10)))
    assert made.waiting == 0


def test_error_of_a_batch_drops_the_rest(pool) -> None:
    def wrong(values: dict[str, np.ndarray]) -> bool:
        return bool(values["x"].reshape(-1)[0] == 3)

    made = pool(Fate(wrong=wrong, seconds=1e-3))
    with pytest.raises(DeviceError, match="likes"):
        made.infer_batch({"x": images(500)}, ("y",))
    assert made.waiting == 0
    result = made.infer_batch({"x": images(10, 10)}, ("y",))
    assert np.array_equal(result["y"], right(images(10, 10)))


def test_bug_is_not_hidden(pool) -> None:
    class Buggy(FailingRunner):
        def infer_batch(self, inputs: Any, wanted: Any = None, advance: Any = int) -> Any:
            raise InputError("a bug")

    made = pool(Fate())
    made._boards[0]._runner = Buggy(Fate())
    with pytest.raises(InputError, match="a bug"):
        made.infer_batch({"x": images(10)}, ("y",))


def test_closed_pool(pool) -> None:
    made = pool(Fate(seconds=0.05))
    futures = [made.submit({"x": images(1, k)}) for k in range(40)]
    made.close()
    with pytest.raises(DeviceError, match="closed"):
        made.submit({"x": images(1)})
    done = 0
    for future in futures:
        try:
            future.result(5)
            done += 1
        except DeviceError as error:
            assert "closed" in str(error)
    assert done < 40


@pytest.mark.parametrize("seed", range(4))
def test_everything_at_once(pool, seed: int) -> None:
    """Boards that hang, die, err and return while batches, streams and single images run."""
    chance = random.Random(seed)
    fates = [Fate(seconds=chance.choice([0, 1e-4, 5e-4]), seed=seed * 10 + k) for k in range(4)]
    made = pool(*fates)
    stopped = threading.Event()

    def disturb() -> None:
        while not stopped.wait(chance.random() * 0.02):
            fate = chance.choice(fates[1:])
            kind = chance.randrange(3)
            if kind == 0:
                fate.dead = not fate.dead
            elif kind == 1:
                fate.error_rate = chance.choice([0.0, 0.05])
            else:
                fate.hung.clear() if fate.hung.is_set() else fate.hung.set()

    def batches() -> None:
        for number in range(10):
            x = images(chance.randrange(1, 120), 1000 * number)
            told.append(np.array_equal(made.infer_batch({"x": x}, ("y",))["y"], right(x)))

    def singles() -> None:
        asked = [made.submit({"x": images(1, -k)}) for k in range(300)]
        for k, future in enumerate(asked):
            told.append(np.array_equal(future.result(30)["y"], right(images(1, -k))))

    told: list[bool] = []
    disturber = threading.Thread(target=disturb)
    disturber.start()
    workers = [threading.Thread(target=work) for work in (batches, singles)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    stopped.set()
    disturber.join()
    for fate in fates:
        fate.dead, fate.error_rate = False, 0.0
        fate.hung.set()
    assert len(told) == 310 and all(told)
