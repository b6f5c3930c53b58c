"""LSTM and GRU of ONNX files, as onnxruntime's quantisers leave or make them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from encoder_network import quantised_dynamically
from onnx import numpy_helper
from onnx_checks import check, on_device, operators
from onnx_writer import OnnxWriter
from slipstick import kernels
from slipstick.compiler import compile_graph
from slipstick.devices import open_device
from slipstick.errors import ModelError, SlipstickError, UnsupportedError
from slipstick.frontends.onnx import load_onnx_bytes
from slipstick.session import InferenceSession
from slipstick.verify.references import LayerRuntime
from tflm_networks import SMALL

RNG = np.random.default_rng(73)
RUNS = 100
GATES = {"LSTM": 4, "GRU": 3}


def numbers(*shape: int, scale: float = 1.0) -> np.ndarray:
    return RNG.normal(0, scale, shape).astype(np.float32)


def add_recurrent(
    net: OnnxWriter,
    x: str,
    kind: str,
    sizes: tuple[int, int],
    *,
    directions: int = 1,
    rest: list[str] | None = None,
    **options: Any,
) -> list[str]:
    """A node of (width, units) with random weights and biases; returns its outputs."""
    width, units = sizes
    rows = GATES[kind] * units
    inputs = [
        x,
        net.constant(numbers(directions, rows, width, scale=width**-0.5)),
        net.constant(numbers(directions, rows, units, scale=units**-0.5)),
        net.constant(numbers(directions, 2 * rows, scale=0.3)),
        *(rest or []),
    ]
    made = net.add(kind, inputs, hidden_size=units, **options)
    names = [made, *(f"{made}_{what}" for what in ("h", "c")[: 2 if kind == "LSTM" else 1])]
    net.nodes[-1].output.extend(names[1:])
    return names


CASES: list[tuple[str, int, dict[str, Any]]] = [
    ("LSTM", 1, {}),
    ("LSTM", 1, {"direction": "reverse"}),
    ("LSTM", 2, {"direction": "bidirectional", "clip": 0.7}),
    ("LSTM", 1, {"input_forget": 1}),
    ("LSTM", 1, {"activations": ["Sigmoid", "Tanh", "Tanh"]}),
    ("GRU", 1, {}),
    ("GRU", 1, {"linear_before_reset": 1}),
    ("GRU", 2, {"direction": "bidirectional", "linear_before_reset": 1, "clip": 0.5}),
]


@pytest.mark.parametrize(("kind", "directions", "options"), CASES)
def test_layers(kind: str, directions: int, options: dict[str, Any]) -> None:
    """Within 1e-5 of onnxruntime, which adds float32 numbers in an order of its own."""
    net = OnnxWriter(17)
    x = net.pair(net.input("x", (7, 2, 5)), 0.03, 3)
    outputs = add_recurrent(net, x, kind, (5, 6), directions=directions, **options)
    graph = check(net.to_bytes(outputs), numbers(20, 7, 2, 5))
    assert "recurrent" in operators(graph)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_first_states_and_peepholes_of_the_file(kind: str) -> None:
    net = OnnxWriter(17)
    x = net.pair(net.input("x", (4, 3, 5)), 0.03, 3)
    lengths = net.constant(np.full(3, 4), "int32")
    rest = [lengths, *(net.constant(numbers(1, 3, 6)) for _ in range(GATES[kind] - 2))]
    if kind == "LSTM":
        rest += [net.constant(numbers(1, 18))]
    check(net.to_bytes(add_recurrent(net, x, kind, (5, 6), rest=rest)), numbers(20, 4, 3, 5))


def streaming(kind: str) -> OnnxWriter:
    """A step at a time; what it keeps is an input and an output."""
    net = OnnxWriter(17)
    x = net.pair(net.input("x", (1, 1, 5)), 0.03, 3)
    rest = ["", *(net.input(name, (1, 1, 6)) for name in "hc"[: GATES[kind] - 2])]
    _, *states = add_recurrent(net, x, kind, (5, 6), rest=rest)
    for name, state in zip("hc", states, strict=False):
        net.add("Identity", [state], f"{name}_next")
    flat = net.pair(net.add("Flatten", [states[0]]), 1 / 128)
    # scales whose ratio leaves few sums halfway between two codes
    matrix = net.weights(RNG.integers(-128, 128, (6, 4), dtype=np.int8), 0.01137)
    net.pair(net.add("MatMul", [flat, matrix], "logits"), 0.04931)
    net.nodes[-1].output[0] = "y"
    return net


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_states_fed_back_over_100_runs_stay_near_onnxruntime(kind: str) -> None:
    import onnxruntime

    names = ["h_next", "c_next"][: GATES[kind] - 2]
    data = streaming(kind).to_bytes([*names, "y"])
    plain = onnxruntime.SessionOptions()
    # what it fuses into products of codes saturates on some machines
    plain.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    runtime = onnxruntime.InferenceSession(data, plain, providers=["CPUExecutionProvider"])
    graph = load_onnx_bytes(data)
    assert "fully_connected" in on_device(graph)
    state = {name[0]: np.zeros((1, 1, 6), np.float32) for name in names}
    theirs, away, codes = dict(state), 0.0, 0
    with InferenceSession(compile_graph(graph, SMALL), open_device("model", SMALL)) as session:
        for x in numbers(RUNS, 1, 1, 5):
            made = session.run(None, {"x": x, **state})
            wanted = list(map(np.asarray, runtime.run(None, {"x": x, **theirs})))
            state = {name[0]: value[0] for name, value in zip(names, made, strict=False)}
            theirs = {name[0]: value for name, value in zip(names, wanted, strict=False)}
            pairs = zip(state.values(), theirs.values(), strict=True)
            away = max(away, *(float(np.abs(a - b).max()) for a, b in pairs))
            codes += int((made[-1].reshape(-1) != wanted[-1].reshape(-1)).sum())
    assert away < 1e-5 and codes == 0


def batch_first(kind: str) -> bytes:
    """As exporters write it: turned, without directions, the last step into a layer."""
    net = OnnxWriter(17)
    x = net.pair(net.input("x", (1, 6, 5)), 0.03, 3)
    turned = net.add("Transpose", [x], perm=[1, 0, 2])
    y = add_recurrent(net, turned, kind, (5, 8))[0]
    back = net.add("Transpose", [net.add("Squeeze", [y, net.constant([1])])], perm=[1, 0, 2])
    last = net.add("Gather", [back, net.constant(-1)], axis=1)
    matrix = net.weights(RNG.integers(-128, 128, (8, 4), dtype=np.int8), 0.01)
    y = net.pair(net.add("MatMul", [net.pair(last, 1 / 128), matrix]), 0.05)
    return net.to_bytes([y])


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_between_quantised_neighbours(kind: str) -> None:
    graph = check(batch_first(kind), numbers(20, 6, 5))
    macs = {each.operator: each.macs for each in compile_graph(graph, SMALL).layers if each.macs}
    assert macs == {"recurrent": 6 * GATES[kind] * 8 * 13, "fully_connected": 32}


def dynamic(folder: Path, **options: Any) -> bytes:
    net = OnnxWriter(17)
    outputs = add_recurrent(net, net.input("x", (10, 1, 16)), "LSTM", (16, 24))
    return quantised_dynamically(net.to_bytes(outputs), folder, **options)


def distances(data: bytes, x: np.ndarray) -> np.ndarray:
    """How far each number of all outputs is from onnxruntime's."""
    graph = load_onnx_bytes(data)
    found: list[np.ndarray] = []

    def note(name: str, wanted: np.ndarray, actual: np.ndarray) -> None:
        found.append(np.abs(wanted - actual).ravel())

    LayerRuntime(data, graph).differences({"x": x}, note)
    assert len(found) == 3
    return np.concatenate(found)


