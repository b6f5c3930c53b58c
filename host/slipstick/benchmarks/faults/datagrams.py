"""An Ethernet that fails, between hosts and a board: in real time, or in imagined time."""

import heapq
import itertools
import math
import random
import socket
import struct
from collections import Counter, deque
from collections.abc import Callable, Mapping
from enum import StrEnum

from slipstick_rtl.config import Configuration
from slipstick_rtl.link.identity import Identity
from slipstick_rtl.phy.ethernet.datagrams import (
    ARRIVED_BYTES,
    HEADER_BYTES,
    LEASE_SECONDS,
    SLOT_BYTES,
    SLOTS,
    Datagram,
    Kind,
)

from ...devices.udp_server import DatagramBoard, Packet
from .boards import ModelBoard

WAY_SECONDS = 50e-6
"""Time from one end to the other."""
_PORTS = range(50_000, 60_000)
_INTRUDER = (socket.inet_aton("10.0.0.66"), 6666)
_HOST = socket.inet_aton("10.0.0.5")
_KIND = struct.Struct("<xxxB")
_LINK_BYTES_AT = {Kind.DATA: HEADER_BYTES, Kind.SEND: HEADER_BYTES + ARRIVED_BYTES}


class NetworkFault(StrEnum):
    """Faults of a datagram, and of the board."""

    LOSS = "datagram lost"
    REPEAT = "datagram repeated"
    LATE = "datagram late"
    """So that others overtake it."""
    DAMAGE = "bytes of the link damaged"
    """As between the board's Ethernet and its core: UDP's checksum finds all other damage."""
    OUTAGE = "cable out"
    """For a while every datagram is lost."""
    RESTART = "board restarted"
    """It has lost its memories, and knows of no owner."""
    TAKEN = "board taken by another host"


class GoldenBoard:
    """The golden model behind the golden port: what a board does with datagrams.

    Parameters
    ----------
    configuration : Configuration
    slots, slot_bytes : int
    lease_seconds : float
    """

    rest_seconds = math.inf

    def __init__(
        self,
        configuration: Configuration,
        *,
        slots: int = SLOTS,
        slot_bytes: int = SLOT_BYTES,
        lease_seconds: float = LEASE_SECONDS,
    ) -> None:
        from slipstick_sim.golden.ethernet import EthernetPort

        self._core = ModelBoard(configuration)
        self._fed_at = 0.0
        self._port = EthernetPort(
            self,
            Identity.of(configuration),
            slots=slots,
            slot_bytes=slot_bytes,
            lease_seconds=lease_seconds,
        )

    def feed(self, data: bytes) -> bytes:
        """Bytes to the link; those that it answers."""
        self._core.send(data)
        return self._core.receive(1 << 30, 0.0)

    def receive(self, address: bytes, port: int, payload: bytes, now: float) -> list[Packet]:
        """As of ``DatagramBoard``."""
        # silence makes the link forget half a frame
        self._core.idle(now - self._fed_at)
        self._fed_at = now
        return self._port.receive(address, port, payload, now)

    def poll(self, now: float) -> list[Packet]:
        """As of ``DatagramBoard``."""
        return self._port.poll(now)


