"""``slipstick train``: its JSON, its files, one sentence for whatever is wrong."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from slipstick.examples.digits import MODEL, load_digits
from slipstick.training.checkpoints import read_checkpoint


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of inputs, good ones and bad ones."""
    folder = tmp_path_factory.mktemp("files")
    x, y, test_x, test_y = load_digits()
    np.savez(folder / "train.npz", x=x[:320], y=y[:320])
    np.savez(folder / "test.npz", x=test_x, y=test_y)
    np.save(folder / "x.npy", x[:320])
    np.save(folder / "y.npy", y[:320])
    np.save(folder / "few.npy", y[:319])
    np.savez(folder / "high.npz", x=x[:32], y=y[:32] + 9)
    np.savez(folder / "nan.npz", x=np.full((2, 8, 8, 1), np.nan, np.float32), y=y[:2])
    np.savez(folder / "none.npz", x=x[:0], y=y[:0])
    np.savez(folder / "shape.npz", x=x[:32, :4], y=y[:32])
    np.savez(folder / "one.npz", x=x[:1], y=y[:1])
    (folder / "notes.txt").write_text("a file")
    return folder


def test_json_and_files(slipstick, files: Path, tmp_path: Path) -> None:
    output, plot = tmp_path / "trained.tflite", tmp_path / "curves.png"
    arguments = ("train", MODEL, "--data", files / "train.npz", "--test", files / "test.npz")
    status, out, err = slipstick(
        *arguments, "--epochs", 2, "--layers", 2, "-o", output, "--plot", plot, "--json"
    )
    assert status == 0 and not err and out.count("\n") == 1
    result = json.loads(out)
    assert result["accuracy"] > 0.97 and 0 < result["loss"] < 1
    assert result["images_per_second"] > 0 and result["bytes_per_step"] == 0
    assert (result["epochs"], result["seed"], result["steps"]) == (2, 0, 40)
    assert (result["images"], result["test_images"], result["held_out"]) == (320, 539, False)
    assert len(result["layers"]) == 2 and result["rates"] == [[0, 6], [0.5, 7], [0.75, 8]]
    assert result["history"]["test_percent"][-1] == round(100 * result["accuracy"], 3)
    assert result["bytes"] == output.stat().st_size
    assert plot.read_bytes().startswith(b"\x89PNG")
    status, out, _ = slipstick("eval", output, "-i", files / "test.npz", "--json")
    assert status == 0 and abs(json.loads(out)["accuracy"] - result["accuracy"]) < 0.01


def test_table_and_a_held_out_part(slipstick, files: Path, tmp_path: Path) -> None:
    output = tmp_path / "trained.onnx"
    inputs = ("--data", files / "x.npy", "--labels", files / "y.npy", "--held-out", 0.25)
    options = ("--from-scratch", "--epochs", 3, "--schedule", "0:3,0.5:4", "--flip", "--crop", 1)
    more = ("--momentum", 2, "--master-bits", 8, "--range", "present", "--seed", 5, "--batch", 8)
    status, out, err = slipstick("train", MODEL, *inputs, *options, *more, "-o", output)
    assert status == 0
    for text in ("240 images", "80 tested on", "seed 5", "images per second", "trained.onnx"):
        assert text in " ".join(out.split())
    assert err.count("\n") == 3 and err.startswith("epoch 1 of 3: loss ")
    assert slipstick("run", output, "-i", files / "one.npz", "--device", "model")[0] == 0


def test_other_classes_by_name(slipstick, tmp_path: Path) -> None:
    """A network by hand, whose last layer becomes another one."""
    generator = np.random.default_rng(0)
    x = generator.integers(0, 256, (24, 28, 28)).astype(np.uint8)
    np.savez(tmp_path / "x.npz", x=x, y=generator.integers(0, 3, 24))
    output = tmp_path / "x.tflite"
    status, out, _ = slipstick(
        *("train", "mnist-cnn", "--data", tmp_path / "x.npz", "--classes", 3, "--epochs", 1),
        *("-o", output, "--json", "--limit", 20, "--batch", 16),
    )
    assert status == 0 and json.loads(out)["images"] == 16
    status, out, _ = slipstick(
        "run", output, "-i", tmp_path / "x.npz", "--device", "model", "--json"
    )
    assert status == 0 and json.loads(out)["outputs"][0]["shape"] == [3]


