"""Trains on a device and in the golden functions at once, and compares every product."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ...devices import Device
from ..data import LabelledSet
from ..int8 import Int8Arithmetic, Range
from ..network import TrainingNetwork, initial_parameters
from ..trainer import Trainer
from .comparison import ComparedArithmetic, Comparison
from .products import DeviceProducts

_NOISE = 40
_LARGEST = 90


@dataclass(frozen=True)
class Verification:
    """Holds the results of a verification.

    Parameters
    ----------
    comparison : Comparison
        Of every forward product, input gradient and weight gradient.
    parameters : Comparison
        Of weights, biases and ranges after the last step.
    steps, images : int
    losses : tuple of float
        Mean cross-entropy of each step.
    updated : int
        Steps whose weights the device updated.
    """

    comparison: Comparison
    parameters: Comparison
    steps: int
    images: int
    losses: tuple[float, ...]
    updated: int = 0

    @property
    def mismatches(self) -> int:
        """Counts the mismatches of both comparisons."""
        return self.comparison.mismatches + self.parameters.mismatches


def noisy_pictures(network: TrainingNetwork, count: int, seed: int) -> LabelledSet:
    """A random picture per class, with noise: something that can be learned, without data.

    Parameters
    ----------
    network : TrainingNetwork
    count : int
    seed : int
    """
    generator = np.random.default_rng([seed, 3])
    prototypes = generator.integers(-_LARGEST, _LARGEST + 1, (network.classes, *network.shape))
    labels = generator.integers(0, network.classes, count)
    noisy = prototypes[labels] + generator.normal(scale=_NOISE, size=(count, *network.shape))
    return LabelledSet(np.clip(np.rint(noisy), -127, 127).astype(np.int8), labels)


def noisy_batches(
    network: TrainingNetwork, steps: int, batch: int, seed: int
) -> Iterator[LabelledSet]:
    """A batch of ``noisy_pictures`` per step; after eight the first ones come again."""
    data = noisy_pictures(network, 8 * batch, seed)
    for step in range(steps):
        places = (step * batch + np.arange(batch)) % len(data)
        yield LabelledSet(data.images[places], data.labels[places])


def compare_arrays(ours: Trainer, golden: Trainer) -> Comparison:
    """Weights, biases and ranges of two trainers."""
    found, wanted = Comparison(), golden.arrays()
    for name, array in ours.arrays().items():
        found.add(name, array, wanted[name])
    return found


def verify_training(
    network: TrainingNetwork,
    device: Device,
    *,
    steps: int,
    batch: int,
    rate_shift: int,
    seed: int,
    source: Range = Range.PREVIOUS,
    done: Callable[[int], object] = lambda count: None,
) -> Verification:
    """Takes training steps on a device, and the same ones without it.

    Parameters
    ----------
    network : TrainingNetwork
    device : Device
        Whose configuration has ``training``.
    steps, batch : int
        The batch is a power of two.
    rate_shift : int
        The learning rate is 2^-rate_shift.
    seed : int
        Of first weights and pictures.
    source : Range
    done : callable
        Told of each step.
    """
    initial = initial_parameters(network, seed)
    compared = ComparedArithmetic(DeviceProducts(device), source=source)
    ours = Trainer(network, compared, initial)
    golden = Trainer(network, Int8Arithmetic(source=source), initial)
    losses = list[float]()
    for some in noisy_batches(network, steps, batch, seed):
        result = ours.step(some.images, some.labels, rate_shift)
        golden.step(some.images, some.labels, rate_shift)
        losses.append(round(result.loss / batch, 5))
        done(1)
    parameters = compare_arrays(ours, golden)
    return Verification(compared.comparison, parameters, steps, steps * batch, tuple(losses))
