"""UNIDIRECTIONAL_SEQUENCE_LSTM: its numbers are tflm's, and it goes on where it ended."""

from typing import Any

import numpy as np
import pytest
from lstm_networks import add_lstm, random_lstm, two_lstms
from slipstick import kernels
from slipstick.compiler import compile_graph
from slipstick.devices import open_device
from slipstick.errors import ModelError, SlipstickError, UnsupportedError
from slipstick.frontends.tflite import load_tflite_bytes
from slipstick.kernels.tflite import lstm
from slipstick.session import InferenceSession
from slipstick.verify.tflm_reference import TflmReference
from slipstick.writers import tflite_operators as basic
from slipstick.writers.tflite import TfliteWriter
from tflm_cases import codes
from tflm_networks import SMALL

RNG = np.random.default_rng(72)
RUNS = 100
ALL = np.arange(-(1 << 15), 1 << 15, dtype=np.int16)


def of_all_codes(operator: basic.Operator, scale: float) -> np.ndarray:
    """What tflm makes of each int16."""
    writer = TfliteWriter()
    writer.tensor("x", (1, 1 << 16), "int16", scale=scale)
    writer.tensor("y", (1, 1 << 16), "int16", scale=2**-15)
    writer.add(operator, ["x"], ["y"])
    return TflmReference(writer.to_bytes(["x"], ["y"])).run(ALL[np.newaxis])[0].ravel()


def test_sigmoid_of_all_codes_is_tflms() -> None:
    np.testing.assert_array_equal(lstm.sigmoid(ALL), of_all_codes(basic.Logistic(), 2**-12))


@pytest.mark.parametrize("power", [-15, -13, -12, -11, -9])
def test_tanh_of_all_codes_is_tflms(power: int) -> None:
    np.testing.assert_array_equal(lstm.tanh(ALL, power), of_all_codes(basic.Tanh(), 2.0**power))


@pytest.mark.parametrize("number", range(12))
def test_random_lstm_is_tflms_over_100_runs(number: int) -> None:
    rng = np.random.default_rng([72, number])
    data, shape = random_lstm(rng)
    x = codes(rng, (RUNS, *shape))
    graph = load_tflite_bytes(data)
    wanted = TflmReference(data).run_layers(x)
    values = kernels.run_graph(graph, [x])
    for name, expected in wanted.items():
        np.testing.assert_array_equal(values[name], expected, name)
    with InferenceSession(compile_graph(graph, SMALL), open_device("model", SMALL)) as session:
        actual = np.concatenate([session.run(None, {"x": each})[0] for each in x])
        np.testing.assert_array_equal(actual, wanted["y"])
        assert len(np.unique(actual)) > 5
        session.reset_state()
        np.testing.assert_array_equal(session.run(None, {"x": x[0]})[0], wanted["y"][:1])


def test_two_lstms_and_a_layer_are_tflms() -> None:
    data = two_lstms(RNG)
    x = codes(RNG, (RUNS, 4, 10))
    graph = load_tflite_bytes(data)
    program = compile_graph(graph, SMALL)
    assert [layer.where for layer in program.layers if layer.operator == "lstm"] == ["host"] * 2
    assert sum(layer.macs for layer in program.layers) == 4 * (4 * 12 * 22 + 4 * 8 * 20) + 6 * 32
    with InferenceSession(program, open_device("model", SMALL)) as session:
        (actual,) = session.run(None, {"x": x})
    np.testing.assert_array_equal(actual, TflmReference(data).run(x)[0])


def test_reference_shows_states_before_each_run() -> None:
    data, shape = random_lstm(RNG)
    shown = TflmReference(data).run_layers(codes(RNG, (5, *shape)))
    hidden = load_tflite_bytes(data).tensors["y_hidden"].quantization
    assert hidden is not None and (shown["y_hidden"][0] == hidden.zero_point[0]).all()
    np.testing.assert_array_equal(shown["y_hidden"][1:], shown["y"][:-1, -1])
    assert not shown["y_cells"][0].any() and shown["y_cells"][1:].any()


