"""What the front-end says to operators that it does not run, or that nobody can."""

from typing import Any

import numpy as np
import pytest
from slipstick.errors import ModelError, SlipstickError, UnsupportedError
from slipstick.frontends.tflite import load_tflite_bytes
from slipstick.writers import tflite_functions as functions
from slipstick.writers import tflite_moves as ops
from slipstick.writers import tflite_operators as first
from tflm_networks import Described, described, integers, network

SAME = 0.5, 3
SHAPE = (1, 4, 6, 8)
X = described(SHAPE, SAME)
OTHER = described(SHAPE, (0.25, 3))


def x(*shape: int) -> Described:
    return described(shape, SAME)


def filters(*shape: int, **more: Any) -> Described:
    return described(shape, (0.1, 0), data=np.ones(shape, np.int8), **more)


ONES = np.ones((8, 1, 1, 8), np.int8)
STRIDED = [integers([0] * 4), integers([1, 2, 6, 8]), integers([1] * 4)]
CASES: list[tuple[bytes, type[SlipstickError], str]] = [
    (
        network(ops.Concatenation(axis=0), [X], [X]),
        UnsupportedError,
        r"CONCATENATION \(operator 0, output 'y0'\): axis must not be 0, the batch, and is 0",
    ),
    (
        network(ops.Concatenation(axis=4), [X], [X]),
        ModelError,
        r"axis must be within -4\.\.3, not 4",
    ),
    (
        network(ops.Concatenation(axis=3, activation="RELU"), [X], [X]),
        UnsupportedError,
        "activation must be none, not relu",
    ),
    (
        network(ops.Concatenation(axis=3), [X, OTHER], [x(1, 4, 6, 16)]),
        UnsupportedError,
        r"output must have the input's scale 0\.25 and zero point 3, not 0\.5 and 3",
    ),
    (
        network(ops.Concatenation(axis=3), [X, x(1, 4, 5, 8)], [x(1, 4, 6, 16)]),
        ModelError,
        r"input 'x1' must be \(1, 4, 6, 16\) but for axis 3, not \(1, 4, 5, 8\)",
    ),
    (
        network(first.DepthwiseConv2D(multiplier=0), [X, filters(1, 3, 3, 16)], [x(1, 4, 6, 16)]),
        ModelError,
        "DEPTHWISE_CONV_2D .*: depth multiplier must be 2, not 0",
    ),
    (
        network(first.Conv2D(), [X, described((8, 1, 1, 8), (0.1, 4), data=ONES)], [X]),
        UnsupportedError,
        "CONV_2D .*: zero points of weights 'x1' must be 0, not 4",
    ),
    (
        network(
            first.FullyConnected(),
            [x(1, 2), {**filters(3, 2), "scale": [0.1] * 3, "zero_point": [0, 5, 0], "axis": 0}],
            [x(1, 3)],
        ),
        UnsupportedError,
        r"FULLY_CONNECTED .*: zero points of weights 'x1', which have a scale a channel, must be 0,"
        " not 5",
    ),
    (
        network(ops.Pack(count=2, axis=2), [x(1, 4), x(1, 5)], [x(1, 4, 2)]),
        ModelError,
        r"PACK .*: input 'x1' must be \(1, 4\), not \(1, 5\)",
    ),
    (
        network(first.MaxPool2D(window=(1, 1), stride=(1, 1)), [X], [x(2, 4, 6, 8)]),
        UnsupportedError,
        r"the batch \(dimension 0\) of 'y0' must be 1, not shape \(2, 4, 6, 8\)",
    ),
    (
        network(ops.Unpack(count=2, axis=1), [X], [x(1, 6, 8)] * 2),
        ModelError,
        r"UNPACK \(operator 0\): outputs must be 4, not 2",
    ),
    (
        network(ops.Split(count=3), [integers([3]), X], [x(1, 4, 6, 2)] * 3),
        ModelError,
        r"SPLIT \(operator 0\): 3 outputs must divide 8 evenly",
    ),
    (
        network(ops.SplitV(count=2), [X, integers([3, 4]), integers([3])], [x(1, 4, 6, 4)] * 2),
        ModelError,
        r"sizes must add up to 8, not \(3, 4\)",
    ),
    (
        network(ops.Slice(), [X, integers([0] * 4), integers([1, 5, 6, 8])], [X]),
        ModelError,
        r"begin \(0, 0, 0, 0\) and size \(1, 5, 6, 8\) must lie within \(1, 4, 6, 8\)",
    ),
    (
        network(ops.StridedSlice(ellipsis_mask=2), [X, *STRIDED], [x(1, 2, 6, 8)]),
        UnsupportedError,
        "STRIDED_SLICE .*: EllipsisMask must be 0, not 2",
    ),
    (
        network(ops.StridedSlice(), [X, *STRIDED[:2], integers([1, 0, 1, 1])], [X]),
        ModelError,
        r"strides must not be 0, and are \(1, 0, 1, 1\)",
    ),
    (
        network(ops.StridedSlice(), [X, STRIDED[0], integers([1, 0, 6, 8]), STRIDED[2]], [X]),
        UnsupportedError,
        r"begin .* to end \(1, 0, 6, 8\) must not be empty along axis 1",
    ),
    (
        network(ops.Transpose(), [X, integers([0, 1, 1, 3])], [X]),
        ModelError,
        r"permutation must hold 0\.\.3 once each, not \(0, 1, 1, 3\)",
    ),
    (
        network(ops.Transpose(), [X, {"shape": (1, 4), "dtype": "int32"}], [X]),
        UnsupportedError,
        "input 1 'x1' must be a constant, not computed",
    ),
    (
        network(ops.MirrorPad(), [x(1, 4), integers([[0, 0], [4, 0]])], [x(1, 8)]),
        ModelError,
        r"paddings that mirror 4 must be at most 3, not \(4, 0\)",
    ),
    (
        network(ops.DepthToSpace(block=3), [X], [X]),
        ModelError,
        "the square of block 3 must divide 8 channels",
    ),
    (
        network(ops.ResizeBilinear(), [X, integers([0, 3])], [X]),
        ModelError,
        r"RESIZE_BILINEAR .*: size must be at least 1 x 1 .*, not \(0, 3\)",
    ),
    (
        network(
            ops.ResizeBilinear(align_corners=True, half_pixel_centers=True),
            [X, integers([4, 6])],
            [X],
        ),
        ModelError,
        "align corners and half pixel centers must not both be true",
    ),
    (
        network(ops.TransposeConv(), [integers([1, 4, 6, 2]), filters(2, 3, 3, 7), X], [X]),
        ModelError,
        r"weights must be 8 x height x width x 8, not \(2, 3, 3, 7\)",
    ),
    (
        network(
            ops.TransposeConv(stride=(2, 2)), [integers([1, 4, 6, 8]), filters(8, 3, 3, 8), X], [X]
        ),
        ModelError,
        r"an output of \(1, 4, 6, 8\) must have an input of \[2, 3\], not \(1, 4, 6, 8\)",
    ),
    (
        network(functions.Mul(), [X, x(1, 4, 5, 8)], [X]),
        ModelError,
        r"inputs of \(1, 4, 6, 8\) and \(1, 4, 5, 8\) must broadcast together",
    ),
    (
        network(functions.Sub(), [X, X], [described(SHAPE, (1e-7, 0))]),
        UnsupportedError,
        "SUB .*: SUB of scales 0.5 and 0.5 needs an output scale above 9.53674e-07, not 1e-07",
    ),
    (
        network(functions.Maximum(), [X, OTHER], [X]),
        UnsupportedError,
        "MAXIMUM .*: output must have the input's scale 0.25",
    ),
    (
        network(functions.Prelu(), [x(1, 1), x(1, 4)], [x(1, 4)]),
        ModelError,
        r"output 'y0' must be \(1, 1\), not \(1, 4\)",
    ),
    (
        network(functions.LeakyRelu(alpha=float("nan")), [X], [X]),
        ModelError,
        "alpha must be finite and at most 1e6, not nan",
    ),
    (
        network(functions.LogSoftmax(), [X], [X]),
        UnsupportedError,
        "LOG_SOFTMAX .*: output must have scale 0.0625 and zero point 127, not 0.5 and 3",
    ),
    (
        network(functions.ArgMax(), [X, integers([3])], [x(1, 4, 6)]),
        UnsupportedError,
        "ARG_MAX .*: output 'y0' must be int32 or int64, and is int8",
    ),
    (
        network(functions.ReduceMax(), [X, integers([0])], [x(4, 6, 8)]),
        UnsupportedError,
        r"REDUCE_MAX .*: axes must leave out 0, the batch, not \[0\]",
    ),
    (
        network(first.Conv2D(), [X, filters(8, 1, 1, 8)], [{**X, "dtype": "uint8"}]),
        UnsupportedError,
        "CONV_2D .*: output 'y0' must be int8, and is uint8",
    ),
]


@pytest.mark.parametrize(("data", "error", "message"), CASES)
def test_refusals(data: bytes, error: type[SlipstickError], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        load_tflite_bytes(data, "tiny")
    assert "\n" not in str(caught.value)
