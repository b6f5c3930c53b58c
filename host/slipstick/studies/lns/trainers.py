"""Networks of two layers that are trained in the arithmetics of the study, all by one interface."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np
from slipstick_rtl.numbers.lns.formats import Lns
from slipstick_rtl.numbers.lns.unit.conversions import from_float, to_float

from ...errors import InputError

HIDDEN = 128
CLASSES = 10
LARGEST_PIXEL = 255
_EVALUATED = 500
"""Images at a time."""


class Arithmetic(StrEnum):
    """The rows of the table."""

    FLOAT32 = "float32"
    PRODUCTS = "products"
    EVERYWHERE = "everywhere"
    COMPENSATED = "compensated"
    COMPLEMENTED = "complemented"


MEANINGS = {
    Arithmetic.FLOAT32: "float32",
    Arithmetic.PRODUCTS: "matrix products in LNS",
    Arithmetic.EVERYWHERE: "LNS everywhere",
    Arithmetic.COMPENSATED: "LNS everywhere, compensated updates and sums",
    Arithmetic.COMPLEMENTED: "the same, true class's error from the others",
}


@dataclass(frozen=True)
class Settings:
    """Holds the settings of a training besides its arithmetic.

    Parameters
    ----------
    rate : float
        Learning rate.
    batch : int
        Images.
    seed : int
        Of the first weights and of the order of the images in each epoch.
    """

    rate: float
    batch: int
    seed: int

    def first_weights(self, inputs: int) -> tuple[np.ndarray, np.ndarray]:
        """float32, (inputs, HIDDEN) and (HIDDEN, CLASSES): normal, of variance 2 / fan-in."""
        generator = np.random.default_rng([self.seed, 0])
        shapes = ((inputs, HIDDEN), (HIDDEN, CLASSES))
        first, second = (
            (generator.standard_normal(shape) * np.sqrt(2 / shape[0])).astype(np.float32)
            for shape in shapes
        )
        return first, second

    def order(self, epoch: int, count: int) -> np.ndarray:
        """Draws the order of an epoch's images; those that fill no batch are left out."""
        order = np.random.default_rng([self.seed, 1 + epoch]).permutation(count)
        return order[: count - count % self.batch].reshape(-1, self.batch)


