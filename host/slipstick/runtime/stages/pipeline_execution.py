"""Runs a network that is cut into stages: images pass from board to board."""

import threading
from collections.abc import Generator
from contextlib import closing

from ...compiler.stages.staged_program import StagedProgram
from ..arrivals import Arrivals, Source
from ..executor import BATCH
from ..feeds import each_image, joined
from .divided_execution import DividedExecution
from .members import Group, Make, Runner, Values, consumed
from .relay import Relay

_GRACE_SECONDS = 0.5e-3
"""Longest wait for the next image before a streamed stage begins without it."""


class PipelineExecution(DividedExecution[Runner]):
    """As ``Execution``, with one board per stage.

    A thread per stage runs its board; queues on the host hold the codes between two stages. All
    boards work at once, each on other images. Results come in order. An error of a stage comes in
    the place of its image's result; the next call opens that board again.

    Parameters
    ----------
    program : StagedProgram
        Of the division "pipeline".
    group : DeviceGroup
        One member per stage.
    make : callable
        Makes the execution of a stage's program on a member.

    Raises
    ------
    ProgramError, DeviceError
        If the members are not the boards that it was compiled for, or one does not answer.
    """

    def __init__(self, program: StagedProgram, group: Group, make: Make[Runner]) -> None:
        super().__init__(program, group, make)
        self._needed = [self._needed_after(number) for number in range(len(program.stages))]
        """Tensors that are needed behind each stage."""

    def _needed_after(self, number: int) -> frozenset[str]:
        behind = self.program.stages[number + 1 :]
        needed = {name for stage in behind for name in stage.inputs}
        return frozenset(needed | set(self.program.outputs))

    def infer_stream(
        self, source: Source[Values], consumer: int | None = None
    ) -> Generator[Values, None, None]:
        """As ``Execution.infer_stream``."""
        with consumed(self._group, consumer):
            queue = Arrivals[Values]()
            reader = threading.Thread(
                target=_read, args=(source, queue), name="slipstick-stage-0", daemon=True
            )
            # one that waits for a camera is left alone at the end
            reader.start()
            try:
                with closing(self._flow(queue)) as flow:
                    yield from flow
            finally:
                queue.stop()

    def _flow(self, source: Source[Values]) -> Generator[Values, None, None]:
        """All tensors that anyone needs of each image, after the last stage."""
        self._members.check_free()
        self._members.repair()
        queues = [Arrivals[Values]() for _ in self._members.runners]
        sources: list[Source[Values]] = [source, *queues[:-1]]

        def serve(number: int) -> None:
            self._serve(number, sources[number], queues[number])

        threads, last = list[threading.Thread](), queues[-1]
        try:
            self._members.start(serve, threads)
            while last.wait():
                yield last.take()
            last.check()
        finally:
            for queue in (source, *queues):
                if isinstance(queue, Arrivals):
                    queue.stop()
            for thread in threads:
                thread.join()

    def _serve(self, number: int, source: Source[Values], queue: Arrivals[Values]) -> None:
        """Runs a stage until its source ends, or nobody takes its results any more."""
        stage, needed = self.program.stages[number], self._needed[number]
        relay = Relay(source, stage.inputs)
        try:
            with closing(self._results(number, relay)) as results:
                for made in results:
                    known = {**relay.passed(), **{name: made[name] for name in stage.outputs}}
                    if not queue.put({n: value for n, value in known.items() if n in needed}):
                        break
        except BaseException as error:
            own = error is not relay.error
            queue.end(self._members.failed(number, error) if own else error)
        else:
            queue.end()
        finally:
            if isinstance(source, Arrivals):
                # those before it need not go on
                source.stop()

    def _results(self, number: int, relay: Relay) -> Generator[Values, None, None]:
        stage, runner = self.program.stages[number], self._members.runners[number]
        if stage.units and not getattr(runner, "lists", False):
            # a batch shares what is loaded
            return _by_batches(runner, relay, stage.outputs)
        return runner.infer_stream(relay)


def _by_batches(
    runner: Runner, relay: Relay, names: tuple[str, ...]
) -> Generator[Values, None, None]:
    while relay.wait():
        samples = [relay.take()]
        while len(samples) < BATCH and relay.wait(_GRACE_SECONDS):
            samples.append(relay.take())
        yield from each_image(runner.infer_batch(joined(samples), names))
    relay.check()


def _read(source: Source[Values], queue: Arrivals[Values]) -> None:
    """Passes a stream's images on until nobody takes them any more."""
    try:
        while source.wait():
            if not queue.put(source.take()):
                return
        source.check()
    except BaseException as error:
        queue.end(error)
    else:
        queue.end()
