"""Float ONNX networks are quantised: near what they were, and readable at once."""

import json
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx_writer import OnnxWriter
from shared_data import shared
from slipstick.cli import app
from slipstick.compiler import compile_graph
from slipstick.data.inputs import load_inputs, load_labels
from slipstick.errors import DeviceError, InputError, ModelError, SlipstickError, UnsupportedError
from slipstick.frontends import load
from slipstick.frontends.onnx import load_onnx_bytes
from slipstick.quantize import CHUNK, FORMATS, METHODS, FloatNetwork
from slipstick.session import InferenceSession
from slipstick_rtl.config import Configuration

SHAPE = (3, 10, 10)
CLASSES = 7


def network(
    opset: int = 17, batch: int | str = "N", inputs: int = 1, shape: tuple[int, ...] = SHAPE
) -> bytes:
    """Convolution, pooling, shortcut and classifier, in float32."""
    generator = np.random.default_rng(0)
    net = OnnxWriter(opset)
    x = net.input("x", (batch, *shape))
    for index in range(1, inputs):
        x = net.add("Add", [x, net.input(f"x{index}", (batch, *shape))])

    def weights(*sizes: int) -> str:
        spread = generator.uniform(0.05, 0.4, (sizes[0], *[1] * (len(sizes) - 1)))
        return net.constant(generator.normal(size=sizes) * spread, "float32")

    first = net.add("Relu", [net.add("Conv", [x, weights(8, 3, 3, 3), weights(8)])])
    second = net.add("Conv", [first, weights(8, 8, 3, 3)], pads=[1, 1, 1, 1])
    total = net.add("Relu", [net.add("Add", [first, second])])
    pooled = net.add("MaxPool", [total], kernel_shape=[2, 2], strides=[2, 2])
    rows = net.add("Flatten", [pooled])
    product = net.add("MatMul", [rows, weights(8 * 16, CLASSES)])
    shape_out = (batch, CLASSES) if isinstance(batch, int) else None
    return net.to_bytes([net.add("Add", [product, weights(1, CLASSES)])], shape=shape_out)


def images(count: int = 40) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(count, *SHAPE)).astype(np.float32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    place = tmp_path / "small.onnx"
    place.write_bytes(network())
    return place


def run(data: bytes, x: np.ndarray, batch: int = 1) -> np.ndarray:
    session = onnxruntime.InferenceSession(data)
    parts = x.reshape(-1, batch, *x.shape[1:])
    return np.concatenate([np.asarray(session.run(None, {"x": part})[0]) for part in parts])


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    ("method", "per_channel"),
    [("minmax", False), *((method, True) for method in METHODS)],
)
def test_results_stay_near(path: Path, form: str, method: str, per_channel: bool) -> None:
    x = images()
    data = FloatNetwork(path).quantize(x, form=form, method=method, per_channel=per_channel)
    program = compile_graph(load_onnx_bytes(data), Configuration())
    where = {layer.operator: layer.where for layer in program.layers}
    for operator in ("conv2d", "add", "max_pool2d", "fully_connected"):
        assert where[operator] == "device"
    with InferenceSession(program, "model") as session:
        (codes,) = session.run(None, {"x": x})
    wanted = run(path.read_bytes(), x)
    # of several layers' errors of half a code each
    assert np.abs(codes - wanted).mean() < 0.02 * np.abs(wanted).max()
    scales = load_onnx_bytes(data).tensors
    counts = {
        len(item.quantization.scale)
        for item in scales.values()
        if item.data is not None and item.quantization is not None and item.dtype == "int8"
    }
    assert counts == ({8, CLASSES} if per_channel else {1})


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("opset", [11, 21])
def test_versions_and_batches(path: Path, opset: int, batch: int) -> None:
    path.write_bytes(network(opset, batch))
    x = images(2 * CHUNK + 3)
    data = FloatNetwork(path).quantize(x)
    path.write_bytes(network())
    # a file's version and batch are no reason for other numbers
    wanted = run(FloatNetwork(path).quantize(x), x)
    assert np.abs(run(data, x[:66], batch) - wanted[:66]).max() < 1e-4
    load_onnx_bytes(data)


