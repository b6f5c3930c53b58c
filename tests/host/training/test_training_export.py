"""Files of trained networks: onnxruntime gives the trainer's own codes, tflm nearly."""

from pathlib import Path

import numpy as np
import pytest
from shared_data import shared
from slipstick import InferenceSession
from slipstick.data.inputs import load_inputs
from slipstick.errors import InputError, UnsupportedError
from slipstick.examples.digits import MODEL, load_digits
from slipstick.training.export import network_file
from slipstick.training.export.trained import TrainedNetwork
from slipstick.training.fixed import FixedTrainer
from slipstick.training.int8 import Int8Arithmetic, Range
from slipstick.training.interface import Interface
from slipstick.training.network import (
    INPUT,
    Kind,
    Layer,
    TrainingNetwork,
    initial_parameters,
)
from slipstick.training.opening import open_network
from slipstick.training.session import Loader, TrainingSession
from slipstick.training.trainer import Trainer
from slipstick.verify.tflm_reference import TflmReference
from training_networks import small_network, small_pictures

SAME = (1, 1, 1, 1)


def plain_interface(network: TrainingNetwork, scale: float = 2.0**-7, **changes) -> Interface:
    """int8 codes of a scale."""
    options = {
        "input": "image",
        "shape": (1, *network.shape),
        "dtype": "int8",
        "scale": scale,
        "zero_point": 0,
        "codes_scale": scale,
        "codes_zero_point": 0,
        "halved": False,
        "output": "logits",
    }
    return Interface(**{**options, **changes})


def untaught(
    network: TrainingNetwork, arithmetic: Int8Arithmetic | None = None, **options
) -> FixedTrainer:
    initial = initial_parameters(network, 0)
    return FixedTrainer(Trainer(network, arithmetic or Int8Arithmetic(), initial), **options)


def learned(network: TrainingNetwork, steps: int = 24, **options) -> FixedTrainer:
    data = small_pictures(256)
    arithmetic = Int8Arithmetic(options.get("master_bits", 16), **options.pop("arithmetic", {}))
    trainer = untaught(network, arithmetic, **options)
    for step in range(steps):
        places = slice(32 * (step % 8), 32 * (step % 8) + 32)
        trainer.step(data.images[places], data.labels[places], 4)
    return trainer


def global_average() -> TrainingNetwork:
    """Residual blocks and a global average of 80 pixels, which is no power of two."""
    layers = (
        Layer("image", Kind.CONVOLUTION, (INPUT,), 8, (3, 3), (1, 1), SAME, True),
        Layer("inner", Kind.CONVOLUTION, ("image",), 8, (3, 3), (1, 1), SAME),
        Layer("sum", Kind.ADD, ("image", "inner"), relu=True),
        Layer("mean", Kind.AVERAGE_POOL, ("sum",), 0, (10, 8), (10, 8)),
        Layer("logits", Kind.CONVOLUTION, ("mean",), 4),
    )
    return TrainingNetwork("averages", (10, 8, 2), layers)


def flattened() -> TrainingNetwork:
    """Strides with paddings that .tflite has not, maxima, a picture flattened, two dense layers."""
    layers = (
        Layer("one", Kind.CONVOLUTION, (INPUT,), 6, (3, 3), (2, 2), SAME, True),
        Layer("most", Kind.MAX_POOL, ("one",), 0, (2, 2), (2, 2)),
        Layer("flat", Kind.FLATTEN, ("most",)),
        Layer("hidden", Kind.CONVOLUTION, ("flat",), 12, relu=True),
        Layer("last", Kind.CONVOLUTION, ("hidden",), 4),
    )
    return TrainingNetwork("flattened", (10, 8, 2), layers)


def onnxruntime_logits(data: bytes, images: np.ndarray) -> np.ndarray:
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(data)
    return session.run(None, {session.get_inputs()[0].name: images})[0]


