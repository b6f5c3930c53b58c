"""Networks by the rounding of another reference than their file's."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tflm_cases as cases
from onnx_writer import OnnxWriter
from program_runner import run_program
from random_networks import random_network
from shared_data import shared
from slipstick.cli import app
from slipstick.compiler import compile_graph
from slipstick.errors import ProgramError, UnsupportedError
from slipstick.examples.digits import MODEL, load_digits
from slipstick.frontends import load
from slipstick.frontends.onnx import load_onnx_bytes
from slipstick.frontends.semantics import with_semantics
from slipstick.frontends.tflite import load_tflite_bytes
from slipstick.graph import Graph, Tensor
from slipstick.kernels import run_graph, scalar
from slipstick.kernels.tflite import matrix
from slipstick.kernels.tflite.scaling import activation_range
from slipstick.loading import compile_file, load_program
from slipstick.session import InferenceSession
from slipstick.verify.references import Definition, open_references
from slipstick.verify.verifier import Verifier
from slipstick.writers import tflite_functions as functions
from slipstick.writers import tflite_operators as ops
from slipstick_rtl.config import Configuration
from tflm_networks import odd_networks

SUMS = {
    "conv2d": matrix.sum_conv2d,
    "depthwise_conv2d": matrix.sum_depthwise_conv2d,
    "fully_connected": lambda x, w, tensors, _: matrix.sum_fully_connected(x, w, tensors),
}


def real(codes: np.ndarray, tensor: Tensor) -> np.ndarray:
    scale, zero_point = scalar(tensor.quantization)
    return (codes.astype(np.float64) - zero_point) * scale


def clamped(values: np.ndarray, graph: Graph) -> np.ndarray:
    """Rounded, with zero point and activation of the one node."""
    (node,) = graph.nodes
    scale, zero_point = scalar(graph.tensors[node.outputs[0]].quantization)
    codes = np.rint(values) + zero_point
    return np.clip(codes, *activation_range(node.attributes["activation"], scale, zero_point))


def layer(graph: Graph, x: np.ndarray) -> np.ndarray:
    """Sums times float32 factors in float32, half to even."""
    (node,) = graph.nodes
    source, weights, output = (graph.tensors[n] for n in (*node.inputs[:2], *node.outputs))
    assert weights.data is not None and weights.quantization is not None
    sums = SUMS[node.operator](x, weights.data, (source, weights, output), node.attributes)
    bias = graph.tensors[node.inputs[2]].data if node.inputs[2:] and node.inputs[2] else None
    factors = np.float32(scalar(source.quantization)[0]) * weights.quantization.scale.astype("f4")
    factors /= np.float32(scalar(output.quantization)[0])
    return clamped((sums if bias is None else sums + bias).astype(np.float32) * factors, graph)


def addition(graph: Graph, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    (node,) = graph.nodes
    first, second = (real(x, graph.tensors[n]) for x, n in zip((a, b), node.inputs, strict=True))
    return clamped((first + second) / scalar(graph.tensors[node.outputs[0]].quantization)[0], graph)


@pytest.mark.parametrize(
    ("make", "define", "most"),
    [
        (lambda rng: cases.convolution(rng, depthwise=False), layer, 0),
        (lambda rng: cases.convolution(rng, depthwise=True), layer, 0),
        (cases.fully_connected, layer, 0),
        # ties of exact numbers, which float32 has or not
        (cases.addition, addition, 0.002),
    ],
    ids=["conv2d", "depthwise", "fully_connected", "add"],
)
def test_operators_follow_float32(
    make: Callable[..., tuple], define: Callable[..., np.ndarray], most: float
) -> None:
    rng = np.random.default_rng(3)
    for _ in range(30):
        data, inputs = make(rng)
        inputs = inputs if isinstance(inputs, tuple) else (inputs,)
        own = load_tflite_bytes(data)
        graph = with_semantics(own, "onnx")
        assert graph.semantics == "onnx"
        actual = run_graph(graph, inputs)[graph.outputs[0]]
        away = np.abs(actual - define(own, *inputs))
        assert away.max() <= 1 and (away > 0).mean() <= most


@pytest.mark.parametrize("make", [cases.pooling, cases.mean], ids=["average_pool2d", "mean"])
def test_means(make: Callable[..., tuple]) -> None:
    """tflm's means are exact but for the rounding: both are within half a code of the mean."""
    rng = np.random.default_rng(4)
    for _ in range(30):
        more = (ops.AveragePool2D,) if make is cases.pooling else ()
        data, x = make(rng, *more)
        own = load_tflite_bytes(data)
        theirs = run_graph(own, [x])[own.outputs[0]].astype(np.int64)
        graph = with_semantics(own, "onnx")
        away = np.abs(run_graph(graph, [x])[graph.outputs[0]] - theirs)
        assert away.max() <= 1


@pytest.mark.parametrize("seed", range(24))
def test_programs_follow_the_definition(seed: int) -> None:
    builder = random_network(seed)
    graph = with_semantics(builder.graph(), "onnx")
    image = builder.images()
    wanted = Definition(graph).run_layers(image)
    program = compile_graph(graph, Configuration(rows=8, columns=8, lanes=4), inspect=True)
    assert program.semantics == "onnx"
    values = run_program(program, {"input": image})
    for name in wanted.keys() & values.keys():
        np.testing.assert_array_equal(values[name], wanted[name], name)


