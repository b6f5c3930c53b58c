"""A device that does nothing but answer, at once, in a process of its own; and a way to it.

What a batch through it takes is the host's own cost: frames, checksums, system calls, Python.
"""

import math
import multiprocessing
import select
import socket
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.queues import SimpleQueue

from slipstick_rtl.config import Configuration
from slipstick_rtl.link.identity import Identity
from slipstick_rtl.link.protocol import (
    CRC_BYTES,
    FLAGS,
    HEADER_BYTES,
    REQUEST_START,
    RESPONSE_START,
    SEQUENCE_NUMBERS,
    SILENT,
    UNORDERED,
    Command,
    DeviceStatus,
    Status,
    pack_status,
)
from slipstick_rtl.phy.ethernet.datagrams import SLOT_BYTES, SLOTS

from ...devices.turns import TURNS
from ...devices.udp_claim import claim
from ...devices.udp_server import LOOPBACK, Packet, open_port, serve
from ...devices.udp_socket import UdpSocket
from ...devices.udp_transport import UdpTransport

_RECEIVE_BYTES = 1 << 18
_HEADER = struct.Struct("<xBBH")
_COUNT = struct.Struct("<H")


class NullDevice:
    """Answers requests as a device that executes them would, with zeros for data.

    It trusts the wire: no checksum of a request is looked at.

    Parameters
    ----------
    configuration : Configuration
    """

    def __init__(self, configuration: Configuration) -> None:
        self._identity = Identity.of(configuration).pack()
        self._received = b""
        self._session = 0
        self._next = 0
        self._counts: dict[int, int] = {}

    def feed(self, data: bytes) -> bytes:
        """Takes bytes of whole or cut frames; returns the answers."""
        received = self._received + data if self._received else data
        answers, start, size = [], 0, len(received)
        while size - start >= HEADER_BYTES:
            if received[start] != REQUEST_START:
                start += 1
                continue
            byte, sequence, length = _HEADER.unpack_from(received, start)
            end = start + HEADER_BYTES + length + CRC_BYTES
            if end > size:
                break
            command = byte & ~FLAGS
            if command not in UNORDERED:
                self._next = (sequence + 1) % SEQUENCE_NUMBERS
            if command == Command.DEFINE:
                self._define(received[start + HEADER_BYTES : end - CRC_BYTES])
            if not byte & SILENT:
                payload = received[start + HEADER_BYTES : min(end, start + HEADER_BYTES + 8)]
                answers.append(self._answer(command, sequence, payload))
            start = end
        self._received = received[start:]
        return b"".join(answers)

    def _define(self, payload: bytes) -> None:
        (self._counts[payload[0]],) = _COUNT.unpack_from(payload, 1)

    def _answer(self, command: int, sequence: int, payload: bytes) -> bytes:
        data = b""
        if command == Command.OPEN:
            self._session = int.from_bytes(payload[:CRC_BYTES], "little")
            self._next = (sequence + 1) % SEQUENCE_NUMBERS
        elif command in (Command.GET, Command.RUN_GET):
            data = bytes(self._counts.get(payload[0] & 0x7F, 0))
        elif command == Command.READ:
            data = bytes(_COUNT.unpack_from(payload, 4)[0])
        elif command == Command.IDENTIFY:
            data = self._identity
        elif command == Command.STATUS:
            data = pack_status(DeviceStatus.idle(), self._next)
        body = struct.pack("<BBH", Status.OK, sequence, len(data)) + data
        seal = 0 if command == Command.IDENTIFY else self._session
        checksum = zlib.crc32(body) ^ seal
        return bytes([RESPONSE_START]) + body + checksum.to_bytes(CRC_BYTES, "little")


class SocketTransport:
    """A connected stream socket as a transport.

    Parameters
    ----------
    connection : socket
        Closed together with the transport.
    """

    buffered_bytes = 0
    takes_turns = True

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._received = bytearray()

    def seconds(self, count: int) -> float:
        """Loopback is as fast as the computer."""
        return 0.0

    def send(self, data: bytes) -> None:
        """Sends all bytes."""
        self._connection.sendall(data)

    def receive(self, count: int, timeout_seconds: float) -> bytes:
        """``count`` bytes, or the fewer that came within the time."""
        TURNS.offer()
        while len(self._received) < count:
            part = self._arrived()
            if part is None:
                waiting = [self._connection]
                ready, _, _ = TURNS.wait(select.select, waiting, [], [], timeout_seconds)
                part = self._connection.recv(_RECEIVE_BYTES) if ready else b""
            if not part:
                break
            self._received += part
        data = bytes(self._received[:count])
        del self._received[:count]
        return data

    def _arrived(self) -> bytes | None:
        """Returns what has come, None if nothing has: with many devices a wait costs a turn."""
        try:
            return self._connection.recv(_RECEIVE_BYTES, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None

    def take_arrived(self) -> bytes:
        """Gives all bytes that have come and were not asked for yet."""
        data = bytes(self._received)
        self._received.clear()
        return data

    def close(self) -> None:
        """Closes the socket."""
        self._connection.close()


@contextmanager
def null_board(
    configuration: Configuration, slots: int = SLOTS, slot_bytes: int = SLOT_BYTES
) -> Iterator[UdpTransport]:
    """A null device in a process of its own, behind the golden model of a board's Ethernet port."""
    context = multiprocessing.get_context("spawn")
    ports = context.SimpleQueue()
    arguments = (ports, configuration, slots, slot_bytes)
    process = context.Process(target=_serve_board, args=arguments, daemon=True)
    process.start()
    port = ports.get()
    name = f"udp:{LOOPBACK}:{port}"
    transport = claim(UdpSocket((LOOPBACK, port), name), name)
    try:
        yield transport
    finally:
        transport.close()
        process.terminate()
        process.join(10)


def _serve_board(
    ports: "SimpleQueue[int]", configuration: Configuration, slots: int, slot_bytes: int
) -> None:
    """Answers for ever."""
    with open_port(0) as connection:
        ports.put(connection.getsockname()[1])
        serve(connection, _NullBoard(configuration, slots, slot_bytes))


class _NullBoard:
    """A ``DatagramBoard``."""

    rest_seconds = math.inf

    def __init__(self, configuration: Configuration, slots: int, slot_bytes: int) -> None:
        from slipstick_sim.golden.ethernet import EthernetPort

        identity, link = Identity.of(configuration), NullDevice(configuration)
        self._port = EthernetPort(link, identity, slots=slots, slot_bytes=slot_bytes)
        self.receive = self._port.receive

    def poll(self, now: float) -> list[Packet]:
        """Nothing comes by itself."""
        return []


@contextmanager
def null_device(configuration: Configuration) -> Iterator[SocketTransport]:
    """A null device in a process of its own, behind a TCP connection of the loopback interface."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        context = multiprocessing.get_context("spawn")
        process = context.Process(target=_serve, args=(port, configuration), daemon=True)
        process.start()
        listener.settimeout(60)
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            yield SocketTransport(connection)
        finally:
            connection.close()
            process.join(10)


def _serve(port: int, configuration: Configuration) -> None:
    """Answers until the other end hangs up."""
    device = NullDevice(configuration)
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while data := connection.recv(_RECEIVE_BYTES):
            if answers := device.feed(data):
                connection.sendall(answers)
