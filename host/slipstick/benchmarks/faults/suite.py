"""Runs hosts on a line that fails, and checks that all that they are told is right."""

import random
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from slipstick_rtl.link.protocol import REQUEST_START, Command, Space, encode, session_of
from slipstick_rtl.link.spaces import unit_bytes

from ...devices.link import LinkDevice
from ...devices.link.errors import LinkError
from ...errors import DeviceError
from ...runtime.executor import Execution
from .boards import Board
from .network import Work
from .transport import Fault, FaultyTransport, HostDied, Plan, RandomPlan

OPERATIONS_PER_EPISODE = 16
"""Then the faults stop, and the device must be as good as new."""

_RATES = (0.003, 0.006, 0.01, 0.02, 0.05, 0.15)
_SCRATCH_BYTES = 1 << 12
_LONGEST_TRANSFER = 1500
_NEW_HOST = ("SESSION_LOST", "DISCONNECTED", "HOST_DIED")
"""After these a host has to begin anew; HOST_DIED is no error of the link."""


@dataclass
class Tally:
    """Results of a suite's operations and recoveries."""

    operations: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    """By the code of the error."""
    wrong: list[str] = field(default_factory=list)
    unrecovered: list[str] = field(default_factory=list)
    longest_seconds: float = 0.0
    answer_seconds: list[float] = field(default_factory=list)
    answer_cycles: list[int] = field(default_factory=list)
    """Cycles from the end of the faults to the first answer."""
    result_seconds: list[float] = field(default_factory=list)
    result_cycles: list[int] = field(default_factory=list)
    """Cycles to the first inference, with a new session and its program if the old one was lost."""

    def figures(self) -> dict[str, Any]:
        """Returns the figures that every report has."""
        return {
            "operations": dict(self.operations),
            "right": dict(self.right),
            "failed_by_code": dict(self.failed),
            "wrong": len(self.wrong),
            "without_recovery": len(self.unrecovered),
            "without_recovery_because": self.unrecovered[:20],
            "recoveries": len(self.result_seconds),
            "longest_operation_seconds": self.longest_seconds,
        }


def intrusion(seed: int) -> bytes:
    """Makes bytes that another host may send at any time: a session of its own, or half of one."""
    draw = random.Random(seed)
    seal = draw.randrange(1, 1 << 32)
    frames = b""
    if draw.random() < 0.5:
        session = session_of(seal).to_bytes(4, "little")
        frames += encode(REQUEST_START, Command.OPEN, draw.randrange(256), session)
    for _ in range(draw.randrange(4)):
        place = bytes([draw.randrange(4)]) + draw.randrange(100).to_bytes(3, "little")
        command, payload = draw.choice(
            (
                (Command.WRITE, place + draw.randbytes(36)),
                (Command.READ, bytes([Space.ACTIVATIONS, 0, 0, 0, 36, 0])),
                (Command.RUN, bytes([1, 0, 0, draw.randrange(64), 0])),
                (Command.RESET, b""),
                (Command.IDENTIFY, b""),
            )
        )
        frames += encode(REQUEST_START, command, draw.randrange(256), payload, seal)
    return frames[: draw.randint(1, len(frames))] if draw.random() < 0.3 and frames else frames


