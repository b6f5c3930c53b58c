"""Float ONNX networks get logarithmic codes: near what they were, and readable at once."""

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from digits_network import digits, digits_network
from onnx import numpy_helper
from onnx_writer import OnnxWriter
from shared_data import shared
from slipstick import kernels
from slipstick.cli import app
from slipstick.data.inputs import load_inputs, load_labels
from slipstick.frontends.onnx import load_onnx_bytes
from slipstick.kernels.lns.codes import decode, encode
from slipstick.quantize import FloatNetwork
from slipstick.quantize.lns_scales import LARGEST_SUM, best_scales, fitting_scales
from slipstick.session import InferenceSession
from slipstick.targets import find_target
from slipstick_rtl.numbers.lns.array_arithmetic import ArrayArithmetic
from slipstick_rtl.numbers.lns.formats import Lns

SHAPE = (3, 9, 8)
FORMATS = {"lns1+3+4": 0.03, "lns1+3+3": 0.05, "lns1+3+2": 0.1, "lns1+4+2": 0.1}
"""And the mean error of results that is allowed, of the largest one."""


def arithmetic(name: str) -> ArrayArithmetic:
    return ArrayArithmetic(Lns.parse(name))


def network() -> bytes:
    """Convolutions, one depthwise and one normalised, a shortcut, pools, and a classifier."""
    rng = np.random.default_rng(0)
    net = OnnxWriter(17)

    def weights(*sizes: int) -> str:
        return net.constant(rng.normal(size=sizes) / np.sqrt(np.prod(sizes[1:])), "float32")

    x = net.input("x", ("N", *SHAPE))
    first = net.add("Relu", [net.add("Conv", [x, weights(8, 3, 3, 3), weights(8)], pads=[1] * 4)])
    deep = net.add("Conv", [first, weights(8, 1, 3, 3)], pads=[1] * 4, group=8)
    numbers = [net.constant(rng.uniform(0.5, 1.5, 8), "float32") for _ in range(4)]
    clipped = net.add("Clip", [net.add("BatchNormalization", [deep, *numbers]), "", ""])
    total = net.add("Relu", [net.add("Add", [first, clipped])])
    pooled = net.add("MaxPool", [total], kernel_shape=[2, 2], strides=[2, 2])
    mean = net.add("AveragePool", [pooled], kernel_shape=[2, 2], strides=[1, 1])
    rows = net.add("Flatten", [mean])
    product = net.add("Gemm", [rows, weights(6, 8 * 9), weights(6)], transB=1)
    return net.to_bytes([net.add("Softmax", [product])])


