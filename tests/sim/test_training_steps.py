"""Loss and update of integer training: against exact arithmetic, and float's gradients."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slipstick_sim.golden.training import updates
from slipstick_sim.golden.training.loss import loss_gradient, power_table, probabilities
from slipstick_sim.golden.training.rounding import LARGEST_SUM, round_pseudo_stochastic

LOGITS = st.lists(st.lists(st.integers(-127, 127), min_size=4, max_size=4), min_size=1, max_size=5)


def slow_probabilities(logits: list[int], exponent: int) -> list[int]:
    powers = []
    for logit in logits:
        octaves = Fraction((max(logits) - logit) * 94_548) * Fraction(2) ** (exponent - 8)
        whole, part = divmod(octaves.__floor__(), 256)
        powers.append(round(2 ** (15 - part / 256)) >> min(whole, 99))
    return [(power << 16) // sum(powers) for power in powers]


@settings(deadline=None)
@given(LOGITS, st.integers(-12, 9))
def test_probabilities_are_those_of_python_integers(logits: list[list[int]], exponent: int) -> None:
    found = probabilities(np.array(logits, np.int8), exponent)
    assert found.tolist() == [slow_probabilities(row, exponent) for row in logits]


@given(LOGITS, st.integers(-7, -2))
def test_probabilities_are_a_softmax(logits: list[list[int]], exponent: int) -> None:
    real = np.array(logits) * 2.0**exponent
    exact = np.exp(real - real.max(axis=1, keepdims=True))
    exact /= exact.sum(axis=1, keepdims=True)
    found = probabilities(np.array(logits, np.int8), exponent) / (1 << 16)
    assert np.abs(found - exact).max() < 0.003


def test_extreme_exponents_of_logits() -> None:
    logits = np.array([[5, 4, -127]], np.int8)
    assert probabilities(logits, 60).tolist() == [[1 << 16, 0, 0]]
    assert probabilities(logits, -200).tolist() == [[(1 << 16) // 3] * 3]


@settings(deadline=None)
@given(LOGITS, st.integers(-8, 4), st.integers(0, 3), st.none() | st.integers(0, 12))
def test_errors_sum_to_zero(
    logits: list[list[int]], exponent: int, label: int, shift: int | None
) -> None:
    labels = np.full(len(logits), label)
    errors, unit, found = loss_gradient(np.array(logits, np.int8), exponent, labels, shift)
    assert errors.dtype == np.int8
    assert not errors.sum(axis=1, dtype=np.int64).any()
    others = np.delete(errors, label, axis=1)
    assert (others >= 0).all() and (errors[:, label] <= 0).all() and errors.min() >= -127
    shares = np.delete(probabilities(np.array(logits, np.int8), exponent), label, axis=1)
    assert found == shares.sum(axis=1).max()
    if shift is None:
        # a unit each: of a class by its rounding, and of a label whose sum is brought to 127
        assert np.abs(others - shares / 2.0 ** (unit + 16)).max() <= 4


def test_many_classes_sum_to_zero() -> None:
    """Saturation of every class: their sum is brought to 127."""
    generator = np.random.default_rng(1)
    logits = generator.integers(-127, 128, (50, 1000)).astype(np.int8)
    labels = generator.integers(0, 1000, 50)
    for shift in (None, 0, 3):
        errors, _, _ = loss_gradient(logits, -4, labels, shift)
        assert not errors.sum(axis=1, dtype=np.int64).any()


def test_the_gradient_has_the_direction_of_floats() -> None:
    generator = np.random.default_rng(2)
    logits = generator.integers(-127, 128, (64, 10)).astype(np.int8)
    labels = generator.integers(0, 10, 64)
    errors, unit, _ = loss_gradient(logits, -5, labels)
    real = logits * 2.0**-5
    exact = np.exp(real) / np.exp(real).sum(axis=1, keepdims=True)
    exact[np.arange(64), labels] -= 1
    found = errors * 2.0**unit
    cosine = (found * exact).sum() / np.sqrt((found**2).sum() * (exact**2).sum())
    assert cosine > 0.999
    # nine roundings by less than a unit of 2^-7 make the label's
    assert np.abs(found - exact).max() < 9 * 2.0**-7


def test_the_table_has_16_bits() -> None:
    table = power_table()
    assert table[0] == 1 << 15 and table[-1] > 1 << 14 and len(table) == 256


@given(st.integers(-updates.LARGEST_MASTER, updates.LARGEST_MASTER))
def test_weights_are_the_rounded_upper_byte(master: int) -> None:
    wanted = (Fraction(master, 256) + Fraction(1, 2)).__floor__()
    found = updates.weights_of(np.array([master], np.int32))
    assert found.dtype == np.int8
    # the most negative half rounds up, as every tie
    assert found.tolist() == [wanted]


wide = st.integers(-LARGEST_SUM, LARGEST_SUM)


def slow_step(gradient: int, shift: int, largest: int) -> int:
    if shift > 31:
        return 0
    if shift >= 0:
        step = int(round_pseudo_stochastic(np.array([gradient], np.int32), shift, 16)[0])
    else:
        step = gradient << -shift
    return max(-largest, min(largest, step))


@settings(deadline=None)
@given(
    wide, wide, st.integers(-40, 40), st.sampled_from([127, updates.LARGEST_MASTER, LARGEST_SUM])
)
def test_updates_are_exact_and_saturate(
    master: int, gradient: int, shift: int, largest: int
) -> None:
    master = max(-largest, min(largest, master))
    found = updates.update(
        np.array([master], np.int32), np.array([gradient], np.int32), shift, largest
    )
    wanted = master - slow_step(gradient, shift, largest)
    assert found.dtype == np.int32
    assert found.tolist() == [max(-largest, min(largest, wanted))]


@settings(deadline=None)
@given(wide, wide, wide, st.integers(-10, 40), st.integers(1, 8))
def test_momentum(master: int, velocity: int, gradient: int, shift: int, decay: int) -> None:
    largest = updates.LARGEST_MASTER
    master = max(-largest, min(largest, master))
    a, b, c = (np.array([value], np.int32) for value in (master, velocity, gradient))
    new, moved = updates.update_with_momentum(a, b, c, shift, largest, decay)
    kept = velocity - slow_step(velocity, decay, LARGEST_SUM)
    wanted = max(-LARGEST_SUM, min(LARGEST_SUM, kept + slow_step(gradient, shift - 8, LARGEST_SUM)))
    assert moved.tolist() == [wanted]
    assert new.tolist() == [max(-largest, min(largest, master - slow_step(wanted, 8, LARGEST_SUM)))]


def test_momentum_moves_by_two_to_the_decay() -> None:
    masters, velocity = np.zeros(1, np.int32), np.zeros(1, np.int32)
    for step in range(200):
        gradient = np.array([1 << 12 if step == 0 else 0], np.int32)
        masters, velocity = updates.update_with_momentum(
            masters, velocity, gradient, 4, updates.LARGEST_MASTER, 3
        )
    assert abs(masters[0] + (1 << 8) * 8) < 20


def test_decay_out_of_range() -> None:
    zero = np.zeros(1, np.int32)
    with pytest.raises(ValueError, match="within 1..8, not 9"):
        updates.update_with_momentum(zero, zero, zero, 0, 127, 9)


@given(wide, st.integers(-40, 40))
def test_biases_are_brought_to_the_accumulators_units(master: int, shift: int) -> None:
    exact = Fraction(master) / Fraction(2) ** shift
    wanted = max(-LARGEST_SUM, min(LARGEST_SUM, round(exact)))
    if shift > 31:
        wanted = 0
    assert updates.bias_of(np.array([master], np.int32), shift).tolist() == [wanted]
