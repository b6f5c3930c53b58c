"""Tensors whose first axis is no batch of 1: they get one, and every operator counts it in."""

from typing import Any

import numpy as np
import pytest
from slipstick.errors import UnsupportedError
from slipstick.frontends.tflite import load_tflite_bytes
from slipstick.writers import tflite_functions as functions
from slipstick.writers import tflite_moves as ops
from slipstick.writers import tflite_operators as first
from slipstick.writers.tflite import TfliteWriter
from tflm_cases import codes
from tflm_networks import check, described, integers, network

SAME = 0.05, 3


def after_reshape(
    shape: tuple[int, ...], operator: first.Operator, outputs: list[dict], *constants: dict
) -> tuple[bytes, np.ndarray]:
    """x -> reshape, to a shape without a batch -> operator, and random codes for x."""
    writer = TfliteWriter()
    flat = (1, int(np.prod(shape)))
    writer.tensor("x", flat, scale=SAME[0], zero_point=SAME[1])
    writer.tensor("r", shape, scale=SAME[0], zero_point=SAME[1])
    writer.add(first.Reshape(shape=shape), ["x"], ["r"])
    inputs = ["r"]
    for number, constant in enumerate(constants):
        inputs.append(writer.tensor(f"c{number}", **constant))
    if isinstance(operator, ops.Split) and not isinstance(operator, ops.SplitV):
        inputs.reverse()
    names = [writer.tensor(f"y{n}", **output) for n, output in enumerate(outputs)]
    writer.add(operator, inputs, names)
    x = codes(np.random.default_rng(1), (2, flat[1]))
    return writer.to_bytes(["x"], names), x


def y(*shape: int) -> dict[str, Any]:
    return described(shape, SAME)


CASES = {
    "softmax": ((3, 5), first.Softmax(), [described((3, 5), (1 / 256, -128))], []),
    "relu": ((3, 5), first.Relu(), [y(3, 5)], []),
    "transpose": ((3, 4, 5), ops.Transpose(), [y(5, 3, 4)], [integers([2, 0, 1])]),
    "mean": ((3, 4, 5), first.Mean(), [y(4, 5)], [integers([0])]),
    "mean of all": ((3, 4), first.Mean(), [y(1)], [integers([0, 1])]),
    "mean kept": ((3, 4), first.Mean(keep_dimensions=True), [y(1, 4)], [integers([0])]),
    "max": ((3, 4), functions.ReduceMax(), [y(3)], [integers([-1])]),
    "arg max": ((3, 4), functions.ArgMax(), [{"shape": (4,), "dtype": "int32"}], [integers([0])]),
    "slice": ((3, 4), ops.Slice(), [y(2, 3)], [integers([1, 0]), integers([2, 3])]),
    "strided": (
        (5, 4),
        ops.StridedSlice(begin_mask=2, end_mask=2),
        [y(2, 4)],
        [integers([0, 0]), integers([4, 0]), integers([2, 1])],
    ),
    "row": (
        (5, 4),
        ops.StridedSlice(shrink_axis_mask=1, end_mask=2),
        [y(4)],
        [integers([3, 0]), integers([4, 4]), integers([1, 1])],
    ),
    "split": ((4, 3), ops.Split(count=2), [y(2, 3), y(2, 3)], [integers([0])]),
    "split v": ((4, 3), ops.SplitV(count=2), [y(3, 3), y(1, 3)], [integers([3, 1]), integers([0])]),
    "unpack": ((3, 4), ops.Unpack(count=3, axis=0), [y(4)] * 3, []),
    "unpack last": ((3, 2), ops.Unpack(count=2, axis=-1), [y(3)] * 2, []),
    "pad": ((3, 4), first.Pad(), [y(4, 6)], [integers([[1, 0], [0, 2]])]),
    "add": ((3, 4), first.Add(), [y(3, 4)], [described((1, 4), SAME, data=np.arange(4)[None])]),
    "constants": (
        (3, 4),
        ops.Concatenation(axis=0),
        [y(4, 4)],
        [described((1, 4), SAME, data=np.arange(4)[None])],
    ),
    "back": ((3, 4), first.Reshape(shape=(1, 12)), [y(1, 12)], []),
}


@pytest.mark.parametrize("name", CASES)
def test_operators(name: str) -> None:
    shape, operator, outputs, constants = CASES[name]
    data, x = after_reshape(shape, operator, outputs, *constants)
    check(data, [x], lifted=True)


def test_fully_connected_rows() -> None:
    rng = np.random.default_rng(2)
    weights = described((6, 4), (0.01, 0), data=codes(rng, (6, 4)))
    operator = first.FullyConnected(keep_dimensions=True)
    data, x = after_reshape((5, 4), operator, [y(5, 6)], weights)
    program = check(data, [x], lifted=True)
    assert program.layers[-1].where == "device"


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_pack_and_concatenation_make_an_axis(axis: int) -> None:
    rng = np.random.default_rng(3)
    shape = (1, 4)
    out = (*shape[:axis], 3, *shape[axis:])
    data = network(ops.Pack(count=3, axis=axis), [y(*shape)] * 3, [y(*out)])
    check(data, [codes(rng, (2, 4)) for _ in range(3)], lifted=True)
    if axis == 0:
        data = network(ops.Concatenation(axis=0), [y(*shape)] * 3, [y(3, 4)])
        check(data, [codes(rng, (2, 4)) for _ in range(3)], lifted=True)


@pytest.mark.parametrize("order", [(1, 0, 2), (2, 1, 0), (2, 0, 1), (0, 2, 1)])
def test_a_batch_of_one_moves(order: tuple[int, ...]) -> None:
    shape = (1, 3, 5)
    out = tuple(shape[axis] for axis in order)
    data = network(ops.Transpose(), [y(*shape), integers(order)], [y(*out)])
    check(data, [codes(np.random.default_rng(4), (2, 3, 5))], lifted=True)


def test_pictures_need_a_batch_of_one() -> None:
    pool = first.MaxPool2D(window=(1, 1), stride=(1, 1))
    data, _ = after_reshape((2, 3, 3, 2), pool, [y(2, 3, 3, 2)])
    with pytest.raises(UnsupportedError, match=r"MAX_POOL_2D .*: the batch \(dimension 0\) of 'r'"):
        load_tflite_bytes(data)