def changed(
    options: dict[str, Any] | None = None,
    changes: dict[int, str] | None = None,
    power: int = -11,
    **tensors: dict[str, Any],
) -> bytes:
    """A network of one LSTM with some inputs exchanged for other tensors."""
    writer = TfliteWriter()
    writer.tensor("x", (1, 3, 4), scale=0.05)
    for name, described in tensors.items():
        writer.tensor(name, **described)
    add_lstm(
        writer,
        np.random.default_rng(1),
        ("x", 4, 0.05),
        "y",
        3,
        5,
        (1 / 128, 0),
        power=power,
        options=options,
        changes=changes,
    )
    return writer.to_bytes(["x"], ["y"])


def constant(shape: tuple[int, ...], **more: Any) -> dict[str, Any]:
    return {"shape": shape, "scale": 0.1, "data": np.zeros(shape, np.int8), **more}


CASES: list[tuple[bytes, type[SlipstickError], str]] = [
    (changed({"activation": 1}), UnsupportedError, r"activation must be tanh \(4\), not 1"),
    (changed({"time_major": True}), UnsupportedError, "time_major must be false"),
    (changed({"projection_clip": 1.0}), UnsupportedError, r"ProjClip must be 0, not 1\.0"),
    (changed({"cell_clip": -1.0}), ModelError, r"CellClip must be 0 or positive, not -1\.0"),
    (changed(power=3), UnsupportedError, r"cells 'y_cells' must have a power of two, .*not 8 and"),
    (
        changed(changes={9: "p"}, p=constant((5,))),
        UnsupportedError,
        "input 9 must be absent: peepholes are not read",
    ),
    (
        changed(changes={3: "p"}, p=constant((5, 3))),
        ModelError,
        r"UNIDIRECTIONAL_SEQUENCE_LSTM \(operator 0, output 'y'\): 'p' must be \(5, 4\), not",
    ),
    (
        changed(changes={3: "p"}, p=constant((5, 4), zero_point=2)),
        UnsupportedError,
        "weights 'p' must have one scale, and 0 as zero point",
    ),
    (
        changed(changes={3: "p"}, p=constant((5, 4), scale=[0.1] * 5, axis=0)),
        UnsupportedError,
        "weights 'p' must have one scale, and 0 as zero point",
    ),
    (changed(changes={1: ""}), ModelError, "input 1 must be there, and is absent"),
    (
        changed(changes={18: "p"}, p=constant((1, 5))),
        ModelError,
        "its hidden state and cells must be variables",
    ),
    (
        changed(changes={18: "y_cells"}),
        ModelError,
        "variable 'y_cells' must be its own, and nothing else's",
    ),
    (
        changed(
            changes={19: "p"}, p={"shape": (1, 5), "dtype": "int8", "scale": 1.0, "variable": True}
        ),
        UnsupportedError,
        "cells 'p' must be int16 of one scale, not int8",
    ),
    (
        changed(changes={18: "p"}, p={"shape": (), "scale": 1.0, "variable": True}),
        ModelError,
        r"'p' must have 2 dimensions, not shape \(\)",
    ),
    (
        changed(changes={18: "p"}, p={"shape": (1, 5), "scale": 1.0, "variable": True}),
        UnsupportedError,
        r"output must have the hidden state's scale and zero point \(1\.0, 0\), not",
    ),
]


@pytest.mark.parametrize(("data", "kind", "message"), CASES)
def test_refusals(data: bytes, kind: type[SlipstickError], message: str) -> None:
    with pytest.raises(kind, match=message):
        load_tflite_bytes(data, "net")


def test_other_semantics_are_refused() -> None:
    from slipstick.frontends.semantics import with_semantics

    data, _ = random_lstm(RNG)
    with pytest.raises(UnsupportedError, match="which has no lstm"):
        with_semantics(load_tflite_bytes(data), "onnx")


def test_variables_of_other_operators_are_refused() -> None:
    writer = TfliteWriter()
    writer.tensor("x", (1, 4), scale=0.5)
    writer.tensor("kept", (1, 4), scale=0.5, variable=True)
    writer.tensor("y", (1, 4), scale=0.5)
    writer.add(basic.Add(), ["x", "kept"], ["y"])
    with pytest.raises(UnsupportedError, match="'kept' must be an ordinary tensor, and is a var"):
        load_tflite_bytes(writer.to_bytes(["x"], ["y"]))
