"""Results as bytes: what comes back, damaged bytes, and what compression leaves out."""

import dataclasses
import struct
import zlib

import numpy as np
import pytest
from slipstick.errors import InputError
from slipstick.training.arithmetic import Gradient, StepResult
from slipstick.training.float32 import Float32Arithmetic
from slipstick.training.networks import resnet8
from slipstick.training.parallel.compression import Coding, Compression, rescaled
from slipstick.training.parallel.jobs import WorkerSetup
from slipstick.training.parallel.messages import (
    decode_result,
    encode_result,
    layout_of,
    message_size,
)
from slipstick.training.trainer import Trainer
from training_crews import INITIAL, NETWORK, SETUP, batches

LAYOUT = layout_of(SETUP.trainer())


def result_of(step: int = 0) -> StepResult:
    batch = batches(step + 1)[-1]
    return Trainer(NETWORK, SETUP.arithmetic(), INITIAL).gradients(batch.images, batch.labels)


RESULT = result_of()


def check_same(found: StepResult, wanted: StepResult) -> None:
    assert dict(found.ranges) == dict(wanted.ranges)
    assert (found.images, found.right, found.loss) == (wanted.images, wanted.right, wanted.loss)
    assert set(found.gradients) == set(wanted.gradients)
    for name, gradient in found.gradients.items():
        other = wanted.gradients[name]
        np.testing.assert_array_equal(gradient.weights, other.weights)
        np.testing.assert_array_equal(gradient.bias, other.bias)
        assert gradient.weight_exponent == other.weight_exponent
        assert gradient.bias_exponent == other.bias_exponent


def test_whole_results_come_back() -> None:
    data = encode_result(RESULT, LAYOUT)
    assert len(data) == message_size(LAYOUT, 32)
    check_same(decode_result(data, LAYOUT), RESULT)


def test_the_layout_is_found_without_leaving_a_trace() -> None:
    trainer = Trainer(NETWORK, SETUP.arithmetic(), INITIAL)
    before = trainer.arrays()
    assert layout_of(trainer) == LAYOUT and LAYOUT.count > 500
    assert trainer.arithmetic.reports == {} and trainer.arithmetic.ranges == {}
    for name, array in trainer.arrays().items():
        np.testing.assert_array_equal(array, before[name])


def test_gradients_of_real_numbers_have_no_messages() -> None:
    with pytest.raises(ValueError, match="must be int32, not float32"):
        layout_of(Trainer(NETWORK, Float32Arithmetic(), INITIAL))


@pytest.mark.parametrize("bits", [8, 4, 2, 1])
def test_sizes(bits: int) -> None:
    compression = Compression(Coding(LAYOUT, bits))
    data = compression.compress(0, 1, RESULT)
    assert len(data) == message_size(LAYOUT, bits) == compression.sent
    assert compression.messages == 1


def test_bytes_of_a_real_network() -> None:
    """ResNet-8's gradients: 4 bits are 7.9 x fewer bytes than 32, 1 bit 30 x."""
    layout = layout_of(WorkerSetup(resnet8()).trainer())
    whole = message_size(layout, 32)
    assert whole > 4 * 77_000
    assert whole / message_size(layout, 8) > 3.95
    assert whole / message_size(layout, 4) > 7.9
    assert whole / message_size(layout, 2) > 15.6
    assert whole / message_size(layout, 1) > 30


