"""A modelled wire in front of the compiled core: bytes, and the clock cycles that they take."""

from collections import deque
from typing import TYPE_CHECKING

from ...devices.wire_models import WireModel

if TYPE_CHECKING:
    from slipstick_sim.verilated.device import CompiledCore


_LOOK_CYCLES = 100
"""So often the board is asked what it has taken."""
_PACED_CYCLES = 1.04
"""Per byte, of packets that the board cannot hold back."""


class WireTransport:
    """The host's end of a wire, in the time of the simulated clock.

    Time passes only while the host waits for bytes: what the host itself does takes no time.

    Parameters
    ----------
    core : CompiledCore
        Of a library that ``paced_library`` built; closed together with the transport.
    wire : WireModel
    clock_hz : float
        Of the core.

    Members
    -------
    bytes_up, bytes_down : int
        Bytes sent and received since the opening.
    """

    def __init__(self, core: "CompiledCore", wire: WireModel, clock_hz: float) -> None:
        self._core, self._wire, self._clock_hz = core, wire, clock_hz
        self._byte_cycles = clock_hz / wire.bytes_per_second
        self._up_free = self._down_free = 0.0
        self._packet = bytearray()
        self._packet_cycle = 0
        self._queued = bytearray()
        """Bytes that the board has no room for yet; they leave in full packets."""
        self._unacknowledged: deque[int] = deque()
        """Packets on their way: how many bytes the board has taken when it has taken each."""
        self._acknowledged: deque[float] = deque()
        """The cycles in which the host hears of packets that were taken."""
        self._sent = 0
        self._arriving: deque[tuple[float, bytes]] = deque()
        self._arrived = bytearray()
        self.bytes_up = self.bytes_down = 0
        # packets are queued on the board, and then take their time as a whole
        answer_cycles = 1.0 if wire.packet_bytes else max(1.0, self._byte_cycles)
        core.set_wire(wire.queue_bytes, holds_back=wire.holds_back, byte_cycles=answer_cycles)

    @property
    def cycles(self) -> int:
        """The time, in clock cycles of the core."""
        return self._core.cycles

    @property
    def bytes_per_second(self) -> float:
        """Returns the raw rate of the wire."""
        return self._wire.bytes_per_second

    @property
    def buffered_bytes(self) -> int:
        """Returns the bytes that may lie between ``send`` and the wire: none besides the window."""
        return 0

    @property
    def lost(self) -> int:
        """Bytes that came faster than the core took them."""
        return self._core.lost

    def now(self) -> float:
        """Seconds of the simulated clock."""
        return self._core.cycles / self._clock_hz

    def seconds(self, count: int) -> float:
        """Returns the time that so many bytes take on the wire."""
        return self._wire.seconds(count)

    def send(self, data: bytes) -> None:
        """Puts bytes on the wire, behind those that are on it."""
        self.bytes_up += len(data)
        self._queued += data
        self._launch()

    def _has_slot(self) -> bool:
        """Tells whether the host may take it that the board has room for a packet."""
        on_the_way = len(self._unacknowledged) + len(self._acknowledged)
        return not self._wire.slots or on_the_way < self._wire.slots

    def _launch(self) -> None:
        """Packets go, as many as the window allows."""
        wire = self._wire
        while self._queued and self._has_slot():
            size = wire.packet_bytes or len(self._queued)
            part = bytes(self._queued[:size])
            del self._queued[:size]
            if wire.slots:
                self._sent += len(part)
                self._unacknowledged.append(self._sent)
            start = max(float(self._core.cycles), self._up_free)
            if wire.is_shared:
                start = max(start, self._down_free)
            end = start + (len(part) + wire.overhead_bytes) * self._byte_cycles
            self._up_free = end + wire.pause_seconds * self._clock_hz
            if wire.packet_bytes and not wire.holds_back:
                # the host paces itself: the link takes a little less than a byte per cycle
                self._up_free = max(self._up_free, start + _PACED_CYCLES * len(part))
            if wire.packet_bytes:
                # whole packets are handed on, as fast as the core takes them
                self._core.plan(part, round(end), 1.0)
            else:
                self._core.plan(part, round(start + self._byte_cycles), self._byte_cycles)

    def receive(self, count: int, timeout_seconds: float) -> bytes:
        """``count`` bytes, or the fewer that came within the time."""
        deadline = self._core.cycles + max(1, round(timeout_seconds * self._clock_hz))
        while True:
            now = self._core.cycles
            while self._arriving and self._arriving[0][0] <= now:
                self._arrived += self._arriving.popleft()[1]
            if len(self._arrived) >= count or now >= deadline:
                break
            self._advance(deadline)
        taken = bytes(self._arrived[:count])
        del self._arrived[:count]
        self.bytes_down += len(taken)
        return taken

    def close(self) -> None:
        """Frees the core."""
        self._core.close()

    def _advance(self, deadline: int) -> None:
        """Lets time pass until something may have happened."""
        until = deadline
        if self._arriving:
            until = min(until, -int(-self._arriving[0][0] // 1))
        flush = self._packet_cycle + round(self._wire.flush_seconds * self._clock_hz) + 1
        if self._packet:
            until = min(until, flush)
        if self._unacknowledged or self._acknowledged:
            until = min(until, self._core.cycles + _LOOK_CYCLES)
        data, stamps = self._core.run_until(until)
        self._hear()
        for byte, stamp in zip(data, stamps.tolist(), strict=True):
            self._collect(byte, stamp)
        if self._packet and self._core.cycles >= flush and not data:
            self._leave()

    def _hear(self) -> None:
        """Acknowledgements leave as packets are taken, and let others go as they arrive."""
        wire, now = self._wire, self._core.cycles
        while self._unacknowledged and self._unacknowledged[0] <= self._core.taken:
            self._unacknowledged.popleft()
            arrival = now + wire.overhead_bytes * self._byte_cycles + self._reply_cycles
            self._acknowledged.append(arrival)
        while self._acknowledged and self._acknowledged[0] <= now:
            self._acknowledged.popleft()
        self._launch()

    def _collect(self, byte: int, stamp: int) -> None:
        if not self._wire.packet_bytes:
            self._arriving.append((stamp + self._reply_cycles, bytes([byte])))
            return
        self._packet.append(byte)
        self._packet_cycle = stamp
        if len(self._packet) >= self._wire.packet_bytes:
            self._leave()

    def _leave(self) -> None:
        """A packet goes to the host."""
        wire = self._wire
        start = max(float(self._core.cycles), self._down_free)
        if wire.is_shared:
            start = max(start, self._up_free)
        end = start + (len(self._packet) + wire.overhead_bytes) * self._byte_cycles
        self._down_free = end + wire.pause_seconds * self._clock_hz
        self._arriving.append((end + self._reply_cycles, bytes(self._packet)))
        self._packet.clear()

    @property
    def _reply_cycles(self) -> float:
        return self._wire.reply_seconds * self._clock_hz
