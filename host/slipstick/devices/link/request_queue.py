"""Requests on their way to a device: sent ahead of their answers, and again where that is needed.

A device executes the requests of a session in the order of their numbers, so that what is behind a
lost one changes nothing (:mod:`slipstick_rtl.link.protocol`). After a failure the queue asks STATUS
which number comes next, and sends again from there.
"""

import random
import time
from collections import deque

from slipstick_rtl.config import Configuration
from slipstick_rtl.link.identity import Identity
from slipstick_rtl.link.protocol import (
    CRC_BYTES,
    SEQUENCE_NUMBERS,
    STATUS_BYTES,
    Command,
    Status,
    session_of,
    unpack_status,
)

from .burst import MOST_IN_BURST, Burst, BurstLayout
from .errors import LinkError
from .in_flight import MOST_IN_FLIGHT, UNORDERED_NUMBERS, InFlight
from .patience import Patience
from .request import FRAME_BYTES, Request
from .response_reader import Response, ResponseReader
from .stalls import Stalls
from .transport import Transport

__all__ = ["LinkError", "Patience", "Request", "RequestQueue"]

_PROBE_RETRIES = 2
_LONG_ATTEMPT = 5
"""The failure in a row after which silence and a usual frame's zeros are taken not to be enough."""
_IDENTITY_BYTES = len(Identity.of(Configuration()).pack())
LONGEST_FRAME = FRAME_BYTES + 0xFFFF
"""Most bytes that a device may take for one frame, if the length is corrupted."""
_PUSH_BYTES = 1 << 13


