"""Networks for training: by hand, from graphs, and with weights of even channels."""

import numpy as np
import pytest
from shared_data import shared
from slipstick.data.inputs import load_inputs
from slipstick.errors import InputError, ModelError, UnsupportedError
from slipstick.graph import Graph, Node, Quantization, Tensor
from slipstick.training.data import load_mnist
from slipstick.training.equalise import equalise
from slipstick.training.files import load_network
from slipstick.training.float32 import Float32Arithmetic
from slipstick.training.graphs import import_graph
from slipstick.training.int8 import Int8Arithmetic
from slipstick.training.network import INPUT, Kind, Layer, TrainingNetwork, initial_parameters
from slipstick.training.networks import ds_cnn, mnist_cnn, resnet8
from slipstick.training.trainer import Trainer
from training_networks import small_network, small_pictures


def macs(network: TrainingNetwork) -> int:
    """Multiplications per image."""
    total = 0
    for layer in network.learning:
        rows, columns, channels = network.shapes[layer.name]
        weights = int(np.prod(network.weight_shape(layer)[1:]))
        per_pixel = weights if layer.kind is Kind.DEPTHWISE else weights * channels
        total += rows * columns * per_pixel
    return total


@pytest.mark.parametrize(
    ("network", "classes", "multiplications"),
    [(mnist_cnn(), 10, 786_560), (resnet8(), 10, 12_501_632), (ds_cnn(), 12, 2_656_768)],
)
def test_networks_by_hand(network: TrainingNetwork, classes: int, multiplications: int) -> None:
    assert network.classes == classes
    assert macs(network) == multiplications


def test_first_weights_depend_on_the_seed_alone() -> None:
    network = resnet8()
    first, again, other = (initial_parameters(network, seed) for seed in (0, 0, 1))
    for name, parameters in first.items():
        np.testing.assert_array_equal(parameters.weights, again[name].weights)
        assert not np.array_equal(parameters.weights, other[name].weights)
        assert not parameters.bias.any()
    assert first["block1b"].weights.std() < 0.6 * first["block1a"].weights.std()


