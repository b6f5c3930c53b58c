"""Training with rounding: it computes what the deployed file does, and learns from that."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from slipstick import InferenceSession, kernels
from slipstick.errors import InputError, UnsupportedError
from slipstick.frontends.onnx import load_onnx_bytes
from slipstick.kernels.lns.codes import arithmetic_of, decode
from slipstick.quantize import FloatNetwork
from slipstick.studies.training_aware.tasks import TASKS
from slipstick.training.arithmetic import Gradient
from slipstick.training.aware import (
    AwareRecipe,
    NetworkFile,
    StepFigures,
    Tuned,
    find_format,
    fine_tune,
)
from slipstick.training.aware.adam import Adam, cosine
from slipstick.training.aware.files import round_after_training
from slipstick.training.aware.float_file import write_float_network
from slipstick.training.aware.network import AwareNetwork
from slipstick.training.float32 import softmax
from slipstick.training.network import FloatParameters, initial_parameters
from training_networks import CLASSES, small_network, small_pictures

UNIT = np.float32(2**-7)
QUICK = AwareRecipe(steps=100, batch=32, rate=1e-2, refits=2, calibrating=64)


def pictures(count: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """As a float file takes them, with labels."""
    data = small_pictures(count, seed)
    return data.images.transpose(0, 3, 1, 2).astype(np.float32) * UNIT, data.labels


@pytest.fixture(scope="module")
def random_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every kind of layer, with random weights."""
    network, path = small_network(), tmp_path_factory.mktemp("aware") / "random.onnx"
    path.write_bytes(write_float_network(network, initial_parameters(network, 3)))
    return path


@pytest.fixture(scope="module")
def trained_file(random_file: Path) -> Path:
    """The same, trained in float32."""
    x, y = pictures(256)
    path = random_file.with_name("trained.onnx")
    recipe = AwareRecipe(steps=200, batch=32, rate=1e-2)
    path.write_bytes(fine_tune(random_file, x, y, form=None, recipe=recipe).float_file())
    return path


def one_hot(labels: np.ndarray) -> np.ndarray:
    return np.eye(CLASSES, dtype=np.float32)[labels]


def percent(data: bytes, x: np.ndarray, y: np.ndarray) -> float:
    """Right answers of a file of logarithmic codes."""
    return 100 * float((classes(data, x) == y).mean())


def classes(data: bytes, x: np.ndarray) -> np.ndarray:
    graph = load_onnx_bytes(data)
    return kernels.run_graph(graph, [x])[graph.outputs[0]].reshape(len(x), -1).argmax(axis=1)


def test_a_file_is_read_as_onnxruntime_computes_it(random_file: Path) -> None:
    x, _ = pictures(9)
    file = NetworkFile(random_file)
    network = AwareNetwork(file.network, file.coded, None)
    network.round_parameters(file.initial)
    own = Tuned(file, network)
    session = onnxruntime.InferenceSession(random_file, providers=["CPUExecutionProvider"])
    wanted = np.asarray(session.run(None, {"input": x})[0])
    np.testing.assert_allclose(own.logits(x), wanted, rtol=1e-4, atol=1e-5)
    again = onnxruntime.InferenceSession(own.float_file(), providers=["CPUExecutionProvider"])
    parts = [np.asarray(again.run(None, {"input": one[None]})[0]) for one in x]
    np.testing.assert_allclose(np.concatenate(parts), wanted, rtol=1e-4, atol=1e-5)


def test_float_gradients_are_the_losss_differences(random_file: Path) -> None:
    x, y = pictures(8)
    file = NetworkFile(random_file)
    network, images = AwareNetwork(file.network, file.coded, None), file.images(x)
    last = file.network.layers[-1].name

    # labels, and answers of a teacher that is sure of nothing
    targets = 0.6 * one_hot(y) + 0.4 * np.random.default_rng(0).dirichlet([1] * CLASSES, len(y))
    targets = targets.astype(np.float32)

    def loss_of(parameters: dict[str, FloatParameters]) -> float:
        network.round_parameters(parameters)
        logits = network.forward(images).tensors[last].reshape(len(x), -1)
        return -float((targets * np.log(softmax(logits))).sum()) / len(x)

    loss_of(dict(file.initial))
    gradients = network.gradients(network.forward(images), targets)
    for name, own in file.initial.items():
        found = gradients[name]
        for kind in ("weights", "bias"):
            slope = getattr(found, kind)
            length = float(np.linalg.norm(slope))
            losses = []
            for sign in (1, -1):
                moved = getattr(own, kind) + sign * 2e-3 * slope / length
                changed = {"weights": own.weights, "bias": own.bias, kind: moved}
                losses.append(loss_of({**file.initial, name: FloatParameters(**changed)}))
            assert (losses[0] - losses[1]) / 4e-3 == pytest.approx(length, rel=0.05), (name, kind)


