"""Defines the interface of an arithmetic of training: float32, int8 and lns8 stand behind it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .network import Initial, Layer, TrainingNetwork


@dataclass(frozen=True)
class Rate:
    """The learning rate of a step, 2^-shift of the mean loss's gradient.

    Parameters
    ----------
    shift : int
    images : int
        Of the whole batch: a power of two.
    """

    shift: int
    images: int

    def __post_init__(self) -> None:
        if self.images < 1 or self.images & (self.images - 1):
            raise ValueError(f"a batch must be a power of two, not {self.images} images")

    @property
    def sum_shift(self) -> int:
        """The shift of the sum of the images' gradients."""
        return self.shift + self.images.bit_length() - 1


@dataclass(frozen=True)
class Gradient:
    """A layer's gradients, summed over a batch and not rounded yet.

    Parameters
    ----------
    weights, bias : array of int32 (float32 in float32)
    weight_exponent, bias_exponent : int
        Powers of two that the numbers count; 0 in float32.
    """

    weights: np.ndarray
    bias: np.ndarray
    weight_exponent: int = 0
    bias_exponent: int = 0


@dataclass(frozen=True)
class StepResult:
    """Holds the results of a batch, or of a board's part of one.

    Parameters
    ----------
    gradients : mapping
        By layer.
    ranges : mapping of int
        By tensor: the exponent that its largest magnitude asks for in the next step.
    loss : float
        Sum of the images' cross-entropies.
    right : int
        Images whose largest logit is the label's.
    images : int
    """

    gradients: Mapping[str, Gradient]
    ranges: Mapping[str, int]
    loss: float
    right: int
    images: int


class Arithmetic(ABC):
    """The operations of a training step on tensors of its own kind (``Any`` below).

    Tensors are batches in NHWC. Every operation that rounds has a key, the name of the tensor it
    makes, under which the range of the step before is kept in ``ranges``.
    """

    ranges: dict[str, int]
    """Ranges of the step before; empty before the first one, and in float32."""

    reports: dict[str, int]
    """Ranges of the step that runs, for the next one."""

    @property
    def takes_parts(self) -> bool:
        """Tells whether parts of a batch may be computed apart.

        They may if shifts do not depend on the whole batch.
        """
        return True

    @abstractmethod
    def start(self, network: TrainingNetwork, initial: Initial) -> dict[str, Any]:
        """Every layer's parameters of given real numbers."""

    @abstractmethod
    def encode(self, images: np.ndarray) -> Any:
        """A tensor of images, which are int8 codes of 2^-7 (float32 takes them as numbers)."""

    @abstractmethod
    def product(self, layer: Layer, x: Any, parameters: Any) -> Any:
        """A convolution's or depthwise convolution's output, behind its ReLU."""

    @abstractmethod
    def add(self, layer: Layer, a: Any, b: Any) -> Any:
        """A residual addition, behind its ReLU."""

    @abstractmethod
    def average(self, layer: Layer, x: Any) -> Any:
        """Sums of windows by a power of two."""

    @abstractmethod
    def maximum(self, layer: Layer, x: Any) -> Any:
        """Maxima of windows."""

    @abstractmethod
    def reshape(self, x: Any, shape: tuple[int, ...]) -> Any:
        """The same numbers in another shape."""

    @abstractmethod
    def numbers(self, x: Any) -> np.ndarray:
        """Real numbers of a tensor, float32: for losses that people read."""

    @abstractmethod
    def loss_errors(self, logits: Any, labels: np.ndarray) -> Any:
        """Errors of logits (batch, 1, 1, classes) under cross-entropy; not divided by the batch."""

    @abstractmethod
    def gradient(self, layer: Layer, x: Any, error: Any) -> Gradient:
        """Gradients of a product's weights and bias."""

    @abstractmethod
    def product_back(self, layer: Layer, error: Any, parameters: Any, x: Any, masked: bool) -> Any:
        """The error of a product's input ``x``; 0 where ``masked`` and x is not above 0."""

    @abstractmethod
    def average_back(self, layer: Layer, error: Any, x: Any, masked: bool) -> Any:
        """The error of an average's input."""

    @abstractmethod
    def maximum_back(self, layer: Layer, error: Any, x: Any, y: Any, masked: bool) -> Any:
        """The error of a maximum's input, by its output ``y``."""

    @abstractmethod
    def mask(self, error: Any, x: Any) -> Any:
        """An error where a tensor is above 0."""

    @abstractmethod
    def join(self, name: str, errors: Sequence[Any]) -> Any:
        """The sum of two or more errors that reach a tensor."""

    @abstractmethod
    def update(self, parameters: Any, gradient: Gradient, rate: Rate) -> None:
        """Changes a layer's parameters in place."""

    @abstractmethod
    def arrays(self, parameters: Any) -> dict[str, np.ndarray]:
        """Everything of a layer's parameters that a checkpoint needs."""

    @abstractmethod
    def restore(self, parameters: Any, arrays: Mapping[str, np.ndarray]) -> None:
        """Puts back what ``arrays`` gave."""

    def merge(self, gradients: Sequence[Gradient]) -> Gradient:
        """Gradients of the parts of a batch as those of the whole.

        Raises
        ------
        ValueError
            If their exponents differ: parts must begin with the same ranges.
        """
        first = gradients[0]
        for other in gradients[1:]:
            if (other.weight_exponent, other.bias_exponent) != (
                first.weight_exponent,
                first.bias_exponent,
            ):
                raise ValueError("parts of a batch must have gradients of equal exponents")
        return Gradient(
            self._sum([each.weights for each in gradients]),
            self._sum([each.bias for each in gradients]),
            first.weight_exponent,
            first.bias_exponent,
        )

    @abstractmethod
    def _sum(self, parts: Sequence[np.ndarray]) -> np.ndarray: ...
