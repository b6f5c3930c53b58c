"""Damaged TFLite files end in ModelError, UnsupportedError or a graph: nothing else, and soon."""

import functools
from contextlib import suppress

import damaged_files
import numpy as np
import tflm_cases as cases
from hypothesis import given, settings
from hypothesis import strategies as st
from lstm_networks import two_lstms
from shared_data import DATA
from slipstick.errors import ModelError
from slipstick.frontends.tflite import load_tflite_bytes, tensor_indices
from slipstick.graph import Graph
from slipstick.writers import tflite_operators as ops
from stateful_networks import delay, wake_word
from tflm_networks import odd_networks

QUIETLY = settings(damaged_files.QUIETLY, max_examples=200)


@functools.cache
def files() -> tuple[bytes, ...]:
    """Small networks of our own, and the real ones that are there."""
    rng = np.random.default_rng(3)
    own = [cases.convolution(rng, depthwise=depthwise)[0] for depthwise in (False, True)]
    own += [cases.mean(rng)[0], cases.addition(rng)[0], cases.pooling(rng, ops.MaxPool2D)[0]]
    own += [cases.fully_connected(rng)[0], *odd_networks(rng)]
    own += [delay().main.to_bytes(["x"], ["y"]), wake_word(rng), two_lstms(rng)]
    real = [path.read_bytes() for path in sorted((DATA / "models").glob("*_int8.tflite"))]
    # small files come first, and often: each of their bytes matters
    return tuple(own + real)


def load(data: bytes) -> None:
    damaged_files.check_load(_load, data)


def _load(data: bytes) -> Graph:
    try:
        return load_tflite_bytes(data)
    finally:
        with suppress(ModelError):
            tensor_indices(data)


@QUIETLY
@given(damaged_files.flipped_bits(files))
def test_flipped_bits(data: bytes) -> None:
    load(data)


@QUIETLY
@given(damaged_files.extreme_words(files))
def test_extreme_words(data: bytes) -> None:
    load(data)


@QUIETLY
@given(damaged_files.cut_short(files))
def test_cut_short(data: bytes) -> None:
    load(data)


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