class RequestQueue:
    """Requests in their order, over a byte stream that may lose, add and corrupt bytes.

    The first request but IDENTIFY begins a session, with a number drawn at random: what belongs to
    another one, in either direction, is taken for garbage. A session that the device does not hold
    any more is over for good.

    Parameters
    ----------
    transport : Transport
    payload_bytes : int
        Longest payload of a frame.
    patience : Patience
    draw : random.Random, optional
        Gives the session and the first sequence number.

    Members
    -------
    round_trips : int
        How often something was sent when all that had been sent before was answered.
    bytes_up : int
        Bytes sent.
    failures_survived : int
        How often requests were sent again.
    generation : int
        Counts the failures after which requests were dropped, so that what they should have done
        is not known to be done.
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
        self._seconds = getattr(transport, "seconds", None)
        self._stalls = Stalls(transport, patience.receive_bytes)
        self._queued: deque[Request | Burst] = deque()
        self._flying = InFlight(patience, self._stalls)
        self._next_sequence = self._draw.randrange(SEQUENCE_NUMBERS)
        self._next_unordered = 0
        self._seal = 0
        self._quiet = self._begun = self._lost = self._synchronised = False
        self._deferred: LinkError | None = None
        self._failures = 0
        self._busy_since: float | None = None
        self._held = False
        self._queued_bytes = 0
        self.round_trips = self.bytes_up = self.failures_survived = self.generation = 0

    @property
    def bytes_down(self) -> int:
        """Bytes received."""
        return self._reader.bytes

    def submit(self, request: Request) -> Request:
        """Puts a request behind all others; it is sent at the latest when one is waited for.

        Raises
        ------
        LinkError
            If a silent request before it was refused, or the session or the device is lost.
        """
        self._put(request)
        return request

    @property
    def holds_back(self) -> bool:
        """Tells whether the wire keeps bytes back while the device is busy."""
        return self._patience.receive_bytes is None

    def takes_burst(self, layout: BurstLayout) -> bool:
        """Tells whether requests, and short ones before and behind them, may be a burst.

        On a wire that cannot hold back, the device may be too busy for some of them. And one must
        fit beside those that are on their way.
        """
        most = self._patience.window_bytes // 2
        return self.holds_back and layout.size <= most and len(layout.pieces) <= MOST_IN_BURST

    def submit_burst(self, burst: Burst) -> None:
        """Puts a burst, for which ``takes_burst``, behind all requests; raises as ``submit``."""
        self._put(burst)

    def _put(self, request: Request | Burst) -> None:
        # looked at for every request
        if not self._synchronised or self._deferred is not None:
            self._begin()
        self._queued.append(request)
        self._queued_bytes += request.size
        if self._queued_bytes >= _PUSH_BYTES:
            self.push()
            while self._queued_bytes > self._patience.window_bytes:
                self._step()

    @property
    def is_idle(self) -> bool:
        """Tells whether the device has answered all that was sent."""
        return not self._flying.requests

    def push(self) -> None:
        """Sends what may be sent now."""
        if self._flying.is_plenty:
            # a few large pieces cost less than many small ones
            return
        frames = []
        was_empty = not self._flying
        while self._queued and self._flying.may_send(self._queued[0]):
            frames.append(self._launch(self._queued.popleft()))
        if frames:
            self.round_trips += was_empty
            self._send(b"".join(frames))

    def wait(self, request: Request) -> bytes:
        """The answer to a request.

        Raises
        ------
        LinkError
            If it, or one before it, was refused; LostAnswerError if it was executed, but the answer
            is lost; NO_ANSWER, SESSION_LOST, DISCONNECTED.
        """
        while not request.is_done:
            self._step()
        if request.error is not None:
            self._deferred = None
            raise request.error
        return request.answer

    def finish(self) -> None:
        """Returns when all requests have been executed; raises as ``wait``, for any of them."""
        while self._queued or self._flying:
            self._step()
        self._raise_deferred()

    def ask(self, request: Request) -> bytes:
        """The answer to an unordered request, behind all that were sent.

        Raises
        ------
        LinkError
            If it is refused, or not answered in spite of ``patience``.
        """
        assert not request.is_ordered
        if request.command is not Command.IDENTIFY:
            self._begin()
        self._settle()
        try:
            self.finish()
            return self._ask(request, self._patience.retries)
        except LinkError as error:
            self._explain(error)
            raise

    def abandon(self) -> None:
        """Forgets all requests that have not been answered: they may be executed or not."""
        if self._queued or self._flying:
            self._drop(LinkError("NO_ANSWER", "the request was abandoned"))
        self._deferred = None

    def _begin(self) -> None:
        """Begins the session, once; LinkError NO_ANSWER, SESSION_LOST."""
        self._check_session()
        self._raise_deferred()
        if not self._begun:
            self._settle()
            self._seal = self._draw.randrange(1, 1 << 8 * CRC_BYTES)
            self._reader.session = session_of(self._seal)
            number = self._reader.session.to_bytes(CRC_BYTES, "little")
            request = Request(Command.OPEN, number)
            self._ask(request, self._patience.retries)
            self._next_sequence = (request.sequence + 1) % SEQUENCE_NUMBERS
            self._begun = self._synchronised = True
        elif not self._synchronised:
            try:
                self._synchronise(silence=False)
            except LinkError as error:
                self._explain(error)
                raise

    def _settle(self) -> None:
        """Before the first request: a host before may have left half a frame, and answers."""
        if not self._quiet:
            self._reader.drain(self._patience.silence_seconds)
        self._quiet = True

    def _raise_deferred(self) -> None:
        if self._deferred is not None:
            error, self._deferred = self._deferred, None
            raise error

    def _check_session(self) -> None:
        if self._lost:
            raise LinkError(
                "SESSION_LOST",
                "the device answers, but not in this session: it was reset, or another host took"
                " it, and its memories may hold anything; open it anew and load the program again",
            )

    def _explain(self, error: LinkError) -> None:
        """SESSION_LOST in the place of NO_ANSWER, if the device answers, but not in this one."""
        if error.code != "NO_ANSWER" or not self._begun or self._lost:
            return
        identify = Request(Command.IDENTIFY, answer_bytes=_IDENTITY_BYTES)
        if self._answers(identify) and not self._answers(_status_request()):
            self._lost, self._synchronised = True, False
            self._check_session()

    def _answers(self, request: Request) -> bool:
        try:
            self._ask(request, min(_PROBE_RETRIES, self._patience.retries))
        except LinkError as error:
            if error.code != "NO_ANSWER":
                raise
            return False
        return True

    # sending

    def _launch(self, request: Request | Burst) -> bytes:
        """Notes that a request is sent; returns its frame, or a burst's frames."""
        self._queued_bytes -= request.size
        if request.is_ordered:
            request.sequence = self._next_sequence
            self._next_sequence = (self._next_sequence + request.count) % SEQUENCE_NUMBERS
        else:
            request.sequence = self._unordered_sequence()
        self._flying.add(request)
        return request.frame(self._seal)

    def _unordered_sequence(self) -> int:
        """The next number that no request in flight has: unordered ones before may have it yet."""
        while True:
            self._next_unordered = (self._next_unordered + 1) % UNORDERED_NUMBERS
            ahead = MOST_IN_FLIGHT + self._next_unordered
            sequence = (self._next_sequence + ahead) % SEQUENCE_NUMBERS
            if self._flying.find(sequence) is None:
                return sequence

    def _send(self, data: bytes) -> None:
        self.bytes_up += len(data)
        try:
            self._transport.send(data)
        except BaseException as error:
            self._fail(error)
            raise

    # receiving

    def _step(self) -> None:
        """Sends what may be sent, and takes one answer that changes something."""
        self.push()
        if not self._flying:
            return
        try:
            if not self._flying.asking:
                self._synchronise(silence=False)
                return
            deadline = self._deadline()
            while True:
                pause = self._stalls.pause() if self._queued else None
                sooner = pause is not None and time.monotonic() + pause < deadline
                if sooner and not self._reader.arrives(pause or 0.0):
                    return
                response = self._reader.next(deadline)
                if response is None:
                    self._recover(silence=True)
                    return
                outcome = self._take(response)
                if outcome is None:
                    continue
                if not outcome:
                    self._recover(silence=False)
                return
        except LinkError as error:
            self._fail(error)
            self._explain(error)
            raise
        except BaseException as error:
            self._fail(error)
            raise

    def _deadline(self) -> float:
        patience = self._patience
        seconds = patience.timeout_seconds
        if self._flying.waiting or self._held:
            seconds += patience.wait_seconds
        if self._seconds is not None:
            seconds += self._seconds(self._flying.bytes + self._flying.answer_bytes)
        return time.monotonic() + seconds

    def _take(self, response: Response) -> bool | None:
        """Takes an answer in.

        Returns
        -------
        bool or None
            Whether requests are done by it; False if some must be sent again; None if it is no
            answer to any of them.
        """
        if response.status is Status.BAD_CRC:
            return None if self._flying.find(response.sequence) is None else False
        request = self._flying.find(response.sequence)
        ok = response.status is Status.OK
        if isinstance(request, Burst) and not (ok and response.sequence == request.last_sequence):
            # something of it failed
            self._flying.spread()
            request = self._flying.find(response.sequence)
        if request is None or response.seal != self._session_seal(request):
            return None
        if ok:
            if not request.asks or len(response.payload) != request.answer_bytes:
                return None
            self._pass_by(request)
            self._flying.remove_first()
            request.complete(response.payload)
            self._busy_since = None
            self._failures = 0
            return True
        if response.status is Status.OUT_OF_ORDER:
            return False
        assert isinstance(request, Request)
        if response.status is Status.BUSY and request.waits:
            return self._still_busy(request)
        self._pass_by(request)
        error = LinkError(
            response.status.name,
            f"the device refused {request.command.name} ({request.payload[:6].hex(' ')})",
        )
        self._drop(error)
        return True

    def _session_seal(self, request: Request | Burst) -> int:
        return 0 if request.command is Command.IDENTIFY else self._reader.session

    def _still_busy(self, request: Request) -> bool:
        """A run goes on for longer than the device holds a request: it is sent again."""
        now = time.monotonic()
        if self._busy_since is None:
            self._busy_since = now
        if now - self._busy_since > self._patience.run_seconds:
            self._pass_by(request)
            self._drop(
                LinkError(
                    "RUN_TIMEOUT",
                    f"the run must end within {self._patience.run_seconds} s;"
                    f" {request.command.name} waits for it",
                )
            )
            return True
        self._failures = 0
        return False

    def _pass_by(self, request: Request | Burst) -> None:
        """All requests before this one have been executed."""
        while self._flying.requests[0] is not request:
            passed = self._flying.remove_first()
            _pass(passed)

    # failures

    def _drop(self, error: LinkError) -> None:
        """All that is not done fails, and the device is asked where it is before anything else."""
        # what waits in the device may keep the next request from being answered
        self._held = self._flying.waiting > 0
        unheard = True
        for request in (*self._flying.requests, *self._queued):
            request.fail(error)
            unheard = unheard and request.silent
        if unheard:
            self._deferred = error
        self._flying.clear()
        self._queued.clear()
        self._queued_bytes = 0
        self._busy_since = None
        self._failures = 0
        self._synchronised = False
        self.generation += 1

    def _fail(self, error: BaseException) -> None:
        """Fails all requests with the error that was raised; the caller is told at once."""
        if not isinstance(error, LinkError):
            error = LinkError("NO_ANSWER", f"the request was given up: {error}")
        if self._flying or self._queued:
            self._drop(error)
        self._synchronised = False
        self._deferred = None

    def _recover(self, *, silence: bool) -> None:
        """Something was lost: everything from there on is sent again."""
        self.failures_survived += 1
        self._stalls.fail()
        if self._busy_since is None:
            self._count_failure()
        self._synchronise(silence=silence)

    def _count_failure(self) -> None:
        self._failures += 1
        if self._failures > self._patience.retries:
            name = self._flying.requests[0].command.name if self._flying else "STATUS"
            times, self._failures = self._failures, 0
            raise LinkError("NO_ANSWER", f"the device did not answer {name}, sent {times} times")

    def _synchronise(self, *, silence: bool) -> None:
        """Asks the device which number comes next; what it has not executed is queued again."""
        while True:
            if silence:
                self._resynchronise(self._failures)
            answer = self._attempt(_status_request(), take=True)
            if answer is not None:
                break
            self._count_failure()
            silence = True
        _, sequence = unpack_status(answer)
        if not self._flying:
            self._next_sequence = sequence
        else:
            self._queue_again(sequence)
        self._synchronised = True

    def _queue_again(self, sequence: int) -> None:
        """Puts the requests in flight back, from the first that was not executed on."""
        self._flying.spread()
        ordered = [request for request in self._flying.requests if request.is_ordered]
        executed = (sequence - ordered[0].sequence) % SEQUENCE_NUMBERS if ordered else 0
        if executed > len(ordered):
            raise LinkError(
                "OUT_OF_ORDER",
                f"the device expects request {sequence}, which was not sent: it, or another"
                " program, uses the link otherwise",
            )
        last = ordered[executed - 1] if executed else None
        if last is not None and last.answer_bytes:
            # as a repetition it is answered, and executed no second time
            self._next_sequence = last.sequence
        else:
            last, self._next_sequence = None, sequence
        again, passed = list[Request | Burst](), 0
        for request in self._flying.requests:
            passed += request.is_ordered
            if (
                request is last
                or passed > executed
                or not (request.is_ordered or passed < executed)
            ):
                again.append(request)
            else:
                _pass(request)
        if executed:
            self._failures, self._busy_since = 0, None
        self._flying.clear()
        self._queued.extendleft(reversed(again))
        self._queued_bytes += sum(request.size for request in again)

    def _resynchronise(self, failures: int) -> None:
        """Ends whatever frame the device thinks that it is in: by silence, and by zeros."""
        self._reader.drain(self._patience.silence_seconds)
        usual = FRAME_BYTES + self._payload_bytes
        self._send(bytes(LONGEST_FRAME if failures == _LONG_ATTEMPT else usual))

    # one request at a time

    def _ask(self, request: Request, retries: int) -> bytes:
        """The answer to an unordered request, sent as often as it must be."""
        failures = 0
        while True:
            answer = self._attempt(request)
            if answer is not None:
                return answer
            failures += 1
            if failures > retries:
                raise LinkError(
                    "NO_ANSWER",
                    f"the device did not answer {request.command.name}, sent {failures} times",
                )
            self._resynchronise(failures)

    def _attempt(self, request: Request, *, take: bool = False) -> bytes | None:
        """Sends an unordered request; None if it is not answered, or not understood.

        ``take``: answers that come before are taken in.
        """
        self.round_trips += not self._flying
        request.sequence, request.asks = self._unordered_sequence(), True
        self._send(request.frame(self._seal))
        deadline = self._deadline()
        while (response := self._reader.next(deadline)) is not None:
            if response.sequence != request.sequence:
                if take and response.status is not Status.BAD_CRC:
                    self._take(response)
                continue
            if response.status is Status.BAD_CRC:
                return None
            if response.seal != self._session_seal(request):
                continue
            if response.status is not Status.OK:
                raise LinkError(response.status.name, f"the device refused {request.command.name}")
            if len(response.payload) == request.answer_bytes:
                self._held = False
                return response.payload
        return None


def _pass(request: Request | Burst) -> None:
    """It has been executed, and its answer did not come."""
    if request.answer_bytes:
        request.lose()
    else:
        request.complete()


def _status_request() -> Request:
    return Request(Command.STATUS, answer_bytes=STATUS_BYTES)