@pytest.mark.parametrize(
    ("form", "exact"), [("lns4", False), ("lns5", False), ("lns5", True), ("lns6", False)]
)
def test_what_is_trained_is_what_is_deployed(random_file: Path, form: str, exact: bool) -> None:
    """Every tensor of every layer, and the classes on the core's golden model."""
    x, y = pictures(96)
    recipe = AwareRecipe(steps=3, batch=16, rate=1e-2, refits=1, calibrating=32, exact_logits=exact)
    tuned = fine_tune(random_file, x, y, form=form, recipe=recipe)
    data = tuned.logarithmic_file()
    graph = load_onnx_bytes(data)
    arithmetic = arithmetic_of(graph.semantics)
    assert arithmetic is not None and tuned.form is not None
    values = {graph.inputs[0]: x[:16]}
    for node in graph.nodes:
        taken = [values[name] for name in node.inputs if name in values]
        values.update(zip(node.outputs, kernels.run(node, graph, taken), strict=True))
    found = tuned.network.forward(tuned.file.images(x[:16])).tensors
    for name in tuned.network.coded:
        codes = values[f"{name}/codes"]
        assert np.abs(codes).max() <= tuned.form.lns.largest_code
        wanted = decode(codes, tuned.network.scales[name], arithmetic)
        np.testing.assert_allclose(found[name].reshape(wanted.shape), wanted, rtol=1e-5)
    assert tuned.file.coded - tuned.network.coded == ({"logits"} if exact else set())
    if exact:
        logits = values[graph.outputs[0]]
        np.testing.assert_allclose(tuned.logits(x[:16]), logits, rtol=1e-4, atol=1e-6)
    path = random_file.with_name(f"{form}.onnx")
    path.write_bytes(data)
    with InferenceSession(path, device="model", target=tuned.form.target) as session:
        (scores,) = session.run(None, {"input": x[:8]})
    own = tuned.logits(x[:8]).argmax(axis=1)
    np.testing.assert_array_equal(scores.reshape(8, -1).argmax(axis=1), own)


def test_training_that_knows_the_format_gives_more_right_answers(tmp_path: Path) -> None:
    """Digits of 8 x 8 pixels: points more than rounding after the training, with the biases
    corrected."""
    prepared = TASKS[0].prepare(2)
    (test,), path = prepared.tests.values(), tmp_path / "digits.onnx"
    path.write_bytes(prepared.model)
    x, y = prepared.train.x, prepared.train.y
    exact = fine_tune(path, x, y, form=None, recipe=TASKS[0].quick_float)
    path.write_bytes(exact.float_file())
    told: list[StepFigures] = []
    recipe = AwareRecipe(steps=300, batch=32, rate=1e-2)
    tuned = fine_tune(path, x, y, form="lns4", recipe=recipe, after_step=told.append)
    rounded = round_after_training(path, x[:256], find_format("lns4"))
    before, after = (percent(data, test.x, test.y) for data in (rounded, tuned.logarithmic_file()))
    assert after > before and after > 92, (before, after)
    assert [figures.step for figures in told] == list(range(300))
    assert told[-1].loss < told[0].loss


def test_the_float_file_has_the_same_codes_of_weights(trained_file: Path) -> None:
    """The quantiser finds them again."""
    x, y = pictures(128)
    tuned = fine_tune(trained_file, x, y, recipe=QUICK)
    path = trained_file.with_name("tuned.onnx")
    path.write_bytes(tuned.float_file())
    assert tuned.form is not None
    again = FloatNetwork(path).quantize_logarithmic(x[:64], tuned.form.arithmetic)
    graphs = [load_onnx_bytes(data) for data in (tuned.logarithmic_file(), again)]
    for name in (name for name in graphs[0].tensors if name.endswith("/weights")):
        first, second = (graph.tensors[name] for graph in graphs)
        assert first.data is not None and first.quantization is not None
        assert second.data is not None and second.quantization is not None
        arithmetic = tuned.form.arithmetic
        axis = 3 if first.data.shape[0] == 1 else 0
        shape = [1] * first.data.ndim
        shape[axis] = -1
        numbers = [
            decode(part.data, part.quantization.scale.reshape(shape), arithmetic)
            for part in (first, second)
            if part.data is not None and part.quantization is not None
        ]
        np.testing.assert_allclose(numbers[0], numbers[1], rtol=1e-5)