@pytest.mark.parametrize("place", range(9))
def test_odd_operators(place: int) -> None:
    """One code from tflm's at most, on the device as in the kernels; or refused."""
    own = load_tflite_bytes(odd_networks(np.random.default_rng(5))[place], "odd")
    if any(node.operator == "resize_bilinear" for node in own.nodes):
        with pytest.raises(UnsupportedError, match="which has no resize_bilinear .node"):
            with_semantics(own, "onnx")
        return
    graph = with_semantics(own, "onnx")
    dtypes = {name: own.tensors[name].dtype for name in own.inputs}
    rng = np.random.default_rng(6)
    inputs = {name: cases.codes(rng, own.tensors[name].shape, dtypes[name]) for name in own.inputs}
    theirs = run_graph(own, list(inputs.values()))
    ours = run_graph(graph, list(inputs.values()))
    made = run_program(compile_graph(graph, Configuration()), inputs)
    for name in own.outputs:
        np.testing.assert_array_equal(made[name], ours[name])
        assert ours[name].dtype == theirs[name].dtype
        assert np.abs(ours[name].astype(np.int64) - theirs[name]).max() <= 1


def test_digits_either_way() -> None:
    images, labels = (array[:100] for array in load_digits()[2:])
    outputs = {}
    for semantics in (None, "tflm", "onnx"):
        with InferenceSession(MODEL, "model", semantics=semantics) as session:
            (outputs[semantics],) = session.run(None, {session.program.inputs[0]: images})
            assert session.program.semantics == (semantics or "tflm")
        assert (outputs[semantics].reshape(100, -1).argmax(axis=1) == labels).mean() > 0.95
    np.testing.assert_array_equal(outputs[None], outputs["tflm"])
    assert (outputs["onnx"] != outputs["tflm"]).any()
    reference, runtime = open_references(MODEL, "onnx")
    assert isinstance(reference, Definition) and runtime is None
    verifier = Verifier(MODEL, Configuration(), "onnx")
    feeds = {verifier.program.inputs[0]: images[:4]}
    checked = verifier.check(feeds, lambda what, count: lambda done: None, rtl=False)
    assert all(tensor.reference is not None for tensor in checked)
    assert not sum(tensor.mismatches for tensor in checked)


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    images, labels = (array[:20] for array in load_digits()[2:])
    np.savez(tmp_path / "digits.npz", x=images, y=labels)
    given = ["-i", str(tmp_path / "digits.npz"), "--semantics", "onnx", "--json"]
    results = {}
    for command, *options in (
        ("compile", "--semantics", "onnx", "--json"),
        ("verify", *given, "--no-rtl"),
        ("eval", *given),
        ("run", *given, "-d", "model"),
    ):
        with pytest.raises(SystemExit) as ended:
            app([command, str(MODEL), *options])
        assert not ended.value.code
        results[command] = json.loads(capsys.readouterr().out)
    assert results["compile"]["semantics"] == results["verify"]["semantics"] == "onnx"
    assert results["verify"]["total_mismatches"] == 0
    assert results["eval"]["accuracy"] > 0.9
    with pytest.raises(SystemExit) as ended:
        app(["compile", str(MODEL), "--semantics", "ruy"])
    assert ended.value.code == 2
    assert "'ruy' is not one of 'tflm', 'onnx'" in capsys.readouterr().err


@pytest.mark.borrows
def test_depthwise_network_equals_xnnpack() -> None:
    """Which rounds as onnx does; its additions are its own, and this network has none."""
    path = shared("models/kws01_dscnn_int8.tflite")
    golden = shared("golden/kws01_dscnn_int8.npz")
    with np.load(golden) as archive, InferenceSession(path, "model", semantics="onnx") as session:
        (ours,) = session.run(None, {session.program.inputs[0]: archive["x"]})
        np.testing.assert_array_equal(ours, archive["out_litert_xnnpack"])
        assert (ours != archive["out_tflm"]).any()


@pytest.mark.parametrize(
    ("operator", "result", "message"),
    [
        (functions.Sum(), ((1, 3), 1.0, 0), "no reduce_sum .node"),
        (ops.Softmax(beta=0.5), ((1, 4, 4, 3), 1 / 256, -128), "no softmax with beta = 0.5 .node"),
    ],
)
def test_what_onnx_has_not(operator: ops.Operator, result: tuple, message: str) -> None:
    axes = np.array([1, 2], np.int32) if isinstance(operator, functions.Sum) else None
    data = cases.single_operator(operator, ((1, 4, 4, 3), 0.1, 0), result, axes)
    graph = load_tflite_bytes(data, "tiny")
    with pytest.raises(UnsupportedError, match=f"tiny: semantics must be tflm.* {message}"):
        with_semantics(graph, "onnx")


def test_refusals(tmp_path: Path) -> None:
    net = OnnxWriter()
    data = net.to_bytes([net.pair(net.input("x", (1, 4)), 0.1)])
    graph = load_onnx_bytes(data, "pair")
    assert with_semantics(graph, "onnx") is graph is with_semantics(graph, None)
    with pytest.raises(UnsupportedError, match="pair: semantics of an ONNX network must be onnx"):
        with_semantics(graph, "tflm")
    with pytest.raises(UnsupportedError, match="semantics must be one of .*, not 'ruy'"):
        with_semantics(load(MODEL), "ruy")
    place = tmp_path / "digits.slip"
    compile_file(MODEL, semantics="onnx").save(place)
    assert load_program(place, semantics="onnx").semantics == "onnx"
    with pytest.raises(ProgramError, match="follows the semantics onnx, not tflm: compile"):
        load_program(place, semantics="tflm")
