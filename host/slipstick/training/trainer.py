"""Runs a training step of any network in any arithmetic."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from .arithmetic import Arithmetic, Rate, StepResult
from .network import INPUT, Initial, Kind, Layer, TrainingNetwork

_EVALUATED = 256
"""Images at a time."""

NOTHING = StepResult({}, {}, 0.0, 0, 0)
"""The figures of a step of which nothing has come back yet."""


class Learner(Protocol):
    """The methods of a trainer that the loop needs."""

    def step(self, images: np.ndarray, labels: np.ndarray, shift: int) -> StepResult:
        """Takes a batch; figures of what was learned since the last call."""
        ...

    def flush(self) -> StepResult:
        """Learns from batches that wait; figures of what was learned since the last call."""
        ...

    def evaluate(self, images: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
        """Mean cross-entropy, and the share that is right, 0..1."""
        ...

    def arrays(self) -> dict[str, np.ndarray]:
        """All that training changes, by name, for a checkpoint."""
        ...

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Goes on from what ``arrays`` gave."""
        ...


class Trainer:
    """A network in training.

    Parameters
    ----------
    network : TrainingNetwork
    arithmetic : Arithmetic
        Of this trainer alone: it keeps the ranges.
    initial : mapping of FloatParameters
    learning : collection of str, optional
        Layers that learn; by default all that have weights. Errors go back no further than the
        first of them.
    """

    def __init__(
        self,
        network: TrainingNetwork,
        arithmetic: Arithmetic,
        initial: Initial,
        learning: Collection[str] | None = None,
    ) -> None:
        self.network, self.arithmetic = network, arithmetic
        names = [layer.name for layer in network.learning]
        self.learning = frozenset(names if learning is None else learning)
        unknown = self.learning.difference(names)
        if unknown or not self.learning:
            raise ValueError(f"layers that learn must be some of {', '.join(names)}: {unknown}")
        self._parameters = arithmetic.start(network, initial)
        self._reached = self._above_learning()

    @property
    def parameters(self) -> dict[str, Any]:
        """By layer, as the arithmetic has them."""
        self._fetch()
        return self._parameters

    @parameters.setter
    def parameters(self, parameters: dict[str, Any]) -> None:
        self._parameters = parameters

    def _fetch(self) -> None:
        """Brings what a device has changed; here the host has all."""

    def _above_learning(self) -> frozenset[str]:
        """Tensors whose error is needed: some layer that learns is at or before them."""
        reached: set[str] = set()
        for layer in self.network.layers:
            if layer.name in self.learning or reached.intersection(layer.inputs):
                reached.add(layer.name)
        return frozenset(reached)

    def forward(self, images: np.ndarray) -> dict[str, Any]:
        """All tensors of a batch (batch, height, width, channels), int8 codes of 2^-7, by name."""
        do = self.arithmetic
        tensors = {INPUT: do.encode(images)}
        for layer in self.network.layers:
            inputs = [tensors[name] for name in layer.inputs]
            if layer.learns:
                result = do.product(layer, inputs[0], self.parameters[layer.name])
            elif layer.kind is Kind.ADD:
                result = do.add(layer, inputs[0], inputs[1])
            elif layer.kind is Kind.MAX_POOL:
                result = do.maximum(layer, inputs[0])
            elif layer.kind is Kind.AVERAGE_POOL:
                result = do.average(layer, inputs[0])
            else:
                shape = self.network.shapes[layer.name]
                result = do.reshape(inputs[0], (len(images), *shape))
            tensors[layer.name] = result
        return tensors

    def gradients(self, images: np.ndarray, labels: np.ndarray) -> StepResult:
        """Forward and backward pass of a batch, or of a part of one.

        Parameters
        ----------
        images : array of int8, (batch, height, width, channels)
        labels : array of int, (batch,)
        """
        do = self.arithmetic
        do.reports = {}
        tensors = self.forward(images)
        last = self.network.layers[-1].name
        logits = do.numbers(tensors[last]).reshape(len(images), -1)
        errors: dict[str, list[Any]] = {last: [do.loss_errors(tensors[last], labels)]}
        found = {}
        for layer in reversed(self.network.layers):
            if layer.name not in errors:
                continue
            arrived = errors.pop(layer.name)
            error = arrived[0] if len(arrived) == 1 else do.join(layer.name, arrived)
            if layer.name in self.learning:
                found[layer.name] = do.gradient(layer, tensors[layer.inputs[0]], error)
            for name, back in self._back(layer, error, tensors):
                errors.setdefault(name, []).append(back)
        return StepResult(
            found, do.reports, cross_entropy(logits, labels), right(logits, labels), len(images)
        )

    def _back(self, layer: Layer, error: Any, tensors: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """Errors of a layer's inputs, as far as they are needed."""
        do, found = self.arithmetic, []
        for name in layer.inputs:
            if name not in self._reached:
                continue
            x, masked = tensors[name], self.network.by_name[name].relu
            if layer.learns:
                back = do.product_back(layer, error, self.parameters[layer.name], x, masked)
            elif layer.kind is Kind.ADD:
                back = do.mask(error, x) if masked else error
            elif layer.kind is Kind.MAX_POOL:
                back = do.maximum_back(layer, error, x, tensors[layer.name], masked)
            elif layer.kind is Kind.AVERAGE_POOL:
                back = do.average_back(layer, error, x, masked)
            else:
                shape = self.network.shapes[name]
                back = do.reshape(error, (-1, *shape))
                back = do.mask(back, x) if masked else back
            found.append((name, back))
        return found

    def apply(self, parts: Sequence[StepResult], shift: int) -> None:
        """Updates by the parts of one batch; their order does not matter.

        Parameters
        ----------
        parts : sequence of StepResult
        shift : int
            The learning rate is 2^-shift.
        """
        rate = Rate(shift, sum(part.images for part in parts))
        for name in self.learning:
            whole = self.arithmetic.merge([part.gradients[name] for part in parts])
            self.arithmetic.update(self.parameters[name], whole, rate)
        for key in parts[0].ranges:
            self.arithmetic.ranges[key] = max(part.ranges[key] for part in parts)

    def step(self, images: np.ndarray, labels: np.ndarray, shift: int) -> StepResult:
        """Learns from one batch, whose images are a power of two."""
        result = self.gradients(images, labels)
        self.apply([result], shift)
        return result

    def flush(self) -> StepResult:
        """Learns from batches that wait, and gives their figures; here none ever waits."""
        return NOTHING

    def logits(self, images: np.ndarray) -> np.ndarray:
        """float32 (images, classes), with the ranges that training left."""
        last, blocks = self.network.layers[-1].name, []
        for first in range(0, len(images), _EVALUATED):
            tensors = self.forward(images[first : first + _EVALUATED])
            blocks.append(self.arithmetic.numbers(tensors[last]).reshape(-1, self.network.classes))
        return np.concatenate(blocks)

    def evaluate(self, images: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
        """Mean cross-entropy, and the share that is right, 0..1."""
        logits = self.logits(images)
        return cross_entropy(logits, labels) / len(labels), right(logits, labels) / len(labels)

    def arrays(self) -> dict[str, np.ndarray]:
        """All that training changes, by name, for a checkpoint."""
        found = {
            f"{name}/{key}": array
            for name, parameters in self.parameters.items()
            for key, array in self.arithmetic.arrays(parameters).items()
        }
        ranges = self.arithmetic.ranges
        found["ranges/names"] = np.array(list(ranges), np.str_)
        found["ranges/exponents"] = np.array(list(ranges.values()), np.int32)
        return found

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Goes on from what ``arrays`` gave.

        Raises
        ------
        KeyError
            If something is missing.
        """
        for name, parameters in self.parameters.items():
            own = {
                key.removeprefix(f"{name}/"): array
                for key, array in arrays.items()
                if key.startswith(f"{name}/")
            }
            self.arithmetic.restore(parameters, own)
        names, exponents = arrays["ranges/names"], arrays["ranges/exponents"]
        pairs = zip(names.tolist(), exponents.tolist(), strict=True)
        self.arithmetic.ranges = dict(pairs)


def figures_of(results: Sequence[StepResult]) -> StepResult:
    """The sums of results' figures, without gradients and ranges."""
    return StepResult(
        {},
        {},
        sum(result.loss for result in results),
        sum(result.right for result in results),
        sum(result.images for result in results),
    )


def cross_entropy(logits: np.ndarray, labels: np.ndarray) -> float:
    """The sum of the images' cross-entropies, in nats, in float64: a figure for people."""
    wide = logits.astype(np.float64)
    wide -= wide.max(axis=1, keepdims=True)
    chosen = wide[np.arange(len(labels)), labels]
    return float((np.log(np.exp(wide).sum(axis=1)) - chosen).sum())


def right(logits: np.ndarray, labels: np.ndarray) -> int:
    """Images whose largest logit, the first of equals, is the label's."""
    return int((logits.argmax(axis=1) == labels).sum())
