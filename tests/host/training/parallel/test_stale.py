"""Bounded staleness: orders of arrival, their record, and its replay."""

from pathlib import Path

import numpy as np
import pytest
from slipstick.errors import InputError
from slipstick.training.parallel.crew import ShuffledCrew, ThreadCrew
from slipstick.training.parallel.jobs import Job, JobResult
from slipstick.training.parallel.records import Applied, Record, decode_record, read_record
from slipstick.training.parallel.stale import ReplayTrainer, StaleTrainer
from training_crews import (
    INITIAL,
    NETWORK,
    SETUP,
    SHIFT,
    FatefulWorker,
    Gates,
    alone,
    batches,
    broken,
    check_equal,
    every,
    fine,
    learn,
)


def stale(crew, bound: int) -> StaleTrainer:
    return StaleTrainer(NETWORK, SETUP.arithmetic(), INITIAL, crew=crew, bound=bound)


def replayed(record: Record, steps: int) -> dict[str, np.ndarray]:
    trainer = ReplayTrainer(NETWORK, SETUP.arithmetic(), INITIAL, record=record)
    learn(trainer, steps)
    return trainer.arrays()


@pytest.mark.parametrize("bound", [0, 1, 4, 9])
@pytest.mark.parametrize("seed", [0, 1])
def test_random_orders_stay_within_the_bound_and_replay(bound: int, seed: int) -> None:
    trainer = stale(ShuffledCrew(SETUP.trainer(), 5, seed), bound)
    learn(trainer, 16)
    record = trainer.record()
    assert len(trainer.ages) == 16 and max(trainer.ages) <= bound
    assert bound == 0 or max(trainer.ages) > 0
    check_equal(trainer.arrays(), replayed(decode_record(record.encode()), 16))
    again = stale(ShuffledCrew(SETUP.trainer(), 5, seed), bound)
    learn(again, 16)
    check_equal(again.arrays(), trainer.arrays())


def test_without_staleness_it_is_a_trainer() -> None:
    trainer = stale(ShuffledCrew(SETUP.trainer(), 4, 0), 0)
    learn(trainer, 5)
    check_equal(trainer.arrays(), alone(5))
    assert [entry.batch for entry in trainer.record().entries] == [0, 1, 2, 3, 4]


class GatedWorker(FatefulWorker):
    """Waits for the gate of its batch."""

    def __init__(self, gates: Gates, labels: dict[bytes, int]) -> None:
        super().__init__(fine)
        self._gates, self._labels = gates, labels

    def do(self, job: Job) -> JobResult:
        self._gates.pass_through(self._labels[job.images.tobytes()])
        return super().do(job)


def test_threads_of_any_speed() -> None:
    """Batch 0 is slow: others arrive before it, and wait for it at the bound."""
    gates, data = Gates(), batches(6)
    labels = {batch.images.tobytes(): number for number, batch in enumerate(data)}
    with ThreadCrew([GatedWorker(gates, labels) for _ in range(3)], patience=60) as crew:
        trainer = stale(crew, 2)
        for batch in data[:3]:
            trainer.step(batch.images, batch.labels, SHIFT)
        gates.wait_for([0, 1, 2])
        gates.open(2)
        trainer.step(data[3].images, data[3].labels, SHIFT)
        assert trainer._applied == [Applied(2, 0)]
        gates.wait_for([0, 1, 2, 3])
        gates.open(3, 1)
        # two of the three must have been applied before 0's turn is over
        gates.open(0)
        gates.open(4, 5)
        for batch in data[4:]:
            trainer.step(batch.images, batch.labels, SHIFT)
        record = trainer.record()
    assert max(trainer.ages) <= 2
    check_equal(trainer.arrays(), replayed(record, 6))


def test_an_arrival_waits_where_another_one_would_become_too_old() -> None:
    gates, data = Gates(), batches(4)
    labels = {batch.images.tobytes(): number for number, batch in enumerate(data)}
    with ThreadCrew([GatedWorker(gates, labels) for _ in range(2)], patience=60) as crew:
        trainer = stale(crew, 1)
        for batch in data[:2]:
            trainer.step(batch.images, batch.labels, SHIFT)
        gates.wait_for([0, 1])
        gates.open(1)
        trainer.step(data[2].images, data[2].labels, SHIFT)
        # 0 is one version old now: 2 must not be applied before it
        gates.wait_for([2])
        gates.open(2, 3)
        while trainer._arrivals.empty():
            pass
        gates.open(0)
        trainer.step(data[3].images, data[3].labels, SHIFT)
        record = trainer.record()
    assert [entry.batch for entry in record.entries] == [1, 0, 2, 3]
    check_equal(trainer.arrays(), replayed(record, 4))


def test_workers_that_fail_change_an_order_that_replays() -> None:
    workers = [FatefulWorker(fate) for fate in (broken, every(2), fine)]
    with ThreadCrew(workers, patience=0.2) as crew:
        trainer = stale(crew, 3)
        learn(trainer, 10)
        record, found = trainer.record(), trainer.arrays()
    check_equal(found, replayed(record, 10))


def test_checkpoints_go_on() -> None:
    whole = stale(ShuffledCrew(SETUP.trainer(), 3, 7), 2)
    learn(whole, 4)
    kept = whole.arrays()
    other = stale(ShuffledCrew(SETUP.trainer(), 3, 1), 2)
    other.restore(kept)
    check_equal(other.arrays(), kept)
    learn(other, 4)
    record = other.record()
    assert sorted(entry.batch for entry in record.entries) == list(range(8))
    trainer = ReplayTrainer(NETWORK, SETUP.arithmetic(), INITIAL, record=record)
    learn(trainer, 4)
    learn(trainer, 4)
    check_equal(other.arrays(), trainer.arrays())


def test_records_are_files(tmp_path: Path) -> None:
    record = Record(2, (Applied(1, 0), Applied(0, 1), Applied(2, 2)))
    record.write(tmp_path / "order")
    assert read_record(tmp_path / "order") == record
    assert (tmp_path / "order").stat().st_size == 17 + 5 * 3
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_record(tmp_path / "missing")
    (tmp_path / "other").write_bytes(b"x" * 20)
    with pytest.raises(InputError, match="other: a record must begin with"):
        read_record(tmp_path / "other")


@pytest.mark.parametrize(
    ("bound", "entries", "message"),
    [
        (256, (), "0 to 255 steps old, not 256"),
        (1, (Applied(0, 0), Applied(1, 1), Applied(2, 2)), "2 must be at most 1 steps old, not 2"),
        (3, (Applied(0, 1),), "gradient 0 must be at most 0 steps old, not 1"),
        (3, (Applied(1, 0),), "each batch must be there once"),
        (3, (Applied(0, 0), Applied(0, 0)), "each batch must be there once"),
    ],
)
def test_records_that_cannot_be(bound: int, entries, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Record(bound, entries)


def test_random_bytes_are_no_record() -> None:
    data = Record(2, tuple(Applied(number, 0) for number in range(20))).encode()
    generator = np.random.default_rng(3)
    for _ in range(300):
        broken = bytearray(data)
        broken[int(generator.integers(len(data)))] ^= int(generator.integers(1, 256))
        if generator.random() < 0.3:
            broken = broken[: int(generator.integers(len(data)))]
        with pytest.raises(InputError):
            decode_record(bytes(broken))


def test_a_replay_ends_with_its_record() -> None:
    trainer = ReplayTrainer(
        NETWORK, SETUP.arithmetic(), INITIAL, record=Record(0, (Applied(0, 0),))
    )
    with pytest.raises(InputError, match="the record has 1 batches"):
        learn(trainer, 2)
