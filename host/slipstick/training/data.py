"""Labelled sets to train with: MNIST, CIFAR-10, key words; images as int8 codes of 2^-7."""

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..data.array_files import read_npz
from ..data.inputs import load_inputs, load_labels
from ..errors import InputError


@dataclass(frozen=True)
class LabelledSet:
    """Images with labels.

    Parameters
    ----------
    images : array of int8, (count, height, width, channels)
        Codes of 2^-7.
    labels : array of int64, (count,)
    """

    images: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.images)

    def first(self, count: int | None) -> "LabelledSet":
        """The first images; all for None."""
        return LabelledSet(self.images[:count], self.labels[:count])

    def at(self, places: np.ndarray) -> "LabelledSet":
        """Some of them."""
        return LabelledSet(self.images[places], self.labels[places])


@dataclass(frozen=True)
class Split:
    """Holds the set to learn from, and the set to test on."""

    train: LabelledSet
    test: LabelledSet


def load_mnist(folder: Path) -> Split:
    """MNIST: 60,000 images to learn from, 10,000 to test on.

    A pixel of 0..255 becomes a code of 0..127: pixel >> 1.

    Parameters
    ----------
    folder : path
        Has the four files as they are published.

    Raises
    ------
    InputError
        If it is not there, or no MNIST.
    """
    _check_folder(folder, "MNIST")
    parts = []
    for name in ("train", "t10k"):
        samples = load_inputs([folder / f"{name}-images-idx3-ubyte.gz"], (1, 28, 28, 1))
        labels = load_labels(folder / f"{name}-labels-idx1-ubyte.gz", len(samples))
        parts.append(LabelledSet((samples.x.astype(np.uint8) >> 1).astype(np.int8), labels))
    return Split(*parts)


def load_cifar10(folder: Path, advance: Callable[[int], object] = lambda count: None) -> Split:
    """CIFAR-10: 50,000 images to learn from, 10,000 to test on, decoded from JPEG.

    A pixel of 0..255 becomes a code of -127..127: pixel - 128, but not -128.

    Parameters
    ----------
    folder : path
        Has ``cifar10_jpeg_train.npz`` and ``cifar10_jpeg_test.npz``: bytes ``jpeg``, ``offsets`` of
        each image's first byte and of the end, labels ``y``.
    advance : callable
        Told how many more images are decoded.

    Raises
    ------
    InputError
        If it is not there, or no such file.
    """
    _check_folder(folder, "CIFAR-10")
    parts = [_decoded(folder / f"cifar10_jpeg_{name}.npz", advance) for name in ("train", "test")]
    return Split(*parts)


def _decoded(path: Path, advance: Callable[[int], object]) -> LabelledSet:
    from PIL import Image

    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    arrays = read_npz(data, str(path))
    missing = {"jpeg", "offsets", "y"}.difference(arrays)
    if missing:
        raise InputError(f"{path} must hold arrays jpeg, offsets and y: {missing} are not there")
    jpeg, offsets, labels = (arrays[name] for name in ("jpeg", "offsets", "y"))
    places = offsets.astype(np.int64)
    if len(places) != len(labels) + 1 or (np.diff(places) < 1).any() or places[-1] > len(jpeg):
        raise InputError(f"{path}: offsets must rise, one per label and one for the end")
    images = np.empty((len(labels), 32, 32, 3), np.int8)
    for index, (first, end) in enumerate(zip(places[:-1], places[1:], strict=True)):
        try:
            with Image.open(io.BytesIO(jpeg[first:end].tobytes()), formats=["JPEG"]) as picture:
                pixels = np.asarray(picture.convert("RGB"), np.int16)
        # a damaged file makes Pillow's decoders raise almost anything
        except Exception as error:
            raise InputError(f"{path}: image {index} cannot be read: {error}") from None
        if pixels.shape != (32, 32, 3):
            raise InputError(f"{path}: image {index} must be 32 x 32, not {pixels.shape[:2]}")
        images[index] = np.maximum(pixels - 128, -127)
        if index % 1000 == 999:
            advance(1000)
    return LabelledSet(images, labels.astype(np.int64))


def load_key_words(folder: Path) -> LabelledSet:
    """1,000 feature maps (49 x 10) of 12 classes, int8 as DS-CNN's .tflite takes them.

    Raises
    ------
    InputError
        If it is not there, or no such file.
    """
    _check_folder(folder, "the key words")
    samples = load_inputs([folder / "kws01_mfcc_1000.npz"], (1, 49, 10, 1))
    if samples.y is None or samples.x.dtype != np.int8:
        raise InputError(f"{folder}/kws01_mfcc_1000.npz must hold int8 maps x and labels y")
    return LabelledSet(samples.x, samples.y)


def _check_folder(folder: Path, what: str) -> None:
    if not folder.is_dir():
        raise InputError(
            f"{what} must be in the folder {folder}, which is not there (SLIPSTICK_DATA)"
        )
