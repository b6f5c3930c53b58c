"""Trains from a device's DRAM and in the golden functions at once, and compares all they make."""

from collections.abc import Callable, Sequence

import numpy as np

from ...devices.link import LinkDevice
from ..arithmetic import StepResult
from ..device.comparison import Comparison
from ..device.verify import Verification, compare_arrays, noisy_batches
from ..int8 import Codes, Int8Arithmetic, IntegerParameters
from ..network import Layer, TrainingNetwork, initial_parameters
from ..trainer import Trainer
from .trainer import DramTrainer


class KeepingArithmetic(Int8Arithmetic):
    """The golden functions; every tensor is kept under the name that it has in DRAM.

    Members
    -------
    kept : dict of array of int8
    """

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[str, np.ndarray] = {}

    def _keep(self, name: str, made: Codes) -> Codes:
        self.kept[name] = made.codes
        return made

    def product(self, layer: Layer, x: Codes, parameters: IntegerParameters) -> Codes:
        """Kept by the layer."""
        return self._keep(layer.name, super().product(layer, x, parameters))

    def add(self, layer: Layer, a: Codes, b: Codes) -> Codes:
        """Kept by the layer."""
        return self._keep(layer.name, super().add(layer, a, b))

    def average(self, layer: Layer, x: Codes) -> Codes:
        """Kept by the layer."""
        return self._keep(layer.name, super().average(layer, x))

    def maximum(self, layer: Layer, x: Codes) -> Codes:
        """Kept by the layer."""
        return self._keep(layer.name, super().maximum(layer, x))

    def product_back(
        self, layer: Layer, error: Codes, parameters: IntegerParameters, x: Codes, masked: bool
    ) -> Codes:
        """Kept by input and layer."""
        return self._keep(_error(layer), super().product_back(layer, error, parameters, x, masked))

    def average_back(self, layer: Layer, error: Codes, x: Codes, masked: bool) -> Codes:
        """Kept by input and layer."""
        return self._keep(_error(layer), super().average_back(layer, error, x, masked))

    def maximum_back(self, layer: Layer, error: Codes, x: Codes, y: Codes, masked: bool) -> Codes:
        """Kept by input and layer."""
        return self._keep(_error(layer), super().maximum_back(layer, error, x, y, masked))

    def join(self, name: str, errors: Sequence[Codes]) -> Codes:
        """Kept by the tensor."""
        return self._keep(f"error of {name}", super().join(name, errors))


def _error(layer: Layer) -> str:
    return f"error of {layer.inputs[0]} by {layer.name}"


def verify_dram_training(
    network: TrainingNetwork,
    device: LinkDevice,
    *,
    steps: int,
    batch: int,
    rate_shift: int,
    seed: int,
    keeps: bool = True,
    on_device: bool = False,
    done: Callable[[int], object] = lambda count: None,
) -> Verification:
    """Takes training steps from a device's DRAM, and the same ones without it.

    The first step has no ranges yet, and runs product by product: of it gradients and ranges are
    compared. Of the others each activation and error is as well.

    Parameters
    ----------
    network : TrainingNetwork
    device : LinkDevice
        Whose configuration has ``training`` and DRAM.
    steps, batch : int
        The batch is a power of two.
    rate_shift : int
        The learning rate is 2^-rate_shift.
    seed : int
        Of first weights and pictures.
    keeps : bool
        All tensors are stored in DRAM and compared; otherwise those that must be stored.
    on_device : bool
        The device updates the weights. Their gradients never leave it, so they are not compared;
        the weights are, in the end.
    done : callable
        Told of each step.
    """
    initial, golden = initial_parameters(network, seed), KeepingArithmetic()
    ours = DramTrainer(network, device, initial, keeps=keeps, on_device=on_device)
    wanted = Trainer(network, golden, initial)
    comparison, losses = Comparison(), list[float]()
    for step, some in enumerate(noisy_batches(network, steps, batch, seed)):
        right = wanted.gradients(some.images, some.labels)
        if on_device:
            found = ours.step(some.images, some.labels, rate_shift)
        else:
            found = ours.gradients(some.images, some.labels)
        compare_results(comparison, found, right)
        if step:
            for name, tensor in ours.tensors().items():
                comparison.add(name, tensor, golden.kept[name])
        if not on_device:
            ours.apply([found], rate_shift)
        wanted.apply([right], rate_shift)
        losses.append(round(found.loss / batch, 5))
        done(1)
    comparison.add("steps from DRAM", np.array(ours.from_dram), np.array(steps - 1))
    if on_device:
        comparison.add("updates on the device", np.array(ours.updated), np.array(steps - 1))
    parameters = compare_arrays(ours, wanted)
    images, told = steps * batch, tuple(losses)
    return Verification(comparison, parameters, steps, images, told, ours.updated)


def compare_results(comparison: Comparison, found: StepResult, wanted: StepResult) -> None:
    """Gradients with their exponents, and ranges."""
    for name, each in wanted.gradients.items():
        mine = found.gradients[name]
        if mine.weights.size:
            comparison.add(f"{name} weight gradient", mine.weights, each.weights)
        comparison.add(f"{name} bias gradient", mine.bias, each.bias)
        exponents = [np.array([some.weight_exponent, some.bias_exponent]) for some in (mine, each)]
        comparison.add(f"{name} exponents", *exponents)
    for key, exponent in wanted.ranges.items():
        there = found.ranges.get(key)
        comparison.add(f"{key}, range", np.array([there], float), np.array([exponent], float))
    comparison.add("ranges", np.array(len(found.ranges)), np.array(len(wanted.ranges)))
