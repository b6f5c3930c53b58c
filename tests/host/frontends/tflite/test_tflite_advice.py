"""Refusals of .tflite files that name what is in the way, and what would help."""

from typing import Any

import numpy as np
import pytest
from odd_tflite import Oddities, OddWriter
from slipstick.errors import UnsupportedError
from slipstick.frontends.tflite import load_tflite_bytes
from slipstick.writers import tflite_moves as moves
from slipstick.writers import tflite_operators as basic
from slipstick.writers.tflite_state import SequenceLstm
from tflm_networks import described, network

FLOAT16, INT4 = 1, 17


class Named(basic.Operator):
    """An operator without options, by the schema's name."""

    version = 1

    def __init__(self, code: str) -> None:
        object.__setattr__(self, "code", code)


def unknown(*codes: str) -> bytes:
    """A transpose that moves the batch, and then operators."""
    writer = OddWriter(Oddities())
    writer.tensor("x", (1, 3, 4), scale=0.5)
    writer.tensor("t", (3, 1, 4), scale=0.5)
    order = writer.tensor("p", (3,), "int32", data=np.array([1, 0, 2]))
    writer.add(moves.Transpose(), ["x", order], ["t"])
    source = "t"
    for number, code in enumerate(codes):
        result = writer.tensor(f"y{number}", (3, 1, 4), scale=0.5)
        writer.add(Named(code), [source], [result])
        source = result
    return writer.to_bytes(["x"], [source])


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        (
            ["SVDF"],
            r"tiny: SVDF \(operator 1\), a recurrent layer, must be one of the operators that"
            r" docs/reference/tflite\.md lists, and is not: run it beside Slipstick$",
        ),
        (["BIDIRECTIONAL_SEQUENCE_LSTM"], "a recurrent layer, must be one"),
        (["WHILE"], "WHILE .*, control flow, .*: convert the network without branches and loops$"),
        (["IF", "SVDF"], "IF .*, control flow, .* and is not, nor SVDF: convert"),
        (["TOPK_V2"], "a choice among results, .*: end the network before it, and choose on the"),
        (["SPACE_TO_BATCH_ND"], "how old converters write dilated convolutions, .*: convert with"),
        (["CUSTOM"], r"CUSTOM '' \(operator 1\), an operator of one runtime's own"),
        (["ADD_N", "ADD_N", "POW"], r"ADD_N \(operator 1\) must be .* and is not, nor POW$"),
        (["GATHER"], "GATHER .*: inputs must be constants, as it computes sizes, and are not"),
    ],
)
def test_unknown_operators_go_first(codes: list[str], message: str) -> None:
    with pytest.raises(UnsupportedError, match=message) as caught:
        load_tflite_bytes(unknown(*codes), "tiny")
    assert len(str(caught.value)) < 250


def layer(dtypes: tuple[str, str], odd: Oddities, *, codes: bool = False) -> bytes:
    """A convolution whose activations and weights are of these types."""
    writer = OddWriter(odd)
    writer.tensor("x", (1, 4, 4, 2), dtypes[0])
    data = np.ones((3, 1, 1, 2))
    scale: Any = 0.1 if dtypes[1] == "int8" else None
    writer.tensor("w", data.shape, dtypes[1], scale=scale, data=data)
    writer.tensor("y", (1, 4, 4, 3), dtypes[0])
    source, result = "x", "y"
    if codes:
        source = writer.tensor("codes", (1, 4, 4, 2), scale=0.5)
        writer.add(basic.Dequantize(), [source], ["x"])
    writer.add(basic.Conv2D(), ["x", "w"], ["y"])
    return writer.to_bytes([source], [result])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            layer(("float32", "float32"), Oddities()),
            r"CONV_2D \(operator 0, output 'y'\): input 0 'x' must be int8, and is float32:"
            r" quantise the network: .*TFLiteConverter .* representative_dataset .*_INT8\]; or take"
            r" `slipstick quantize` of a float \.onnx file$",
        ),
        (
            layer(("float32", "int8"), Oddities()),
            "input 0 'x' must be int8, and is float32: only the weights are quantised: .*Converter",
        ),
        (
            layer(("float32", "float32"), Oddities(tensors={"w": {"Type": FLOAT16}}, padded=32)),
            r"CONV_2D .*: tensor 1 'w': type must be .*, not float16: the weights are float16: ",
        ),
        (
            layer(("float32", "float32"), Oddities(), codes=True),
            "input 0 'x' must be int8, and is float32: the converter left this part of the network"
            " in float32, and of float32 Slipstick has only functions of one number, sums,",
        ),
        (
            layer(("int16", "int8"), Oddities()),
            r"tensor 0 'x': type must be .*, not int16: convert with OpsSet\.TFLITE_BUILTINS_INT8",
        ),
        (
            layer(("float32", "int8"), Oddities(tensors={"w": {"Type": INT4}})),
            "tensor 1 'w': type must be .*, not int4: convert with weights of 8 bits$",
        ),
    ],
)
def test_types(data: bytes, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message) as caught:
        load_tflite_bytes(data, "tiny")
    assert "\n" not in str(caught.value)


def test_a_batch() -> None:
    x = described((4, 2), (0.5, 0))
    with pytest.raises(UnsupportedError, match="must be 1, not shape .*: convert the network with"):
        load_tflite_bytes(network(basic.Relu(), [x], [x]))


def test_negated_codes() -> None:
    x = described((1, 4), (0.5, 0))
    message = "NEG .*: output 'y0' must be float32, and is int8|input 0 'x0' must be float32"
    with pytest.raises(UnsupportedError, match=message):
        load_tflite_bytes(network(Named("NEG"), [x], [x]))


def test_a_layer_that_has_only_codes() -> None:
    """A float32 LSTM: its states are what is found first."""
    writer = OddWriter(Oddities())
    for name in ("x", "y"):
        writer.tensor(name, (1, 3, 4), "float32")
    held = [writer.tensor(f"w{n}", (4, 4), "float32", data=np.ones((4, 4))) for n in range(17)]
    states = [writer.tensor(name, (1, 4), "float32", variable=True) for name in ("h", "c")]
    writer.add(SequenceLstm(), ["x", *held, *states, *[""] * 4], ["y"])
    message = "SEQUENCE_LSTM .*, not float32: quantise the network: .*TFLITE_BUILTINS_INT8"
    with pytest.raises(UnsupportedError, match=message):
        load_tflite_bytes(writer.to_bytes(["x"], ["y"]))
