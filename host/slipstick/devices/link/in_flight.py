"""Keeps count of the requests that a device has not answered yet."""

from collections import deque

from slipstick_rtl.link.protocol import SEQUENCE_NUMBERS

from .burst import Burst
from .patience import ANSWER_WINDOW_BYTES, Patience
from .request import FRAME_BYTES, Request
from .stalls import Stalls

MOST_IN_FLIGHT = 96
_SILENT_IN_A_ROW = 24
"""Then one is answered, so that the host learns how far the device is."""
UNORDERED_NUMBERS = SEQUENCE_NUMBERS - 2 * MOST_IN_FLIGHT
"""Numbers of unordered requests: far enough from those of the others that none is both."""


class InFlight:
    """Requests that were sent, in their order, and how much may be sent besides.

    Parameters
    ----------
    patience : Patience
    stalls : Stalls

    Members
    -------
    requests : deque of Request or Burst
    count : int
        How many they are, each request of a burst counted.
    bytes, answer_bytes : int
        Of their frames, and of the answers that are to come.
    asking, waiting : int
        How many are answered, and how many wait for the end of a run; a burst counts as one.
    """

    def __init__(self, patience: Patience, stalls: Stalls) -> None:
        self._patience, self._stalls = patience, stalls
        self.requests: deque[Request | Burst] = deque()
        self._by_sequence: dict[int, Request | Burst] = {}
        """A burst has the number of its last request."""
        self.clear()

    def __len__(self) -> int:
        return len(self.requests)

    def clear(self) -> None:
        """Nothing is in flight."""
        self.requests.clear()
        self._by_sequence.clear()
        self.count = self.bytes = self.answer_bytes = self.asking = self.waiting = 0
        self._silent_bytes = self._silent_count = 0
        self._stalls.clear()

    @property
    def is_plenty(self) -> bool:
        """Tells whether the device has enough to do until more is sent after an answer."""
        if not self.asking:
            return False
        most = self._patience.window_bytes * 3 // 4
        return self.bytes > most or self.count > MOST_IN_FLIGHT // 2

    def find(self, sequence: int) -> Request | Burst | None:
        """The request of a number, or the burst that it is of, if it is in flight."""
        found = self._by_sequence.get(sequence)
        if found is not None:
            return found
        bursts = (each for each in self.requests if isinstance(each, Burst))
        return next((burst for burst in bursts if burst.has(sequence)), None)

    def spread(self) -> None:
        """Puts the requests of each burst in its place."""
        if not any(isinstance(each, Burst) for each in self.requests):
            return
        requests = list[Request]()
        for each in self.requests:
            requests += each.spread() if isinstance(each, Burst) else [each]
        self.requests.clear()
        self.requests.extend(requests)
        self._by_sequence = {request.sequence: request for request in requests}
        self.waiting = sum(request.waits for request in requests)

    def may_send(self, request: Request | Burst) -> bool:
        """Tells whether the windows have room for one more."""
        if not self.requests:
            return True
        if self.count + request.count > MOST_IN_FLIGHT:
            return False
        unordered = 0 if request.is_ordered else sum(not each.is_ordered for each in self.requests)
        if unordered >= UNORDERED_NUMBERS - 1:  # one number is kept for recovery
            return False
        if self.bytes + request.size > self._patience.window_bytes:
            return False
        answers = self.answer_bytes + request.answer_bytes + FRAME_BYTES
        if request.answer_bytes and self.asking and answers > ANSWER_WINDOW_BYTES:
            return False
        return self._stalls.has_room(self.bytes, request.size)

    def add(self, request: Request | Burst) -> None:
        """Notes that a request, which has its number, is sent, and whether it is to be answered."""
        size, count = request.size, request.count
        self._silent_bytes += size
        self._silent_count += count
        stalls = self._stalls.launch(request, alone=not self.requests, sent=self.bytes + size)
        request.asks = (
            not request.silent
            or stalls
            or self._silent_bytes >= self._patience.window_bytes // 2
            or self._silent_count >= _SILENT_IN_A_ROW
        )
        if request.asks:
            self._silent_bytes = self._silent_count = 0
            self.asking += 1
            self.answer_bytes += request.answer_bytes + FRAME_BYTES
        self.waiting += request.waits
        self.requests.append(request)
        self._by_sequence[request.last_sequence] = request
        self.bytes += size
        self.count += count

    def remove_first(self) -> Request | Burst:
        """The first one is done."""
        request = self.requests.popleft()
        del self._by_sequence[request.last_sequence]
        self.bytes -= request.size
        self.count -= request.count
        self.waiting -= request.waits
        if request.asks:
            self.asking -= 1
            self.answer_bytes -= request.answer_bytes + FRAME_BYTES
        self._stalls.remove(request)
        return request
