"""Trains a float network further, with weights and activations rounded to a format."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import InputError
from ...quantize.lns_quantize import sampled
from ...quantize.lns_scales import best_scales
from ..float32 import softmax
from ..loop import Recipe, augment
from ..network import INPUT, FloatParameters
from ..trainer import cross_entropy, right
from .adam import Adam, cosine
from .formats import AwareFormat, find_format
from .network import AwareNetwork
from .network_file import NetworkFile

_EVALUATED = 100
"""Images at a time, while nothing is learned."""

_GREY = 128
"""Pixel value at the borders that moved pictures of bytes leave empty."""


@dataclass(frozen=True, kw_only=True)
class AwareRecipe:
    """Describes how a network is trained further.

    Parameters
    ----------
    steps, batch : int
    rate : float
        Adam's learning rate of the first step; it falls to 0 as a cosine.
    flip : bool
        Every other picture, from left to right.
    crop : int
        Pixels that pictures are moved by, at most.
    refits : int
        How often scales are chosen again, at even distances. Behind the last time they are held.
    held : float
        Share of the steps at the end that are trained with scales that are held, and with products
        as the array has them.
    calibrating : int
        Images that scales of activations are chosen by.
    exact_logits : bool
        Whether the last layer's results stay sums, which do not become codes. Codes of 5 bits give
        equal logits to one image in seven. The host computes such a layer, exactly.
    taught : float
        Share of an image's target that is the answer of the float network that training begins
        with; the label is the rest (G. Hinton et al., "Distilling the Knowledge in a Neural
        Network", 2015, at a temperature of 1).

    Raises
    ------
    InputError
        If one is out of range.
    """

    steps: int = 1000
    batch: int = 96
    rate: float = 5e-4
    flip: bool = False
    crop: int = 0
    refits: int = 8
    held: float = 0.5
    calibrating: int = 256
    exact_logits: bool = False
    taught: float = 0.0

    def __post_init__(self) -> None:
        for name, low in (("steps", 0), ("batch", 1), ("crop", 0), ("refits", 0)):
            if getattr(self, name) < low:
                raise InputError(f"{name} must be at least {low}, not {getattr(self, name)}")
        if not 0 < self.rate < 1:
            raise InputError(f"rate must be above 0 and below 1, not {self.rate}")
        for name in ("held", "taught"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} must be within 0..1, not {getattr(self, name)}")
        if self.calibrating < 1:
            raise InputError(f"calibrating must be at least 1, not {self.calibrating}")

    @property
    def refit_steps(self) -> frozenset[int]:
        """Steps before which scales are chosen again; they are chosen before the first anyway."""
        last = self.steps * (1 - self.held)
        steps = {round(last * (place + 1) / self.refits) for place in range(self.refits)}
        return frozenset(steps - {0})


@dataclass(frozen=True)
class StepFigures:
    """A step's figures.

    Parameters
    ----------
    step : int
        From 0.
    loss : float
        Mean cross-entropy, in nats.
    right : int
        Images of the batch that were classified right.
    """

    step: int
    loss: float
    right: int


class Tuned:
    """A network with the weights and the scales of a training.

    Parameters
    ----------
    file : NetworkFile
    network : AwareNetwork
        Its parameters are rounded.

    Members
    -------
    form : AwareFormat or None
    """

    def __init__(self, file: NetworkFile, network: AwareNetwork) -> None:
        self.file, self.network, self.form = file, network, network.form

    def float_model(self) -> Any:
        """The float network, a ModelProto, whose weights are what their codes stand for."""
        return self.file.with_parameters(self.network.rounded_parameters())

    def float_file(self) -> bytes:
        """An ordinary float .onnx file; ``slipstick quantize`` finds the same codes of weights."""
        return self.float_model().SerializeToString()

    def logarithmic_file(self) -> bytes:
        """The .onnx file of logarithmic codes, with the scales of the training.

        Raises
        ------
        ValueError
            If the network was trained in float32.
        """
        from .files import write_logarithmic

        return write_logarithmic(self)

    def logits(self, numbers: np.ndarray) -> np.ndarray:
        """Computes logits, float32 (count, classes), of inputs as the network's file takes them."""
        images, last = self.file.images(numbers), self.network.network.layers[-1].name
        return np.concatenate(
            [
                self.network.forward(images[first : first + _EVALUATED]).tensors[last]
                for first in range(0, len(images), _EVALUATED)
            ]
        ).reshape(len(images), -1)


def fine_tune(
    model: str | os.PathLike[str] | NetworkFile,
    images: np.ndarray,
    labels: np.ndarray,
    *,
    form: str | AwareFormat | None = "lns5",
    recipe: AwareRecipe | None = None,
    seed: int = 0,
    after_step: Callable[[StepFigures], object] = lambda figures: None,
) -> Tuned:
    """Trains a float network further while its numbers are rounded as they will be.

    Master weights are float32. The forward pass rounds inputs, weights and activations as the
    network of the quantiser does on the format's array, and errors pass straight through.

    Parameters
    ----------
    model : path or NetworkFile
        A float ONNX network whose output is logits, or their Softmax.
    images : array
        As the network takes them, of any type; pictures are N x C x H x W.
    labels : array of int, (count,)
    form : str or AwareFormat, optional
        None trains in float32, to compare with.
    recipe : AwareRecipe, optional
    seed : int
        Of the order of images, their augmentation and the images that scales are chosen by.
    after_step : callable
        Given each step's figures.

    Raises
    ------
    InputError
        If images and labels do not fit the network or the batch.
    ModelError, UnsupportedError
        If the network cannot be read or trained.
    """
    file = model if isinstance(model, NetworkFile) else NetworkFile(model)
    recipe = recipe or AwareRecipe()
    _check(file, images, labels, recipe)
    chosen = find_format(form) if isinstance(form, str) else form
    coded = file.coded - ({file.network.layers[-1].name} if recipe.exact_logits else set())
    tuning = _Tuning(file, AwareNetwork(file.network, coded, chosen), recipe, seed)
    return tuning.run(file.images(images), np.asarray(labels, np.int64), after_step)


def _check(file: NetworkFile, images: np.ndarray, labels: np.ndarray, recipe: AwareRecipe) -> None:
    if images.shape[1:] != file.shape[1:]:
        raise InputError(f"images must be of {file.shape[1:]}, not {images.shape[1:]}")
    if len(images) != len(labels):
        raise InputError(f"images must have a label each: {len(images)} and {len(labels)}")
    if len(images) < recipe.batch:
        raise InputError(f"a batch of {recipe.batch} needs as many images, not {len(images)}")
    classes = file.network.classes
    if len(labels) and not 0 <= int(np.min(labels)) <= int(np.max(labels)) < classes:
        raise InputError(f"labels must be within 0..{classes - 1}")


class _Tuning:
    def __init__(
        self, file: NetworkFile, network: AwareNetwork, recipe: AwareRecipe, seed: int
    ) -> None:
        self._file, self._network, self._recipe, self._seed = file, network, recipe, seed
        self._adam = Adam(file.initial)
        self._teacher = AwareNetwork(file.network, (), None)
        self._teacher.round_parameters(file.initial)

    def run(
        self,
        images: np.ndarray,
        labels: np.ndarray,
        after_step: Callable[[StepFigures], object],
    ) -> Tuned:
        recipe, network, generator = self._recipe, self._network, np.random.default_rng(self._seed)
        shown = images[generator.permutation(len(images))[: recipe.calibrating]]
        self._fit(shown, self._adam.parameters)
        for step in range(recipe.steps):
            if step in recipe.refit_steps:
                self._fit(shown, network.rounded_parameters())
            # while scales still change, that products are the array's would gain nothing
            network.exact_products = step >= recipe.steps * (1 - recipe.held)
            network.round_parameters(self._adam.parameters)
            places = generator.integers(0, len(images), recipe.batch)
            batch = moved(images[places], recipe, generator)
            found = network.forward(batch)
            gradients = network.gradients(found, self._targets(batch, labels[places]))
            self._adam.step(gradients, cosine(recipe.rate, step, recipe.steps))
            after_step(self._figures(step, found.tensors, labels[places]))
        network.exact_products = True
        network.round_parameters(self._adam.parameters)
        return Tuned(self._file, network)

    def _targets(self, batch: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Probabilities to learn: of the labels, and of the network that training began with."""
        own = np.eye(self._file.network.classes, dtype=np.float32)[labels]
        taught = np.float32(self._recipe.taught)
        if not taught:
            return own
        last = self._file.network.layers[-1].name
        answers = self._teacher.forward(batch).tensors[last].reshape(own.shape)
        return (1 - taught) * own + taught * softmax(answers)

    def _fit(self, shown: np.ndarray, parameters: dict[str, FloatParameters]) -> None:
        """Chooses all scales as the quantiser would choose them for these parameters."""
        network, file = self._network, self._file
        if network.form is None:
            return
        batches = [{file.input: number[None]} for number in file.numbers(shown)]
        names = {file.input: INPUT} | {name: name for name in network.coded}
        samples = sampled(file.with_parameters(parameters), batches, tuple(names))
        for name, numbers in samples.items():
            (scale,) = best_scales(numbers.reshape(1, -1), network.form.arithmetic)
            network.scales[names[name]] = float(scale)
        network.fit_weights(self._adam.parameters)

    def _figures(
        self, step: int, tensors: dict[str, np.ndarray], labels: np.ndarray
    ) -> StepFigures:
        logits = tensors[self._network.network.layers[-1].name].reshape(len(labels), -1)
        return StepFigures(step, cross_entropy(logits, labels) / len(labels), right(logits, labels))


def moved(images: np.ndarray, recipe: AwareRecipe, generator: np.random.Generator) -> np.ndarray:
    """Pictures flipped and moved as the recipe says; what comes in at the border is grey."""
    if not recipe.flip and not recipe.crop:
        return images
    grey = _GREY if images.dtype == np.uint8 else 0
    centred = images.astype(np.float32) - np.float32(grey)
    # an epoch and rates, which it asks for, play no part
    plain = Recipe(epochs=1, batch=1, rates=((0, 0),), flip=recipe.flip, crop=recipe.crop)
    found = augment(centred, plain, generator) + np.float32(grey)
    return found.astype(images.dtype) if grey else found
