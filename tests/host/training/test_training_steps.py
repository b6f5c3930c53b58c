"""Training steps of whole networks: float32's gradients, integers beside them, merged parts."""

from collections.abc import Callable

import numpy as np
import pytest
from slipstick.training.arithmetic import Arithmetic, Rate
from slipstick.training.float32 import Float32Arithmetic
from slipstick.training.int8 import Int8Arithmetic, Range
from slipstick.training.lns8 import Lns8Arithmetic, Update
from slipstick.training.network import FloatParameters, initial_parameters
from slipstick.training.trainer import Trainer, cross_entropy
from slipstick_rtl.numbers.lns.formats import Lns
from training_networks import small_network, small_pictures, small_split

NETWORK = small_network()
INTEGERS: dict[str, Callable[[], Arithmetic]] = {
    "master16": lambda: Int8Arithmetic(16),
    "int8": lambda: Int8Arithmetic(8),
    "momentum": lambda: Int8Arithmetic(16, 3),
    "present": lambda: Int8Arithmetic(16, source=Range.PRESENT),
    "lns8": lambda: Lns8Arithmetic(Update.MULTIPLIED),
    "lns8-additive": lambda: Lns8Arithmetic(Update.COMPENSATED),
    "lns1+4+3": lambda: Lns8Arithmetic(Update.COMPENSATED, lns=Lns(4, 3)),
}


def make(arithmetic: Arithmetic, seed: int = 0) -> Trainer:
    return Trainer(NETWORK, arithmetic, initial_parameters(NETWORK, seed))


def loss_of(initial: dict[str, FloatParameters], images: np.ndarray, labels: np.ndarray) -> float:
    trainer = Trainer(NETWORK, Float32Arithmetic(), initial)
    return cross_entropy(trainer.logits(images), labels)


def test_float_gradients_are_the_losss_differences() -> None:
    data = small_pictures(8)
    initial = initial_parameters(NETWORK, 3)
    trainer = Trainer(NETWORK, Float32Arithmetic(), initial)
    found = trainer.gradients(data.images, data.labels).gradients
    generator = np.random.default_rng(4)
    for name, gradient in found.items():
        direction = generator.standard_normal(gradient.weights.shape).astype(np.float32)
        analytic = float((gradient.weights * direction).sum())
        step, values = 5e-4, []
        for sign in (1, -1):
            moved = FloatParameters(
                initial[name].weights + sign * step * direction, initial[name].bias
            )
            values.append(loss_of({**initial, name: moved}, data.images, data.labels))
        assert (values[0] - values[1]) / (2 * step) == pytest.approx(analytic, rel=0.05, abs=0.2)
        moved = FloatParameters(initial[name].weights, initial[name].bias + np.float32(0.01))
        change = loss_of({**initial, name: moved}, data.images, data.labels) - loss_of(
            initial, data.images, data.labels
        )
        assert change / 0.01 == pytest.approx(gradient.bias.sum(), rel=0.1, abs=0.1)


@pytest.mark.parametrize("name", INTEGERS)
def test_integer_gradients_have_the_direction_of_floats(name: str) -> None:
    data = small_pictures(64)
    exact = make(Float32Arithmetic()).gradients(data.images, data.labels)
    found = make(INTEGERS[name]()).gradients(data.images, data.labels)
    assert found.loss == pytest.approx(exact.loss, rel=0.05)
    for layer, gradient in found.gradients.items():
        real = np.ldexp(gradient.weights.astype(np.float64), gradient.weight_exponent)
        wanted = exact.gradients[layer].weights
        cosine = (real * wanted).sum() / np.sqrt((real**2).sum() * (wanted**2).sum())
        assert cosine > 0.97, layer
        assert np.linalg.norm(real) == pytest.approx(np.linalg.norm(wanted), rel=0.15), layer


