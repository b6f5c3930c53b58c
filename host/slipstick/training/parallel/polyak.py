"""Data parallel training whose model is evaluated as its mean over steps."""

from collections.abc import Collection, Mapping

import numpy as np

from ..arithmetic import Arithmetic, StepResult
from ..network import Initial, TrainingNetwork
from ..trainer import Trainer
from .averages import PolyakAverage
from .crew import Crew
from .jobs import take_snapshot
from .trainer import ParallelTrainer


class PolyakTrainer(ParallelTrainer):
    """Learns as :class:`ParallelTrainer`, and evaluates the mean of its models.

    Parameters
    ----------
    network, arithmetic, initial, learning, crew, parts
        As :class:`ParallelTrainer` has them.
    start : int
        Models count from this step on.

    Members
    -------
    average : PolyakAverage
    """

    def __init__(
        self,
        network: TrainingNetwork,
        arithmetic: Arithmetic,
        initial: Initial,
        learning: Collection[str] | None = None,
        *,
        crew: Crew,
        parts: int | None = None,
        start: int = 0,
    ) -> None:
        super().__init__(network, arithmetic, initial, learning, crew=crew, parts=parts)
        self.average, self._start = PolyakAverage(), start

    def step(self, images: np.ndarray, labels: np.ndarray, shift: int) -> StepResult:
        """As a trainer's."""
        result = super().step(images, labels, shift)
        if self._step > self._start:
            self.average.add(self)
        return result

    def logits(self, images: np.ndarray) -> np.ndarray:
        """Computes the logits of the mean model, as soon as there is one."""
        if not self.average.count:
            return super().logits(images)
        own = take_snapshot(self)
        Trainer.restore(self, self.average.snapshot())
        try:
            return super().logits(images)
        finally:
            Trainer.restore(self, own)

    def arrays(self) -> dict[str, np.ndarray]:
        """As a trainer's, and the sums."""
        return {**super().arrays(), **self.average.arrays()}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Goes on from what ``arrays`` gave."""
        super().restore(arrays)
        self.average.restore(arrays)
