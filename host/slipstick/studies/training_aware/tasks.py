"""The tasks of the study: digits from scratch, and a published ResNet-8 on CIFAR-10."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from ...benchmarks.suite import shared_folder
from ...data.inputs import load_inputs, load_labels
from ...errors import InputError
from ...training.aware import AwareRecipe
from ...training.aware.float_file import write_float_network
from ...training.data import LabelledSet, load_cifar10
from ...training.network import initial_parameters
from ...training.networks import digits_cnn
from ..training_parallel.evolution import digits

_PIXEL = 128
"""Difference between a pixel of 0..255 and the code of an image, which is less."""


@dataclass(frozen=True)
class Images:
    """Inputs as a network's file takes them (N x C x H x W), and labels."""

    x: np.ndarray
    y: np.ndarray

    def __len__(self) -> int:
        return len(self.y)

    def first(self, count: int | None) -> "Images":
        """The first ones; all for None."""
        return Images(self.x[:count], self.y[:count])


@dataclass(frozen=True)
class Prepared:
    """A task of one seed.

    Parameters
    ----------
    model : bytes
        The float .onnx network that training begins with.
    train : Images
    tests : mapping of Images
        By name; the first are those that figures are of, the others are looked at as well.
    int8 : path or None
        A published int8 network of the same kind.
    """

    model: bytes
    train: Images
    tests: Mapping[str, Images]
    int8: Path | None = None


@dataclass(frozen=True)
class Task:
    """A task.

    Parameters
    ----------
    name : str
    prepare : callable
        Given a seed.
    recipe, quick : AwareRecipe
        Of trainings that round.
    float_recipe, quick_float : AwareRecipe
        Of the training in float32 whose network the others begin with.
    from_scratch : bool
        Whether the float32 training begins with random weights.
    """

    name: str
    prepare: Callable[[int], Prepared]
    recipe: AwareRecipe
    quick: AwareRecipe
    float_recipe: AwareRecipe
    quick_float: AwareRecipe
    from_scratch: bool


def _digits(seed: int) -> Prepared:
    network, data = digits_cnn(), digits()
    model = write_float_network(network, initial_parameters(network, seed))
    train, test = (_codes(part) for part in (data.train, data.test))
    return Prepared(model, train, {"digits": test})


def _codes(part: LabelledSet) -> Images:
    """Codes of 2^-7 as real numbers."""
    numbers = part.images.transpose(0, 3, 1, 2).astype(np.float32) * np.float32(2**-7)
    return Images(numbers, part.labels)


def _cifar10(seed: int) -> Prepared:
    shared = shared_folder()
    place = shared / "models" / "resnet8_cifar10_fp32.onnx"
    int8 = shared / "models" / "ic01_resnet8_int8.tflite"
    lossless = shared / "data" / "cifar10" / "ic01_cifar10_200.npz"
    for path in (place, int8, lossless):
        if not path.is_file():
            raise InputError(f"{path} must be there (SLIPSTICK_DATA)")
    train, test = _pictures()
    shown = load_inputs([lossless], (1, 3, 32, 32))
    few = Images(shown.x, load_labels(lossless, len(shown)))
    tests = {"JPEG": test, "lossless": few}
    return Prepared(place.read_bytes(), train, tests, int8)


@cache
def _pictures() -> tuple[Images, Images]:
    """CIFAR-10's JPEG images to learn from and to test on, as pixels of 0..255."""
    data = load_cifar10(shared_folder() / "data" / "cifar10")
    train, test = (
        Images(
            (part.images.astype(np.int16) + _PIXEL).astype(np.uint8).transpose(0, 3, 1, 2),
            part.labels,
        )
        for part in (data.train, data.test)
    )
    return train, test


_PICTURES = AwareRecipe(steps=1200, batch=96, rate=5e-3, flip=True, crop=3)
_PICTURES_LONG = AwareRecipe(
    steps=6000,
    batch=96,
    rate=5e-3,
    flip=True,
    crop=3,
    held=0.1,
    exact_logits=True,
    taught=0.7,
)
_PICTURES_FLOAT = AwareRecipe(steps=800, batch=96, rate=5e-3, flip=True, crop=3)
_PICTURES_QUICK = AwareRecipe(steps=20, batch=96, rate=5e-3, flip=True, crop=3, refits=1)

TASKS = (
    Task(
        "digits",
        _digits,
        AwareRecipe(steps=600, batch=32, rate=1e-2),
        AwareRecipe(steps=150, batch=32, rate=1e-2, refits=2),
        AwareRecipe(steps=2400, batch=32, rate=2e-2),
        AwareRecipe(steps=1000, batch=32, rate=2e-2),
        from_scratch=True,
    ),
    Task(
        "cifar10",
        _cifar10,
        _PICTURES,
        _PICTURES_QUICK,
        _PICTURES_FLOAT,
        _PICTURES_QUICK,
        from_scratch=False,
    ),
    Task(
        "cifar10-long",
        _cifar10,
        _PICTURES_LONG,
        _PICTURES_QUICK,
        _PICTURES_FLOAT,
        _PICTURES_QUICK,
        from_scratch=False,
    ),
)