@pytest.mark.parametrize("name", INTEGERS)
def test_parts_of_a_batch_on_several_boards_give_the_bits_of_the_whole(name: str) -> None:
    """Four boards of 16 images each against one of 64, over several steps."""
    data = small_pictures(256)
    one, four = make(INTEGERS[name]()), [make(INTEGERS[name]()) for _ in range(4)]
    for step in range(4):
        batch = slice(64 * step, 64 * step + 64)
        images, labels = data.images[batch], data.labels[batch]
        if step == 0 or name == "present":
            # ranges of the step before are not there yet: all boards need one's
            results = [one.gradients(images, labels)]
            for trainer in (one, *four):
                trainer.apply(results, 4)
            continue
        one.step(images, labels, 4)
        parts = [
            board.gradients(
                images[16 * place : 16 * place + 16], labels[16 * place : 16 * place + 16]
            )
            for place, board in enumerate(four)
        ]
        for place, board in enumerate(four):
            board.apply(parts[place:] + parts[:place], 4)
    wanted = one.arrays()
    for board in four:
        for key, array in board.arrays().items():
            np.testing.assert_array_equal(array, wanted[key], err_msg=key)


@pytest.mark.parametrize("name", ["float32", *INTEGERS])
def test_every_arithmetic_learns_and_repeats_its_bits(name: str) -> None:
    data, arrays = small_split(), []
    for _ in range(2):
        trainer = make(Float32Arithmetic() if name == "float32" else INTEGERS[name]())
        before = trainer.evaluate(data.test.images, data.test.labels)
        shift = 6 if name == "momentum" else 3
        for step in range(80):
            batch = slice(32 * (step % 8), 32 * (step % 8) + 32)
            trainer.step(data.train.images[batch], data.train.labels[batch], shift)
        after = trainer.evaluate(data.test.images, data.test.labels)
        assert after[0] < before[0] and after[1] > 0.9
        arrays.append(trainer.arrays())
    for key, array in arrays[0].items():
        np.testing.assert_array_equal(array, arrays[1][key])


def test_only_the_layers_that_learn_change() -> None:
    data = small_pictures(64)
    initial = initial_parameters(NETWORK, 0)
    learning = NETWORK.last_learning(2)
    trainer = Trainer(NETWORK, Int8Arithmetic(), initial, learning)
    before = {name: array.copy() for name, array in trainer.arrays().items()}
    result = trainer.step(data.images, data.labels, 2)
    assert set(result.gradients) == set(learning) == {"wide", "logits"}
    # errors go back no further than they must
    assert not any(key.startswith("error of deep") for key in result.ranges)
    for key, array in trainer.arrays().items():
        if key.endswith(("masters", "bias")):
            changed = key.split("/")[0] in learning
            assert (not np.array_equal(array, before[key])) == changed, key


def test_layers_that_do_not_exist_cannot_learn() -> None:
    with pytest.raises(ValueError, match="must be some of first"):
        Trainer(NETWORK, Int8Arithmetic(), initial_parameters(NETWORK, 0), ["mean"])
    with pytest.raises(ValueError, match="must be some of first"):
        Trainer(NETWORK, Int8Arithmetic(), initial_parameters(NETWORK, 0), [])


def test_parts_of_unequal_exponents_are_refused() -> None:
    arithmetic = Int8Arithmetic()
    trainer, data = make(arithmetic), small_pictures(16)
    first = trainer.gradients(data.images, data.labels)
    trainer.arithmetic.ranges = {"loss": 3}
    second = trainer.gradients(data.images, data.labels)
    with pytest.raises(ValueError, match="equal exponents"):
        trainer.apply([first, second], 3)


@pytest.mark.parametrize("images", [0, 3, 48])
def test_batches_are_powers_of_two(images: int) -> None:
    with pytest.raises(ValueError, match=f"power of two, not {images} images"):
        Rate(3, images)


def test_master_weights_of_other_widths() -> None:
    with pytest.raises(ValueError, match="8 or 16 bits, not 12"):
        Int8Arithmetic(12)
