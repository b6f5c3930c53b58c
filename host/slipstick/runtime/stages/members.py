"""The boards of a divided network: each one's program, device and execution."""

import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

import numpy as np

from ...compiler.stages.staged_program import StagedProgram
from ...devices.base import Device
from ...errors import DeviceError, SlipstickError
from ...program import Program
from ..arrivals import Source
from ..executor import BatchDevice
from ..sharing import exclusive, sharing_of

Values = dict[str, np.ndarray]


class Runner(Protocol):
    """An execution of one board's program, as ``Execution`` is."""

    @property
    def last_cycles(self) -> int | None:
        """Returns the cycles of the last inference; None if they are not known."""
        ...

    def infer_batch(
        self, inputs: Mapping[str, np.ndarray], wanted: tuple[str, ...] | None = None
    ) -> Values:
        """Runs images, in the leading axis."""
        ...

    def infer_stream(self, source: Source[Values]) -> Generator[Values, None, None]:
        """Runs images as they come."""
        ...


RunnerT = TypeVar("RunnerT", bound=Runner)
Make = Callable[[Program, Device], RunnerT]
"""Makes the execution of a board's program on an open device."""


class Group(Device, Protocol):
    """Open devices that one session uses together: a ``DeviceGroup``."""

    @property
    def names(self) -> Sequence[str]:
        """One per member, for messages."""
        ...

    @property
    def members(self) -> Sequence[Device]:
        """Open devices, one per stage."""
        ...

    def reopen(self, number: int, broken: Device) -> Device:
        """An open device in place of a member that failed; DeviceError if it does not answer."""
        ...


class Members(Generic[RunnerT]):
    """The boards of a divided network.

    Parameters
    ----------
    program : StagedProgram
    group : Group
    make : callable

    Members
    -------
    runners : list of Runner
        One per board.

    Raises
    ------
    ProgramError
        If the program is for another number of boards, or for other hardware.
    DeviceError
        If two boards are the same device, or one does not answer.
    """

    def __init__(self, program: StagedProgram, group: Group, make: Make[RunnerT]) -> None:
        self._program, self._group, self._make = program, group, make
        self._devices = list(group.members)
        program.check_boards([device.configuration for device in self._devices])
        if len({id(device) for device in self._devices}) < len(self._devices):
            raise DeviceError(f"{program.division}: must be of different devices, one per stage")
        self._broken = set[int]()
        self.runners = [self._made(number, device) for number, device in enumerate(self._devices)]

    def __len__(self) -> int:
        return len(self.runners)

    def _made(self, number: int, device: Device) -> RunnerT:
        try:
            return self._make(self._program.stages[number], device)
        except SlipstickError as error:
            raise self.told(number, error) from error

    @property
    def last_cycles(self) -> int | None:
        """Cycles of the last inference, all boards together; None if one of them cannot tell."""
        if any(isinstance(device, BatchDevice) for device in self._devices):
            return None
        counts = [runner.last_cycles for runner in self.runners]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None

    def check_free(self) -> None:
        """DeviceError if this thread has a stream open on one of the devices."""
        for device in self._devices:
            if sharing_of(device).consumer == threading.get_ident():
                with exclusive(device):
                    pass

    def repair(self) -> None:
        """Opens boards that failed again; DeviceError if one does not answer."""
        for number in sorted(self._broken):
            try:
                with exclusive(self._devices[number]):
                    self._devices[number] = self._group.reopen(number, self._devices[number])
            except DeviceError as error:
                raise self.told(number, error) from error
            self.runners[number] = self._made(number, self._devices[number])
            self._broken.discard(number)

    def failed(self, number: int, error: BaseException) -> BaseException:
        """Notes that a board failed; returns the error for the user, with stage and board."""
        if isinstance(error, DeviceError):
            self._broken.add(number)
        return self.told(number, error)

    def told(self, number: int, error: BaseException) -> BaseException:
        """An error with the stage and the board in its message."""
        if not isinstance(error, Exception) or isinstance(error, MemoryError):
            return error
        where = f"stage {number + 1} of {len(self._devices)} on {self._group.names[number]}"
        known = isinstance(error, SlipstickError)
        kind = type(error) if known else DeviceError
        return kind(f"{where}: {error if known else repr(error)}")

    def start(self, work: Callable[[int], None], threads: list[threading.Thread]) -> None:
        """Starts a thread per board that has its device until ``work`` returns.

        Devices are taken in one order by all sessions: two that share some of them never wait for
        each other.
        """
        order = sorted(range(len(self._devices)), key=lambda number: id(self._devices[number]))
        for number in order:
            taken = threading.Event()

            def serve(number: int = number, taken: threading.Event = taken) -> None:
                with exclusive(self._devices[number]):
                    taken.set()
                    work(number)

            name = f"slipstick-stage-{number + 1}"
            threads.append(threading.Thread(target=serve, name=name, daemon=True))
            threads[-1].start()
            taken.wait()


@contextmanager
def consumed(group: Group, consumer: int | None) -> Iterator[None]:
    """While a stream is open: the group of devices is this thread's, or the consumer's."""
    with exclusive(group) as sharing:
        sharing.consumer = threading.get_ident() if consumer is None else consumer
        try:
            yield
        finally:
            sharing.consumer = None
