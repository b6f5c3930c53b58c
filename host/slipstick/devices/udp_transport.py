"""A board on Ethernet as a transport: the host's end of the datagrams."""

import errno
import socket
import struct

from slipstick_rtl.phy.ethernet.datagrams import (
    HEADER_BYTES,
    MAGIC,
    VERSION,
    Datagram,
    Kind,
    Presence,
)

from .link.errors import LinkError
from .link.request import FRAME_BYTES
from .turns import TURNS
from .udp_socket import Connection
from .udp_streams import REORDER_SECONDS, Incoming, Outgoing, RoundTrip

BYTES_PER_SECOND = 5_000_000
"""Half of what 100 Mbit/s carry."""

_SEND_SECONDS = 2e-3
"""Longest wait of ``send`` for the board to take something; the rest is left to later calls."""
_LONGEST_PAUSE_SECONDS = 0.05
"""Between two questions to a board that has nothing to say."""
_GIVE_UP_SECONDS = 5.0
_GIVE_UP_POLLS = 20
"""So long, and so many questions, until a silent board is given up."""
_QUIET_SECONDS = 0.02
"""Time without bytes after lost ones until whoever waits for them is told."""
_CANNOT_CUT = (errno.EIO, errno.EINVAL, errno.EMSGSIZE)
"""Linux's errors if a network adapter cannot cut data into datagrams."""
_MOST_AT_ONCE = 256
"""Datagrams taken before the clock is looked at again: strangers may send without end."""

_SEND = struct.Struct("<IHHHH")
_SEND_START = MAGIC | VERSION << 16 | Kind.SEND << 24
"""The magic, the version and the kind as one number."""