class FaultSuite:
    """Hosts at work on one board, whose line fails in every way.

    A host does what users do: it opens a session, loads the program, runs it, and begins anew when
    an error tells it to; whatever it is told as a result must be right.

    Parameters
    ----------
    board : Board
    work : Work
    seed : int
        Of operations, and of faults without a plan.
    plan : Plan, optional
        Of faults; by default at random, all kinds alike in number.

    Members
    -------
    line : FaultyTransport
    tally : Tally
    """

    def __init__(self, board: Board, work: Work, seed: int, plan: Plan | None = None) -> None:
        self.tally = Tally()
        self._board, self._work = board, work
        self._random = random.Random(seed)
        self._rates = RandomPlan(seed)
        self.line = FaultyTransport(
            board.transport,
            plan or self._rates,
            stall_seconds=board.stall_seconds,
            idle=board.idle,
            reset_board=board.power_cycle,
            intruder=intrusion,
        )
        self._scratch = board.configuration.activation_bytes - _SCRATCH_BYTES
        self._begin()
        self._operations: Mapping[str, tuple[int, Callable[[], bool]]] = {
            "inference": (6, self.infer),
            "memory written": (3, self.write),
            "memory read": (3, self.read),
            "program written": (1, self.write_program),
            "identification": (1, self.identify),
        }

    def run(self, faults: int, tick: Callable[[int], object] = int) -> Tally:
        """Goes on until each fault was injected ``faults`` times; ``tick`` is told before every
        operation how many faults of the rarest kind there are by now."""
        while (rarest := min(self.line.counts[fault] for fault in Fault)) < faults:
            self._choose_rates(faults)
            self.episode(beat=partial(tick, rarest))
        return self.tally

    def episode(
        self, operations: int = OPERATIONS_PER_EPISODE, beat: Callable[[], object] = bool
    ) -> None:
        """Some operations on a failing line; then calm, in which everything must work.

        ``beat`` is called before each of them.
        """
        self._calm(False)
        weights = [weight for weight, _ in self._operations.values()]
        for name in self._random.choices(list(self._operations), weights, k=operations):
            beat()
            self.attempt(name, self._operations[name][1])
        beat()
        self._calm(True)
        self.recover()

    def _calm(self, calm: bool) -> None:
        self._board.calm(calm)
        self.line.calm(calm)

    def _choose_rates(self, faults: int) -> None:
        """Raises the rates of faults that are rare so far, and lowers those of frequent ones."""
        rate = self._random.choice(_RATES)
        counts = self.line.counts
        most = max(1, *(counts[fault] for fault in Fault))
        for fault in Fault:
            behind = 1 - counts[fault] / most
            self._rates.rates[fault] = rate * (0.2 + 3 * behind)

    def attempt(self, name: str, action: Callable[[], bool]) -> str | None:
        """Does one thing; returns the code of the error if it failed."""
        start, code = time.monotonic(), None
        self.tally.operations[name] += 1
        try:
            if action():
                self.tally.right[name] += 1
            else:
                self.tally.wrong.append(f"{name}, operation {self.tally.operations.total()}")
        except HostDied:
            code = "HOST_DIED"
        except DeviceError as error:
            code = error.code if isinstance(error, LinkError) else f"without a code: {error}"
        seconds = time.monotonic() - start
        self.tally.longest_seconds = max(self.tally.longest_seconds, seconds)
        if code is not None:
            self.tally.failed[code] += 1
        if not self.line.connected:
            self.line.reconnect()
        if code in _NEW_HOST:
            self._begin()
        return code

    def recover(self) -> None:
        """Without faults: an answer, what memory holds, and a right inference, at once."""
        start, cycles = time.monotonic(), self._board.cycles
        try:
            self._identify()
            self._time(self.tally.answer_seconds, self.tally.answer_cycles, start, cycles)
            try:
                right = self.infer()
            except LinkError as error:
                # what happened to the board is noticed only now
                if error.code != "SESSION_LOST":
                    raise
                self._begin()
                right = self.infer()
            self._time(self.tally.result_seconds, self.tally.result_cycles, start, cycles)
            if not (right and self._compare_scratch(0, _SCRATCH_BYTES)):
                self.tally.wrong.append(f"after operation {self.tally.operations.total()}")
        except DeviceError as error:
            self.tally.unrecovered.append(str(error))
            self._begin()

    def _identify(self) -> None:
        """Asks what the board is; a wire whose boards have owners may tell that this is none."""
        try:
            self._device.identify()
        except LinkError as error:
            if error.code != "SESSION_LOST":
                raise
            self._begin()
            self._device.identify()

    def _time(
        self, seconds: list[float], cycles: list[int], start: float, first: int | None
    ) -> None:
        seconds.append(time.monotonic() - start)
        if first is not None and self._board.cycles is not None:
            cycles.append(self._board.cycles - first)

    def _begin(self) -> None:
        """A new host, which knows nothing of what memories hold."""
        self._device = LinkDevice(
            self.line,
            configuration=self._board.configuration,
            patience=self._board.patience,
            pause=self._board.pause,
            draw=self._random,
        )
        self._execution: Execution | None = None
        self._shadow = np.zeros(_SCRATCH_BYTES, np.uint8)
        self._known = np.zeros(_SCRATCH_BYTES, bool)

    def infer(self) -> bool:
        """Loads the program if it is not, and runs it on one of the inputs."""
        sample = self._random.randrange(len(self._work.feeds))
        if self._execution is None:
            self._execution = Execution(self._work.program, self._device)
        values = self._execution.infer(self._work.feeds[sample])
        expected = self._work.expected[sample]
        return all(np.array_equal(values[name], expected[name]) for name in expected)

    def _span(self) -> tuple[int, int]:
        count = self._random.choice((1, 60, 300, _LONGEST_TRANSFER))
        return self._random.randrange(_SCRATCH_BYTES - count), count

    def write(self) -> bool:
        """Writes anywhere in the scratch memory."""
        start, count = self._span()
        data = self._random.randbytes(count)
        span = slice(start, start + count)
        self._known[span] = False
        self._device.write(Space.ACTIVATIONS, self._scratch + start, data)
        self._shadow[span] = np.frombuffer(data, np.uint8)
        self._known[span] = True
        return True

    def read(self) -> bool:
        """Reads anywhere in the scratch memory."""
        return self._compare_scratch(*self._span())

    def _compare_scratch(self, start: int, count: int) -> bool:
        """Tells whether all bytes whose value was acknowledged are as they should be."""
        data = np.frombuffer(self._device.read(self._scratch + start, count), np.uint8)
        span = slice(start, start + count)
        return bool(((data == self._shadow[span]) | ~self._known[span]).all())

    def write_program(self) -> bool:
        """Writes a part of what the program memories hold anyway: a run shows whether it does."""
        image = self._random.choice(self._work.program.images)
        unit = unit_bytes(self._board.configuration, Space(image.space))
        units = len(image.data) // unit
        first = self._random.randrange(units)
        last = self._random.randint(first, units)
        data = image.data[first * unit : last * unit]
        self._device.write(Space(image.space), image.address + first, data)
        return True

    def identify(self) -> bool:
        """Asks what the board is."""
        self._device.identify()
        return True