@pytest.mark.parametrize("make", [small_network, global_average, flattened])
@pytest.mark.parametrize(
    "options",
    [{}, {"master_bits": 8}, {"arithmetic": {"source": Range.PRESENT, "momentum": 2}}],
    ids=["masters", "weights alone", "present range"],
)
def test_onnx_has_the_trainers_codes(make, options: dict, tmp_path: Path) -> None:
    network = make()
    trainer = learned(network, **options)
    images = small_pictures(300, seed=3).images
    data = network_file(trainer.trained(plain_interface(network)), Path("x.onnx"))
    wanted, turned = trainer.logits(images), np.ascontiguousarray(images.transpose(0, 3, 1, 2))
    found = onnxruntime_logits(data, turned)
    # behind an average of 80 pixels float32 may round a tie otherwise
    ties = network.name == "averages"
    codes = 2.0 ** trainer.trained(plain_interface(network)).exponents[network.layers[-1].name]
    assert np.abs(found - wanted).max() <= (codes if ties else 0)
    assert (found != wanted).mean() <= (0.01 if ties else 0)
    path = tmp_path / "x.onnx"
    path.write_bytes(data)
    with InferenceSession(path, "model") as session:
        [ours] = session.run(None, {"image": turned})
    assert (ours != wanted).mean() <= (0.01 if ties else 0)


@pytest.mark.parametrize(
    ("make", "classes", "most"),
    [(small_network, 0.9, 12), (global_average, 0.9, 5), (flattened, 0.97, 2)],
)
def test_tflite_is_near(make, classes: float, most: int, tmp_path: Path) -> None:
    """tflm rounds ties up: those of sums add up in averages. Averages of parts are coarse."""
    network = make()
    trainer = learned(network)
    trained = trainer.trained(plain_interface(network))
    images = small_pictures(300, seed=3).images
    path = tmp_path / "x.tflite"
    path.write_bytes(network_file(trained, path))
    wanted = trainer.logits(images)
    codes = np.rint(wanted / 2.0 ** trained.exponents[network.layers[-1].name])
    [found] = TflmReference(path).run(images)
    assert (found.argmax(1) == wanted.argmax(1)).mean() >= classes
    assert np.abs(found - codes).max() <= most
    with InferenceSession(path, "model") as session:
        [ours] = session.run(None, {"image": images})
    np.testing.assert_array_equal(ours, found)


@pytest.mark.parametrize("suffix", [".tflite", ".onnx"])
@pytest.mark.parametrize("softmax", [False, True])
def test_inputs_of_other_codes(suffix: str, softmax: bool, tmp_path: Path) -> None:
    """uint8 pixels that are halved: every runtime makes the same codes of them."""
    network = flattened()
    trainer = learned(network)
    scale = 1 / 255
    interface = plain_interface(
        network, scale, dtype="uint8", zero_point=0, halved=True, softmax=softmax
    )
    images = np.random.default_rng(0).integers(0, 256, (200, 10, 8, 2)).astype(np.uint8)
    codes = interface.encode(images)
    np.testing.assert_array_equal(codes, np.minimum((images.astype(int) + 1) >> 1, 127))
    path = tmp_path / f"x{suffix}"
    path.write_bytes(network_file(trainer.trained(interface), path))
    wanted = trainer.logits(codes)
    if suffix == ".onnx":
        found = onnxruntime_logits(path.read_bytes(), images.transpose(0, 3, 1, 2))
        if not softmax:
            np.testing.assert_array_equal(found, wanted)
    else:
        [found] = TflmReference(path).run(images)
    assert (found.argmax(1) == wanted.argmax(1)).mean() >= (0.97 if suffix == ".tflite" else 1)
    # what was written can be trained again, and reads the same codes
    again = open_network(path)
    given = images if suffix == ".tflite" else images.transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(again.interface.encode(given), codes)
    assert again.interface.softmax is softmax and not again.interface.halved


def test_a_file_that_is_trained_again_keeps_its_interface(tmp_path: Path) -> None:
    train_x, train_y, test_x, test_y = load_digits()
    with TrainingSession(MODEL, layers=2) as session:
        assert session.learning == tuple(layer.name for layer in session.network.learning)[-2:]
        data, tested = session.prepare(train_x, train_y), session.prepare(test_x, test_y)
        for images, labels in Loader(data):
            session.step(images, labels, 7)
        after = session.evaluate(tested.images, tested.labels)
        session.save(tmp_path / "again.tflite")
    with (
        InferenceSession(MODEL, "model") as old,
        InferenceSession(tmp_path / "again.tflite", "model") as new,
    ):
        assert vars(old.get_inputs()[0]) == vars(new.get_inputs()[0])
        assert vars(old.get_outputs()[0]) == vars(new.get_outputs()[0])
        name = old.get_inputs()[0].name
        for attribute in ("scale", "zero_point"):
            was, now = (getattr(each.program.tensors[name], attribute) for each in (old, new))
            assert was == now
        [found] = new.run(None, {name: test_x})
    accuracy = float((found.reshape(len(test_x), -1).argmax(1) == test_y).mean())
    assert abs(accuracy - after.accuracy) < 0.01 and after.accuracy > 0.97