def test_a_checkpoint_that_is_resumed(slipstick, files: Path, tmp_path: Path) -> None:
    data = ("train", MODEL, "--data", files / "train.npz", "--epochs", 2, "--json")
    whole, part = tmp_path / "whole", tmp_path / "part"
    first = json.loads(slipstick(*data, "--checkpoint", whole)[1])
    again = ("--checkpoint", part, "--checkpoint-steps", 3)
    assert slipstick(*data, *again)[0] == 0
    status, _, err = slipstick(*data, *again)
    assert status == 2 and "is there: go on from it with --resume" in err
    result = json.loads(slipstick(*data, *again, "--resume")[1])
    assert result["steps"] == 0 and result["history"] == first["history"]
    one, other = (read_checkpoint(path) for path in (whole, part))
    for name, array in one.arrays.items():
        np.testing.assert_array_equal(array, other.arrays[name], err_msg=name)
    for option, message in (
        (("--batch", 8), "its batch must be 8, not 16"),
        (("--seed", 1), "its seed must be 1, not 0"),
        (("--limit", 99), "its data_digest must be"),
        (("--layers", 1), "its layers must be"),
    ):
        status, _, err = slipstick(*data, *again, "--resume", *option)
        assert status == 2 and message in err
    part.write_bytes(part.read_bytes()[:1000])
    status, _, err = slipstick(*data, *again, "--resume")
    assert status == 2 and "cannot be read, remove it" in err