@pytest.mark.parametrize("per_channel", [False, True])
def test_dynamically_quantised_lstm(per_channel: bool, tmp_path: Path) -> None:
    """Weights of 7 bits, whose products no machine's onnxruntime saturates.

    A hidden state that lies halfway between two codes may get the other one, in a step of some.
    """
    data = dynamic(tmp_path, per_channel=per_channel, reduce_range=True)
    assert operators(load_onnx_bytes(data)) == ["recurrent"]
    away = distances(data, numbers(RUNS, 10, 1, 16))
    assert away.max() < 0.01 and (away > 1e-5).mean() < 0.01


def test_dynamically_quantised_lstm_in_a_session(tmp_path: Path) -> None:
    graph = load_onnx_bytes(dynamic(tmp_path))
    x = numbers(6, 10, 1, 16)
    values = kernels.run_graph(graph, [x])
    with InferenceSession(compile_graph(graph, SMALL), open_device("model", SMALL)) as session:
        (actual,) = session.run([graph.outputs[0]], {"x": x})
    np.testing.assert_array_equal(actual, values[graph.outputs[0]])


def refused(kind: str = "LSTM", shape: tuple[Any, ...] = (4, 1, 5), **options: Any) -> bytes:
    net = OnnxWriter(17)
    x = net.pair(net.input("x", shape), 0.03, 3)
    rest = options.pop("rest", None)
    return net.to_bytes(add_recurrent(net, x, kind, (5, 6), rest=rest, **options))


