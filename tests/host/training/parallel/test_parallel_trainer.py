"""Data parallel: the bits of one trainer, whatever becomes of the workers."""

import threading
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from slipstick.errors import DeviceError
from slipstick.training.float32 import Float32Arithmetic
from slipstick.training.int8 import Int8Arithmetic, Range
from slipstick.training.loop import Recipe, train
from slipstick.training.parallel.crew import SerialCrew, ThreadCrew
from slipstick.training.parallel.jobs import Job, WorkerSetup, take_snapshot
from slipstick.training.parallel.messages import message_size
from slipstick.training.parallel.trainer import ParallelTrainer
from slipstick.training.trainer import Trainer
from training_crews import (
    BATCH,
    INITIAL,
    NETWORK,
    SETUP,
    FatefulWorker,
    alone,
    batches,
    broken,
    check_equal,
    every,
    fine,
    hanging,
    learn,
)
from training_networks import small_split

STEPS = 6


def crew_of(fates: Sequence[Callable[[int], object]], **options) -> ThreadCrew:
    return ThreadCrew([FatefulWorker(fate) for fate in fates], **options)


def trained(crew, steps: int = STEPS, **options) -> ParallelTrainer:
    trainer = ParallelTrainer(NETWORK, SETUP.arithmetic(), INITIAL, crew=crew, **options)
    learn(trainer, steps)
    return trainer


@pytest.mark.parametrize("momentum", [0, 3])
@pytest.mark.parametrize("parts", [1, 3, 4])
def test_parts_give_the_bits_of_the_whole(parts: int, momentum: int) -> None:
    """The first step too; parts of unequal size as well."""
    setup = WorkerSetup(NETWORK, momentum=momentum)
    trainer = ParallelTrainer(
        NETWORK, setup.arithmetic(), INITIAL, crew=SerialCrew(setup.trainer()), parts=parts
    )
    learn(trainer, STEPS)
    check_equal(trainer.arrays(), alone(STEPS, momentum))


def test_figures_are_those_of_the_batch() -> None:
    one = Trainer(NETWORK, SETUP.arithmetic(), INITIAL)
    with crew_of([fine] * 3) as crew:
        many = ParallelTrainer(NETWORK, SETUP.arithmetic(), INITIAL, crew=crew)
        for batch in batches(3):
            wanted = one.step(batch.images, batch.labels, 4)
            found = many.step(batch.images, batch.labels, 4)
            assert (found.right, found.images) == (wanted.right, BATCH)
            assert found.loss == pytest.approx(wanted.loss)


@pytest.mark.parametrize(
    "fates",
    [
        [fine] * 4,
        [every(2), fine, every(3)],
        [broken, fine],
        [every(2), every(3)],
        [broken, broken, broken, every(4)],
    ],
    ids=["fine", "errors", "one dead", "all now and then", "one left"],
)
@pytest.mark.parametrize("bits", [32, 2])
def test_workers_that_fail_change_no_bit(fates: list[Callable[[int], object]], bits: int) -> None:
    with crew_of(fates, patience=0.2) as crew:
        trainer = trained(crew, parts=4, bits=bits)
    wanted = trained(SerialCrew(SETUP.trainer()), parts=4, bits=bits)
    check_equal(trainer.arrays(), wanted.arrays())
    if bits == 32:
        check_equal(trainer.arrays(), alone(STEPS))


def test_a_worker_that_hangs_in_mid_step_changes_no_bit() -> None:
    until = threading.Event()
    with crew_of([hanging(2, until), fine], patience=0.05) as crew:
        found = trained(crew, parts=2).arrays()
        assert crew.given_again >= 1
        until.set()
    check_equal(found, alone(STEPS))


def test_a_job_that_every_worker_fails_at_is_the_callers() -> None:
    with crew_of([broken, broken], patience=0.05) as crew:
        with pytest.raises(DeviceError, match="^no answer$"):
            trained(crew, 1)
        assert crew.errors == ["no answer"] * 2


def test_a_bug_is_not_the_workers() -> None:
    def wrong(number: int) -> None:
        raise ZeroDivisionError("a bug")

    with crew_of([wrong]) as crew, pytest.raises(ZeroDivisionError, match="a bug"):
        trained(crew, 1)


def test_crews_that_are_closed_or_empty() -> None:
    until = threading.Event()
    crew = crew_of([hanging(0, until)])
    job = Job(take_snapshot(SETUP.trainer()), batches(1)[0].images, batches(1)[0].labels)
    first = crew.submit(job)
    threading.Timer(0.05, until.set).start()
    crew.close()
    with pytest.raises(DeviceError, match="the crew is closed"):
        first.result()
    with pytest.raises(DeviceError, match="the crew is closed"):
        crew.submit(job)
    with pytest.raises(ValueError, match="at least one worker"):
        ThreadCrew([])


@pytest.mark.parametrize("bits", [8, 4, 2, 1])
def test_compressed_training_learns(bits: int) -> None:
    trainer = trained(SerialCrew(SETUP.trainer()), 0, parts=4, bits=bits)
    history = train(trainer, small_split(), Recipe(epochs=6, batch=32, rates=((0, 3),)), 1)
    assert max(history.test_percent) > 80
    compression = trainer.compression
    assert compression is not None and compression.messages == 4 * (8 * 6 - 1)
    size = message_size(compression.coding.layout, bits)
    assert compression.sent == size * compression.messages


def test_compressed_training_goes_on_from_a_checkpoint() -> None:
    one = trained(SerialCrew(SETUP.trainer()), 3, parts=4, bits=2)
    other = trained(SerialCrew(SETUP.trainer()), 0, parts=4, bits=2)
    other.restore(one.arrays())
    learn(one, 3)
    learn(other, 3)
    check_equal(other.arrays(), one.arrays())


def test_a_trainers_checkpoint_is_taken_over() -> None:
    one = Trainer(NETWORK, SETUP.arithmetic(), INITIAL)
    learn(one, 2)
    many = ParallelTrainer(
        NETWORK, SETUP.arithmetic(), INITIAL, crew=SerialCrew(SETUP.trainer()), parts=4
    )
    many.restore(one.arrays())
    learn(one, 2)
    learn(many, 2)
    check_equal(many.arrays(), one.arrays())


def test_real_numbers_are_summed_in_the_order_of_parts() -> None:
    def crew() -> SerialCrew:
        return SerialCrew(Trainer(NETWORK, Float32Arithmetic(), INITIAL))

    found = []
    for _ in range(2):
        trainer = ParallelTrainer(NETWORK, Float32Arithmetic(), INITIAL, crew=crew(), parts=4)
        learn(trainer, 3)
        found.append(trainer.arrays())
    check_equal(found[0], found[1])
    one = Trainer(NETWORK, Float32Arithmetic(), INITIAL)
    learn(one, 3)
    for name, array in one.arrays().items():
        if name.endswith("/weights"):
            np.testing.assert_allclose(found[0][name], array, atol=1e-4)


def test_settings_that_make_no_sense() -> None:
    crew = SerialCrew(SETUP.trainer())
    with pytest.raises(ValueError, match="range previous"):
        ParallelTrainer(NETWORK, Int8Arithmetic(source=Range.PRESENT), INITIAL, crew=crew)
    with pytest.raises(ValueError, match="at least one part, not 0"):
        ParallelTrainer(NETWORK, SETUP.arithmetic(), INITIAL, crew=crew, parts=0)
    with pytest.raises(ValueError, match="8, 4, 2 or 1 bits, not 5"):
        ParallelTrainer(NETWORK, SETUP.arithmetic(), INITIAL, crew=crew, bits=5)
