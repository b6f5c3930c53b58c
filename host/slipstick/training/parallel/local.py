"""Local SGD: each worker takes some steps on its own, then the workers' models are averaged.

After S. Stich, "Local SGD converges fast and communicates little", 2019.
"""

from collections.abc import Collection, Mapping

import numpy as np

from ..arithmetic import Arithmetic, StepResult
from ..network import Initial, TrainingNetwork
from ..trainer import NOTHING, Trainer, figures_of
from .averages import mean_snapshot
from .crew import Crew
from .jobs import Job, take_snapshot
from .trainer import CrewTrainer

_WAITING = "local/waiting"


class LocalTrainer(CrewTrainer):
    """Trains with workers that meet after every so many steps.

    Batches are gathered until there are ``steps`` of them; then each worker has its part of each,
    one after the other. A worker's steps are a pure function of the model that it begins with and
    of its images, so one that ends is replaced. Models are averaged in integers.

    Parameters
    ----------
    network, arithmetic, initial, learning, crew
        As :class:`CrewTrainer` has them; the arithmetic is an :class:`Int8Arithmetic`.
    steps : int
        Of a worker on its own.
    parts : int, optional
        Models that are averaged: a power of two. By default as many as the crew can do at a time.

    Members
    -------
    parts : int
    rounds : int
        How often models were averaged.
    """

    def __init__(
        self,
        network: TrainingNetwork,
        arithmetic: Arithmetic,
        initial: Initial,
        learning: Collection[str] | None = None,
        *,
        crew: Crew,
        steps: int,
        parts: int | None = None,
    ) -> None:
        super().__init__(network, arithmetic, initial, learning, crew=crew)
        self._steps, self.parts, self.rounds = steps, parts or crew.size, 0
        if steps < 1:
            raise ValueError(f"steps of a worker on its own must be at least 1, not {steps}")
        if self.parts & (self.parts - 1):
            raise ValueError(f"parts must be a power of two, not {self.parts}")
        # says now whether its models can be averaged
        mean_snapshot([take_snapshot(self)])
        self._batches: list[tuple[np.ndarray, np.ndarray, int]] = []
        self._figures = NOTHING

    def step(self, images: np.ndarray, labels: np.ndarray, shift: int) -> StepResult:
        """Takes a batch; gives the figures of all that was learned since the last call."""
        if len(images) % self.parts:
            raise ValueError(f"{len(images)} images must be for {self.parts} workers alike")
        self._batches.append((images, labels, shift))
        self.batches += 1
        if len(self._batches) >= self._steps:
            self._learn()
        return self._take_figures()

    def flush(self) -> StepResult:
        """Learns from batches that wait, and averages: the end of an epoch, for instance."""
        self._learn_rest()
        return self._take_figures()

    def _learn_rest(self) -> None:
        if self._batches:
            self._learn()

    def _take_figures(self) -> StepResult:
        figures, self._figures = self._figures, NOTHING
        return figures

    def _learn(self) -> None:
        batches, self._batches = self._batches, []
        snapshot, shifts = take_snapshot(self), tuple(shift for _, _, shift in batches)
        futures = []
        for part in range(self.parts):
            images = np.concatenate([self._share(images, part) for images, _, _ in batches])
            labels = np.concatenate([self._share(labels, part) for _, labels, _ in batches])
            futures.append(self._crew.submit(Job(snapshot, images, labels, shifts)))
        self._crew.advance()
        results = [future.result() for future in futures]
        Trainer.restore(self, mean_snapshot([result.snapshot for result in results]))
        self._figures = figures_of([self._figures, *(result.step for result in results)])
        self.rounds += 1

    def _share(self, values: np.ndarray, part: int) -> np.ndarray:
        size = len(values) // self.parts
        return values[size * part : size * part + size]

    def logits(self, images: np.ndarray) -> np.ndarray:
        """Computes the averaged model's logits; batches that wait are learned from before."""
        self._learn_rest()
        return super().logits(images)

    def arrays(self) -> dict[str, np.ndarray]:
        """As a trainer's, and the batches that wait: a checkpoint changes no bit."""
        found = super().arrays()
        for number, (images, labels, shift) in enumerate(self._batches):
            found[f"{_WAITING}/{number}/images"] = images
            found[f"{_WAITING}/{number}/labels"] = labels
            found[f"{_WAITING}/{number}/shift"] = np.array(shift)
        return found

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Goes on from what ``arrays`` gave."""
        super().restore(arrays)
        self._batches, self._figures = [], NOTHING
        while f"{_WAITING}/{len(self._batches)}/shift" in arrays:
            start = f"{_WAITING}/{len(self._batches)}"
            images, labels = arrays[f"{start}/images"], arrays[f"{start}/labels"]
            self._batches.append((images, labels, int(arrays[f"{start}/shift"])))
