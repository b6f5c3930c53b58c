"""Bounded staleness: gradients are applied as they arrive, if they are not too old.

After Q. Ho et al., "More effective distributed ML via a stale synchronous parallel parameter
server", 2013.
"""

from collections.abc import Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from queue import SimpleQueue

import numpy as np

from ...errors import InputError
from ..arithmetic import Arithmetic, StepResult
from ..network import Initial, TrainingNetwork
from ..trainer import NOTHING, Trainer, figures_of
from .crew import Crew
from .jobs import Job, JobResult, Snapshot, take_snapshot
from .records import Applied, Record
from .trainer import CrewTrainer


@dataclass(frozen=True, eq=False)
class _Flying:
    """A batch that a worker has."""

    batch: int
    version: int
    shift: int
    future: "Future[JobResult]"


class StaleTrainer(CrewTrainer):
    """Each worker has a batch of its own, and begins the next one without waiting for others.

    A worker begins with the parameters as they are then. Its gradient is applied when it arrives,
    by itself: the batches are whole ones. A gradient is at most ``bound`` versions old then: where
    an older one that is on its way would become too old, those that have arrived wait for it. The
    order is recorded, and ``ReplayTrainer`` repeats its bits.

    Parameters
    ----------
    network, arithmetic, initial, learning, crew
        As :class:`CrewTrainer` has them.
    bound : int, 0..255

    Members
    -------
    ages : list of int
        Of all gradients that were applied.
    """

    def __init__(
        self,
        network: TrainingNetwork,
        arithmetic: Arithmetic,
        initial: Initial,
        learning: Collection[str] | None = None,
        *,
        crew: Crew,
        bound: int,
    ) -> None:
        super().__init__(network, arithmetic, initial, learning, crew=crew)
        self._bound, self._batches = bound, 0
        self._applied: list[Applied] = []
        self._flying: list[_Flying] = []
        self._arrived: list[_Flying] = []
        self._arrivals: SimpleQueue[_Flying] = SimpleQueue()
        self._snapshot: Snapshot | None = None
        self.record()

    @property
    def ages(self) -> list[int]:
        """Lists the ages of all gradients that were applied."""
        return [entry.age for entry in self._applied]

    def record(self) -> Record:
        """The order so far, after ``flush``."""
        self.flush()
        return Record(self._bound, tuple(self._applied))

    def step(self, images: np.ndarray, labels: np.ndarray, shift: int) -> StepResult:
        """Gives a batch to a worker, waiting for one that is free; the figures are of what has been
        applied meanwhile."""
        found = [NOTHING]
        # one more that begins now is applied last of these: with a bound of 0 there is only one
        while len(self._flying) >= min(self._crew.size, self._bound + 1):
            found.append(self._wait())
        if self._snapshot is None:
            self._snapshot = take_snapshot(self)
        future = self._crew.submit(Job(self._snapshot, images, labels))
        flying = _Flying(self._batches, len(self._applied), shift, future)
        self._flying.append(flying)
        self._batches += 1
        self.batches += 1
        future.add_done_callback(lambda done: self._arrivals.put(flying))
        return figures_of(found)

    def flush(self) -> StepResult:
        """Waits for all batches; gives their figures."""
        found = [NOTHING]
        while self._flying:
            found.append(self._wait())
        return figures_of(found)

    def _wait(self) -> StepResult:
        """Applies at least one gradient, when it may be."""
        found: list[StepResult] = []
        while not found:
            self._crew.advance()
            self._arrived.append(self._arrivals.get())
            while (chosen := self._first_that_may()) is not None:
                self._arrived.remove(chosen)
                found.append(self._apply(chosen))
        return figures_of(found)

    def _first_that_may(self) -> _Flying | None:
        """The first arrival after which no other batch must become too old."""
        for flying in self._arrived:
            others = sorted(other.version for other in self._flying if other is not flying)
            after = len(self._applied) + 1
            if all(after + place - version <= self._bound for place, version in enumerate(others)):
                return flying
        return None

    def _apply(self, flying: _Flying) -> StepResult:
        result = flying.future.result().step
        self._flying.remove(flying)
        self.apply([result], flying.shift)
        self._snapshot = None
        self._applied.append(Applied(flying.batch, len(self._applied) - flying.version))
        return result

    def logits(self, images: np.ndarray) -> np.ndarray:
        """After ``flush``."""
        self.flush()
        return super().logits(images)

    def arrays(self) -> dict[str, np.ndarray]:
        """As a trainer's, after ``flush``, with the record."""
        record = self.record()
        found = {**super().arrays(), "stale/batches": np.array(self._batches)}
        pairs = [(entry.batch, entry.age) for entry in record.entries]
        found["stale/applied"] = np.array(pairs, np.int64).reshape(-1, 2)
        return found

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Goes on from what ``arrays`` gave."""
        self.flush()
        super().restore(arrays)
        self._snapshot, self._batches = None, int(arrays["stale/batches"])
        pairs = arrays["stale/applied"].tolist()
        self._applied = [Applied(batch, age) for batch, age in pairs]


class ReplayTrainer(Trainer):
    """Repeats a recorded training by itself: the same batches give the same bits.

    Parameters
    ----------
    network, arithmetic, initial, learning
        As :class:`Trainer` has them.
    record : Record
    """

    def __init__(
        self,
        network: TrainingNetwork,
        arithmetic: Arithmetic,
        initial: Initial,
        learning: Collection[str] | None = None,
        *,
        record: Record,
    ) -> None:
        super().__init__(network, arithmetic, initial, learning)
        self._record, self._next, self._batches = record, 0, 0
        self._waiting: dict[int, tuple[np.ndarray, np.ndarray, int]] = {}
        self._versions: dict[int, Snapshot] = {0: take_snapshot(self)}

    def step(self, images: np.ndarray, labels: np.ndarray, shift: int) -> StepResult:
        """Takes a batch, and applies what the record has next as far as its batches are there.

        Raises
        ------
        InputError
            If the record has fewer batches.
        """
        if self._batches >= len(self._record.entries):
            raise InputError(
                f"the record has {len(self._record.entries)} batches: there is none for another one"
            )
        self._waiting[self._batches] = images, labels, shift
        self._batches += 1
        found = [NOTHING]
        while self._next < len(self._record.entries):
            entry = self._record.entries[self._next]
            if entry.batch not in self._waiting:
                break
            found.append(self._repeat(entry))
        return figures_of(found)

    def _repeat(self, entry: Applied) -> StepResult:
        images, labels, shift = self._waiting.pop(entry.batch)
        Trainer.restore(self, self._versions[self._next - entry.age])
        result = self.gradients(images, labels)
        Trainer.restore(self, {k: v.copy() for k, v in self._versions[self._next].items()})
        self.apply([result], shift)
        self._next += 1
        self._versions[self._next] = take_snapshot(self)
        self._versions.pop(self._next - self._record.bound - 1, None)
        return result
