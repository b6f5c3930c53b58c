"""The two byte streams of a board on Ethernet: numbered datagrams, some of which are lost."""

from collections import deque

from slipstick_rtl.phy.ethernet.datagrams import HEADER, MAGIC, NUMBERS, VERSION, Kind

_LAST = NUMBERS - 1
_BEHIND = NUMBERS // 2
"""A number that is so far ahead is behind."""

REORDER_SECONDS = 4e-3
"""Time for which a missing datagram from the board may still come."""
_MOST_EARLY = 64
_EVIDENCE = 2
"""Datagrams of the board that must tell of a hole before the missing ones are sent again."""


class RoundTrip:
    """Estimates the time of a datagram and its answer, smoothed as in RFC 6298.

    Parameters
    ----------
    seconds : float
        The first measurement.

    Members
    -------
    timeout : float
        In seconds: when an answer is late.
    """

    LEAST, MOST = 2e-3, 0.1
    MOST_BACKED_OFF = 0.5

    def __init__(self, seconds: float) -> None:
        self._mean, self._deviation = seconds, seconds / 2
        self._set_timeout()

    def measure(self, seconds: float) -> None:
        """Takes in another measurement."""
        difference = seconds - self._mean
        self._mean += difference / 8
        self._deviation += (abs(difference) - self._deviation) / 4
        self._set_timeout()

    def back_off(self) -> None:
        """Something was late: until the next measurement, all may be later than was thought."""
        self.timeout = min(2 * self.timeout, self.MOST_BACKED_OFF)

    def _set_timeout(self) -> None:
        self.timeout = min(max(self._mean + 4 * self._deviation, self.LEAST), self.MOST)


class Outgoing:
    """Bytes on their way to the board: each datagram is kept until its bytes have gone on there.

    Parameters
    ----------
    lease : int
    slots, slot_bytes : int
        The board's.

    Members
    -------
    waiting : bytearray
        Bytes that no datagram has yet.
    """

    def __init__(self, lease: int, slots: int, slot_bytes: int) -> None:
        self.waiting = bytearray()
        self._lease, self._slots, self._slot_bytes = lease, slots, slot_bytes
        self._next = 0  # the number of the next new datagram
        self._flying: deque[bytes] = deque()
        self._sent_at: deque[float] = deque()
        # bit i: the datagram at place i of those that fly is in its slot; was sent again
        self._arrived = self._resent = 0
        self._evidence = 0

    @property
    def is_flying(self) -> bool:
        """Tells whether the board has not yet told of all datagrams that they have gone on."""
        return bool(self._flying)

    def cut(self, now: float) -> list[bytes]:
        """Returns the new datagrams for which the board has slots."""
        waiting, size = self.waiting, self._slot_bytes
        datagrams = []
        for _ in range(self._slots - len(self._flying)):
            if not waiting:
                break
            head = HEADER.pack(MAGIC, VERSION, Kind.DATA, self._next, self._lease)
            datagrams.append(head + waiting[:size])
            del waiting[:size]
            self._next = (self._next + 1) & _LAST
            self._sent_at.append(now)
        self._flying += datagrams
        return datagrams

    def arrive(self, first: int, waiting: int, now: float) -> float | None:
        """Takes in what the board says has arrived.

        Parameters
        ----------
        first, waiting : int
            As of ``Arrived``.
        now : float

        Returns
        -------
        float or None
            Seconds since the last of the datagrams was sent that have gone on since; 0 if it was
            sent more than once; None if none has gone on.
        """
        flying, sent_at = self._flying, self._sent_at
        gone = len(flying) - ((self._next - first) & _LAST)
        if not 0 <= gone <= len(flying):
            # of an earlier time
            return None
        seconds = None
        if gone:
            self._arrived >>= gone
            self._evidence = 0
            seconds = 0.0
            for _ in range(gone):
                flying.popleft()
                seconds = now - sent_at.popleft()
            if self._resent:
                if self._resent >> gone - 1 & 1:
                    seconds = 0.0
                self._resent >>= gone
        if waiting:
            self._arrived |= waiting & ((1 << len(flying)) - 1)
        return seconds

    def holes(self, now: float) -> list[bytes]:
        """Returns datagrams before one that has arrived, if that was told of often enough."""
        if not self._arrived:
            return []
        last = self._arrived.bit_length() - 1
        if self._arrived == (2 << last) - 1:
            return []
        self._evidence += 1
        if self._evidence < _EVIDENCE:
            return []
        # once: after that it is time that tells
        return self._again([k for k in range(last) if not self._resent >> k & 1], now)

    def missing(self, late: float, now: float) -> list[bytes]:
        """Returns all datagrams that have not arrived, as far as is known, in ``late`` seconds."""
        places = range(len(self._flying))
        return self._again([k for k in places if now - self._sent_at[k] >= late], now)

    def _again(self, places: list[int], now: float) -> list[bytes]:
        again = [k for k in places if not self._arrived >> k & 1]
        for k in again:
            self._sent_at[k] = now
            self._resent |= 1 << k
        self._evidence = 0
        return [self._flying[k] for k in again]


class Incoming:
    """Bytes from the board, in the order of their datagrams; what comes twice counts once.

    Parameters
    ----------
    frame_bytes : int
        Longest frame of the link: whoever reads one that lacks bytes waits for no more than that.

    Members
    -------
    next : int
        The number of the next datagram with bytes.
    received : bytearray
        Bytes to take from the front.
    lost_at : float or None
        When the last bytes came, or were given up, if a reader may be waiting for bytes that are
        lost.
    """

    def __init__(self, frame_bytes: int) -> None:
        self.received = bytearray()
        self.lost_at: float | None = None
        self._frame_bytes = frame_bytes
        self._since_lost = 0
        self.next = 0
        self._early: dict[int, bytes] = {}
        self._early_since = 0.0

    @property
    def is_waiting(self) -> bool:
        """Tells whether a datagram is missing that may still come."""
        return bool(self._early)

    def take(self, number: int, data: bytes, now: float) -> None:
        """Takes in a datagram; one without bytes has the number of the next one with bytes."""
        ahead = (number - self.next) & _LAST
        if not ahead:
            if data:
                self._append(data, now)
                if self._early:
                    self._early.pop(number, None)
                    self._close_up(now)
        elif ahead < _BEHIND:
            if not self._early:
                self._early_since = now
            if data or number not in self._early:
                self._early[number] = data
            if len(self._early) > _MOST_EARLY:
                self._skip(now)

    def give_up(self, now: float) -> None:
        """Goes on behind a datagram that is missing for too long."""
        if self._early and now - self._early_since >= REORDER_SECONDS:
            self._skip(now)

    def _skip(self, now: float) -> None:
        self.next = min(self._early, key=lambda number: (number - self.next) & _LAST)
        self.lost_at, self._since_lost = now, 0
        self._close_up(now)

    def _close_up(self, now: float) -> None:
        """Takes those that came early, up to the next that is missing."""
        while data := self._early.pop(self.next, b""):
            self._append(data, now)
        self._early_since = now

    def _append(self, data: bytes, now: float) -> None:
        self.received += data
        self.next = (self.next + 1) & _LAST
        if self.lost_at is not None:
            self._since_lost += len(data)
            self.lost_at = now if self._since_lost < self._frame_bytes else None
