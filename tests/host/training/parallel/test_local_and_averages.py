"""Local SGD, means of models, Polyak's average."""

import numpy as np
import pytest
from slipstick.training.float32 import Float32Arithmetic
from slipstick.training.lns8 import Lns8Arithmetic, Update
from slipstick.training.loop import Recipe, train, train_epoch
from slipstick.training.parallel.averages import PolyakAverage, mean_half_even, mean_snapshot
from slipstick.training.parallel.crew import SerialCrew, ThreadCrew
from slipstick.training.parallel.jobs import WorkerSetup
from slipstick.training.parallel.local import LocalTrainer
from slipstick.training.trainer import Trainer
from training_crews import (
    BATCH,
    INITIAL,
    NETWORK,
    SETUP,
    FatefulWorker,
    batches,
    broken,
    check_equal,
    every,
    fine,
    learn,
)
from training_networks import small_pictures, small_split


def local(crew, steps: int, parts: int | None = None, momentum: int = 0) -> LocalTrainer:
    setup = WorkerSetup(NETWORK, momentum=momentum)
    return LocalTrainer(NETWORK, setup.arithmetic(), INITIAL, crew=crew, steps=steps, parts=parts)


def test_means_round_to_even() -> None:
    total = np.array([-6, -5, -3, -2, 0, 2, 3, 5, 6])
    assert mean_half_even(total, 4).tolist() == [-2, -1, -1, 0, 0, 0, 1, 1, 2]
    assert mean_half_even(np.array([4, 5, -4]), 3).tolist() == [1, 2, -1]


def test_the_order_of_models_does_not_matter() -> None:
    models = []
    for batch in batches(3):
        trainer = Trainer(NETWORK, SETUP.arithmetic(), INITIAL)
        trainer.step(batch.images, batch.labels, 2)
        models.append(trainer.arrays())
    check_equal(mean_snapshot(models[::-1]), mean_snapshot(models))
    check_equal(mean_snapshot(models[:1] * 5), models[0])


@pytest.mark.parametrize("arithmetic", [Float32Arithmetic(), Lns8Arithmetic(Update.MULTIPLIED)])
def test_only_linear_integers_are_averaged(arithmetic) -> None:
    crew = SerialCrew(SETUP.trainer())
    with pytest.raises(ValueError, match="of linear integers to be averaged"):
        LocalTrainer(NETWORK, arithmetic, INITIAL, crew=crew, steps=1, parts=2)


def test_models_of_unequal_exponents() -> None:
    model = Trainer(NETWORK, SETUP.arithmetic(), INITIAL).arrays()
    with pytest.raises(ValueError, match="equal exponents: first/exponent"):
        mean_snapshot([model, {**model, "first/exponent": np.array(3)}])


def test_one_worker_alone_is_a_trainer() -> None:
    trainer = local(SerialCrew(SETUP.trainer()), 4)
    one = Trainer(NETWORK, SETUP.arithmetic(), INITIAL)
    learn(trainer, 6)
    learn(one, 6)
    # two batches wait for two more, or for the end
    assert trainer.rounds == 1
    assert trainer.flush().images == 2 * BATCH
    check_equal(trainer.arrays(), one.arrays())
    assert trainer.rounds == 2 and trainer.flush().images == 0


def test_batches_that_wait_are_in_the_checkpoint() -> None:
    one, other = (local(SerialCrew(SETUP.trainer()), 3, 2) for _ in range(2))
    learn(one, 4)
    other.restore(one.arrays())
    assert one.rounds == 1
    for trainer in (one, other):
        learn(trainer, 2)
    check_equal(other.arrays(), one.arrays())
    assert not any(name.startswith("local/") for name in other.arrays())


def test_an_epochs_figures_are_of_all_its_batches() -> None:
    trainer = local(SerialCrew(SETUP.trainer()), 3, 2)
    data = small_pictures(BATCH * 4)
    end = train_epoch(trainer, data, Recipe(epochs=1, batch=BATCH, rates=((0, 3),)), 1, 0)
    assert (end.step, end.images) == (4, 4 * BATCH)


@pytest.mark.parametrize("momentum", [0, 3])
def test_workers_that_fail_change_no_bit(momentum: int) -> None:
    setup = WorkerSetup(NETWORK, momentum=momentum)
    workers = [FatefulWorker(fate, setup) for fate in (every(2), broken, fine)]
    with ThreadCrew(workers, patience=0.2) as crew:
        trainer = local(crew, 3, 4, momentum)
        learn(trainer, 8)
        trainer.flush()
        found = trainer.arrays()
    wanted = local(SerialCrew(setup.trainer()), 3, 4, momentum)
    learn(wanted, 8)
    wanted.flush()
    check_equal(found, wanted.arrays())


@pytest.mark.parametrize("steps", [1, 8])
def test_local_steps_learn(steps: int) -> None:
    trainer = local(SerialCrew(SETUP.trainer()), steps, 4)
    history = train(trainer, small_split(), Recipe(epochs=6, batch=32, rates=((0, 3),)), 1)
    assert max(history.test_percent) > 80
    assert trainer.rounds == 8 * 6 // steps


def test_settings_that_make_no_sense() -> None:
    crew = SerialCrew(SETUP.trainer())
    with pytest.raises(ValueError, match="at least 1, not 0"):
        local(crew, 0)
    with pytest.raises(ValueError, match="a power of two, not 3"):
        local(crew, 1, 3)
    trainer = local(crew, 1, 64)
    with pytest.raises(ValueError, match="32 images must be for 64 workers alike"):
        learn(trainer, 1)


def test_polyak_averages_models_and_leaves_the_trainer_alone() -> None:
    data = small_split()
    trainer, average = Trainer(NETWORK, SETUP.arithmetic(), INITIAL), PolyakAverage()
    with pytest.raises(ValueError, match="at least one model"):
        average.snapshot()
    models = []
    for step in range(40):
        batch = slice(32 * (step % 8), 32 * (step % 8) + 32)
        trainer.step(data.train.images[batch], data.train.labels[batch], 2)
        if step >= 20:
            average.add(trainer)
            models.append(trainer.arrays())
    before = trainer.arrays()
    loss, share = average.evaluate(trainer, data.test.images, data.test.labels)
    assert share > 0.9 and loss < 1
    check_equal(trainer.arrays(), before)
    found, wanted = average.snapshot(), mean_snapshot(models)
    for name, array in found.items():
        if not name.startswith("ranges/"):
            np.testing.assert_array_equal(array, wanted[name])
    other = PolyakAverage()
    other.restore(average.arrays())
    check_equal(other.snapshot(), found)