def test_command(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "a.npy", images(5))
    np.savez(tmp_path / "b.npz", x=images(9)[5:])
    files = [str(tmp_path / "a.npy"), str(tmp_path / "b.npz")]
    with pytest.raises(SystemExit) as ended:
        app(["quantize", str(path), "--calibrate", *files, "--limit", "7", "--json"])
    assert not ended.value.code
    captured = capsys.readouterr()
    result = json.loads(captured.out)
    assert not captured.err and captured.out.count("\n") == 1
    output = tmp_path / "small_int8.onnx"
    assert result["output"] == str(output) and result["bytes"] == output.stat().st_size
    assert (result["count"], result["method"], result["format"]) == (7, "minmax", "qdq")
    assert {"conv2d", "add"} <= {entry["operator"] for entry in result["layers"]}
    load(output)
    again = ["quantize", str(path), *files, "-o", str(tmp_path / "x.onnx"), "-n", "7"]
    with pytest.raises(SystemExit) as ended:
        app([*again, "--per-tensor"])
    assert not ended.value.code
    assert "x.onnx" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("small.onnx",), "calibration needs at least one file: --calibrate FILE"),
        (("small.onnx", "-i", "none.npy"), "none.npy is not there"),
        (("small.onnx", "-i", "shape.npy"), "shape.npy must hold inputs of shape (3, 10, 10)"),
        (("small.onnx", "-i", "nan.npy"), "must hold finite numbers, but has nan"),
        (("small.onnx", "-i", "x.npy", "-o", "small.onnx"), "--output must be another file"),
        (("small.onnx", "-i", "x.npy", "-o", "no/x.onnx"), "no/x.onnx: No such file"),
        (("small.onnx", "-i", "x.npy", "--method", "guess"), "'guess' is not one of 'minmax'"),
        (("small.onnx", "-i", "x.npy", "--limit", "0"), "--limit must be at least 1, not 0"),
        (("none.onnx", "-i", "x.npy"), "none.onnx cannot be read"),
        (("x.npy", "-i", "x.npy"), "x.npy must be a float ONNX file"),
        (("int8.onnx", "-i", "x.npy"), "is quantised already: it holds QuantizeLinear (node 0)"),
        (("two.onnx", "-i", "x.npy"), "two.onnx must have one input to be quantised, not 2"),
        (("open.onnx", "-i", "x.npy"), "must be float32 of a shape that is fixed but"),
        (("cut.onnx", "-i", "x.npy"), "cut is no ONNX file, damaged or cut short"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    message: str,
) -> None:
    folder = path.parent
    monkeypatch.chdir(folder)
    np.save(folder / "x.npy", images(2))
    np.save(folder / "shape.npy", images(2)[:, :2])
    np.save(folder / "nan.npy", np.full((1, *SHAPE), np.nan, np.float32))
    coded = OnnxWriter()
    pair = coded.pair(coded.input("x", (1, *SHAPE)), 0.1)
    (folder / "int8.onnx").write_bytes(coded.to_bytes([pair]))
    (folder / "two.onnx").write_bytes(network(inputs=2))
    opened = onnx.ModelProto.FromString(network())
    opened.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "height"
    (folder / "open.onnx").write_bytes(opened.SerializeToString())
    (folder / "cut.onnx").write_bytes(network()[:2000])
    before = path.read_bytes()
    with pytest.raises(SystemExit) as ended:
        app(["quantize", *arguments])
    captured = capsys.readouterr()
    assert ended.value.code == 2 and not captured.out
    assert captured.err.startswith("slipstick: ") and captured.err.count("\n") == 1
    assert message in captured.err
    assert path.read_bytes() == before and not (folder / "small_int8.onnx").exists()