def images(count: int = 60, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, *SHAPE)).astype(np.float32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "small.onnx"
    place.write_bytes(network())
    return place


def float_results(x: np.ndarray) -> np.ndarray:
    return np.asarray(onnxruntime.InferenceSession(network()).run(None, {"x": x})[0])


@pytest.mark.parametrize(("name", "bound"), FORMATS.items())
@pytest.mark.parametrize("codes", [1, 2])
def test_results_stay_near(path: Path, name: str, bound: float, codes: int) -> None:
    data = FloatNetwork(path).quantize_logarithmic(images(), arithmetic(name), codes)
    graph, x = load_onnx_bytes(data), images(40, 2)
    values = kernels.run_graph(graph, [x])
    wanted = float_results(x)
    assert np.abs(values[graph.outputs[0]] - wanted).mean() < bound * wanted.max()
    first = next(node for node in graph.nodes if node.operator == "conv2d")
    assert graph.tensors[first.inputs[1]].shape == (8, 3, 3, 3 * codes)
    # no node is between real numbers alone
    for node in graph.nodes:
        names = [name for name in (*node.inputs, *node.outputs) if name]
        assert "int8" in {graph.tensors[name].dtype for name in names}, node.name


def test_two_codes_hold_more_of_an_input(path: Path) -> None:
    x, errors = images(40, 2), []
    for codes in (1, 2):
        data = FloatNetwork(path).quantize_logarithmic(images(), arithmetic("lns1+3+2"), codes)
        graph = load_onnx_bytes(data)
        values = kernels.run_graph(graph, [x])
        first = next(node for node in graph.nodes if node.operator == "conv2d")
        held = values[first.inputs[0]]
        quantization = graph.tensors[first.inputs[0]].quantization
        assert quantization is not None
        real = decode(held, quantization.scale[0], arithmetic("lns1+3+2"))
        real = real.reshape(*held.shape[:3], codes, 3).sum(axis=3).transpose(0, 3, 1, 2)
        errors.append(np.abs(real - x).mean())
    assert errors[1] < errors[0] / 8


def test_biases_make_up_for_mean_errors(path: Path) -> None:
    x, name = images(100), "lns1+2+2"
    data = FloatNetwork(path).quantize_logarithmic(x, arithmetic(name))
    model = onnx.ModelProto.FromString(data)
    initial = onnx.ModelProto.FromString(network())
    sums = next(node.output[0] for node in initial.graph.node if node.op_type == "Gemm")
    initial.graph.output.append(onnx.ValueInfoProto(name=sums))
    session = onnxruntime.InferenceSession(initial.SerializeToString())
    wanted = np.asarray(session.run([sums], {"x": x})[0]).mean(axis=0)

    def mean(graph_data: bytes) -> np.ndarray:
        graph = load_onnx_bytes(graph_data)
        node = next(node for node in graph.nodes if node.operator == "fully_connected")
        values = kernels.run_graph(graph, [x])
        quantization = graph.tensors[node.outputs[0]].quantization
        assert quantization is not None
        codes = values[node.outputs[0]]
        return decode(codes, quantization.scale[0], arithmetic(name)).mean(axis=0)

    corrected = np.abs(mean(data) - wanted).mean()
    gemm = next(node for node in model.graph.node if node.op_type == "Gemm")
    parts = {item.name: item for item in model.graph.initializer}
    source = next(node for node in model.graph.node if gemm.input[2] in node.output)
    plain = {item.name: numpy_helper.to_array(item) for item in initial.graph.initializer}
    original = next(node for node in initial.graph.node if node.op_type == "Gemm")
    scale = numpy_helper.to_array(parts[source.input[1]])
    codes = np.rint(plain[original.input[2]] / scale).astype(np.int32)
    parts[source.input[0]].CopyFrom(numpy_helper.from_array(codes, source.input[0]))
    assert corrected < np.abs(mean(model.SerializeToString()) - wanted).mean()


def test_files_are_ordinary(path: Path) -> None:
    data = FloatNetwork(path).quantize_logarithmic(images(), arithmetic("lns1+3+4"))
    model = onnx.ModelProto.FromString(data)
    onnx.checker.check_model(model)
    domains = {item.domain: item.version for item in model.opset_import}
    assert domains["slipstick"] == 1
    kinds = {node.op_type for node in model.graph.node if node.domain == "slipstick"}
    assert kinds == {"LogQuantizeLinear", "LogDequantizeLinear"}
    types = {item.data_type for item in model.graph.initializer if item.name.endswith("codes")}
    assert types == {onnx.TensorProto.INT8, onnx.TensorProto.INT32}


def test_scales_are_the_best() -> None:
    rng, own = np.random.default_rng(3), arithmetic("lns1+3+2")
    numbers = rng.normal(size=(3, 500)) * [[0.1], [1], [30]]
    numbers[0, 0] = 4.0
    scales = best_scales(numbers, own)

    def error(scale: np.ndarray) -> np.ndarray:
        real = decode(encode(numbers, scale[:, None], own), scale[:, None], own)
        return np.square(real - numbers).sum(axis=1)

    chosen = error(scales.astype(np.float64))
    for factor in (0.25, 0.5, 0.7, 1.4, 2, 4):
        assert (chosen <= 1.02 * error(scales * factor)).all()
    assert best_scales(np.zeros((1, 4)), own).tolist() == [1.0]


def test_sums_fit_32_bits() -> None:
    own = arithmetic("lns1+3+4")
    weights = np.ones((3, 4000))
    weights[2] = 0
    bias = np.array([0.0, 1e9, 5.0])
    scale = fitting_scales(weights, 0.01, bias, own)
    codes = encode(weights, scale[:, None], own)
    products = np.abs(own.multiply(codes, own.lns.largest_code)).sum(axis=1, dtype=np.int64)
    assert (products + np.abs(bias) / (scale * 0.01 * own.unit) < LARGEST_SUM).all()
    assert codes[0, 0] > 0 and np.rint(bias[2] / (scale[2] * 0.01 * own.unit)) > 1000


def test_command(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "a.npy", images(5))
    calibrate = ["--calibrate", str(tmp_path / "a.npy")]
    with pytest.raises(SystemExit) as ended:
        app(["quantize", str(path), *calibrate, "--format", "lns6", "--json"])
    assert not ended.value.code
    result = json.loads(capsys.readouterr().out)
    output = tmp_path / "small_lns6.onnx"
    assert result["output"] == str(output) and result["bytes"] == output.stat().st_size
    assert (result["format"], result["target"]) == ("lns6", "sim-lns6")
    assert load_onnx_bytes(output.read_bytes()).semantics == "lns1+3+2"
    with pytest.raises(SystemExit) as ended:
        app(
            [
                "eval",
                str(output),
                "--target",
                "sim-lns6",
                "--device",
                "model",
                "--inputs",
                str(tmp_path / "a.npy"),
                "--labels",
                str(tmp_path / "labels.npy"),
                "--json",
            ]
        )
    assert ended.value.code == 2 and "labels.npy" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--format", "lns9"), "--format must be qdq, qoperator, lns5, lns6, lns7, lns8, or"),
        (("--format", "lns1+5+2"), "I to 4, not 'lns1+5+2'"),
        (("--format", "small"), "not 'small'"),
        (("--format", "lns8", "--per-tensor"), "must not be given with --format lns8"),
        (("--format", "lns8", "--method", "minmax"), "must not be given with --format lns8"),
        (("--format", "lns8", "--input-codes", "3"), "--input-codes must be 1 or 2, not 3"),
        (("--input-codes", "2"), "--input-codes must not be given with --format qdq"),
        (("--format", "lns8", "--target", "sim-lns7"), "the target computes with lns1+3+3"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(
    path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    np.save(path.parent / "x.npy", images(2))
    with pytest.raises(SystemExit) as ended:
        app(["quantize", str(path), "-i", str(path.parent / "x.npy"), *arguments])
    captured = capsys.readouterr()
    assert ended.value.code == 2 and not captured.out
    assert captured.err.startswith("slipstick: ") and captured.err.count("\n") == 1
    assert message in captured.err
    assert sorted(item.name for item in path.parent.iterdir()) == ["small.onnx", "x.npy"]


@pytest.mark.borrows
def test_mnist_on_the_golden_core(tmp_path: Path) -> None:
    network = FloatNetwork(shared("models/mnist-8.onnx"))
    mnist = shared("data/mnist")
    samples = load_inputs([mnist / "train-images-idx3-ubyte.gz"], network.shape).first(100).x
    shown = load_inputs([mnist / "t10k-images-idx3-ubyte.gz"], network.shape).first(60).x
    labels = load_labels(mnist / "t10k-labels-idx1-ubyte.gz")[:60]
    assert accuracy_on_the_golden_core(network, samples, shown, labels, tmp_path) > 0.97


@pytest.mark.borrows
def test_digits_on_the_golden_core(tmp_path: Path) -> None:
    path = tmp_path / "float.onnx"
    path.write_bytes(digits_network())
    train, _, shown, labels = digits()
    accuracy = accuracy_on_the_golden_core(
        FloatNetwork(path), train[:100], shown[:60], labels[:60], tmp_path
    )
    assert accuracy > 0.97


def accuracy_on_the_golden_core(
    network: FloatNetwork, samples: np.ndarray, shown: np.ndarray, labels: np.ndarray, folder: Path
) -> float:
    """Share of right answers of a network in eight-bit logarithms, which are its definition's."""
    place = folder / "coded.onnx"
    place.write_bytes(network.quantize_logarithmic(samples, arithmetic("lns1+3+4")))
    target = find_target("sim-lns8").configuration
    with InferenceSession(place, "model", target) as session:
        (scores,) = session.run(None, {session.get_inputs()[0].name: shown})
    graph = load_onnx_bytes(place.read_bytes())
    wanted = kernels.run_graph(graph, [shown.astype(np.float32)])[graph.outputs[0]]
    np.testing.assert_array_equal(scores, wanted)
    return float((scores.argmax(axis=1) == labels).mean())
