"""What hosts do on a line that fails, and whether all that they are told is right."""

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from slipstick_rtl.link.protocol import (
    REQUEST_START,
    RESPONSE_START,
    Command,
    Space,
    Status,
    encode,
)
from slipstick_rtl.link.spaces import unit_bytes

from .devices.exchange import LinkError
from .devices.faults import Fault, FaultyTransport
from .devices.link import LinkDevice
from .devices.transport import Transport
from .errors import DeviceError
from .execution import Execution, Values
from .fault_boards import Board
from .program import Program

OPERATIONS_PER_EPISODE = 16
"""Then the faults stop, and the device must be as good as new."""

_RATES = (0.003, 0.01, 0.03, 0.1, 0.3)
_DISCONNECTIONS = (0.0, 0.02, 0.1)
_SCRATCH_BYTES = 1 << 14
_LONGEST_TRANSFER = 6000


class SecondHost:
    """A line that another host shares: it may stop the device's run between two frames.

    It takes its own answer; the first host sees nothing of it.

    Parameters
    ----------
    inner : Transport

    Members
    -------
    countdown : int
        After so many more calls it sends a RESET; below 0: never.
    resets : int
        RESETs that were answered.
    """

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self._arrived = bytearray()
        self.countdown = -1
        self.resets = 0

    def send(self, data: bytes) -> None:
        """Passes on the data."""
        self._inner.send(data)
        self._count()

    def receive(self, count: int, timeout_seconds: float) -> bytes:
        """What was kept for the first host, or else what comes."""
        self._count()
        if not self._arrived:
            return self._inner.receive(count, timeout_seconds)
        taken = bytes(self._arrived[:count])
        del self._arrived[:count]
        return taken

    def close(self) -> None:
        """Closes the line."""
        self._inner.close()

    def _count(self) -> None:
        self.countdown -= self.countdown >= 0
        if self.countdown != 0:
            return
        self.countdown = -1
        sequence = self.resets % 256
        self._inner.send(encode(REQUEST_START, Command.RESET, sequence))
        answer = encode(RESPONSE_START, Status.OK, sequence)
        while data := self._inner.receive(1 << 12, 0.01):
            self._arrived += data
        place = self._arrived.rfind(answer)
        if place >= 0:
            del self._arrived[place : place + len(answer)]
            self.resets += 1


@dataclass
class Tally:
    """What happened."""

    operations: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    """By the code of the error."""
    wrong: list[str] = field(default_factory=list)
    unrecovered: list[str] = field(default_factory=list)
    longest_seconds: float = 0.0
    recovery_seconds: list[float] = field(default_factory=list)
    recovery_cycles: list[int] = field(default_factory=list)


