"""Requests and their answers over a byte stream that may lose, add and corrupt bytes."""

import heapq
import random
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from slipstick_rtl.config import Configuration
from slipstick_rtl.link.identity import Identity
from slipstick_rtl.link.protocol import (
    CRC_BYTES,
    HEADER_BYTES,
    REQUEST_START,
    UNSEALED,
    Command,
    DeviceStatus,
    Status,
    encode,
    session_of,
)

from .errors import LinkError
from .response_reader import Response, ResponseReader
from .transport import Transport

__all__ = ["Exchanger", "LinkError", "Patience", "Request"]

SEQUENCE_NUMBERS = 256
_PROBE_RETRIES = 2
_LONG_ATTEMPT = 5
"""The failure in a row after which silence and a usual frame's zeros are taken not to be enough."""
_IDENTITY_BYTES = len(Identity.of(Configuration()).pack())
_STATUS_BYTES = len(DeviceStatus.idle().pack())
LONGEST_FRAME = HEADER_BYTES + 0xFFFF + CRC_BYTES
"""What a device may take for one frame, at most, if the length is corrupted."""


@dataclass(frozen=True)
class Request:
    """A request, and how long the payload of its answer must be."""

    command: Command
    payload: bytes = b""
    answer_bytes: int = 0


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long an exchange tries.

    Parameters
    ----------
    timeout_seconds : float
        For an answer, from the last one or from sending again.
    retries : int
        Failures in a row, without an answer between, that are put up with.
    silence_seconds : float
        Pause that makes the device forget half a frame: longer than its timeout.
    window : int
        Requests sent ahead of their answers, 1..64.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """

    timeout_seconds: float = 1.0
    retries: int = 8
    silence_seconds: float = 0.1
    window: int = 8

    def __post_init__(self) -> None:
        if not self.timeout_seconds > 0:
            raise ValueError(f"timeout_seconds must be above 0, not {self.timeout_seconds}")
        if self.retries < 0:
            raise ValueError(f"retries must be at least 0, not {self.retries}")
        if not self.silence_seconds >= 0:
            raise ValueError(f"silence_seconds must be at least 0, not {self.silence_seconds}")
        if not 1 <= self.window <= SEQUENCE_NUMBERS // 4:
            raise ValueError(f"window must be within 1..{SEQUENCE_NUMBERS // 4}, not {self.window}")


class Exchanger:
    """Sends requests, some ahead of their answers, and again those that were lost.

    The first request but IDENTIFY begins a session, with a number drawn at random: what belongs to
    another one, in either direction, is taken for garbage. A session that the device does not hold
    any more is over for good.

    A device answers in the order of the requests, so that an answer shows those before it without
    one to be lost. Requests may be executed twice, and those of one call in another order than
    given: they must not depend on each other, and must be idempotent (RUN is, by its number).

    Parameters
    ----------
    transport : Transport
    payload_bytes : int
        Longest payload of a frame.
    patience : Patience
    draw : random.Random, optional
        Gives the session and the first sequence number.
    """

    def __init__(
        self,
        transport: Transport,
        payload_bytes: int,
        patience: Patience,
        draw: random.Random | None = None,
    ) -> None:
        self._draw = draw or random.Random()
        self._transport = transport
        self._payload_bytes = payload_bytes
        self._patience = patience
        self._reader = ResponseReader(transport, payload_bytes)
        self._next_sequence = self._draw.randrange(SEQUENCE_NUMBERS)
        self._seal = 0
        self._quiet = self._begun = self._lost = False

    @property
    def next_sequence(self) -> int:
        """The number of the next request."""
        return self._next_sequence

    def skip_sequence(self) -> None:
        """Leaves out a number."""
        self._next_sequence = (self._next_sequence + 1) % SEQUENCE_NUMBERS

    def exchange(self, requests: Sequence[Request], *, once: bool = False) -> list[bytes]:
        """The payloads of the answers, in the order of the requests.

        Parameters
        ----------
        requests : sequence of Request
        once : bool
            Nothing is sent again.

        Raises
        ------
        LinkError
            If a request is refused, or not answered in spite of ``patience``: SESSION_LOST if the
            device is there but does not hold the session any more, otherwise NO_ANSWER.
        """
        if any(request.command is not Command.IDENTIFY for request in requests):
            self.begin()
        self._settle()
        try:
            return self._exchange(requests, 0 if once else self._patience.retries)
        except LinkError as error:
            if error.code == "NO_ANSWER" and self._begun and self._session_is_lost():
                self._lost = True
                self._check_session()
            raise

    def begin(self) -> None:
        """Begins the session, once; LinkError NO_ANSWER, SESSION_LOST."""
        self._check_session()
        if self._begun:
            return
        self._settle()
        self._seal = self._draw.randrange(1, 1 << 8 * CRC_BYTES)
        self._reader.session = session_of(self._seal)
        number = self._reader.session.to_bytes(CRC_BYTES, "little")
        self._exchange([Request(Command.OPEN, number)], self._patience.retries)
        self._begun = True

    def _settle(self) -> None:
        """Before the first request: a host before may have left half a frame, and answers."""
        if not self._quiet:
            self._reader.drain(self._patience.silence_seconds)
        self._quiet = True

    def _check_session(self) -> None:
        if self._lost:
            raise LinkError(
                "SESSION_LOST",
                "the device answers, but not in this session: it was reset, or another host took"
                " it, and its memories may hold anything; open it anew and load the program again",
            )

    def _session_is_lost(self) -> bool:
        """Whether the device answers, but not in this session."""
        there = self._answers(Request(Command.IDENTIFY, answer_bytes=_IDENTITY_BYTES))
        return there and not self._answers(Request(Command.STATUS, answer_bytes=_STATUS_BYTES))

    def _answers(self, request: Request) -> bool:
        try:
            self._exchange([request], min(_PROBE_RETRIES, self._patience.retries))
        except LinkError as error:
            if error.code != "NO_ANSWER":
                raise
            return False
        return True

    def _exchange(self, requests: Sequence[Request], retries: int) -> list[bytes]:
        flight = _Flight(requests, self._next_sequence, self._seal)
        self._next_sequence = (self._next_sequence + len(requests)) % SEQUENCE_NUMBERS
        failures = 0
        deadline = time.monotonic() + self._patience.timeout_seconds
        while not flight.complete:
            if frames := flight.launch(self._patience.window):
                self._transport.send(frames)
            response = self._reader.next(deadline)
            if response is None:
                failures += 1
                self._give_up_after(failures, retries, requests[flight.oldest])
                self._resynchronise(failures)
                flight.lose_all()
            elif response.status is Status.BAD_CRC:
                lost = flight.lose_oldest(response.sequence)
                failures += lost
                self._give_up_after(failures, retries, requests[flight.oldest])
                if not lost:
                    continue
            elif flight.land(response):
                failures = 0
            else:
                continue
            deadline = time.monotonic() + self._patience.timeout_seconds
        return flight.answers

    @staticmethod
    def _give_up_after(failures: int, retries: int, request: Request) -> None:
        if failures > retries:
            raise LinkError(
                "NO_ANSWER",
                f"the device did not answer {request.command.name}, sent {failures} times",
            )

    def _resynchronise(self, failures: int) -> None:
        """Ends whatever frame the device thinks that it is in: by silence, and by zeros."""
        self._reader.drain(self._patience.silence_seconds)
        usual = HEADER_BYTES + self._payload_bytes + CRC_BYTES
        self._transport.send(bytes(LONGEST_FRAME if failures == _LONG_ATTEMPT else usual))


class _Flight:
    """Which requests of one exchange wait, are on their way, and have been answered."""

    def __init__(self, requests: Sequence[Request], first_sequence: int, seal: int) -> None:
        self._requests = requests
        self._first_sequence = first_sequence
        self._seal = seal
        self._session = session_of(seal)
        self._waiting = list(range(len(requests)))  # a heap: the oldest goes first
        self._flying: deque[int] = deque()
        self._answers: dict[int, bytes] = {}
        self.oldest = 0

    @property
    def complete(self) -> bool:
        return self.oldest == len(self._requests)

    @property
    def answers(self) -> list[bytes]:
        return [self._answers[index] for index in range(len(self._requests))]

    def launch(self, window: int) -> bytes:
        """The frames to send now; none is further ahead than its number can tell."""
        frames = bytearray()
        while self._waiting and len(self._flying) < window:
            index = self._waiting[0]
            if index >= self.oldest + SEQUENCE_NUMBERS // 2:
                break
            self._flying.append(heapq.heappop(self._waiting))
            request = self._requests[index]
            sequence = self._sequence(index)
            seal = 0 if request.command in UNSEALED else self._seal
            frames += encode(REQUEST_START, request.command, sequence, request.payload, seal)
        return bytes(frames)

    def land(self, response: Response) -> bool:
        """Takes an answer in; False if it is none to these requests."""
        ahead = (response.sequence - self._sequence(self.oldest)) % SEQUENCE_NUMBERS
        index = self.oldest + ahead
        if ahead >= SEQUENCE_NUMBERS // 2 or index not in self._flying:
            return False
        request = self._requests[index]
        if response.seal != (0 if request.command is Command.IDENTIFY else self._session):
            return False
        if response.status is not Status.OK:
            raise LinkError(
                response.status.name,
                f"the device refused {request.command.name} ({request.payload[:6].hex(' ')})",
            )
        if len(response.payload) != request.answer_bytes:
            return False
        self._answers[index] = response.payload
        while self._flying[0] != index:
            self._lose_first()
        self._flying.popleft()
        while self.oldest in self._answers:
            self.oldest += 1
        return True

    def lose_oldest(self, sequence: int) -> bool:
        """The oldest request on its way is to be sent again, if this is its number."""
        if not self._flying or self._sequence(self._flying[0]) != sequence:
            return False
        self._lose_first()
        return True

    def lose_all(self) -> None:
        """All requests on their way are to be sent again."""
        while self._flying:
            self._lose_first()

    def _lose_first(self) -> None:
        heapq.heappush(self._waiting, self._flying.popleft())

    def _sequence(self, index: int) -> int:
        return (self._first_sequence + index) % SEQUENCE_NUMBERS