REFUSALS: list[tuple[bytes, type[SlipstickError], str]] = [
    (refused(layout=1), UnsupportedError, r"LSTM .*: layout must be 0, not 1"),
    (
        refused(activations=["Relu", "Tanh", "Tanh"]),
        UnsupportedError,
        r"activations must be \('sigmoid', 'tanh', 'tanh'\), not",
    ),
    (refused(direction="sideways"), UnsupportedError, "direction must be forward or reverse or"),
    (refused(direction="bidirectional"), ModelError, r"W must be \(2, 24, 5\), not \(1, 24, 5\)"),
    (refused(clip=-1.0), ModelError, r"clip must be at least 0, not -1\.0"),
    (
        refused(shape=("N", 1, 5)),
        UnsupportedError,
        r"input 'x': shape must be fixed in a network with LSTM or GRU \(python -m",
    ),
    (refused("GRU", shape=(4, 5)), UnsupportedError, r"GRU .*must be computed, of 3 dimensions"),
]


@pytest.mark.parametrize(("data", "kind", "message"), REFUSALS)
def test_refusals(data: bytes, kind: type[SlipstickError], message: str) -> None:
    with pytest.raises(kind, match=message):
        load_onnx_bytes(data, "net")


def test_lengths_and_states_of_other_sizes_are_refused() -> None:
    for rest, message in (
        ([("lengths", np.array([3], np.int32))], "must be 4, as all sequences are"),
        ([None, ("h", np.zeros((1, 2, 6), np.float32))], r"must be \(1, 1, 6\), not \(1, 2, 6\)"),
    ):
        net = OnnxWriter(17)
        x = net.pair(net.input("x", (4, 1, 5)), 0.03, 3)
        names = ["" if each is None else net.constant(each[1], name=each[0]) for each in rest]
        outputs = add_recurrent(net, x, "GRU", (5, 6), rest=names)
        with pytest.raises(SlipstickError, match=message):
            load_onnx_bytes(net.to_bytes(outputs))


@pytest.mark.parametrize("value", [0.0, -1.0, np.inf, np.nan])
def test_scales_that_are_none_are_refused(value: float, tmp_path: Path) -> None:
    model = onnx.load_from_string(dynamic(tmp_path))
    for tensor in model.graph.initializer:
        if tensor.name.endswith("_scale"):
            array = np.full(tuple(tensor.dims), value, np.float32)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    with pytest.raises(UnsupportedError, match="scale input 8 .* must be within"):
        load_onnx_bytes(model.SerializeToString())


def test_verify_says_how_far_onnxruntime_is(slipstick: Any, tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(batch_first("LSTM"))
    status, out, _ = slipstick("verify", path, "--no-rtl", "--target", "sim-small", "--json")
    lines = {entry["operator"]: entry for entry in json.loads(out)["layers"]}
    runtime = lines["recurrent"]["reference_vs_runtime"]
    assert status == 0 and 0 < runtime["mismatches"] and 0 < runtime["largest"] < 1e-5
    assert lines["recurrent"]["mismatches"] == 0
