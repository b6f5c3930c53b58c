"""Damaged ONNX files end in ModelError, UnsupportedError or a graph: nothing else, and soon."""

import functools

import damaged_files
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx_writer import MICROSOFT, OnnxWriter
from shared_data import DATA
from slipstick.frontends.onnx import load_onnx_bytes
from slipstick.graph import Graph

QUIETLY = settings(damaged_files.QUIETLY, max_examples=150)


def own() -> bytes:
    """A network with many kinds of nodes."""
    rng = np.random.default_rng(3)
    net = OnnxWriter()
    x = net.pair(net.input("x", ("N", 2, 5, 4)), 0.06, 7)
    kernel = net.weights(
        rng.integers(-9, 9, (3, 2, 2, 2)).astype(np.int8), np.array([1, 2, 3], "f4")
    )
    y = net.pair(net.add("Relu", [net.add("Conv", [x, kernel], pads=[0, 1, 1, 0])]), 0.1)
    y = net.pair(net.add("AveragePool", [y], kernel_shape=[2, 2], ceil_mode=1), 0.1)
    y = net.pair(net.add("Add", [y, net.add("Sigmoid", [y])]), 0.2)
    size = net.add("Gather", [net.add("Shape", [y]), net.constant([0], "int64")])
    y = net.add("Reshape", [y, net.add("Concat", [size, net.constant([-1], "int64")], axis=0)])
    weights = net.weights(rng.integers(-9, 9, (36, 3)).astype(np.int8), np.float32(0.1))
    y = net.add("Softmax", [net.add("MatMul", [y, weights])])
    q = net.add("QuantizeLinear", [y, *net.scale(0.004, -128)])
    parts = [*net.scale(0.004, -128), *net.scale(0.005, -128)]
    q = net.add("QLinearSigmoid", [q, *parts], domain=MICROSOFT)
    return net.to_bytes([net.add("DequantizeLinear", [q, *net.scale(0.005, -128)])])


@functools.cache
def files() -> tuple[bytes, ...]:
    """Ours, often, as each of its bytes matters, and the real ones that are there."""
    real = [path.read_bytes() for path in sorted((DATA / "models").glob("*int8*.onnx"))]
    return (own(), *real)


def load(data: bytes) -> None:
    damaged_files.check_load(load_onnx_bytes, data)


def test_our_own_file_is_good() -> None:
    assert isinstance(load_onnx_bytes(own()), Graph)


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
    load(b"\x08\x0a" + tail)


def test_every_byte_of_a_small_file() -> None:
    """What chance may miss: each byte in turn becomes another."""
    data = own()
    for place in range(len(data)):
        for mask in (0x01, 0x80):
            load(data[:place] + bytes([data[place] ^ mask]) + data[place + 1 :])
