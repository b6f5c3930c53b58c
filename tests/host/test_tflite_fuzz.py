"""Damaged TFLite files end in ModelError, UnsupportedError or a graph: nothing else, and soon."""

import functools
import time

import numpy as np
import tflite_operators as ops
import tflm_cases as cases
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from shared_data import DATA
from slipstick.errors import ModelError, UnsupportedError
from slipstick.frontends.tflite import load_tflite_bytes, tensor_indices
from slipstick.graph import Graph
from tflm_networks import odd_networks

SECONDS = 2.0
"""No file of this size may take longer; a good one takes hundredths."""

EXTREMES = (0, 1, 2, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7FC00000, 0x00100000)

QUIETLY = settings(
    max_examples=200,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@functools.cache
def files() -> tuple[bytes, ...]:
    """Small networks of our own, and the real ones that are there."""
    rng = np.random.default_rng(3)
    own = [cases.convolution(rng, depthwise=depthwise)[0] for depthwise in (False, True)]
    own += [cases.mean(rng)[0], cases.addition(rng)[0], cases.pooling(rng, ops.MaxPool2D)[0]]
    own += [cases.fully_connected(rng)[0], *odd_networks(rng)]
    real = [path.read_bytes() for path in sorted((DATA / "models").glob("*_int8.tflite"))]
    # small files come first, and often: each of their bytes matters
    return tuple(own + real)


def load(data: bytes) -> None:
    begin = time.monotonic()
    try:
        assert isinstance(load_tflite_bytes(data), Graph)
    except (ModelError, UnsupportedError) as error:
        assert str(error).strip() and "\n" not in str(error)
    try:
        tensor_indices(data)
    except ModelError:
        pass
    assert time.monotonic() - begin < SECONDS


@QUIETLY
@given(
    st.integers(0, 99),
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)), max_size=4),
)
def test_flipped_bits(choice: int, flips: list[tuple[float, int]]) -> None:
    data = bytearray(files()[choice % len(files())])
    for place, mask in flips:
        data[int(place * len(data))] ^= mask
    load(bytes(data))


@QUIETLY
@given(st.integers(0, 99), st.floats(0, 1, exclude_max=True), st.sampled_from(EXTREMES))
def test_extreme_words(choice: int, place: float, value: int) -> None:
    data = bytearray(files()[choice % len(files())])
    word = 4 * int(place * (len(data) // 4))
    data[word : word + 4] = value.to_bytes(4, "little")
    load(bytes(data))


@QUIETLY
@given(st.integers(0, 99), st.floats(0, 1, exclude_max=True))
def test_cut_short(choice: int, place: float) -> None:
    data = files()[choice % len(files())]
    load(data[: int(place * len(data))])


@QUIETLY
@given(st.binary(max_size=300))
def test_random_bytes(tail: bytes) -> None:
    load(b"\x1c\x00\x00\x00TFL3" + tail)


def test_every_word_of_a_small_file() -> None:
    """What chance may miss: each word in turn becomes each extreme."""
    data = files()[0]
    for word in range(0, len(data) - 3, 4):
        for value in (0, 0x7FFFFFFF, 0xFFFFFFFF):
            load(data[:word] + value.to_bytes(4, "little") + data[word + 4 :])