def test_a_seed_gives_the_same_bits(trained_file: Path) -> None:
    x, y = pictures(64)
    recipe = AwareRecipe(steps=4, batch=16, flip=True, crop=1, refits=9, calibrating=16)
    files = [
        fine_tune(trained_file, x, y, recipe=recipe, seed=seed).logarithmic_file()
        for seed in (5, 5, 6)
    ]
    assert files[0] == files[1] != files[2]


def test_a_taught_network_answers_as_its_teacher(trained_file: Path) -> None:
    """Labels are wrong; only the float network that training begins with knows better."""
    x, y = pictures(256)
    teacher = fine_tune(trained_file, x, y, form=None, recipe=AwareRecipe(steps=0, batch=32))
    wanted = teacher.logits(x).argmax(axis=1)
    wrong, agreeing = (y + 1) % CLASSES, {}
    for taught in (0.0, 1.0):
        recipe = replace(QUICK, taught=taught)
        logits = fine_tune(trained_file, x, wrong, recipe=recipe).logits(x)
        agreeing[taught] = float((logits.argmax(axis=1) == wanted).mean())
    assert agreeing[1.0] > 0.9 and agreeing[0.0] < 0.3, agreeing


def test_no_steps_only_round(trained_file: Path) -> None:
    x, y = pictures(64)
    tuned = fine_tune(trained_file, x, y, recipe=AwareRecipe(steps=0, batch=16, calibrating=16))
    assert percent(tuned.logarithmic_file(), x, y) > 50
    plain = fine_tune(trained_file, x, y, form=None, recipe=AwareRecipe(steps=0, batch=16))
    with pytest.raises(ValueError, match="trained in float32 has no logarithmic codes"):
        plain.logarithmic_file()


def test_weights_beyond_the_largest_code_only_come_back(random_file: Path) -> None:
    file, (x, y) = NetworkFile(random_file), pictures(16)
    tuned = fine_tune(file, x, y, recipe=AwareRecipe(steps=0, batch=16, calibrating=16))
    network = tuned.network
    name = file.network.learning[0].name
    network.weight_scales[name] = network.weight_scales[name] / 8
    network.round_parameters(file.initial)
    found = network.gradients(network.forward(file.images(x)), one_hot(y))[name].weights
    moves_in = found * file.initial[name].weights >= 0
    rounded = np.abs(network.rounded[name].weights)
    cut = (rounded > 0) & (np.abs(file.initial[name].weights) > rounded * 1.2)
    assert cut.any() and moves_in[cut].all()


def test_adam_follows_its_formula() -> None:
    weights = np.array([[[[0.5, -1.0]]]], np.float32)
    adam = Adam({"a": FloatParameters(weights, np.zeros(1, np.float32))})
    gradients = [np.array([0.1, -2.0]), np.array([-0.3, 1.0])]
    size, mean, square, wanted = np.sqrt(0.625), np.zeros(2), np.zeros(2), weights.reshape(-1)
    for step, gradient in enumerate(gradients, start=1):
        whole = Gradient(gradient.reshape(1, 1, 1, 2), np.array([1.0]))
        adam.step({"a": whole}, 0.01)
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        change = mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
        wanted = wanted - 0.01 * size * change
    np.testing.assert_allclose(adam.parameters["a"].weights.reshape(-1), wanted, rtol=1e-4)
    assert weights[0, 0, 0, 0] == 0.5
    assert cosine(0.1, 0, 10) == 0.1 and cosine(0.1, 5, 10) == pytest.approx(0.05)