def test_networks_that_no_file_holds(tmp_path: Path) -> None:
    network = small_network()
    trainer = untaught(network)
    with pytest.raises(InputError, match="must have learned from one batch"):
        trainer.trained(plain_interface(network))
    trained = learned(network, 1).trained(plain_interface(network))
    with pytest.raises(InputError, match=r"must be written to .tflite or .onnx, not x.pt"):
        network_file(trained, Path("x.pt"))
    negative = TrainingNetwork(
        "negative",
        (10, 8, 2),
        (
            Layer("one", Kind.CONVOLUTION, (INPUT,), 4, (3, 3), (1, 1), SAME),
            Layer("most", Kind.MAX_POOL, ("one",), 0, (3, 3), (2, 2), SAME),
            Layer("flat", Kind.FLATTEN, ("most",)),
            Layer("last", Kind.CONVOLUTION, ("flat",), 4),
        ),
    )
    trained = learned(negative, 1).trained(plain_interface(negative))
    with pytest.raises(UnsupportedError, match="maxima of negative numbers must have padding SAME"):
        network_file(trained, Path("x.tflite"))
    network_file(trained, Path("x.onnx"))
    rows = TrainingNetwork(
        "rows",
        (2, 2, 2),
        (
            Layer("flat", Kind.FLATTEN, (INPUT,)),
            Layer("other", Kind.FLATTEN, (INPUT,)),
            Layer("sum", Kind.ADD, ("flat", "other")),
            Layer("last", Kind.CONVOLUTION, ("sum",), 4),
        ),
    )
    start = untaught(rows)
    with pytest.raises(UnsupportedError, match="'sum' must be fully connected behind 'flat'"):
        network_file(start.untrained(plain_interface(rows)), Path("x.onnx"))


def test_sums_of_averages_and_others() -> None:
    network = TrainingNetwork(
        "sums",
        (3, 3, 2),
        (
            Layer("one", Kind.CONVOLUTION, (INPUT,), 4, (3, 3)),
            Layer("two", Kind.CONVOLUTION, (INPUT,), 4),
            Layer("mean", Kind.AVERAGE_POOL, ("two",), 0, (3, 3), (3, 3)),
            Layer("sum", Kind.ADD, ("one", "mean")),
            Layer("last", Kind.CONVOLUTION, ("sum",), 4),
        ),
    )
    trainer = untaught(network)
    trained: TrainedNetwork = trainer.untrained(plain_interface(network))
    for suffix in (".tflite", ".onnx"):
        with pytest.raises(UnsupportedError, match="must not add an average of windows"):
            network_file(trained, Path(f"x{suffix}"))


@pytest.mark.borrows
@pytest.mark.parametrize(
    ("model", "data", "near"),
    [
        ("kws01_dscnn_int8.tflite", "kws/kws01_mfcc_1000.npz", 0.97),
        ("ic01_resnet8_int8.tflite", "cifar10/ic01_cifar10_200.npz", 0.95),
        ("resnet8_cifar10_int8_qdq.onnx", "cifar10/ic01_cifar10_200.npz", 0.95),
    ],
)
def test_real_networks(model: str, data: str, near: float, tmp_path: Path) -> None:
    """Classes of onnxruntime are the trainer's, tflm's nearly."""
    session = TrainingSession(shared(f"models/{model}"), layers=2)
    samples = load_inputs([shared(f"data/{data}")], session.interface.shape).first(200)
    assert samples.y is not None
    learned = session.prepare(samples.x, samples.y)
    for images, labels in Loader(learned):
        session.step(images, labels, 8)
    wanted = session.logits(learned.images).argmax(1)
    for suffix, least in ((".onnx", 1.0), (".tflite", near)):
        path = tmp_path / f"x{suffix}"
        session.save(path)
        shape = open_network(path).interface.shape
        given = load_inputs([shared(f"data/{data}")], shape).first(200).x
        again = open_network(path).interface
        np.testing.assert_array_equal(again.encode(given), learned.images)
        with InferenceSession(path, "model") as made:
            [found] = made.run(None, {made.get_inputs()[0].name: given})
        assert (found.reshape(len(given), -1).argmax(1) == wanted).mean() >= least
