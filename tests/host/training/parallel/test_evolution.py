"""Evolution strategies: messages, candidates one by one and together, and learning."""

import numpy as np
import pytest
from slipstick.devices.model import ModelDevice
from slipstick.errors import InputError
from slipstick.training.data import LabelledSet
from slipstick.training.device.arithmetic import DeviceArithmetic
from slipstick.training.device.products import DeviceProducts
from slipstick.training.int8 import Int8Arithmetic
from slipstick.training.network import (
    INPUT,
    Kind,
    Layer,
    TrainingNetwork,
    initial_parameters,
)
from slipstick.training.parallel.candidates import (
    evaluate_each,
    evaluate_together,
    find_ranges,
    infer_with,
    is_dense,
)
from slipstick.training.parallel.evolution import (
    EvolutionRecipe,
    EvolutionStrategy,
    decode_candidate,
    encode_candidate,
    perturbation,
    weights_of_pairs,
)
from slipstick.training.parallel.fitness import MOST_IMAGES, fitness_of
from slipstick.training.parallel.jobs import take_snapshot
from slipstick.training.trainer import Trainer
from slipstick_rtl.config import Configuration
from training_crews import check_equal
from training_networks import CLASSES, small_network, small_pictures

RECIPE = EvolutionRecipe(pairs=6, noise_shift=3, rates=((0, 7), (2, 8)))


def dense() -> TrainingNetwork:
    layers = (
        Layer("flat", Kind.FLATTEN, (INPUT,)),
        Layer("hidden", Kind.CONVOLUTION, ("flat",), 12, relu=True),
        Layer("logits", Kind.CONVOLUTION, ("hidden",), CLASSES),
    )
    return TrainingNetwork("dense", (10, 8, 2), layers)


def begun(
    network: TrainingNetwork, data: LabelledSet, recipe: EvolutionRecipe = RECIPE
) -> tuple[Trainer, EvolutionStrategy]:
    trainer = Trainer(network, Int8Arithmetic(), initial_parameters(network, 0))
    find_ranges(trainer, data.images)
    return trainer, EvolutionStrategy(trainer, recipe, 5)


def test_perturbations_are_about_normal_and_mirrored() -> None:
    noise = perturbation(8, 40_001)
    assert len(noise) == 40_001 and np.abs(noise).max() <= 510
    assert abs(noise.mean()) < 3 and noise.std() == pytest.approx(147.8, rel=0.02)
    np.testing.assert_array_equal(perturbation(9, 40_001), noise)
    assert not np.array_equal(perturbation(10, 40_001), noise)
    np.testing.assert_array_equal(perturbation(8, 10), noise[:10])


def test_candidates_of_a_pair_are_mirrored() -> None:
    trainer, strategy = begun(dense(), small_pictures(16))
    seeds = strategy.seeds()
    assert len(set(seeds)) == 12 and all(
        b == a | 1 for a, b in zip(seeds[::2], seeds[1::2], strict=True)
    )
    rows, own = strategy.rows(seeds), strategy.genome.read(take_snapshot(trainer))
    np.testing.assert_array_equal((rows[::2] + rows[1::2]), 2 * np.broadcast_to(own, (6, len(own))))
    arrays = strategy.genome.write(rows[0])
    np.testing.assert_array_equal(
        strategy.genome.read({**take_snapshot(trainer), **arrays}), rows[0]
    )


def test_fitnesses_are_cross_entropies() -> None:
    generator = np.random.default_rng(1)
    codes = generator.integers(-127, 128, (3, 200, 5)).astype(np.int8)
    labels = generator.integers(0, 5, 200)
    for exponent in (-9, -6, -4, -2):
        real = np.ldexp(codes.astype(np.float64), exponent)
        chosen = real[:, np.arange(200), labels]
        wanted = 256 / np.log(2) * (chosen - np.log(np.exp(real).sum(axis=-1))).sum(axis=-1)
        found = fitness_of(codes, exponent, labels)
        # two roundings per image
        np.testing.assert_allclose(found, wanted, atol=400, rtol=0.01)
    assert (fitness_of(codes, 30, labels) >= -(1 << 31) + 1).all()
    assert (fitness_of(codes, -80, labels) == -200 * 594).all()
    with pytest.raises(ValueError, match=f"at most {MOST_IMAGES}"):
        fitness_of(np.zeros((MOST_IMAGES + 1, 2), np.int8), 0, np.zeros(1, int))


