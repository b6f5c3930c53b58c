"""Runs a network whose channels are divided: all boards work on the same image."""

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import closing

import numpy as np

from ...compiler.stages.shard import ALL_GATHER
from ...compiler.stages.staged_program import StagedProgram
from ...devices.base import Device
from ...devices.emulated import EmulatedDevice
from ...errors import DeviceError
from ...program import Program
from ...program.steps import HostStep
from ..arrivals import Arrivals, Source
from ..executor import Execution
from .divided_execution import DividedExecution
from .exchange import Exchange, ExchangeStopped
from .members import Group, Values, consumed


class ShardExecution(Execution):
    """Runs one board's part: parts of tensors are joined with those of the other boards.

    Parameters
    ----------
    program : Program
    device : Device

    Members
    -------
    join : callable or None
        Given a tensor's name, the axis and the board's own part, returns the whole.
    """

    join: Callable[[str, int, np.ndarray], np.ndarray] | None = None

    def __init__(self, program: Program, device: Device) -> None:
        super().__init__(program, device, operators={ALL_GATHER: self._gather})

    def _gather(self, step: HostStep, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        assert self.join is not None
        (part,), (whole,) = operands, step.outputs
        return [self.join(whole, step.attributes["axis"], part)]


class SplitExecution(DividedExecution[ShardExecution]):
    """As ``Execution``, with some output channels of the layers on each board.

    A thread per board runs its part of an image; where a layer needs all channels, the host joins
    those of all boards and sends them the whole. An error of a board ends the image; the next call
    opens that board again.

    Parameters
    ----------
    program : StagedProgram
        Of the division "split".
    group : DeviceGroup
        One member per part.

    Raises
    ------
    ProgramError, DeviceError
        If the members are not the boards that it was compiled for, or one does not answer.
    """

    def __init__(self, program: StagedProgram, group: Group) -> None:
        super().__init__(program, group, _shard)

    def infer_stream(
        self, source: Source[Values], consumer: int | None = None
    ) -> Generator[Values, None, None]:
        """As ``Execution.infer_stream``; one image after the other."""
        with consumed(self._group, consumer), closing(self._flow(source)) as flow:
            yield from flow

    def _flow(self, source: Source[Values]) -> Generator[Values, None, None]:
        """The outputs of each image."""
        self._members.check_free()
        self._members.repair()
        queues = [Arrivals[Values]() for _ in self._members.runners]
        made, exchange = Arrivals[Values](), Exchange(len(queues))

        def serve(number: int) -> None:
            self._serve(number, queues[number], made, exchange)

        threads = list[threading.Thread]()
        try:
            self._members.start(serve, threads)
            while source.wait():
                sample = source.take()
                for queue in queues:
                    queue.put(sample)
                if made.wait():
                    yield made.take()
                made.check()
            source.check()
        finally:
            exchange.stop()
            for queue in (*queues, made):
                queue.stop()
            for thread in threads:
                thread.join()

    def _serve(
        self, number: int, queue: Arrivals[Values], made: Arrivals[Values], exchange: Exchange
    ) -> None:
        """Runs a board's part of each image; the first board's results are the network's."""
        runner, outputs = self._members.runners[number], self.program.outputs
        image = 0
        try:
            while queue.wait():
                runner.join = exchange.of(number, image)
                values = runner.infer(queue.take())
                image += 1
                if not number:
                    made.put({name: values[name] for name in outputs})
        except ExchangeStopped:
            # the board that failed has told why
            return
        except BaseException as error:
            made.end(self._members.failed(number, error))
            exchange.stop()


def _shard(program: Program, device: Device) -> ShardExecution:
    if isinstance(device, EmulatedDevice):
        raise DeviceError("an emulated device runs whole networks and stages, no parts of layers")
    return ShardExecution(program, device)