class FaultyNetwork:
    """A board at the far end of a network with faults.

    Parameters
    ----------
    make_board : callable
        Returns the board as after configuration.
    seed : int
    rates : mapping of float by NetworkFault
        How probable each fault is for a datagram; change ``rates`` at any time.
    late_seconds, outage_seconds : float
        The longest that a datagram is late, and that the cable is out.
    intruder : callable
        The bytes of the link that another host sends, from a seed.

    Members
    -------
    counts : Counter of NetworkFault
        Faults so far.
    datagrams : int
        So far, both ways.
    """

    def __init__(
        self,
        make_board: Callable[[], DatagramBoard],
        seed: int,
        rates: Mapping[NetworkFault, float] | None = None,
        *,
        late_seconds: float = 5e-3,
        outage_seconds: float = 2.0,
        intruder: Callable[[int], bytes] = lambda seed: b"",
    ) -> None:
        self.rates = dict(rates or {})
        self.counts: Counter[NetworkFault] = Counter()
        self.datagrams = 0
        self._make_board = make_board
        self._board = make_board()
        self._random = random.Random(seed)
        self._late_seconds, self._outage_seconds = late_seconds, outage_seconds
        self._intruder = intruder
        self._calm = False
        self._out_until = -math.inf
        self._on_the_way: list[tuple[float, int, bool, Packet]] = []
        self._order = itertools.count()
        self._now = 0.0

    @property
    def due(self) -> float:
        """Returns the time at which the next datagram arrives at either end."""
        return self._on_the_way[0][0] if self._on_the_way else math.inf

    @property
    def rest_seconds(self) -> float:
        """As of ``DatagramBoard``."""
        return max(0.0, min(self.due - self._now, self._board.rest_seconds))

    def calm(self, calm: bool = True) -> None:
        """No more faults, or faults again; what is late still comes."""
        self._calm = calm
        if calm:
            self._out_until = -math.inf

    def restart(self) -> None:
        """The board as after configuration."""
        self._board = self._make_board()

    def pull(self, seconds: float) -> None:
        """The cable is out for so long."""
        self._out_until = self._now + seconds

    def receive(self, address: bytes, port: int, payload: bytes, now: float) -> list[Packet]:
        """Takes a datagram of a host; returns those that arrive at hosts by now."""
        self._now = now
        if self._draws(NetworkFault.OUTAGE):
            self.pull(self._outage_seconds * self._random.random())
        if self._draws(NetworkFault.RESTART):
            self.restart()
        if self._draws(NetworkFault.TAKEN):
            self._intrude(now)
        self._pass((address, port, payload), is_up=True)
        return self.poll(now)

    def poll(self, now: float) -> list[Packet]:
        """Returns the datagrams that arrive at hosts by now."""
        self._now = now
        arrived = []
        for answer in self._board.poll(now):
            self._pass(answer, is_up=False)
        while self.due <= now:
            _, _, is_up, packet = heapq.heappop(self._on_the_way)
            if not is_up:
                arrived.append(packet)
                continue
            for answer in self._board.receive(*packet, now):
                self._pass(answer, is_up=False)
        return arrived

    def _draws(self, fault: NetworkFault) -> bool:
        if self._calm or self._random.random() >= self.rates.get(fault, 0.0):
            return False
        self.counts[fault] += 1
        return True

    def _pass(self, packet: Packet, *, is_up: bool) -> None:
        """Puts a datagram on its way, unless it is lost."""
        self.datagrams += 1
        if self._now < self._out_until or packet[:2] == _INTRUDER or self._draws(NetworkFault.LOSS):
            return
        if self._draws(NetworkFault.DAMAGE):
            packet = (*packet[:2], self._damage(packet[2]))
        for _ in range(1 + self._draws(NetworkFault.REPEAT)):
            delay = WAY_SECONDS
            if self._draws(NetworkFault.LATE):
                delay += self._late_seconds * self._random.random()
            entry = (self._now + delay, next(self._order), is_up, packet)
            heapq.heappush(self._on_the_way, entry)

    def _damage(self, payload: bytes) -> bytes:
        """Another bit in the bytes of the link, if there are any."""
        (kind,) = _KIND.unpack_from(payload)
        first = _LINK_BYTES_AT.get(kind, len(payload))
        if first >= len(payload):
            return payload
        at = self._random.randrange(first, len(payload))
        bit = 1 << self._random.randrange(8)
        return payload[:at] + bytes([payload[at] ^ bit]) + payload[at + 1 :]

    def _intrude(self, now: float) -> None:
        """Another host takes the board, uses it, and perhaps gives it back."""
        lease = self._random.randrange(1 << 16)
        kinds = [Datagram(kind=Kind.TAKE, lease=lease)]
        data = self._intruder(self._random.getrandbits(30))[:SLOT_BYTES]
        if data:
            kinds.append(Datagram(kind=Kind.DATA, lease=lease, body=data))
        if self._random.random() < 0.5:
            kinds.append(Datagram(kind=Kind.RELEASE, lease=lease))
        for datagram in kinds:
            self._board.receive(*_INTRUDER, datagram.pack(), now)


class ImaginedNetwork:
    """Hosts on a faulty network in a time that only goes on while one of them waits.

    Parameters
    ----------
    network : FaultyNetwork

    Members
    -------
    time : float
        In seconds.
    """

    def __init__(self, network: FaultyNetwork) -> None:
        self.time = 1.0
        self.network = network
        self._ports = itertools.cycle(_PORTS)
        self._inboxes: dict[int, deque[bytes]] = {}

    def connect(self) -> "ImaginedSocket":
        """Returns a new connection to the board, from a port of its own."""
        port = next(self._ports)
        self._inboxes[port] = deque()
        return ImaginedSocket(self, port)

    def disconnect(self, port: int) -> None:
        """Closes a port: all that comes to it from now on is lost."""
        self._inboxes.pop(port, None)

    def inbox(self, port: int) -> deque[bytes]:
        """Returns the datagrams that have come to a port."""
        return self._inboxes.get(port, deque())

    def send(self, port: int, datagram: bytes) -> None:
        """A datagram from a port to the board."""
        self._deliver(self.network.receive(_HOST, port, datagram, self.time))

    def pass_time(self, seconds: float, port: int | None = None) -> bool:
        """Lets time pass, or until something comes to a port; returns whether it did."""
        end = self.time + seconds
        while True:
            if port is not None and self.inbox(port):
                return True
            if self.time >= end:
                return False
            self.time = max(self.time, min(end, self.network.due))
            self._deliver(self.network.poll(self.time))

    def _deliver(self, packets: list[Packet]) -> None:
        for _, port, payload in packets:
            self.inbox(port).append(payload)


class ImaginedSocket:
    """A host's ``Connection`` on an imagined network.

    Parameters
    ----------
    imagined : ImaginedNetwork
    port : int
    """

    def __init__(self, imagined: ImaginedNetwork, port: int) -> None:
        self._imagined, self._port = imagined, port

    def send(self, datagram: bytes, /) -> None:
        """As of ``Connection``."""
        self._imagined.send(self._port, datagram)

    def receive(self) -> bytes:
        """As of ``Connection``."""
        inbox = self._imagined.inbox(self._port)
        if not inbox:
            raise BlockingIOError
        return inbox.popleft()

    def wait(self, seconds: float, /) -> bool:
        """As of ``Connection``: at once."""
        return self._imagined.pass_time(max(0.0, seconds), self._port)

    def now(self) -> float:
        """As of ``Connection``."""
        return self._imagined.time

    def cut_into(self, size: int) -> bool:
        """As of ``Connection``: it cannot."""
        return False

    def close(self) -> None:
        """As of ``Connection``."""
        self._imagined.disconnect(self._port)
