"""The Python interface: a loop of one's own, with clear errors."""

import math
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from slipstick import training
from slipstick.devices import model
from slipstick.devices.model import ModelDevice
from slipstick.errors import CapacityError, DeviceError, InputError, SlipstickError
from slipstick.examples.digits import MODEL, load_digits
from slipstick.training import LabelledSet, Loader, TrainingSession
from slipstick.training.data import Split
from slipstick.training.labelled import digest, hold_out
from slipstick.training.loop import Recipe, train
from slipstick.training.network import INPUT, Kind, Layer, TrainingNetwork, initial_parameters
from slipstick.training.opening import OpenedNetwork, open_network
from slipstick.training.parallel.crew import GoldenWorker
from slipstick.training.parallel.devices import DeviceWorker
from slipstick.training.parallel.jobs import Job, JobResult
from slipstick_rtl.config import Configuration
from training_networks import small_network, small_pictures

POOL = "pool:model,model"


def small_session(**options) -> TrainingSession:
    network = small_network()
    known = open_network("ds-cnn").interface
    opened = OpenedNetwork(network, initial_parameters(network, 0), known, known=True)
    return TrainingSession(opened, **options)


def test_the_public_names() -> None:
    assert training.TrainingSession is TrainingSession
    with pytest.raises(AttributeError, match="no attribute 'Module'"):
        training.Module  # noqa: B018


def test_a_loop_of_ones_own_has_the_commands_bits() -> None:
    data, tested = small_pictures(256), small_pictures(128, seed=2)
    recipe = Recipe(epochs=2, batch=32, rates=((0, 4), (0.5, 5)), momentum=2, flip=True, crop=1)
    whole = small_session(momentum=2)
    history = train(whole.trainer, Split(data, tested), recipe, 7)
    own = small_session(momentum=2)
    loader = Loader(data, 32, seed=7, flip=True, crop=1)
    assert len(loader) == 8
    losses = []
    for epoch in range(2):
        for images, labels in loader:
            losses.append(own.step(images, labels, rate_shift=4 + epoch))
        score = own.evaluate(tested.images, tested.labels)
        assert round(100 * score.accuracy, 3) == history.test_percent[epoch]
        assert round(score.loss, 5) == history.test_loss[epoch]
    assert round(float(np.mean(losses[8:])), 5) == history.loss[1]
    for name, array in whole.trainer.arrays().items():
        np.testing.assert_array_equal(own.trainer.arrays()[name], array, err_msg=name)
    assert own.images_per_second > 0 and own.bytes_per_step == 0


def test_checkpoints_of_ones_own(tmp_path: Path) -> None:
    data, path = small_pictures(64), tmp_path / "x"
    first, second = small_session(), small_session()
    first.step(data.images[:32], data.labels[:32], 4)
    first.write_checkpoint(path)
    second.read_checkpoint(path)
    losses = [each.step(data.images[32:], data.labels[32:], 4) for each in (first, second)]
    assert losses[0] == losses[1]
    np.testing.assert_array_equal(first.logits(data.images), second.logits(data.images))
    with pytest.raises(InputError, match="is of another network"):
        TrainingSession(MODEL).read_checkpoint(path)


def test_a_device_gives_the_same_bits() -> None:
    """The golden model of a core, in place of the golden functions."""
    x, y = (array[:16] for array in load_digits()[:2])
    sessions = [TrainingSession(MODEL, layers=1, device=d) for d in ("model", "model:sim-training")]
    for session in sessions:
        data = session.prepare(x, y)
        for rate_shift in (5, 6):
            session.step(data.images, data.labels, rate_shift)
        session.close()
    golden, device = (session.trainer.arrays() for session in sessions)
    for name, array in golden.items():
        np.testing.assert_array_equal(device[name], array, err_msg=name)
    assert sessions[0].bytes_per_step == 0
    # 16 images of 64 bytes at least go there in each step
    assert sessions[1].bytes_per_step > 16 * 64


