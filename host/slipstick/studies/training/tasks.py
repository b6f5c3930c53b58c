"""The tasks of the study: MNIST and CIFAR-10 from scratch, and two kinds of adaptation."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from ...benchmarks.suite import shared_folder
from ...errors import InputError
from ...training.data import LabelledSet, Split, load_cifar10, load_key_words, load_mnist
from ...training.files import load_network
from ...training.graphs import ImportedNetwork
from ...training.loop import Recipe
from ...training.network import FloatParameters, TrainingNetwork, initial_parameters
from ...training.networks import mnist_cnn, resnet8

LEARNED_DIGITS = 500
LEARNED_WORDS = 800
NOISE = 64.0
"""Standard deviation of the noise on digits, in codes of 0..127."""

_LAST_LAYERS = 3
"""Layers of DS-CNN that learn: the last depthwise pair and the classifier."""


@dataclass(frozen=True)
class Prepared:
    """A task of one seed, ready to be trained.

    Parameters
    ----------
    network : TrainingNetwork
    initial : mapping of FloatParameters
    data : Split
    learning : tuple of str, or None
        Layers that learn; None: all.
    """

    network: TrainingNetwork
    initial: Mapping[str, FloatParameters]
    data: Split
    learning: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Task:
    """A task.

    Parameters
    ----------
    name : str
    prepare : callable
        Given a seed, and how many images to learn from and to test on at most (None: all).
    recipe, quick : Recipe
    quick_images : (int, int)
        Learned from and tested on in a quick study.
    limit : float
        Points below float32 that int8 may be.
    """

    name: str
    prepare: Callable[[int, int | None, int | None], Prepared]
    recipe: Recipe
    quick: Recipe
    quick_images: tuple[int | None, int | None]
    limit: float


def _mnist(seed: int, images: int | None, tested: int | None) -> Prepared:
    network, data = mnist_cnn(), _digits()
    split = Split(data.train.first(images), data.test.first(tested))
    return Prepared(network, initial_parameters(network, seed), split)


def _cifar10(seed: int, images: int | None, tested: int | None) -> Prepared:
    network, data = resnet8(), _pictures()
    split = Split(data.train.first(images), data.test.first(tested))
    return Prepared(network, initial_parameters(network, seed), split)


def turn(images: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Turned by 90 degrees, to the left."""
    return np.ascontiguousarray(np.rot90(images, axes=(1, 2)))


def invert(images: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Black for white: 127 - code."""
    return (127 - images).astype(np.int8)


def blur_with_noise(images: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Normal noise of ``NOISE`` on every pixel, within 0..127."""
    noise = generator.normal(scale=NOISE, size=images.shape)
    return np.clip(np.rint(images + noise), 0, 127).astype(np.int8)


Change = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def _changed_digits(change: Change) -> Callable[[int, int | None, int | None], Prepared]:
    def prepare(seed: int, images: int | None, tested: int | None) -> Prepared:
        generator, data = np.random.default_rng([seed, 3]), _digits()
        places = generator.permutation(len(data.train))[: min(LEARNED_DIGITS, images or 10**9)]
        learned, test = data.train.at(places), data.test.first(tested)
        split = Split(
            LabelledSet(change(learned.images, generator), learned.labels),
            LabelledSet(change(test.images, generator), test.labels),
        )
        known = _imported("mnist_int8_qoperator_pertensor.onnx")
        return Prepared(known.network, known.initial, split)

    return prepare


def _key_words(seed: int, images: int | None, tested: int | None) -> Prepared:
    """A new classifier of random weights, learned with the pair of layers before it."""
    generator = np.random.default_rng([seed, 3])
    known = _imported("kws01_dscnn_int8.tflite")
    data = load_key_words(shared_folder() / "data" / "kws")
    if len(data) <= LEARNED_WORDS:
        raise InputError(f"key words must be more than {LEARNED_WORDS} maps, not {len(data)}")
    places = generator.permutation(len(data))
    maps = LabelledSet(known.images(data.images), data.labels)
    learned = maps.at(places[: min(LEARNED_WORDS, images or 10**9)])
    learning = known.network.last_learning(_LAST_LAYERS)
    initial = dict(known.initial)
    initial[learning[-1]] = initial_parameters(known.network, seed)[learning[-1]]
    split = Split(learned, maps.at(places[LEARNED_WORDS:]).first(tested))
    return Prepared(known.network, initial, split, learning)


@cache
def _digits() -> Split:
    return load_mnist(shared_folder() / "data" / "mnist")


@cache
def _pictures() -> Split:
    return load_cifar10(shared_folder() / "data" / "cifar10")


@cache
def _imported(model: str) -> ImportedNetwork:
    path = Path(shared_folder(), "models", model)
    if not path.is_file():
        raise InputError(f"{path} must be there (SLIPSTICK_DATA)")
    return load_network(path)


_ADAPT = Recipe(epochs=16, batch=16, rates=((0, 6), (0.5, 7), (0.75, 8)))
_ADAPT_QUICK = Recipe(epochs=3, batch=16, rates=((0, 6),))

TASKS = (
    Task(
        "mnist",
        _mnist,
        Recipe(epochs=8, batch=32, rates=((0, 3), (0.4, 4), (0.7, 6), (0.9, 8))),
        Recipe(epochs=2, batch=32, rates=((0, 3), (0.5, 4))),
        (6000, 2000),
        0.3,
    ),
    Task(
        "cifar10",
        _cifar10,
        Recipe(
            epochs=16,
            batch=64,
            rates=((0, 5), (0.5, 6), (0.75, 8)),
            momentum=3,
            flip=True,
            crop=4,
        ),
        Recipe(epochs=2, batch=64, rates=((0, 5),), momentum=3, flip=True, crop=4),
        (3000, 1000),
        1.0,
    ),
    *(
        Task(
            f"adapt-mnist-{name}", _changed_digits(change), _ADAPT, _ADAPT_QUICK, (None, 2000), 1.0
        )
        for name, change in (("turned", turn), ("inverted", invert), ("noisy", blur_with_noise))
    ),
    Task("adapt-kws", _key_words, _ADAPT, _ADAPT_QUICK, (None, None), 1.0),
)

NAMES = {
    "mnist": ("mnist",),
    "cifar10": ("cifar10",),
    "adapt-mnist": tuple(task.name for task in TASKS if task.name.startswith("adapt-mnist")),
    "adapt-kws": ("adapt-kws",),
}
"""Names that ``--task`` takes, each with the names of its tasks."""