DENSE = Layer("dense", Kind.CONVOLUTION, ("flat",), 3)
FLAT = Layer("flat", Kind.FLATTEN, (INPUT,))


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ((), "at least one layer"),
        ((FLAT, Layer("flat", Kind.FLATTEN, ("flat",)), DENSE), "not two 'flat'"),
        ((DENSE,), "must read a layer before, not 'flat'"),
        ((FLAT, Layer("sum", Kind.ADD, ("flat",)), DENSE), "must read 2 tensors, not 1"),
        ((FLAT, Layer("sum", Kind.ADD, ("flat", INPUT)), DENSE), "must add equal shapes"),
        ((Layer("flat", Kind.FLATTEN, (INPUT,), relu=True), DENSE), "must have no ReLU"),
        ((FLAT, Layer("dense", Kind.CONVOLUTION, ("flat",), 0)), "must have output channels"),
        ((Layer("x", Kind.CONVOLUTION, (INPUT,), 3, (9, 9)),), "must fit 6 x 6"),
        ((Layer("x", Kind.CONVOLUTION, (INPUT,), 3),), "logits of one pixel, without ReLU"),
        ((FLAT, Layer("dense", Kind.CONVOLUTION, ("flat",), 3, relu=True)), "without ReLU"),
    ],
)
def test_networks_that_do_not_fit(layers: tuple[Layer, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TrainingNetwork("wrong", (6, 6, 1), layers)


def test_last_layers() -> None:
    assert mnist_cnn().last_learning(2) == ("conv2", "dense")
    with pytest.raises(ValueError, match="1 to 3, not 4"):
        mnist_cnn().last_learning(4)


def test_even_channels_leave_the_function() -> None:
    network, data = small_network(), small_pictures(32)
    initial = initial_parameters(network, 1)
    uneven = np.exp(np.random.default_rng(2).normal(size=8)).astype(np.float32)
    wide = initial["wide"]
    initial["wide"] = type(wide)(wide.weights * uneven[:, None, None, None], wide.bias)
    even = equalise(network, initial)
    logits = [
        Trainer(network, Float32Arithmetic(), each).logits(data.images) for each in (initial, even)
    ]
    np.testing.assert_allclose(*logits, rtol=1e-3, atol=1e-4)
    spread = [np.abs(each["wide"].weights).max(axis=(1, 2, 3)) for each in (initial, even)]
    assert spread[1].max() / spread[1].min() < 0.7 * spread[0].max() / spread[0].min()


def tensor(name: str, shape: tuple[int, ...], zero: int = 0, scale: float = 0.05) -> Tensor:
    quantization = Quantization(np.array([scale]), np.array([zero]))
    return Tensor(name, shape, "int8", quantization)


def constant(name: str, data: np.ndarray, scales: np.ndarray | None, axis: int = 0) -> Tensor:
    quantization = None if scales is None else Quantization(scales, np.zeros(len(scales)), axis)
    return Tensor(name, data.shape, str(data.dtype), quantization, data)


def small_graph(**attributes: object) -> Graph:
    """A convolution with ReLU, an average of 3 x 2, a classifier; softmax behind."""
    generator = np.random.default_rng(0)
    weights = generator.integers(-127, 128, (4, 3, 3, 2)).astype(np.int8)
    dense = generator.integers(-127, 128, (3, 4)).astype(np.int8)
    tensors = [
        tensor("x", (1, 3, 2, 2), zero=5, scale=0.02),
        constant("w", weights, np.array([0.01, 0.02, 0.03, 0.04])),
        constant("b", np.array([100, -200, 300, 0], np.int32), None),
        tensor("y", (1, 3, 2, 4), zero=-128, scale=0.06),
        tensor("p", (1, 1, 1, 4), zero=-128, scale=0.06),
        tensor("f", (1, 4), zero=-128, scale=0.06),
        constant("d", dense, np.array([0.01])),
        tensor("z", (1, 3), zero=3, scale=0.1),
        tensor("s", (1, 3), zero=-128, scale=1 / 256),
    ]
    plain = {"stride": (1, 1), "padding": (1, 1, 1, 1), "dilation": (1, 1), "activation": "relu"}
    window = {"window": (3, 2), "stride": (3, 2), "padding": (0, 0, 0, 0), "activation": "none"}
    nodes = (
        Node("conv", "conv2d", ("x", "w", "b"), ("y",), {**plain, "groups": 1, **attributes}),
        Node("pool", "average_pool2d", ("y",), ("p",), window),
        Node("flat", "reshape", ("p",), ("f",), {"shape": (1, 4)}),
        Node("dense", "fully_connected", ("f", "d", ""), ("z",), {"activation": "none"}),
        Node("soft", "softmax", ("z",), ("s",), {"beta": 1.0}),
    )
    return Graph("small", ("x",), ("s",), {each.name: each for each in tensors}, nodes)


def test_a_graphs_numbers() -> None:
    """Logits are the graph's real ones, up to one positive factor."""
    graph = small_graph()
    found = import_graph(graph)
    assert found.zero_point == 5 and found.halved
    codes = np.random.default_rng(1).integers(-127, 128, (6, 3, 2, 2)).astype(np.int8)
    images = found.images(codes)
    assert (images == (codes.astype(int) - 5) >> 1).all()
    logits = Trainer(found.network, Float32Arithmetic(), found.initial).logits(images)
    real, tensors = images * 2 * 0.02, graph.tensors
    codes, classifier = tensors["w"].data, tensors["d"].data
    assert codes is not None and classifier is not None
    weights = codes * np.array([0.01, 0.02, 0.03, 0.04])[:, None, None, None]
    bias = np.array([100, -200, 300, 0]) * 0.02 * np.array([0.01, 0.02, 0.03, 0.04])
    padded = np.pad(real, ((0, 0), (1, 1), (1, 1), (0, 0)))
    hidden = np.zeros((6, 3, 2, 4))
    for ky, kx in np.ndindex(3, 3):
        hidden += padded[:, ky : ky + 3, kx : kx + 2] @ weights[:, ky, kx].T
    mean = np.maximum(hidden + bias, 0).mean(axis=(1, 2))
    wanted = mean @ (classifier * 0.01).T
    factor = float((logits * wanted).sum() / (wanted**2).sum())
    assert factor > 0
    np.testing.assert_allclose(logits, factor * wanted, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"dilation": (2, 2)}, "dilation 1 and one group"),
        ({"groups": 2}, "dilation 1 and one group"),
        ({"activation": "relu6"}, "no activation or a ReLU, not relu6"),
    ],
)
def test_layers_that_cannot_be_trained(attributes: dict[str, object], message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        import_graph(small_graph(**attributes))


def test_operators_that_cannot_be_trained() -> None:
    graph = small_graph()
    swapped = graph.replace(
        nodes=tuple(
            Node(n.name, "tanh", n.inputs, n.outputs) if n.name == "pool" else n
            for n in graph.nodes
        )
    )
    with pytest.raises(UnsupportedError, match="tanh 'pool' cannot be trained"):
        import_graph(swapped)
    with pytest.raises(UnsupportedError, match="one input and one output"):
        import_graph(graph.replace(outputs=("s", "z")))


@pytest.mark.borrows
@pytest.mark.parametrize(
    ("model", "data", "least"),
    [
        ("kws01_dscnn_int8.tflite", "kws/kws01_mfcc_1000.npz", 87.0),
        ("ic01_resnet8_int8.tflite", "cifar10/ic01_cifar10_200.npz", 80.0),
        ("resnet8_cifar10_int8_qdq.onnx", "cifar10/ic01_cifar10_200.npz", 80.0),
    ],
)
def test_real_networks_keep_their_accuracy(model: str, data: str, least: float) -> None:
    found = load_network(shared(f"models/{model}"))
    with np.load(shared(f"data/{data}")) as file:
        x, labels = file["x"], file["y"].astype(np.int64)
    codes = x if x.dtype == np.int8 else (x.astype(np.int16) - 128).astype(np.int8)
    trainer = Trainer(found.network, Int8Arithmetic(), found.initial)
    assert 100 * trainer.evaluate(found.images(codes), labels)[1] > least


@pytest.mark.borrows
def test_a_float_network() -> None:
    """Its scales come of samples."""
    model, data = shared("models/mnist-8.onnx"), shared("data/mnist")
    with pytest.raises(InputError, match="is a float network: some samples"):
        load_network(model)
    samples = load_inputs([data / "t10k-images-idx3-ubyte.gz"], (1, 1, 28, 28)).x[:200]
    found = load_network(model, samples[:100])
    assert found.network.shape == (28, 28, 1) and found.zero_point == -128
    codes = (samples.astype(np.int16) - 128).astype(np.int8).reshape(-1, 28, 28, 1)
    labels = load_mnist(data).test.labels[:200]
    trainer = Trainer(found.network, Int8Arithmetic(), found.initial)
    assert 100 * trainer.evaluate(found.images(codes), labels)[1] > 96


def test_files_of_another_kind() -> None:
    with pytest.raises(ModelError, match="must be a .tflite or .onnx file, not x.pt"):
        load_network("x.pt")


def bordered_graph(value: int = 5, reader: str = "conv2d") -> Graph:
    """As ``small_graph``, whose convolution's padding is a PAD before it."""
    graph = small_graph(padding=(0, 0, 0, 0))
    border = {"padding": ((0, 0), (1, 1), (1, 1), (0, 0)), "value": value}
    conv = graph.nodes[0]
    padded = Node(conv.name, reader, ("b'", *conv.inputs[1:]), conv.outputs, conv.attributes)
    nodes = (Node("border", "pad", ("x",), ("b'",), border), padded, *graph.nodes[1:])
    tensors = {**graph.tensors, "b'": tensor("b'", (1, 5, 4, 2), zero=5, scale=0.02)}
    return graph.replace(nodes=nodes, tensors=tensors)


def test_a_border_is_a_windows_padding() -> None:
    plain, bordered = import_graph(small_graph()), import_graph(bordered_graph())
    assert plain.network == bordered.network
    for name, parameters in plain.initial.items():
        np.testing.assert_array_equal(parameters.weights, bordered.initial[name].weights)
    with pytest.raises(UnsupportedError, match="pad 'border' must add a border of 0"):
        import_graph(bordered_graph(value=0))
    with pytest.raises(UnsupportedError, match="pad 'border' must not be read by max_pool2d"):
        import_graph(bordered_graph(reader="max_pool2d"))