@pytest.mark.parametrize("layers", [1, 2, None])
def test_a_device_with_dram_gives_the_same_bits(layers: int | None) -> None:
    sdram = TrainingSession(MODEL, layers=layers, device="model:sim-training-sdram")
    found, wanted = learn(sdram), learn(TrainingSession(MODEL, layers=layers))
    assert sdram.sharing_figures == {"steps_from_dram": 2, "updates_on_device": 2}
    assert sdram.bytes_per_step > 16 * 64
    by_host = TrainingSession(
        MODEL, layers=layers, device="model:sim-training-sdram", update="host"
    )
    for name, array in learn(by_host).items():
        np.testing.assert_array_equal(array, wanted[name], err_msg=name)
    assert by_host.sharing_figures == {"steps_from_dram": 2, "updates_on_device": 0}
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


def test_layers_that_do_not_run_from_dram_run_over_the_link() -> None:
    layers = (
        Layer("first", Kind.CONVOLUTION, (INPUT,), 8, (3, 3), relu=True),
        Layer("most", Kind.MAX_POOL, ("first",), 0, (3, 3), (1, 1)),
        Layer("logits", Kind.CONVOLUTION, ("most",), 4, (4, 4)),
    )
    network = TrainingNetwork("overlapping", (8, 8, 1), layers)
    known = open_network("ds-cnn").interface
    opened = OpenedNetwork(network, initial_parameters(network, 0), known, known=True)
    sessions = [TrainingSession(opened, device=d) for d in ("model", "model:sim-training-sdram")]
    pictures = np.random.default_rng(3).integers(
        -100, 101, (4, *sessions[0].network.shape), np.int8
    )
    golden_figures, figures = (session.sharing_figures for session in sessions)
    assert golden_figures == {}
    assert list(figures) == ["why_not_from_dram"]
    assert "'most': a pool" in figures["why_not_from_dram"]
    for session in sessions:
        for _ in range(2):
            session.step(pictures, np.arange(4), 5)
        session.close()
    golden, device = (session.trainer.arrays() for session in sessions)
    for name, array in golden.items():
        np.testing.assert_array_equal(device[name], array, err_msg=name)


def learn(session: TrainingSession, steps: int = 3) -> dict[str, np.ndarray]:
    """Steps of 16 digits; all that they changed."""
    x, y = (array[: 16 * steps] for array in load_digits()[:2])
    data = session.prepare(x, y)
    for step in range(steps):
        some = slice(16 * step, 16 * step + 16)
        session.step(data.images[some], data.labels[some], 5)
    found = session.parameters()
    session.close()
    return found


