"""Has what executions on the boards of a divided network have in common."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from typing import Generic

import numpy as np

from ...compiler.stages.staged_program import StagedProgram
from ..arrivals import Ready, Source
from ..feeds import each_image, joined
from .members import Group, Make, Members, RunnerT, Values, consumed


class DividedExecution(ABC, Generic[RunnerT]):
    """As ``Execution``, on several boards.

    Parameters
    ----------
    program : StagedProgram
    group : DeviceGroup
        One member per stage or part.
    make : callable
        Makes the execution of a board's program on a member.

    Raises
    ------
    ProgramError, DeviceError
        If the members are not the boards that it was compiled for, or one does not answer.
    """

    def __init__(self, program: StagedProgram, group: Group, make: Make[RunnerT]) -> None:
        self.program, self._group = program, group
        self._members = Members[RunnerT](program, group, make)

    @abstractmethod
    def _flow(self, source: Source[Values]) -> Generator[Values, None, None]:
        """The outputs, at least, of each image, in their order."""

    @abstractmethod
    def infer_stream(
        self, source: Source[Values], consumer: int | None = None
    ) -> Generator[Values, None, None]:
        """As ``Execution.infer_stream``."""

    @property
    def last_cycles(self) -> int | None:
        """Cycles of the last inference, all boards together; None if one of them cannot tell."""
        return self._members.last_cycles

    def reset_state(self) -> None:
        """Nothing is kept: such networks are not divided."""

    def close(self) -> None:
        """Nothing is left to close."""

    def repair(self) -> None:
        """Opens boards that failed again; DeviceError if one does not answer.

        Every call does that by itself.
        """
        self._members.repair()

    def infer_batch(
        self,
        inputs: Mapping[str, np.ndarray],
        wanted: tuple[str, ...] | None = None,
        advance: Callable[[int], object] = int,
    ) -> Values:
        """As ``Execution.infer_batch``; by default the network's outputs."""
        names = self.program.outputs if wanted is None else wanted
        results: list[Values] = []
        with consumed(self._group, None), closing(self._flow(Ready(each_image(inputs)))) as flow:
            for values in flow:
                results.append({name: values[name] for name in names})
                advance(1)
        return joined(results, names)