def test_the_population_together_has_the_bits_of_each_candidate() -> None:
    data = small_pictures(24)
    trainer, strategy = begun(dense(), data)
    other = Trainer(dense(), Int8Arithmetic(), initial_parameters(dense(), 1))
    each = evaluate_each(
        strategy, take_snapshot(trainer), infer_with(other), data.images, data.labels
    )
    assert evaluate_together(strategy, trainer, data.images, data.labels) == each
    assert len({decode_candidate(message)[1] for message in each}) > 6
    strategy.tell(each[::-1])
    assert strategy.generation == 1 and strategy.sent == 12 * 12
    third = begun(dense(), data)[1]
    third.tell(each)
    np.testing.assert_array_equal(third._row, strategy._row)


def test_a_board_that_infers_evaluates_candidates() -> None:
    hardware = Configuration(
        rows=8, columns=8, lanes=8, activation_bytes=1 << 15, weight_bytes=1 << 16, training=1
    )
    data, network = small_pictures(4), small_network()
    trainer, strategy = begun(
        network, data, EvolutionRecipe(pairs=1, noise_shift=3, rates=((0, 7),))
    )
    board = DeviceArithmetic(DeviceProducts(ModelDevice(hardware)))
    found = [
        evaluate_each(
            *(strategy, take_snapshot(trainer)),
            infer_with(Trainer(network, arithmetic, initial_parameters(network, 0))),
            *(data.images, data.labels),
        )
        for arithmetic in (board, Int8Arithmetic())
    ]
    assert found[0] == found[1]
    assert not is_dense(network)
    with pytest.raises(ValueError, match="must have fully connected layers alone"):
        evaluate_together(strategy, trainer, data.images, data.labels)


def test_it_learns_and_goes_on_from_a_checkpoint() -> None:
    recipe = EvolutionRecipe(pairs=16, noise_shift=3, rates=((0, 6), (30, 7)))
    data, test = small_pictures(64), small_pictures(128, seed=2)
    trainer, strategy = begun(dense(), data, recipe)

    def generations(trainer: Trainer, strategy: EvolutionStrategy, count: int) -> None:
        for _ in range(count):
            strategy.tell(evaluate_together(strategy, trainer, data.images, data.labels))

    before = trainer.evaluate(test.images, test.labels)
    generations(trainer, strategy, 20)
    kept = {**trainer.arrays(), **strategy.arrays()}
    generations(trainer, strategy, 20)
    after = trainer.evaluate(test.images, test.labels)
    assert after[0] < before[0] and after[1] > 0.8
    other, again = begun(dense(), data, recipe)
    again.restore({name: array.copy() for name, array in kept.items()})
    generations(other, again, 20)
    check_equal(other.arrays(), trainer.arrays())


def test_ranks_do_not_depend_on_the_order() -> None:
    seeds = [4, 5, 8, 9]
    assert dict(weights_of_pairs([7, 3, 3, 9], seeds)) == {4: 2 - 0, 8: 1 - 3}
    assert dict(weights_of_pairs([-7, -7, -7, -7], seeds)) == {4: -1, 8: -1}


def test_messages_that_are_none() -> None:
    data = small_pictures(8)
    trainer, strategy = begun(dense(), data)
    messages = evaluate_together(strategy, trainer, data.images, data.labels)
    assert decode_candidate(encode_candidate((1 << 64) - 1, -5)) == ((1 << 64) - 1, -5)
    assert decode_candidate(encode_candidate(0, -(1 << 40))) == (0, -(1 << 31) + 1)
    for some in (messages[:-1], [*messages, messages[0]], [*messages[:-1], b"x" * 12]):
        with pytest.raises(InputError, match="generation 0 must have the messages of its 12"):
            strategy.tell(some)
    with pytest.raises(InputError, match="must have 12 bytes, not 3"):
        strategy.tell([*messages[:-1], b"abc"])
    with pytest.raises(ValueError, match="a seed must have 64 bits"):
        encode_candidate(-1, 0)
    assert strategy.generation == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pairs": 0}, "pairs must be 1 to 4096, not 0"),
        ({"noise_shift": 9}, "noise_shift must be 0 to 6, not 9"),
        ({"momentum": -1}, "momentum must be 0 to 15, not -1"),
        ({"rates": ()}, "begin at generation 0 and rise"),
        ({"rates": ((0, 3), (0, 4))}, "begin at generation 0 and rise"),
        ({"rates": ((0, 40),)}, "shifts of rates must be 0 to 31, not 40"),
    ],
)
def test_recipes_that_make_no_sense(changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EvolutionRecipe(**{"pairs": 2, "noise_shift": 3, "rates": ((0, 7),), **changes})
