"""The device's end of SPI transfers: what the gateware does with each, byte for byte."""

from collections.abc import Callable

from slipstick_rtl.phy.spi_protocol import (
    FILLER,
    FIRST_SLOT,
    HOST_HEADER_BYTES,
    POSITIONS,
    DeviceHeader,
    HostHeader,
    Trailer,
)


class SpiPeripheral:
    """Two streams through transfers. What is received waits in ``received`` to be taken away.

    Parameters
    ----------
    receive_depth : int
        Received bytes that wait at most.
    replay_bits : int
        2^replay_bits bytes to be sent wait or are kept at most.
    source : callable, optional
        Has bytes to be sent, up to a number, for room that a header makes.

    Members
    -------
    received : bytearray
        From the host, in order.
    """

    def __init__(
        self,
        receive_depth: int,
        replay_bits: int,
        source: Callable[[int], bytes] = lambda room: b"",
    ) -> None:
        self.received = bytearray()
        self._receive_depth = receive_depth
        self._replay_bits = replay_bits
        self._source = source
        self._taken = 0
        self._released = 0
        self._sent = 0
        self._kept = bytearray()  # from ``released`` on

    @property
    def room(self) -> int:
        """Bytes that can be given to be sent."""
        return (1 << self._replay_bits) - len(self._kept)

    @property
    def positions(self) -> tuple[int, int]:
        """Returns what the next header must say: the numbers of bytes taken and given so far."""
        return self._taken, self._sent

    def send(self, data: bytes) -> int:
        """Leaves bytes to be sent, as many as there is room for; returns their number."""
        count = min(len(data), self.room)
        self._kept += data[:count]
        return count

    def transfer(self, sent: bytes) -> bytes:
        """One transfer of whole bytes, whatever they are; returns those that come back."""
        answer = bytearray(self._header().pack().ljust(FIRST_SLOT, bytes([FILLER])))
        header = HostHeader.unpack(sent[:HOST_HEADER_BYTES])
        if header is None or not self._follows(header):
            return bytes(answer[: len(sent)].ljust(len(sent), bytes([FILLER])))
        self._release(header.received)
        # each byte begins to come back while the one before it is sent
        begun = min(header.slots, max(0, len(sent) + 1 - FIRST_SLOT))
        given = bytes(self._kept[:begun])
        self._sent = self._number(len(given))
        answer += given.ljust(begun, bytes([FILLER]))
        self._take(sent[FIRST_SLOT:][: header.count])
        if len(sent) >= FIRST_SLOT + header.slots:
            answer += Trailer(self._sent, self._taken, self._number(len(self._kept))).pack()
        return bytes(answer[: len(sent)].ljust(len(sent), bytes([FILLER])))

    def _header(self) -> DeviceHeader:
        written = self._number(len(self._kept))
        return DeviceHeader(self._replay_bits, self._taken, self._released, written)

    def _number(self, ahead: int) -> int:
        return (self._released + ahead) % POSITIONS

    def _follows(self, header: HostHeader) -> bool:
        ahead = (header.received - self._released) % POSITIONS
        held = (self._sent - self._released) % POSITIONS
        return header.position == self._taken and ahead <= held and header.count <= header.slots

    def _release(self, position: int) -> None:
        del self._kept[: (position - self._released) % POSITIONS]
        self._released = self._sent = position
        self.send(self._source(self.room))

    def _take(self, data: bytes) -> None:
        count = min(len(data), self._receive_depth - len(self.received))
        self.received += data[:count]
        self._taken = (self._taken + count) % POSITIONS
