"""Random bits of places; gradients in few bits, and bytes that are none."""

import numpy as np
import pytest
from slipstick.errors import InputError
from slipstick.training.parallel.counter import counter_bits, seed_of
from slipstick.training.parallel.quantise import (
    BUCKET,
    WIDTHS,
    pack,
    packed_size,
    quantise,
    step_codes,
    step_values,
    unpack,
)


def numbers(count: int, seed: int = 0, scale: float = 1e5) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(count) * scale).astype(np.int32)


def test_bits_of_a_place_do_not_depend_on_the_others() -> None:
    whole = counter_bits(7, 1000)
    np.testing.assert_array_equal(counter_bits(7, 100, first=300), whole[300:400])
    assert len(set(whole.tolist())) == 1000
    assert not np.array_equal(counter_bits(8, 1000), whole)
    assert counter_bits((1 << 64) - 1, 1).dtype == np.uint64


def test_the_first_bits_are_fixed() -> None:
    """Recorded runs must repeat with later versions."""
    assert counter_bits(0, 2).tolist() == [12035550249420947055, 12935080325729570654]
    assert seed_of(1, 2, 3) == 12017960678529308245
    assert len({seed_of(), seed_of(0), seed_of(0, 0), seed_of(1, 2), seed_of(2, 1)}) == 5


def test_bits_are_even() -> None:
    bits = counter_bits(seed_of(1), 1 << 16)
    for place in range(64):
        share = ((bits >> np.uint64(place)) & np.uint64(1)).mean()
        assert share == pytest.approx(0.5, abs=0.01)


def test_steps_rise_and_cover_32_bits() -> None:
    values = step_values(np.arange(256))
    assert values[0] == 0 and values[1] == 1 and (np.diff(values) >= 0).all()
    least = np.array([0, 1, 2, 3, 17, 1000, (1 << 31) - 1])
    found = step_values(step_codes(least))
    assert (found >= least).all() and (found <= np.ceil(least * 1.126)).all()


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("count", [0, 1, 7, BUCKET, BUCKET + 1, 3000])
def test_bytes_give_the_levels_back(bits: int, count: int) -> None:
    levels = quantise(numbers(count), bits, 3)
    data = pack(levels, bits)
    assert len(data) == packed_size(count, bits) == -(-count // BUCKET) + -(-count * bits // 8)
    found = unpack(data, count, bits)
    np.testing.assert_array_equal(found.levels, levels.levels)
    np.testing.assert_array_equal(found.values(), levels.values())


@pytest.mark.parametrize("bits", [8, 4, 2])
def test_expectations_are_the_numbers(bits: int) -> None:
    values = numbers(600)
    found = [quantise(values, bits, seed).values() for seed in range(400)]
    step = np.abs(values).max() / max(1, (1 << (bits - 1)) - 1)
    assert np.abs(np.mean(found, axis=0) - values).max() < 4.5 * step / np.sqrt(400)
    assert np.abs(found[0] - values).max() <= 1.126 * step
    np.testing.assert_array_equal(quantise(values, bits, 5).values(), found[5])


def test_numbers_at_the_ends_of_32_bits() -> None:
    most = (1 << 31) - 1
    values = np.array([most, -most, 0, 1])
    for bits in WIDTHS:
        found = quantise(values, bits, 0).values()
        assert np.abs(found).max() <= most
        assert (np.sign(found[:2]) == [1, -1]).all()
    assert not quantise(np.zeros(5, np.int32), 4, 0).values().any()


def test_widths_that_are_none() -> None:
    for call in (
        lambda: quantise(numbers(3), 3, 0),
        lambda: unpack(b"", 0, 16),
        lambda: pack(quantise(numbers(3), 4, 0), 5),
    ):
        with pytest.raises(ValueError, match="8, 4, 2 or 1 bits, not"):
            call()


def test_bytes_that_are_no_levels() -> None:
    with pytest.raises(InputError, match="5 numbers of 4 bits must be 4 bytes, not 3"):
        unpack(b"\1\2\3", 5, 4)
    with pytest.raises(InputError, match="behind the last number must be 0"):
        unpack(b"\1\x11\x11\x11", 5, 4)
    with pytest.raises(InputError, match="a level of 4 bits must not be below -7"):
        unpack(b"\1\x18\x11\x01", 5, 4)
    with pytest.raises(InputError, match="a level of 8 bits must not be below -127"):
        unpack(b"\1\x80", 1, 8)


def test_random_bytes_give_levels_or_an_error() -> None:
    generator = np.random.default_rng(9)
    for _ in range(500):
        bits = int(generator.choice(WIDTHS))
        count = int(generator.integers(0, 40))
        size = packed_size(count, bits) if generator.random() < 0.8 else int(generator.integers(60))
        data = generator.bytes(size)
        try:
            found = unpack(data, count, bits)
        except InputError:
            continue
        assert pack(found, bits) == data
        assert np.abs(found.values()).max(initial=0) <= (1 << 31) - 1