def test_moved_pictures_of_bytes_are_grey_at_their_borders(random_file: Path) -> None:
    from slipstick.training.aware.tuning import moved

    images, recipe = np.zeros((40, 6, 6, 1), np.uint8), AwareRecipe(crop=2)
    found = moved(images, recipe, np.random.default_rng(0))
    assert found.dtype == np.uint8 and set(np.unique(found)) == {0, 128}
    assert moved(images, AwareRecipe(), np.random.default_rng(0)) is images


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": -1}, "steps must be at least 0, not -1"),
        ({"batch": 0}, "batch must be at least 1, not 0"),
        ({"crop": -1}, "crop must be at least 0, not -1"),
        ({"refits": -1}, "refits must be at least 0, not -1"),
        ({"rate": 0.0}, "rate must be above 0 and below 1, not 0.0"),
        ({"held": 1.5}, "held must be within 0..1, not 1.5"),
        ({"taught": -0.5}, "taught must be within 0..1, not -0.5"),
        ({"calibrating": 0}, "calibrating must be at least 1, not 0"),
    ],
)
def test_bad_recipes(options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        AwareRecipe(**options)


def test_bad_data(random_file: Path) -> None:
    x, y = pictures(32)
    for images, labels, message in (
        (x[:, :1], y, r"images must be of \(2, 10, 8\), not \(1, 10, 8\)"),
        (x, y[:5], "images must have a label each: 32 and 5"),
        (x[:8], y[:8], "a batch of 96 needs as many images, not 8"),
        (x, y + 1, rf"labels must be within 0..{CLASSES - 1}"),
    ):
        recipe = AwareRecipe(batch=96 if len(images) == 8 else 16)
        with pytest.raises(InputError, match=message):
            fine_tune(random_file, images, labels, recipe=recipe)


def one_node(operator: str, weights: tuple[int, ...] | None = None, **given: Any) -> bytes:
    """A network of one node that reads 1 x 4 x 6 x 6."""
    inputs, constants = ["x"], []
    if weights:
        inputs.append("w")
        constants.append(numpy_helper.from_array(np.ones(weights, np.float32), "w"))
    graph = helper.make_graph(
        [helper.make_node(operator, inputs, ["y"], **given)],
        "one",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 4, 6, 6))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        constants,
    )
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (one_node("Sigmoid"), "Sigmoid 'y' cannot be trained"),
        (one_node("Conv", (4, 2, 3, 3), group=2), "must have no dilation, and one group or as"),
        (one_node("Conv", (4, 4, 3, 3), dilations=[2, 2]), "must have no dilation"),
        (one_node("Relu"), "must be the only reader of a layer with weights"),
        (
            one_node("AveragePool", kernel_shape=[2, 2], pads=[1, 1, 0, 0]),
            "AveragePool 'y' must have no padding",
        ),
        (
            one_node("MaxPool", kernel_shape=[2, 2], strides=[4, 4], ceil_mode=1),
            "must have no dilation, and no window beyond",
        ),
        (one_node("Conv", (4, 4, 3, 3)), "cannot be trained: one: the last layer must give logits"),
    ],
)
def test_networks_that_cannot_be_trained(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "one.onnx"
    path.write_bytes(data)
    with pytest.raises(UnsupportedError, match=message):
        NetworkFile(path)


def test_convolutions_without_a_bias_and_with_same_padding(tmp_path: Path) -> None:
    """SAME_LOWER and SAME_UPPER with strides; a bias of zeros learns."""
    rng, nodes, constants = np.random.default_rng(2), [], []
    for place, padding in enumerate(("SAME_UPPER", "SAME_LOWER")):
        weights = rng.normal(0, 0.3, (4, 4, 2, 3)).astype(np.float32)
        constants.append(numpy_helper.from_array(weights, f"w{place}"))
        source = "x" if place == 0 else "t0"
        nodes.append(
            helper.make_node(
                "Conv", [source, f"w{place}"], [f"t{place}"], auto_pad=padding, strides=[2, 1]
            )
        )
    nodes.append(helper.make_node("GlobalAveragePool", ["t1"], ["mean"]))
    nodes.append(helper.make_node("Flatten", ["mean"], ["y"]))
    graph = helper.make_graph(
        nodes,
        "same",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 4, 7, 5))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 4))],
        constants,
    )
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8)
    path = tmp_path / "same.onnx"
    onnx.save(model, path)
    file = NetworkFile(path)
    network = AwareNetwork(file.network, file.coded, None)
    network.round_parameters(file.initial)
    x = rng.normal(0, 1, (1, 4, 7, 5)).astype(np.float32)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    wanted = np.asarray(session.run(None, {"x": x})[0])
    np.testing.assert_allclose(Tuned(file, network).logits(x), wanted, rtol=1e-4, atol=1e-5)
    recipe = AwareRecipe(steps=2, batch=8)
    tuned = fine_tune(path, np.repeat(x, 8, axis=0), np.arange(8) % 4, form=None, recipe=recipe)
    assert all(own.bias.any() for own in tuned.network.rounded_parameters().values())
