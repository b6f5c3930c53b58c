"""The loop: schedules, augmentation, checkpoints; and the sets that are learned from."""

import io
from pathlib import Path

import numpy as np
import pytest
from slipstick.errors import InputError
from slipstick.training.checkpoints import History, read_checkpoint
from slipstick.training.data import load_cifar10, load_key_words, load_mnist
from slipstick.training.int8 import Int8Arithmetic
from slipstick.training.loop import Recipe, augment, order, train
from slipstick.training.network import initial_parameters
from slipstick.training.trainer import Trainer
from training_networks import small_network, small_split

RECIPE = Recipe(epochs=3, batch=32, rates=((0, 4), (0.5, 5)), momentum=2, flip=True, crop=1)


def trainer() -> Trainer:
    network = small_network()
    return Trainer(network, Int8Arithmetic(16, RECIPE.momentum), initial_parameters(network, 0))


def test_schedule_and_order() -> None:
    assert [RECIPE.shift(epoch) for epoch in range(3)] == [4, 4, 5]
    places = order(0, 1, 100, 32)
    assert places.shape == (3, 32) and len(set(places.ravel().tolist())) == 96
    assert not np.array_equal(places, order(0, 2, 100, 32))
    np.testing.assert_array_equal(places, order(0, 1, 100, 32))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch": 48}, "power of two, not 48"),
        ({"rates": ()}, "begin at 0 and rise"),
        ({"rates": ((0.5, 3),)}, "begin at 0 and rise"),
        ({"rates": ((0, 3), (0.5, 4), (0.5, 5))}, "begin at 0 and rise"),
    ],
)
def test_recipes_that_make_no_sense(changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Recipe(**{"epochs": 1, "batch": 32, "rates": ((0, 3),), **changes})


def test_augmentation() -> None:
    images = np.random.default_rng(0).integers(-127, 128, (64, 10, 8, 2)).astype(np.int8)
    plain = Recipe(epochs=1, batch=32, rates=((0, 3),))
    assert augment(images, plain, np.random.default_rng(1)) is images
    moved = augment(images, RECIPE, np.random.default_rng(1))
    assert moved.dtype == np.int8
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    kinds = set()
    for place, image in enumerate(moved):
        found = [
            (flip, y, x)
            for flip in (False, True)
            for y in range(3)
            for x in range(3)
            if np.array_equal(
                image,
                (padded[place, :, ::-1] if flip else padded[place])[y : y + 10, x : x + 8],
            )
        ]
        assert len(found) == 1
        kinds.update(found)
    assert len(kinds) > 12


def test_a_training_that_was_killed_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    data, whole, checkpoint = small_split(), trainer(), tmp_path / "whole.npz"
    history = train(whole, data, RECIPE, 7, checkpoint=checkpoint)
    assert history.test_percent[-1] > 40 and len(history) == 3
    assert len(history.before_percent) == 1

    class Killed(Exception):
        pass

    def kill(history: History) -> None:
        if len(history) == 2:
            raise Killed

    part = tmp_path / "part.npz"
    with pytest.raises(Killed):
        train(trainer(), data, RECIPE, 7, checkpoint=part, after_epoch=kill)
    seen: list[int] = []
    resumed = trainer()
    again = train(resumed, data, RECIPE, 7, checkpoint=part, resume=True, done=seen.append)
    assert again == history and sum(seen) == 3 * 8
    for key, array in whole.arrays().items():
        np.testing.assert_array_equal(resumed.arrays()[key], array, err_msg=key)
    kept = read_checkpoint(part)
    assert kept.history == history and set(kept.arrays) == set(whole.arrays())
    # a finished one trains nothing
    seen.clear()
    assert train(trainer(), data, RECIPE, 7, checkpoint=part, resume=True) == history


def test_checkpoints_that_are_damaged_or_of_another_network(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.npz"
    path.write_bytes(b"PK no")
    with pytest.raises(InputError, match="cannot be read, remove it"):
        train(trainer(), small_split(), RECIPE, 0, checkpoint=path, resume=True)
    history = {f"history/{name}": np.zeros(1) for name in vars(History())}
    np.savez(path, **history)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="is of another network"):
        train(trainer(), small_split(), RECIPE, 0, checkpoint=path, resume=True)


def test_fewer_images_than_a_batch() -> None:
    data = small_split()
    few = type(data)(data.train.first(20), data.test)
    with pytest.raises(InputError, match="a batch of 32 needs as many images, not 20"):
        train(trainer(), few, RECIPE, 0)


@pytest.mark.parametrize("load", [load_mnist, load_cifar10, load_key_words])
def test_sets_that_are_not_there(load, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="which is not there"):
        load(tmp_path / "missing")
    with pytest.raises(InputError, match="not there|cannot be read"):
        load(tmp_path)


def jpeg(colour: int, side: int = 32) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.new("RGB", (side, side), (colour, colour, colour)).save(file, "JPEG")
    return file.getvalue()


def write_pictures(folder: Path, pictures: list[bytes], **changes: np.ndarray) -> None:
    offsets = np.cumsum([0, *map(len, pictures)]).astype(np.uint32)
    arrays = {
        "jpeg": np.frombuffer(b"".join(pictures), np.uint8),
        "offsets": offsets,
        "y": np.arange(len(pictures), dtype=np.uint8),
        **changes,
    }
    for name in ("train", "test"):
        np.savez(folder / f"cifar10_jpeg_{name}.npz", **arrays)  # type: ignore[arg-type]


def test_pictures_as_jpeg(tmp_path: Path) -> None:
    write_pictures(tmp_path, [jpeg(0), jpeg(128), jpeg(255)])
    data = load_cifar10(tmp_path)
    assert data.train.images.shape == (3, 32, 32, 3) and len(data.test) == 3
    assert [int(image[5, 5, 0]) for image in data.train.images] == [-127, 0, 127]
    assert data.test.labels.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("pictures", "changes", "message"),
    [
        ([jpeg(0), b"\xff\xd8 no picture"], {}, "image 1 cannot be read"),
        ([jpeg(0, side=16)], {}, "image 0 must be 32 x 32, not"),
        ([jpeg(0)], {"offsets": np.array([0, 99999], np.uint32)}, "offsets must rise"),
        ([jpeg(0)], {"y": np.zeros(3, np.uint8)}, "offsets must rise"),
    ],
)
def test_damaged_pictures(tmp_path: Path, pictures, changes, message: str) -> None:
    write_pictures(tmp_path, pictures, **changes)
    with pytest.raises(InputError, match=message):
        load_cifar10(tmp_path)


def test_pictures_without_labels(tmp_path: Path) -> None:
    for name in ("train", "test"):
        np.savez(tmp_path / f"cifar10_jpeg_{name}.npz", jpeg=np.zeros(3, np.uint8))
    with pytest.raises(InputError, match="must hold arrays jpeg, offsets and y"):
        load_cifar10(tmp_path)
