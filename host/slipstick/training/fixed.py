"""Tests a trainer with the exponents that training left, as the network's file will have."""

import time
from collections.abc import Mapping

import numpy as np

from ..errors import InputError
from .arithmetic import StepResult
from .export.trained import LayerCodes, TrainedNetwork
from .golden import golden
from .int8 import Codes, Int8Arithmetic, IntegerParameters, Range
from .interface import Interface
from .network import INPUT, initial_parameters
from .trainer import NOTHING, Trainer, figures_of


class FixedTrainer:
    """Lets a trainer in integers learn, on any devices; it measures the time, and tests.

    Tests run in the golden functions: a device gives the same bits. Exponents are those that the
    last step left, with the range "present" as well.

    Parameters
    ----------
    trainer : Trainer
        Whose arithmetic is an ``Int8Arithmetic``.
    master_bits : int
        The arithmetic's.

    Members
    -------
    seconds : float
        Spent in steps.
    steps, images : int
        That were learned from.
    """

    def __init__(self, trainer: Trainer, *, master_bits: int = 16) -> None:
        self._trainer, self._master_bits = trainer, master_bits
        initial = initial_parameters(trainer.network, 0)
        self._tester = Trainer(trainer.network, _fixed(master_bits), initial)
        self._tester.parameters = trainer.parameters
        self.seconds, self.steps, self.images = 0.0, 0, 0
        self._late = NOTHING

    def step(self, images: np.ndarray, labels: np.ndarray, shift: int) -> StepResult:
        """As ``Trainer.step``; its figures are of what was learned since the last call."""
        start = time.perf_counter()
        result = self._trainer.step(images, labels, shift)
        self.seconds += time.perf_counter() - start
        self.steps, self.images = self.steps + 1, self.images + len(images)
        return self._with_late(result)

    def flush(self) -> StepResult:
        """As ``Trainer.flush``."""
        start = time.perf_counter()
        result = self._trainer.flush()
        self.seconds += time.perf_counter() - start
        return self._with_late(result)

    def _with_late(self, result: StepResult) -> StepResult:
        """Figures, and those of what was learned for a test."""
        late, self._late = self._late, NOTHING
        return figures_of([late, result])

    def logits(self, images: np.ndarray) -> np.ndarray:
        """As ``Trainer.logits``; batches that wait are learned from before."""
        return self._ready_tester().logits(images)

    def evaluate(self, images: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
        """As ``Trainer.evaluate``; batches that wait are learned from before."""
        return self._ready_tester().evaluate(images, labels)

    def _ready_tester(self) -> Trainer:
        self._late = self.flush()
        self._tester.arithmetic.ranges = dict(self._trainer.arithmetic.ranges)
        return self._tester

    def arrays(self) -> dict[str, np.ndarray]:
        """As ``Trainer.arrays``."""
        return self._trainer.arrays()

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """As ``Trainer.restore``."""
        self._trainer.restore(arrays)
        self._late = NOTHING

    def trained(self, interface: Interface) -> TrainedNetwork:
        """Returns the network as a file holds it; InputError if nothing was learned yet."""
        self._ready_tester()
        return trained_network(self._trainer, interface, self._master_bits)

    def untrained(self, interface: Interface) -> TrainedNetwork:
        """The same with ranges that are none: to see whether a file can hold the network."""
        return untrained_network(self._trainer, interface, self._master_bits)


def _fixed(master_bits: int) -> Int8Arithmetic:
    return Int8Arithmetic(master_bits, source=Range.PREVIOUS)


def trained_network(
    trainer: Trainer, interface: Interface, master_bits: int = 16
) -> TrainedNetwork:
    """Returns a trainer's network as a file holds it.

    Parameters
    ----------
    trainer : Trainer
        Whose arithmetic is an ``Int8Arithmetic``.
    interface : Interface
    master_bits : int
        The arithmetic's.

    Raises
    ------
    InputError
        If nothing was learned yet: ranges of activations come of steps.
    """
    if not trainer.arithmetic.ranges:
        raise InputError("a network must have learned from one batch before it is written")
    # exponents do not depend on the images any more
    fixed = _fixed(master_bits)
    tester = Trainer(trainer.network, fixed, initial_parameters(trainer.network, 0))
    tester.parameters = trainer.parameters
    fixed.ranges = dict(trainer.arithmetic.ranges)
    exponents = {}
    for name, tensor in tester.forward(np.zeros((1, *trainer.network.shape), np.int8)).items():
        assert isinstance(tensor, Codes)
        if name != INPUT:
            exponents[name] = tensor.exponent
    return TrainedNetwork(trainer.network, _layers(trainer, master_bits), exponents, interface)


def untrained_network(trainer: Trainer, interface: Interface, master_bits: int) -> TrainedNetwork:
    """As ``trained_network``, with ranges that are none: to see whether a file can hold it."""
    exponents = {layer.name: 0 for layer in trainer.network.layers}
    return TrainedNetwork(trainer.network, _layers(trainer, master_bits), exponents, interface)


def _layers(trainer: Trainer, master_bits: int) -> dict[str, LayerCodes]:
    found = {}
    for name, parameters in trainer.parameters.items():
        assert isinstance(parameters, IntegerParameters)
        weights = _weights(parameters, master_bits)
        found[name] = LayerCodes(weights, parameters.exponent, parameters.bias)
    return found


def _weights(parameters: IntegerParameters, master_bits: int) -> np.ndarray:
    """The codes that are multiplied."""
    if master_bits == 16:
        return golden().weights_of(parameters.masters)
    return parameters.masters.astype(np.int8)
