"""Training steps in logarithms: compiled kernels against the golden model, and what they learn."""

import numpy as np
import pytest
from slipstick_rtl.numbers.lns.formats import Lns
from slipstick_rtl.numbers.lns.unit.arithmetic import LnsArithmetic, Operation
from slipstick_rtl.numbers.lns.unit.conversions import from_float, to_float
from slipstick_sim.golden.lns_compiled import CompiledAnswers, encode
from slipstick_sim.golden.lns_training import (
    Elementwise,
    GoldenAnswers,
    InnerProducts,
    Network,
    Rules,
    drive,
    exponentials,
    forward,
    output_errors,
    training_step,
)

FORMATS = [Lns(3, 4), Lns(6, 6), Lns(6, 8), Lns(5, 14)]
INPUTS, HIDDEN, CLASSES, BATCH = 30, 12, 10, 5


def random_codes(lns: Lns, generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Near one another and far, zeros and ends among them."""
    top = lns.largest_code
    near = -lns.zero + generator.integers(-40, 40, shape)
    codes = np.where(generator.random(shape) < 0.5, near, generator.integers(0, top + 1, shape))
    corners = generator.choice([0, 1, top], shape)
    codes = np.where(generator.random(shape) < 0.2, corners, np.clip(codes, 0, top))
    return (codes * generator.choice([-1, 1], shape)).astype(np.int32)


def random_network(lns: Lns, seed: int) -> Network:
    """With normal weights."""
    generator = np.random.default_rng(seed)
    weights = (
        generator.normal(size=shape) / np.sqrt(shape[0])
        for shape in ((INPUTS, HIDDEN), (HIDDEN, CLASSES))
    )
    return Network.of(lns, *weights)


@pytest.mark.parametrize("lns", FORMATS, ids=lambda lns: lns.name)
@pytest.mark.parametrize("compensated", [False, True])
def test_compiled_inner_products_are_the_golden_ones(lns: Lns, compensated: bool) -> None:
    generator = np.random.default_rng(1)
    for m, k, n in ((7, 40, 33), (1, 20, 10), (40, 3, 1)):
        request = InnerProducts(
            random_codes(lns, generator, (m, k)),
            random_codes(lns, generator, (k, n)),
            random_codes(lns, generator, (n,)),
            compensated,
        )
        np.testing.assert_array_equal(CompiledAnswers(lns)(request), GoldenAnswers(lns)(request))


@pytest.mark.parametrize("lns", FORMATS, ids=lambda lns: lns.name)
def test_compiled_operations_are_the_golden_ones(lns: Lns) -> None:
    generator = np.random.default_rng(2)
    a, b, c = (random_codes(lns, generator, (50, 60)) for _ in range(3))
    for operation in Operation:
        for request in (Elementwise(operation, a, b, c), Elementwise(operation, a, b[0, 0], c)):
            wanted = LnsArithmetic(lns).execute(operation, request.a, request.b, request.c)
            value, rest = CompiledAnswers(lns)(request)
            np.testing.assert_array_equal(value, wanted[0])
            if operation is Operation.COMPENSATED_ADD:
                np.testing.assert_array_equal(rest, wanted[1])


@pytest.mark.parametrize("lns", FORMATS, ids=lambda lns: lns.name)
def test_compiled_conversion_is_the_golden_one(lns: Lns) -> None:
    generator = np.random.default_rng(3)
    scale = np.exp2(generator.integers(-40, 40, 50_000))
    values = (generator.normal(size=scale.size) * scale).astype(np.float32)
    values[:3] = 0, 1, -1
    np.testing.assert_array_equal(encode(lns, values), from_float(lns, values))


@pytest.mark.parametrize("lns", FORMATS[1:], ids=lambda lns: lns.name)
@pytest.mark.parametrize("compensated", [False, True])
@pytest.mark.parametrize("complemented", [False, True])
def test_compiled_steps_are_the_golden_ones(
    lns: Lns, compensated: bool, complemented: bool
) -> None:
    rules = Rules(lns, 0.05, BATCH, compensated, complemented)
    compiled, golden = random_network(lns, 4), random_network(lns, 4)
    generator = np.random.default_rng(5)
    for _ in range(3):
        images = from_float(lns, np.maximum(generator.normal(size=(BATCH, INPUTS)), 0))
        labels = generator.integers(0, CLASSES, BATCH)
        drive(training_step(rules, compiled, images, labels), CompiledAnswers(lns))
        drive(training_step(rules, golden, images, labels), GoldenAnswers(lns))
        for name, expected in golden.arrays().items():
            np.testing.assert_array_equal(compiled.arrays()[name], expected, err_msg=name)


def test_a_fine_format_steps_as_floats_do() -> None:
    lns = Lns(5, 14)
    rules = Rules(lns, 0.5, BATCH, compensated=True)
    network = random_network(lns, 6)
    w1, b1, w2, b2 = (
        to_float(lns, getattr(network, name))
        for name in ("weights_1", "bias_1", "weights_2", "bias_2")
    )
    generator = np.random.default_rng(7)
    x, labels = np.maximum(generator.normal(size=(BATCH, INPUTS)), 0), np.arange(BATCH)
    drive(training_step(rules, network, from_float(lns, x), labels), CompiledAnswers(lns))
    hidden = np.maximum(x @ w1 + b1, 0)
    powers = np.exp(hidden @ w2 + b2)
    errors = powers / powers.sum(axis=1, keepdims=True) - np.eye(CLASSES)[labels]
    back = (errors @ w2.T) * (hidden > 0)
    rate = rules.rate / rules.batch
    for name, expected in (
        ("weights_1", w1 - rate * x.T @ back),
        ("bias_1", b1 - rate * back.sum(axis=0)),
        ("weights_2", w2 - rate * hidden.T @ errors),
        ("bias_2", b2 - rate * errors.sum(axis=0)),
    ):
        np.testing.assert_allclose(to_float(lns, getattr(network, name)), expected, atol=2e-4)


def test_exponentials_do_not_overflow_and_sum_to_shares() -> None:
    lns = Lns(6, 6)
    logits = from_float(lns, [[1e6, -1e6, 0.0], [1.0, 1.0, 1.0], [2.0, 0.0, -30.0]])
    one = -lns.zero
    powers = exponentials(lns, logits)
    np.testing.assert_array_equal(powers[0], [one, 1, 1])
    np.testing.assert_array_equal(powers[1], [one] * 3)
    exact = np.exp([0, -2 + 0.003, -32])
    assert np.abs(powers[2][:2] - from_float(lns, exact[:2])).max() <= 1
    assert powers[2][2] == 1
    rules = Rules(lns, 0.05, 3)
    errors = drive(output_errors(rules, logits, np.array([0, 1, 2])), GoldenAnswers(lns))
    values = to_float(lns, errors)
    assert abs(values[1, 1] + 2 / 3) < 0.02 and abs(values[1, 0] - 1 / 3) < 0.01
    # a share that rounds to 1 leaves no error, unless it is taken from the others
    close = from_float(lns, [[8.0, 0.0, 0.0]])
    plain = drive(output_errors(rules, close, np.array([0])), GoldenAnswers(lns))
    other = Rules(lns, 0.05, 3, complemented=True)
    complemented = drive(output_errors(other, close, np.array([0])), GoldenAnswers(lns))
    assert plain[0, 0] == 0
    assert complemented[0, 0] < 0


def test_training_lowers_the_error_of_a_small_network() -> None:
    lns = Lns(6, 6)
    rules = Rules(lns, 0.2, BATCH, compensated=True)
    network = random_network(lns, 8)
    generator = np.random.default_rng(9)
    prototypes = np.maximum(generator.normal(size=(CLASSES, INPUTS)), 0)
    labels = generator.integers(0, CLASSES, 300)
    noise = 0.2 * generator.normal(size=(300, INPUTS))
    images = from_float(lns, np.maximum(prototypes[labels] + noise, 0))
    answers = CompiledAnswers(lns)

    def wrong() -> float:
        _, logits = drive(forward(rules, network, images), answers)
        return float(np.mean(logits.argmax(axis=1) != labels))

    before = wrong()
    for first in range(0, 300, BATCH):
        batch = slice(first, first + BATCH)
        drive(training_step(rules, network, images[batch], labels[batch]), answers)
    assert before > 0.5
    assert wrong() < 0.1