class UdpTransport:
    """A board that this host owns, as a transport.

    Lost, repeated and reordered datagrams to the board are mended here. Of those from the board
    lost ones are skipped: the link asks for its answers again.

    Parameters
    ----------
    connection : Connection
        To the board; closed together with the transport.
    name : str
        For messages.
    lease : int
        As granted.
    presence : Presence
        What the board says of itself.
    round_trip_seconds : float
        A first measurement.
    """

    buffered_bytes = 1 << 14
    receive_bytes: int | None = None
    takes_turns = True

    def __init__(
        self,
        connection: Connection,
        name: str,
        lease: int,
        presence: Presence,
        round_trip_seconds: float = 1e-3,
    ) -> None:
        self._connection, self._name, self._lease = connection, name, lease
        self._outgoing = Outgoing(lease, presence.slots, presence.slot_bytes)
        self._incoming = Incoming(presence.identity.payload_bytes + FRAME_BYTES)
        self._round_trip = RoundTrip(round_trip_seconds)
        self._is_cut_for_us = connection.cut_into(HEADER_BYTES + presence.slot_bytes)
        self._error: LinkError | None = None
        self._poll = Datagram(kind=Kind.POLL, lease=lease).pack()
        self._poll_at = self._pause = 0.0
        self._progress_at = 0.0
        self._polls = 0  # that no SEND has answered
        self._polling_since = 0.0

    def seconds(self, count: int) -> float:
        """Returns the time that so many bytes take on the wire, at the slowest."""
        return count / BYTES_PER_SECOND

    def send(self, data: bytes) -> None:
        """Sends what the board has room for, and keeps the rest for when it has.

        Raises
        ------
        LinkError
            SESSION_LOST if another host took the board, or it was reset; DISCONNECTED if it is
            silent for too long.
        """
        self._check()
        outgoing = self._outgoing
        outgoing.waiting += data
        now = self._connection.now()
        if not outgoing.is_flying:
            self._rest(now)
        self._move(now)
        self._progress_at = now
        while outgoing.waiting:
            now = self._connection.now()
            deadline = self._progress_at + _SEND_SECONDS
            if now >= deadline:
                break
            self._wait_until(deadline, now)
            self._move(self._connection.now())

    def receive(self, count: int, timeout_seconds: float) -> bytes:
        """``count`` bytes, or the fewer that came within the time; LinkError as ``send``.

        The time begins anew whenever the board has taken bytes. It ends early if bytes are lost
        that were waited for.
        """
        self._check()
        TURNS.offer()
        received = self._incoming.received
        if len(received) < count:
            now = start = self._connection.now()
            if not self._outgoing.is_flying and now >= self._poll_at:
                self._rest(now)
            self._move(now)
            while len(received) < count:
                now = self._connection.now()
                deadline = max(start, self._progress_at) + timeout_seconds
                if now >= deadline or self._is_lost(now):
                    break
                self._wait_until(deadline, now)
                self._move(self._connection.now())
        data = bytes(received[:count])
        del received[:count]
        return data

    def take_arrived(self) -> bytes:
        """Gives all bytes that have come and were not asked for yet."""
        data = bytes(self._incoming.received)
        self._incoming.received.clear()
        return data

    def close(self) -> None:
        """Gives the board back; bytes that wait are dropped."""
        release = Datagram(kind=Kind.RELEASE, lease=self._lease).pack()
        # twice, as it is not answered
        for _ in range(2):
            self._put(release)
        if self._error is None:
            self._error = LinkError("DISCONNECTED", f"{self._name} is closed: open it anew")
        self._connection.close()

    # time

    def _rest(self, now: float) -> None:
        """The board is asked if it is silent for longer than a round trip."""
        self._pause = self._round_trip.timeout
        self._poll_at = now + self._pause

    def _wait_until(self, deadline: float, now: float) -> None:
        """Waits for a datagram, for the time, or for something else to do; does that."""
        until = min(deadline, self._poll_at)
        if self._incoming.is_waiting:
            until = min(until, now + REORDER_SECONDS)
        if until > now and self._connection.wait(until - now):
            return
        now = self._connection.now()
        self._incoming.give_up(now)
        if now >= self._poll_at:
            self._ask(now)

    def _ask(self, now: float) -> None:
        if not self._polls:
            self._polling_since = now
        elif self._polls >= _GIVE_UP_POLLS and now - self._polling_since >= _GIVE_UP_SECONDS:
            self._fail(
                "DISCONNECTED",
                f"{self._name} is silent for {_GIVE_UP_SECONDS:g} s: check its power and the cable,"
                " and open the device anew",
            )
        self._polls += 1
        self._put(self._poll)
        longest = max(_LONGEST_PAUSE_SECONDS, self._round_trip.timeout)
        self._pause = min(2 * self._pause, longest)
        self._poll_at = now + self._pause

    def _is_lost(self, now: float) -> bool:
        """Tells whether bytes are lost that are waited for; it says so once."""
        incoming = self._incoming
        if incoming.lost_at is None or now - incoming.lost_at < _QUIET_SECONDS:
            return False
        incoming.lost_at = None
        return True

    # datagrams

    def _move(self, now: float) -> None:
        """Takes all datagrams that have come, and sends those that may be sent."""
        receive = self._connection.receive
        for _ in range(_MOST_AT_ONCE):
            try:
                datagram = receive()
            except BlockingIOError:
                break
            except OSError:
                # what the network says of a datagram sent earlier; it may be mended
                continue
            self._take(datagram, now)
        if self._progress_at == now:
            self._rest(now)
        if self._outgoing.waiting:
            self._put_all(self._outgoing.cut(now))

    def _take(self, datagram: bytes, now: float) -> None:
        if len(datagram) < _SEND.size:
            return
        start, number, lease, first, waiting = _SEND.unpack_from(datagram)
        if lease != self._lease:
            return
        if start != _SEND_START:
            self._take_other(datagram)
            return
        outgoing = self._outgoing
        seconds = outgoing.arrive(first, waiting, now)
        if seconds is not None:
            # measured once per look at the clock
            if seconds and now != self._progress_at:
                self._round_trip.measure(seconds)
            self._progress_at = now
        if self._polls:
            self._polls = 0
            again = outgoing.missing(self._round_trip.timeout, now)
            if again:
                self._round_trip.back_off()
                self._rest(now)
        else:
            again = outgoing.holes(now) if waiting else ()
        for each in again:
            self._put(each)
        incoming = self._incoming
        if len(datagram) > _SEND.size or number != incoming.next:
            incoming.take(number, datagram[_SEND.size :], now)

    def _take_other(self, datagram: bytes) -> None:
        try:
            decoded = Datagram.unpack(datagram)
            if decoded.kind is not Kind.REFUSED:
                return
            presence = Presence.unpack(decoded.body)
        except ValueError:
            return
        owner = owner_of(presence)
        reason = f"{owner} took it" if owner else "it was reset, or another host used it"
        self._fail(
            "SESSION_LOST",
            f"{self._name} does not listen to this host any more, {reason}: open it anew and load"
            " the program again",
        )

    def _put(self, datagram: bytes) -> None:
        try:
            self._connection.send(datagram)
        except OSError:
            # without a network it is lost, as on a network that loses it
            return

    def _put_all(self, datagrams: list[bytes]) -> None:
        """Sends new datagrams: all but the last are as long as they may be."""
        if self._is_cut_for_us and len(datagrams) > 1:
            try:
                self._connection.send(b"".join(datagrams))
                return
            except OSError as error:
                if error.errno not in _CANNOT_CUT:
                    return
                self._is_cut_for_us = False
        for datagram in datagrams:
            self._put(datagram)

    # errors

    def _check(self) -> None:
        if self._error is not None:
            raise LinkError(self._error.code, self._error.detail)

    def _fail(self, code: str, message: str) -> None:
        self._error = LinkError(code, message)
        raise self._error


def owner_of(presence: Presence) -> str:
    """Address and port of the host that has a board; empty if none has."""
    if not presence.owned:
        return ""
    return f"{socket.inet_ntoa(presence.owner_address)}:{presence.owner_port}"