def test_a_device(slipstick, files: Path) -> None:
    data = ("train", MODEL, "--data", files / "train.npz", "--limit", 20, "--layers", 1)
    options = ("--epochs", 1, "--json", "--device")
    golden, device = (
        json.loads(slipstick(*data, *options, name)[1]) for name in ("model", "model:sim-training")
    )
    assert golden["history"] == device["history"] and device["device"] == "model:sim-training"
    assert device["bytes_per_step"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "training needs a labelled set: --data FILE"),
        (("--data", "missing.npz"), "missing.npz is not there"),
        (("--data", "x.npy"), "come without labels y: give them by --labels FILE"),
        (("--data", "x.npy", "--labels", "few.npy"), "must be as many as the 320 inputs, not 319"),
        (("--data", "train.npz", "--test", "x.npy"), "give them by --test-labels FILE"),
        (("--data", "train.npz", "--test-labels", "y.npy"), "--test-labels needs inputs"),
        (("--data", "high.npz"), "labels must be 0 to 9, the network's classes, not 1"),
        (("--data", "nan.npz"), "must hold finite numbers, but has nan"),
        (("--data", "none.npz"), "none.npz must hold at least one input, it holds none"),
        (("--data", "shape.npz"), "must hold inputs of shape (8, 8, 1)"),
        (("--data", "one.npz"), "of 1 images must leave some to learn from"),
        (("--data", "train.npz", "--held-out", "1"), "must be above 0 and below 1, not 1"),
        (("--data", "train.npz", "--limit", "10"), "a batch of 16 needs as many images, not 8"),
        (("--data", "train.npz", "--layers", "7"), "layers that learn must be 1 to 6, not 7"),
        (("--data", "train.npz", "--layers", "0"), "--layers must be at least 1, not 0"),
        (("--data", "train.npz", "--batch", "12"), "--batch must be a power of two, not 12"),
        (("--data", "train.npz", "--epochs", "0"), "--epochs must be at least 1, not 0"),
        (("--data", "train.npz", "--crop", "-1"), "--crop must be at least 0, not -1"),
        (("--data", "train.npz", "--rate-shift", "99"), "shifts 0 to 16, not 99"),
        (("--data", "train.npz", "--schedule", "0:5,1:6"), "must begin at 0 and rise below 1"),
        (("--data", "train.npz", "--schedule", "5"), "must be SHARE:SHIFT,..., such as"),
        (("--data", "train.npz", "--schedule", "0:5", "--rate-shift", "5"), "leave one out"),
        (("--data", "train.npz", "--momentum", "20"), "momentum must be 0 (none) to 8, not 20"),
        (("--data", "train.npz", "--master-bits", "4"), "must have 16 or 8 bits, not 4"),
        (("--data", "train.npz", "--range", "next"), "'next' is not one of"),
        (("--data", "train.npz", "--device", "split:model,model"), "or on a pool of them"),
        (("--data", "train.npz", "--device", "pool:model,,model"), "must name its devices"),
        (("--data", "train.npz", "--device", "pool:model,cloud"), "device must be one of"),
        (("--data", "train.npz", "--device", "pool:model,model:sim-small"), "training = 1"),
        (("--data", "train.npz", "--gradient-bits", "3"), "--gradient-bits must be 32, 8, 4, 2 or"),
        (("--data", "train.npz", "--parts", "0"), "--parts must be at least 1, not 0"),
        (("--data", "train.npz", "--parts", "17"), "--parts must be at most the 16 images of a"),
        (("--data", "train.npz", "--local-steps", "0"), "--local-steps must be at least 1, not 0"),
        (
            ("--data", "train.npz", "--local-steps", "2", "--gradient-bits", "4"),
            "--gradient-bits must be 32 beside --local-steps 2, not 4",
        ),
        (
            ("--data", "train.npz", "--local-steps", "2", "--parts", "3"),
            "--parts must be a power of two beside --local-steps 2, not 3",
        ),
        (
            ("--data", "train.npz", "--device", "pool:model,model", "--range", "present"),
            "--range must be previous where a batch has parts, not present",
        ),
        (("--data", "train.npz", "--cluster", "foo"), "--cluster must be local:N or tcp://HOST"),
        (("--data", "train.npz", "--cluster", "local:0"), "must have 1..64 workers"),
        (("--data", "train.npz", "--device", "model:sim-small"), "training = 1"),
        (("--data", "train.npz", "--device", "cloud"), "device must be one of"),
        (("--data", "train.npz", "--output", "x.pt"), "--output must be a .tflite or .onnx file"),
        (("--data", "train.npz", "--output", "no/x.onnx"), "must be in a folder that is there"),
        (("--data", "train.npz", "--output", "images.onnx"), "is a folder"),
        (("--data", "train.npz", "--plot", "x.jpg"), "--plot must be a .png file"),
        (("--data", "train.npz", "--plot", "notes.txt/x.png"), "must be in a folder that is there"),
        (("--data", "train.npz", "--resume"), "--resume needs a checkpoint: --checkpoint FILE"),
        (("--data", "train.npz", "--checkpoint-steps", "5"), "--checkpoint-steps needs a"),
    ],
)
def test_bad_input(
    slipstick,
    files: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(files)
    Path("images.onnx").mkdir(exist_ok=True)
    status, out, err = slipstick("train", MODEL, *arguments)
    assert status == 2 and not out
    assert message in err and err.startswith("slipstick: ") and err.count("\n") == 1


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("lenet", "must be a .tflite or .onnx file or one of mnist-cnn, resnet8, ds-cnn"),
        ("missing.onnx", "missing.onnx"),
        ("notes.txt", "must be a .tflite or .onnx file, not notes.txt"),
    ],
)
def test_networks_that_are_none(
    slipstick, files: Path, monkeypatch: pytest.MonkeyPatch, model: str, message: str
) -> None:
    monkeypatch.chdir(files)
    status, _, err = slipstick("train", model, "--data", "train.npz")
    assert status == 2 and message in err and err.count("\n") == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(slipstick, files: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    status, _, err = slipstick(
        "train", MODEL, "--data", files / "train.npz", "-o", tmp_path / "x.onnx"
    )
    assert status == 2 and "cannot be written: Permission denied" in err


def test_the_network_itself_is_kept(slipstick, files: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.tflite"
    own.write_bytes(MODEL.read_bytes())
    status, _, err = slipstick("train", own, "--data", files / "train.npz", "-o", own)
    assert status == 2 and "--output must be another file than the network" in err