def damaged(place: int, value: bytes) -> bytes:
    """A message with other bytes, and a checksum of them."""
    data = bytearray(encode_result(RESULT, LAYOUT))
    data[place : place + len(value)] = value
    return bytes(data[:-4]) + struct.pack("<I", zlib.crc32(data[:-4]))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"SG", "at least 24 bytes, not 2"),
        (damaged(0, b"PK"), "must begin with b'SG' and 1"),
        (damaged(2, b"\2"), "must begin with b'SG' and 1"),
        (damaged(3, b"\5"), "32, 8, 4, 2 or 1 bits, not 5"),
        (damaged(3, b"\4"), "a message of 4 bits per number must have"),
        (damaged(4, b"\0\0\0\0"), "is of another network"),
        (damaged(8, b"\0\0\0\0"), "right answers must be 0 to 0"),
        (damaged(16, struct.pack("<d", float("nan"))), "the loss must be a number, not nan"),
        (encode_result(RESULT, LAYOUT)[:-1], "a message of 32 bits per number must have"),
        (encode_result(RESULT, LAYOUT)[:-1] + b"x", "is damaged: its checksum"),
    ],
)
def test_bytes_that_are_no_message(data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        decode_result(data, LAYOUT)


def test_random_damage_gives_an_error() -> None:
    generator, data = (
        np.random.default_rng(5),
        Compression(Coding(LAYOUT, 4)).compress(0, 0, RESULT),
    )
    for _ in range(300):
        broken = bytearray(data)
        for place in generator.integers(0, len(data), int(generator.integers(1, 4))):
            broken[place] ^= int(generator.integers(1, 256))
        if generator.random() < 0.3:
            broken = broken[: int(generator.integers(len(data)))]
        if bytes(broken) != data:
            with pytest.raises(InputError):
                decode_result(bytes(broken), LAYOUT)


@pytest.mark.parametrize("bits", [8, 4, 2, 1])
def test_what_is_left_out_comes_later(bits: int) -> None:
    """Sums of what was sent differ from sums of gradients by what is kept, and by no more."""
    compression, tensor = Compression(Coding(LAYOUT, bits)), LAYOUT.tensors[0]
    sent = wanted = np.zeros(tensor.shape, np.int64)
    for step in range(20):
        found = decode_result(compression.compress(3, step, RESULT), LAYOUT)
        sent = sent + found.gradients[tensor.layer].weights
        wanted = wanted + RESULT.gradients[tensor.layer].weights
    key = next(name for name in compression.arrays() if name.startswith("unsent/3/0/"))
    np.testing.assert_array_equal((wanted - sent).reshape(-1), compression.arrays()[key])
    # an error without feedback would grow with the steps
    assert np.abs(wanted - sent).max() <= 20 * np.abs(RESULT.gradients[tensor.layer].weights).max()


def test_parts_are_apart_and_checkpoints_go_on() -> None:
    one, results = Compression(Coding(LAYOUT, 2, seed=4)), [result_of(step) for step in range(3)]
    for part in range(2):
        one.compress(part, 0, results[part])
    other = Compression(Coding(LAYOUT, 2, seed=4))
    other.restore(one.arrays())
    # whichever part comes first
    found = [one.compress(part, 1, results[2]) for part in (0, 1)]
    assert [other.compress(part, 1, results[2]) for part in (1, 0)] == found[::-1]
    assert found[0] != found[1]
    with pytest.raises(InputError, match="is of another network"):
        other.restore({"unsent/0/999/0": np.zeros(1, np.int64)})
    with pytest.raises(InputError, match="must be .* numbers"):
        other.restore({"unsent/0/0/0": np.zeros(1, np.int64)})


def test_without_feedback_nothing_is_kept() -> None:
    compression = Compression(Coding(LAYOUT, 4, feedback=False))
    compression.compress(0, 0, RESULT)
    assert compression.arrays() == {}
    with pytest.raises(ValueError, match="one bit per number must have error feedback"):
        Compression(Coding(LAYOUT, 1, feedback=False))
    with pytest.raises(ValueError, match="8, 4, 2 or 1 bits, not 3"):
        Compression(Coding(LAYOUT, 3))


def test_units_of_what_is_kept() -> None:
    values = np.array([5, 6, 7, -5, -6, 1 << 31, -(1 << 31)])
    assert rescaled(values, 0, 1)[:5].tolist() == [2, 3, 4, -2, -3]
    assert rescaled(values, 3, 1)[:3].tolist() == [20, 24, 28]
    assert rescaled(values, 0, 0)[:5].tolist() == [5, 6, 7, -5, -6]
    assert rescaled(values, 0, -80)[5:].tolist() == [(1 << 31) - 1, 1 - (1 << 31)]
    assert not rescaled(values, 0, 80).any()


def test_what_is_kept_follows_exponents() -> None:
    compression, tensor = Compression(Coding(LAYOUT, 2)), LAYOUT.tensors[0]
    compression.compress(0, 0, RESULT)
    (name,) = [key for key in compression.arrays() if key.startswith("unsent/0/0/")]
    before, exponent = compression.arrays()[name], int(name.split("/")[-1])
    silent = {
        layer: Gradient(
            0 * each.weights, 0 * each.bias, each.weight_exponent - 2, each.bias_exponent - 2
        )
        for layer, each in RESULT.gradients.items()
    }
    data = compression.compress(0, 1, dataclasses.replace(RESULT, gradients=silent))
    sent = decode_result(data, LAYOUT).gradients[tensor.layer].weights.reshape(-1)
    after = compression.arrays()[f"unsent/0/0/{exponent - 2}"]
    np.testing.assert_array_equal(sent + after, 4 * before)