class FaultSuite:
    """Hosts at work on one board, whose line fails in every way.

    The program is loaded once, before the first fault.

    Parameters
    ----------
    board : Board
    program : Program
    feeds : list of dict of array
        Inputs, one sample each.
    expected : list of dict of array
        For each, all that the golden model shows the host.
    seed : int
    """

    def __init__(
        self,
        board: Board,
        program: Program,
        feeds: list[Values],
        expected: list[Values],
        seed: int,
    ) -> None:
        self.tally = Tally()
        self._board = board
        self._program = program
        self._feeds, self._expected = feeds, expected
        self._random = random.Random(seed)
        self.second_host = SecondHost(board.transport)
        self.line = FaultyTransport(
            self.second_host, seed=seed, stall_seconds=board.stall_seconds, idle=board.idle
        )
        self._device = self._new_host()
        self._execution = Execution(program, self._device)
        size = board.configuration.activation_bytes
        self._scratch = size - _SCRATCH_BYTES
        self._shadow = np.zeros(_SCRATCH_BYTES, np.uint8)
        self._known = np.zeros(_SCRATCH_BYTES, bool)
        self._operations: dict[str, tuple[int, Callable[[], bool]]] = {
            "inference": (4, self._infer),
            "inference, stopped": (2, self._infer_with_a_second_host),
            "memory written": (5, self._write),
            "memory read": (5, self._read),
            "program written": (2, self._write_program),
            "identification": (1, self._identify),
            "host replaced": (2, self._die_and_replace),
        }

    def run(self, faults: int, tick: Callable[[int], object] = int) -> Tally:
        """Goes on until each fault was injected ``faults`` times; ``tick`` is told of every
        episode how many faults of the rarest kind there are by now."""
        while (rarest := min(self.line.counts[fault] for fault in Fault)) < faults:
            tick(rarest)
            self.episode()
        return self.tally

    def episode(self) -> None:
        """Some operations on a failing line; then calm, in which everything must work."""
        rate = self._random.choice(_RATES)
        self.line.rates = dict.fromkeys(Fault, rate)
        self.line.rates[Fault.DISCONNECT] = self._random.choice(_DISCONNECTIONS)
        names = list(self._operations)
        weights = [weight for weight, _ in self._operations.values()]
        for name in self._random.choices(names, weights, k=OPERATIONS_PER_EPISODE):
            self._attempt(name, self._operations[name][1])
        self.line.calm()
        self._recover()

    def _attempt(self, name: str, action: Callable[[], bool]) -> None:
        start = time.monotonic()
        self.tally.operations[name] += 1
        try:
            if action():
                self.tally.right[name] += 1
            else:
                self.tally.wrong.append(f"{name}, operation {self.tally.operations.total()}")
        except DeviceError as error:
            code = error.code if isinstance(error, LinkError) else "without a code"
            self.tally.failed[code] += 1
        finally:
            seconds = time.monotonic() - start
            self.tally.longest_seconds = max(self.tally.longest_seconds, seconds)
            self.second_host.countdown = -1
        if not self.line.connected:
            self.line.reconnect()
            self._device = self._new_host()

    def _recover(self) -> None:
        """Without faults: an answer, then what memory holds, and a run of the program as it is."""
        start, cycles = time.monotonic(), self._board.cycles
        try:
            self._device.identify()
            self.tally.recovery_seconds.append(time.monotonic() - start)
            if cycles is not None and self._board.cycles is not None:
                self.tally.recovery_cycles.append(self._board.cycles - cycles)
            self._device.reset()
            if not (self._compare_scratch(0, _SCRATCH_BYTES) and self._infer()):
                self.tally.wrong.append(f"after operation {self.tally.operations.total()}")
        except DeviceError as error:
            self.tally.unrecovered.append(str(error))

    def _new_host(self) -> LinkDevice:
        device = LinkDevice(
            self.line,
            configuration=self._board.configuration,
            patience=self._board.patience,
            pause=self._board.pause,
            draw=self._random,
        )
        return device

    def _infer(self) -> bool:
        sample = self._random.randrange(len(self._feeds))
        self._execution.device = self._device
        values = self._execution.infer(self._feeds[sample])
        expected = self._expected[sample]
        return all(np.array_equal(values[name], expected[name]) for name in expected)

    def _infer_with_a_second_host(self) -> bool:
        self.second_host.countdown = self._random.randint(1, 60)
        return self._infer()

    def _span(self) -> tuple[int, int]:
        count = self._random.choice((1, 60, 900, _LONGEST_TRANSFER))
        return self._random.randrange(_SCRATCH_BYTES - count), count

    def _write(self) -> bool:
        start, count = self._span()
        data = self._random.randbytes(count)
        span = slice(start, start + count)
        self._known[span] = False
        self._device.write(Space.ACTIVATIONS, self._scratch + start, data)
        self._shadow[span] = np.frombuffer(data, np.uint8)
        self._known[span] = True
        return True

    def _read(self) -> bool:
        return self._compare_scratch(*self._span())

    def _compare_scratch(self, start: int, count: int) -> bool:
        """Whether all bytes whose value was acknowledged are what they should be."""
        data = np.frombuffer(self._device.read(self._scratch + start, count), np.uint8)
        span = slice(start, start + count)
        return bool(((data == self._shadow[span]) | ~self._known[span]).all())

    def _write_program(self) -> bool:
        """Writes a part of what the program memories hold anyway: a run shows whether it does."""
        image = self._random.choice(self._program.images)
        unit = unit_bytes(self._board.configuration, Space(image.space))
        units = len(image.data) // unit
        first = self._random.randrange(units)
        last = min(units, first + self._random.randint(1, 1 + _LONGEST_TRANSFER // unit))
        data = image.data[first * unit : last * unit]
        self._device.write(Space(image.space), image.address + first, data)
        return True

    def _identify(self) -> bool:
        self._device.identify()
        return True

    def _die_and_replace(self) -> bool:
        """A host asks for much, goes in the middle of a frame, and another one comes."""
        frames = b""
        for sequence in range(self._random.randrange(4)):
            address = self._scratch + self._random.randrange(_SCRATCH_BYTES // 2)
            place = bytes([Space.ACTIVATIONS]) + address.to_bytes(3, "little")
            size = self._random.choice((1, 60, 900)).to_bytes(2, "little")
            frames += encode(REQUEST_START, Command.READ, sequence, place + size)
        content = bytes([Space.WEIGHTS, 0, 0, 0]) + self._random.randbytes(400)
        half = encode(REQUEST_START, Command.WRITE, 77, content)
        self.line.send(frames + half[: self._random.randrange(1, len(half))])
        if self._random.random() < 0.05:
            self._board.forget()
        self._device = self._new_host()
        self._device.identify()
        self._device.reset()
        return True