class Trainer(ABC):
    """A network in training.

    Images are bytes (count, inputs), labels int64 (count,).
    """

    settings: Settings

    @abstractmethod
    def step(self, images: np.ndarray, labels: np.ndarray) -> None:
        """Learns from one batch."""

    @abstractmethod
    def classify(self, images: np.ndarray) -> np.ndarray:
        """The likeliest class of each image."""

    @abstractmethod
    def arrays(self) -> dict[str, np.ndarray]:
        """Everything that training changes, by name."""

    @abstractmethod
    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Goes on from what ``arrays`` gave."""

    def train(
        self, epoch: int, images: np.ndarray, labels: np.ndarray, done: Callable[[int], None]
    ) -> None:
        """One epoch; tells ``done`` of each batch."""
        for batch in self.settings.order(epoch, len(images)):
            self.step(images[batch], labels[batch])
            done(1)

    def error(self, images: np.ndarray, labels: np.ndarray) -> float:
        """The share that is classified otherwise than labelled, in percent."""
        blocks = range(0, len(images), _EVALUATED)
        classes = [self.classify(images[first : first + _EVALUATED]) for first in blocks]
        return round(100 * float(np.mean(np.concatenate(classes) != labels)), 4)


class FloatTrainer(Trainer):
    """All in float32."""

    def __init__(self, settings: Settings, inputs: int) -> None:
        self.settings = settings
        first, second = settings.first_weights(inputs)
        self._arrays = {
            "weights_1": first,
            "bias_1": np.zeros(HIDDEN, np.float32),
            "weights_2": second,
            "bias_2": np.zeros(CLASSES, np.float32),
        }

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything that training changes, by name."""
        return self._arrays

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Goes on from what ``arrays`` gave."""
        self._arrays = dict(arrays)

    def encode(self, values: np.ndarray) -> np.ndarray:
        """An operand of ``product``."""
        return values

    def encode_pixels(self, images: np.ndarray) -> np.ndarray:
        """Pixels as an operand of ``product``: shares of the brightest."""
        return images.astype(np.float32) / np.float32(LARGEST_PIXEL)

    def product(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """a @ b, float32."""
        return a @ b

    def step(self, images: np.ndarray, labels: np.ndarray) -> None:
        """Learns from one batch."""
        x, weights = self.encode_pixels(images), self._arrays
        second = self.encode(weights["weights_2"])
        hidden = np.maximum(
            self.product(x, self.encode(weights["weights_1"])) + weights["bias_1"], 0
        )
        of_hidden = self.encode(hidden)
        logits = self.product(of_hidden, second) + weights["bias_2"]
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        errors = powers / powers.sum(axis=1, keepdims=True)
        errors[np.arange(len(labels)), labels] -= 1
        of_errors = self.encode(errors)
        back = self.product(of_errors, second.T) * (hidden > 0)
        gradients = {
            "weights_1": self.product(x.T, self.encode(back)),
            "bias_1": back.sum(axis=0),
            "weights_2": self.product(of_hidden.T, of_errors),
            "bias_2": errors.sum(axis=0),
        }
        rate = np.float32(self.settings.rate / self.settings.batch)
        for name, gradient in gradients.items():
            weights[name] -= rate * gradient

    def classify(self, images: np.ndarray) -> np.ndarray:
        """The likeliest class of each image."""
        weights, x = self._arrays, self.encode_pixels(images)
        first, second = (self.encode(weights[name]) for name in ("weights_1", "weights_2"))
        hidden = np.maximum(self.product(x, first) + weights["bias_1"], 0)
        logits = self.product(self.encode(hidden), second) + weights["bias_2"]
        return logits.argmax(axis=1)


class ProductsTrainer(FloatTrainer):
    """Matrix products in logarithms, their sums as well; all else in float32."""

    def __init__(self, settings: Settings, inputs: int, lns: Lns) -> None:
        from slipstick_sim.golden.lns_compiled import CompiledAnswers, encode

        super().__init__(settings, inputs)
        self._lns = lns
        self._answers, self._encode = CompiledAnswers(lns), encode
        top = lns.largest_code
        self._values = to_float(lns, np.arange(-top, top + 1), np.float32)
        self._pixels = pixel_codes(lns)

    def encode(self, values: np.ndarray) -> np.ndarray:
        """Ordered codes."""
        return self._encode(self._lns, values)

    def encode_pixels(self, images: np.ndarray) -> np.ndarray:
        """Ordered codes."""
        return self._pixels[images]

    def product(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """a @ b of codes, as float32."""
        from slipstick_sim.golden.lns_training import InnerProducts

        codes = self._answers.inner_products(InnerProducts(a, b, 0, False))
        return self._values[codes + self._lns.largest_code]


class LogarithmicTrainer(Trainer):
    """All in logarithms, exponentials in fixed point.

    Parameters
    ----------
    settings, inputs, lns
    compensated, complemented : bool
        As ``slipstick_sim.golden.lns_training.Rules`` has them.
    """

    def __init__(
        self, settings: Settings, inputs: int, lns: Lns, *, compensated: bool, complemented: bool
    ) -> None:
        from slipstick_sim.golden.lns_compiled import CompiledAnswers
        from slipstick_sim.golden.lns_training import Network, Rules

        self.settings = settings
        self._rules = Rules(lns, settings.rate, settings.batch, compensated, complemented)
        self._network = Network.of(lns, *settings.first_weights(inputs))
        self._answers = CompiledAnswers(lns)

    @cached_property
    def _pixels(self) -> np.ndarray:
        return pixel_codes(self._rules.lns)

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything that training changes, by name."""
        return self._network.arrays()

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Goes on from what ``arrays`` gave."""
        self._network = type(self._network)(**arrays)

    def step(self, images: np.ndarray, labels: np.ndarray) -> None:
        """Learns from one batch."""
        from slipstick_sim.golden.lns_training import drive, training_step

        drive(
            training_step(self._rules, self._network, self._pixels[images], labels), self._answers
        )

    def classify(self, images: np.ndarray) -> np.ndarray:
        """The likeliest class of each image."""
        from slipstick_sim.golden.lns_training import drive, forward

        _, logits = drive(forward(self._rules, self._network, self._pixels[images]), self._answers)
        # ordered codes have the order of the values
        return logits.argmax(axis=1)


def pixel_codes(lns: Lns) -> np.ndarray:
    """Ordered codes of all bytes as shares of the brightest pixel."""
    return from_float(lns, np.arange(LARGEST_PIXEL + 1) / LARGEST_PIXEL)


def make_trainer(arithmetic: Arithmetic, settings: Settings, inputs: int, lns: Lns) -> Trainer:
    """A network that has learned nothing yet.

    Raises
    ------
    InputError
        If numba is not installed.
    """
    if arithmetic is Arithmetic.FLOAT32:
        return FloatTrainer(settings, inputs)
    try:
        if arithmetic is Arithmetic.PRODUCTS:
            return ProductsTrainer(settings, inputs, lns)
        return LogarithmicTrainer(
            settings,
            inputs,
            lns,
            compensated=arithmetic is not Arithmetic.EVERYWHERE,
            complemented=arithmetic is Arithmetic.COMPLEMENTED,
        )
    except ImportError as error:
        if error.name not in ("numba", "slipstick_sim"):
            raise
        raise InputError(
            f"training in logarithms needs the package {error.name}: pip install 'slipstick[sim]'"
        ) from None
