"""Runs a program on an emulated board: golden results, after the time that a board would take."""

import hashlib
import threading
import time
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np

from ..devices.emulated import EmulatedDevice
from ..devices.wire_models import find_wire_model
from ..program import Program
from .arrivals import Source
from .executor import BATCH, Execution
from .feeds import image_count, joined
from .sharing import exclusive
from .stages.board_time import BoardTime

Values = dict[str, np.ndarray]

_MOST_KNOWN = 4096
"""Images whose results are remembered: many boards of a test run the same ones."""


_THREAD = threading.local()


class _Known:
    """Results of images, for all emulated boards of a program in this process."""

    def __init__(self) -> None:
        self._results: OrderedDict[bytes, Values] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: bytes) -> Values | None:
        with self._lock:
            return self._results.get(key)

    def put(self, key: bytes, values: Values) -> None:
        with self._lock:
            self._results[key] = values
            if len(self._results) > _MOST_KNOWN:
                self._results.popitem(last=False)


_KNOWN: "weakref.WeakValueDictionary[int, _Known]" = weakref.WeakValueDictionary()
"""By the program's identity: who holds the results holds the program."""
_KNOWN_LOCK = threading.Lock()


class Emulation:
    """As ``Execution``, on an ``EmulatedDevice``.

    An image takes ``BoardTime.seconds``: the slower one of core and wire. The first one takes the
    wire's reply as well. As on a board, images of a batch share what a streamed program loads, and
    those of a stream do not.

    Parameters
    ----------
    program : Program
    device : EmulatedDevice

    Members
    -------
    reply_seconds : float
        From the end of an image to its results.

    Raises
    ------
    InputError
        If there is no such wire.
    ProgramError
        If the program was compiled for other hardware.
    """

    def __init__(self, program: Program, device: EmulatedDevice) -> None:
        self.program, self.device = program, device
        wire = find_wire_model(device.wire) if device.wire else None
        self._time = BoardTime(program.name, device.configuration, wire)
        self._known_seconds: dict[int, float] = {}
        self.reply_seconds = 0.0 if wire is None else wire.reply_seconds * device.slower
        self._golden = Execution(program, device)
        with _KNOWN_LOCK:
            self._known = _KNOWN.setdefault(id(program), _Known())

    @property
    def last_cycles(self) -> int | None:
        """None: nothing was measured."""
        return None

    def reset_state(self) -> None:
        """The next inference begins as the first one did."""
        self._golden.reset_state()

    def infer_batch(
        self,
        inputs: Mapping[str, np.ndarray],
        wanted: tuple[str, ...] | None = None,
        advance: Callable[[int], object] = int,
    ) -> Values:
        """As ``Execution.infer_batch``."""
        names = self.program.outputs if wanted is None else wanted
        with exclusive(self.device):
            start = time.monotonic()
            count = image_count(inputs)
            values = self._results(dict(inputs), count, names)
            self._sleep_until(start + self._batch_seconds(count) + self.reply_seconds)
            advance(count)
            return values

    def infer_stream(
        self, source: Source[Values], consumer: int | None = None
    ) -> Generator[Values, None, None]:
        """As ``Execution.infer_stream``."""
        if self.program.variables:
            yield from self._golden.infer_stream(source, consumer)
            return
        with exclusive(self.device):
            yield from self._follow(source)

    def _follow(self, source: Source[Values]) -> Generator[Values, None, None]:
        free = 0.0
        flights = deque[tuple[float, Values]]()
        while flights or source.wait():
            now = time.monotonic()
            if (not flights or flights[0][0] > now) and len(flights) <= source.ahead:
                patience = 0.0 if not flights else min(1e-3, flights[0][0] - now)
                if source.wait(patience):
                    free = max(free, time.monotonic()) + self._seconds(1)
                    flights.append((free + self.reply_seconds, source.take()))
                    continue
            due, sample = flights.popleft()
            values = self._results(sample, 1, self.program.outputs)
            self._sleep_until(due)
            yield values
        source.check()

    def _seconds(self, together: int) -> float:
        """Predicts the time of so many images that share what is loaded."""
        if together not in self._known_seconds:
            each = self._time.seconds(self.program, together) * self.device.slower
            self._known_seconds[together] = together * each
        return self._known_seconds[together]

    def _batch_seconds(self, count: int) -> float:
        groups = [BATCH] * (count // BATCH) + [count % BATCH] * (count % BATCH > 0)
        return sum(map(self._seconds, groups))

    def _results(self, inputs: Values, count: int, names: tuple[str, ...]) -> Values:
        """The golden model's, each image computed once."""
        if self.program.variables:
            return self._golden.infer_batch(inputs, names)
        keys = [_key(inputs, number) for number in range(count)]
        found = [self._known.get(key) for key in keys]
        missing = [number for number, values in enumerate(found) if values is None]
        if missing:
            part = {name: value[missing] for name, value in inputs.items()}
            made = self._golden.infer_batch(part, self.program.outputs)
            for place, number in enumerate(missing):
                own = {name: value[place : place + 1].copy() for name, value in made.items()}
                self._known.put(keys[number], own)
                found[number] = own
        known = [values for values in found if values is not None]
        return joined(known, names)

    @staticmethod
    def _sleep_until(moment: float) -> None:
        left = moment - time.monotonic()
        if left > 0:
            _wake_punctually()
            time.sleep(left)


def _wake_punctually() -> None:
    """Linux wakes a thread up to 50 microseconds late, which no board does; from now on not this
    one."""
    if not getattr(_THREAD, "is_punctual", False):
        _THREAD.is_punctual = True
        with suppress(OSError):
            Path(f"/proc/{threading.get_native_id()}/timerslack_ns").write_text("1", "ascii")


def _key(inputs: Values, number: int) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(inputs):
        digest.update(np.ascontiguousarray(inputs[name][number]).data)
    return digest.digest()
