"""Data parallel: workers compute parts of each batch, and the sum of their gradients is applied."""

from collections.abc import Collection, Mapping

import numpy as np

from ..arithmetic import Arithmetic, StepResult
from ..network import Initial, TrainingNetwork
from ..trainer import Trainer, figures_of
from .compression import Coding, Compression
from .crew import Crew
from .jobs import Job, take_snapshot
from .messages import WHOLE, decode_result, layout_of, message_size

_STEP = "parallel/step"


class CrewTrainer(Trainer):
    """A trainer whose gradients come from a crew.

    Parameters
    ----------
    network, arithmetic, initial, learning
        As :class:`Trainer` has them. The crew's workers have the same network and arithmetic.
    crew : Crew
        It stays open.

    Members
    -------
    batches : int
        That it was given.

    Raises
    ------
    ValueError
        If shifts are chosen by the present step's magnitudes: parts do not know the whole batch's.
    """

    def __init__(
        self,
        network: TrainingNetwork,
        arithmetic: Arithmetic,
        initial: Initial,
        learning: Collection[str] | None = None,
        *,
        crew: Crew,
    ) -> None:
        super().__init__(network, arithmetic, initial, learning)
        if not arithmetic.takes_parts:
            raise ValueError(
                "many workers must take shifts from the step before (range previous), not present"
            )
        self._crew, self.batches = crew, 0

    def __enter__(self) -> "CrewTrainer":
        return self

    def __exit__(self, *exception: object) -> None:
        self._crew.close()


class ParallelTrainer(CrewTrainer):
    """Takes each step with many workers.

    A batch is cut into ``parts`` of almost equal size, however many workers there are and whichever
    of them computes which part. Integer sums do not depend on the order, so the bits are those of
    one trainer with the whole batch, unless gradients are compressed.

    The first step has no ranges of a step before. So its batch is one part: one worker finds the
    whole batch's ranges, as one trainer alone would.

    Parameters
    ----------
    network, arithmetic, initial, learning, crew
        As :class:`CrewTrainer` has them.
    parts : int, optional
        By default as many as the crew can do at a time.
    bits : int
        Per number of a gradient on its way to the sum: 32, 8, 4, 2 or 1. The first step's have 32.
        The workers of a cluster compress; for other crews the host does, with the same bits.
    feedback : bool
        Whether what compression leaves out of a part is added to the part's next gradient.
    seed : int
        Of the compression's rounding.

    Members
    -------
    parts : int
    compression : Compression or None
        None: gradients are summed as they are.
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
        bits: int = WHOLE,
        feedback: bool = True,
        seed: int = 0,
    ) -> None:
        super().__init__(network, arithmetic, initial, learning, crew=crew)
        self.parts, self._step = crew.size if parts is None else parts, 0
        if self.parts < 1:
            raise ValueError(f"a batch must have at least one part, not {self.parts}")
        self.compression = None
        if bits != WHOLE:
            self.compression = Compression(Coding(layout_of(self), bits, feedback, seed))

    @property
    def message_bytes(self) -> int:
        """Counts the bytes of a step's messages, one per part."""
        if self.compression is None:
            return self.parts * message_size(layout_of(self), WHOLE)
        coding = self.compression.coding
        return self.parts * message_size(coding.layout, coding.bits)

    def step(self, images: np.ndarray, labels: np.ndarray, shift: int) -> StepResult:
        """Learns from one batch, whose images are a power of two; gives its figures."""
        snapshot, is_first = take_snapshot(self), self._step == 0 and not self.arithmetic.ranges
        parts = 1 if is_first else min(self.parts, len(images))
        pieces = np.array_split(np.arange(len(images)), parts)
        jobs = [Job(snapshot, images[places], labels[places]) for places in pieces]
        if self.compression is None or is_first:
            results = self._crew.gather(jobs)
        else:
            messages = self._crew.messages(self.compression, self._step, jobs)
            layout = self.compression.coding.layout
            results = [decode_result(message, layout) for message in messages]
        self.apply(results, shift)
        self._step += 1
        self.batches += 1
        return figures_of(results)

    def arrays(self) -> dict[str, np.ndarray]:
        """Returns a trainer's arrays for a checkpoint, and those that compression keeps unsent."""
        unsent = {} if self.compression is None else self.compression.arrays()
        return {**super().arrays(), **unsent, _STEP: np.array(self._step)}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Goes on from what ``arrays`` gave, or one trainer's."""
        super().restore(arrays)
        self._step = int(arrays.get(_STEP, 0))
        if self.compression is not None:
            self.compression.restore(arrays)