def check_equal(found: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> None:
    assert set(found) == set(wanted)
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


@pytest.mark.parametrize(
    "options",
    [
        {"device": POOL},
        {"device": "pool:model,model,model", "momentum": 2},
        {"device": POOL, "layers": 2, "parts": 4},
        {"parts": 8},
    ],
    ids=str,
)
def test_many_have_the_bits_of_one(options: dict) -> None:
    alone = {name: options[name] for name in options if name not in ("device", "parts")}
    session = TrainingSession(MODEL, **options)
    check_equal(learn(session), learn(TrainingSession(MODEL, **alone)))
    size = options.get("device", "model").count("model")
    figures = session.sharing_figures
    assert (figures["devices"], figures["given_again"]) == (size, 0)
    assert session.trainer.steps == 3 and session.bytes_per_step == 0


def test_cores_and_golden_functions_in_one_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = "pool:model,model:sim-training,model:sim-training"
    session = TrainingSession(MODEL, device=pool, layers=1)
    began = threading.Event()
    by_core, by_golden, step = DeviceWorker.do, GoldenWorker.do, session.step

    def core(worker: DeviceWorker, job: Job) -> JobResult:
        began.set()
        return by_core(worker, job)

    def golden(worker: GoldenWorker, job: Job) -> JobResult:
        # so fast that it could do all of a step before a core's thread has come to run
        assert began.wait(60)
        return by_golden(worker, job)

    def one_step(*arguments: Any) -> Any:
        began.clear()
        return step(*arguments)

    monkeypatch.setattr(DeviceWorker, "do", core)
    monkeypatch.setattr(GoldenWorker, "do", golden)
    monkeypatch.setattr(session, "step", one_step)
    found = learn(session, 2)
    check_equal(found, learn(TrainingSession(MODEL, layers=1), 2))
    # five images at least go to a core in each step
    assert session.bytes_per_step > 5 * 64


def test_cores_that_fail_in_mid_step_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    devices = []

    class FailingDevice(ModelDevice):
        """Its 25th run fails; one that is opened instead does not."""

        def __init__(self, configuration: Configuration) -> None:
            super().__init__(configuration)
            self._left = 25 if len(devices) < 2 else -1
            devices.append(self)

        def run(self, pcs: Sequence[int], clear: bool = True) -> None:
            self._left -= 1
            if self._left == 0:
                raise DeviceError("the answer makes no sense")
            super().run(pcs, clear)

    monkeypatch.setattr(model, "ModelDevice", FailingDevice)
    session = TrainingSession(MODEL, device="pool:model:sim-training,model:sim-training", layers=1)
    found = learn(session, 2)
    assert len(devices) == 4 and session.sharing_figures["given_again"] >= 2
    check_equal(found, learn(TrainingSession(MODEL, layers=1), 2))


@pytest.mark.parametrize(
    "options",
    [{"gradient_bits": 4}, {"gradient_bits": 1, "layers": 2}, {"local_steps": 2, "layers": 2}],
    ids=str,
)
def test_parts_and_not_devices_have_other_bits(options: dict) -> None:
    two = learn(TrainingSession(MODEL, device=POOL, **options))
    check_equal(learn(TrainingSession(MODEL, parts=2, **options)), two)
    four = learn(TrainingSession(MODEL, device=POOL, parts=4, **options))
    assert any((four[name] != array).any() for name, array in two.items())


def test_figures_of_local_steps() -> None:
    session = TrainingSession(MODEL, parts=2, local_steps=2)
    x, y = (array[:48] for array in load_digits()[:2])
    data = session.prepare(x, y)
    batches = [(data.images[at : at + 16], data.labels[at : at + 16]) for at in (0, 16, 32)]
    assert math.isnan(session.step(*batches[0], 5)) and session.step(*batches[1], 5) > 0
    assert math.isnan(session.step(*batches[2], 5))
    # a test learns from what waits; its figures are the next step's
    before = session.parameters()
    session.evaluate(*batches[0])
    assert any((session.parameters()[name] != array).any() for name, array in before.items())
    assert session.step(*batches[0], 5) > 0
    with pytest.raises(InputError, match="parts must be at most the 1 images of a batch, not 2"):
        session.step(data.images[:1], data.labels[:1], 5)


def test_other_classes() -> None:
    with TrainingSession(MODEL, classes=3, layers=1) as session:
        assert session.network.classes == 3
        x, y = load_digits()[:2]
        chosen = y < 3
        data = session.prepare(x[chosen], y[chosen])
        for _ in range(4):
            for images, labels in Loader(data):
                session.step(images, labels, 5)
        assert session.evaluate(data.images, data.labels).accuracy > 0.95


@pytest.mark.parametrize(
    ("network", "options", "message"),
    [
        (MODEL, {"layers": 99}, "layers that learn must be 1 to 6, not 99"),
        (MODEL, {"layers": 0}, "layers that learn must be 1 to 6, not 0"),
        (MODEL, {"layers": 1, "from_scratch": True}, "the others have random weights"),
        (MODEL, {"classes": 1}, "classes must be at least 2, not 1"),
        (MODEL, {"master_bits": 12}, "must have 16 or 8 bits, not 12"),
        (MODEL, {"momentum": 9}, "momentum must be 0 .* to 8, not 9"),
        (MODEL, {"source": "next"}, "the range must be previous or present, not 'next'"),
        (MODEL, {"update": "nobody"}, "update must be device or host, not 'nobody'"),
        (MODEL, {"device": "split:model,model"}, "on one device or on a pool of them, pool:D1,"),
        (MODEL, {"device": "pool:"}, "must name its devices: pool:DEVICE,DEVICE,..."),
        (MODEL, {"gradient_bits": 3}, "gradient_bits must be 32, 8, 4, 2 or 1, not 3"),
        (MODEL, {"parts": 0}, "parts must be at least 1, not 0"),
        (MODEL, {"parts": 2, "source": "present"}, "the range must be previous, not present"),
        (MODEL, {"device": POOL, "source": "present"}, "the range must be previous, not present"),
        (MODEL, {"device": f"{POOL},model", "local_steps": 2}, "a power of two beside local_steps"),
        (MODEL, {"cluster": "foo"}, "--cluster must be local:N or tcp://HOST:PORT, not 'foo'"),
        ("lenet", {}, "must be a .tflite or .onnx file or one of mnist-cnn.*not 'lenet'"),
        ("missing.tflite", {}, "missing.tflite"),
        ("x.pt", {}, "must be a .tflite or .onnx file, not x.pt"),
    ],
)
def test_what_cannot_be_opened(network, options: dict, message: str) -> None:
    with pytest.raises(SlipstickError, match=message):
        TrainingSession(network, **options)


def test_hardware_that_cannot_train() -> None:
    with pytest.raises(CapacityError, match="training"):
        TrainingSession(MODEL, device="model:sim-small")


def test_inputs_and_labels_that_are_none(tmp_path: Path) -> None:
    session = TrainingSession(MODEL)
    x, y = (array[:8] for array in load_digits()[:2])
    cases = (
        (x[:0], y[:0], "must have the shape|at least one image"),
        (x[:, :4], y, "must have the shape"),
        (np.full(x.shape, np.nan, np.float32), y, "must hold finite numbers, but has nan"),
        (x, y[:7], "must be 8 whole numbers, one per image"),
        (x, y + 5, "must be 0 to 9, the network's classes, not"),
        (x, y - 5, "must be 0 to 9, the network's classes, not -"),
        (x, y.astype(float), "whole numbers, one per image, not float64"),
    )
    for images, labels, message in cases:
        with pytest.raises(InputError, match=message):
            session.prepare(images, labels)
    data = session.prepare(x, y[:, np.newaxis])
    with pytest.raises(InputError, match="a batch must be a power of two, not 7 images"):
        session.step(data.images[:7], data.labels[:7], 6)
    with pytest.raises(InputError, match="as prepare\\(\\) gives them, not float32"):
        session.step(data.images.astype(np.float32), data.labels, 6)
    with pytest.raises(InputError, match="as prepare\\(\\) gives them, not int8 \\(0, 8, 8, 1\\)"):
        session.evaluate(data.images[:0], data.labels[:0])
    session.step(data.images, data.labels, 6)
    with pytest.raises(InputError, match="cannot be written: Is a directory"):
        (tmp_path / "x.onnx").mkdir()
        session.save(tmp_path / "x.onnx")
    session.check_output(tmp_path / "y.tflite")
    assert not (tmp_path / "y.tflite").exists()


def test_loaders_that_have_no_batches() -> None:
    data = small_pictures(20)
    with pytest.raises(InputError, match="power of two, not 12"):
        Loader(data, 12)
    with pytest.raises(InputError, match="a batch of 32 needs as many images, not 20"):
        Loader(data, 32)


def test_what_is_held_out() -> None:
    data = LabelledSet(np.arange(20, dtype=np.int8).reshape(20, 1, 1, 1), np.arange(20))
    split, again, other = (hold_out(data, 0.25, seed) for seed in (0, 0, 1))
    assert len(split.test) == 5 and len(split.train) == 15
    assert not set(split.test.labels) & set(split.train.labels)
    np.testing.assert_array_equal(split.test.labels, again.test.labels)
    assert set(split.test.labels) != set(other.test.labels)
    with pytest.raises(InputError, match="a share of 0.01 of 20 images must leave some"):
        hold_out(data, 0.01, 0)


def test_digests() -> None:
    one = np.arange(4, dtype=np.int8)
    assert digest(one) == digest(one.copy()) and len(digest(one)) == 16
    assert len({digest(one), digest(one.astype(np.int16)), digest(one, one), digest(one[:3])}) == 4