def test_what_python_users_hear(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    float_network = FloatNetwork(path)
    with pytest.raises(InputError, match="format must be one of .*, not 'int4'"):
        float_network.quantize(images(1), form="int4")
    with pytest.raises(InputError, match="method must be one of .*, not 'guess'"):
        float_network.quantize(images(1), method="guess")
    with pytest.raises(InputError, match="must have the shape"):
        float_network.quantize(images(1)[:, 1:])
    monkeypatch.setitem(sys.modules, "onnxruntime.quantization", None)
    with pytest.raises(DeviceError, match="needs the package onnxruntime: install"):
        float_network.quantize(images(1))


def test_networks_that_cannot_be(path: Path) -> None:
    old = onnx.ModelProto.FromString(network(11, 1))
    old.graph.node[0].input[0] = "nowhere"
    path.write_bytes(old.SerializeToString())
    with pytest.raises(ModelError, match="cannot be brought to opset 17"):
        FloatNetwork(path)
    new = onnx.ModelProto.FromString(network(17))
    new.graph.node[0].attribute.add(name="strides", ints=[1, 1, 1, 1], type=7)
    path.write_bytes(new.SerializeToString())
    with pytest.raises((ModelError, UnsupportedError)):
        FloatNetwork(path).quantize(images(1))


@pytest.mark.parametrize("seed", range(24))
def test_mutated_networks(path: Path, seed: int) -> None:
    """Quantised, or refused by a typed error; onnxruntime crashes on none of them."""
    generator = np.random.default_rng(seed)
    model = onnx.ModelProto.FromString(network(int(generator.choice([11, 17])), 1))
    graph = model.graph
    node = graph.node[int(generator.integers(len(graph.node)))]
    tensor = graph.initializer[int(generator.integers(len(graph.initializer)))]
    shape = graph.input[0].type.tensor_type.shape.dim
    match seed % 6:
        case 0:
            node.op_type = str(generator.choice(["Conv", "Gemm", "Loop", "Reshape", "Unheard"]))
        case 1:
            node.input[0] = str(generator.choice(["", "nowhere", node.output[0], tensor.name]))
        case 2:
            tensor.dims[:] = generator.choice([0, 1, 3, -1, 1 << 40], 3).tolist()
        case 3:
            tensor.data_type = int(generator.integers(0, 24))
        case 4:
            shape[int(generator.integers(4))].dim_value = int(generator.choice([-1, 0, 5, 1 << 50]))
        case 5:
            del graph.node[int(generator.integers(len(graph.node)))]
    path.write_bytes(model.SerializeToString())
    try:
        float_network = FloatNetwork(path)
        x = np.random.default_rng(0).normal(size=(2, *float_network.shape[1:]))
        load_onnx_bytes(float_network.quantize(x.astype(np.float32)))
    except SlipstickError as error:
        assert len(str(error)) > 20


@pytest.mark.borrows
def test_real_networks() -> None:
    """Calibrated on others than, or half of, what they are tried on."""
    cases = (
        ("resnet8_cifar10_fp32", "cifar10/ic01_cifar10_200.npz", None, 100, 0.855),
        ("mnist-8", "mnist/t10k-images-idx3-ubyte.gz", "mnist/t10k-labels-idx1-ubyte.gz", 50, 0.98),
    )
    for name, inputs, labels, count, least in cases:
        float_network = FloatNetwork(shared(f"models/{name}.onnx"))
        samples = load_inputs([shared(f"data/{inputs}")], float_network.shape)
        truths = samples.y if labels is None else load_labels(shared(f"data/{labels}"))
        assert truths is not None
        made = load_onnx_bytes(float_network.quantize(samples.x[:count]))
        with InferenceSession(compile_graph(made, Configuration()), "model") as session:
            (codes,) = session.run(None, {made.inputs[0]: samples.x[:1000]})
        assert (codes.argmax(axis=1) == truths[:1000]).mean() >= least
