"""A host of full speed: frames, transactions and control transfers, on the levels of the wires."""

import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cocotb.utils import get_sim_time

from ...golden.usb_line import FRAME_BITS, SE0, LineError, Packet, Pid
from .usb_bus import Spoil, Wires, cut, flip_bits

ATTEMPTS = 3
"""Errors in a row that a host takes (USB 2.0, 8.6.2)."""

TOGGLE = (Pid.DATA0, Pid.DATA1)


class HostError(Exception):
    """The device did not do what a host needs; the message says in what."""


@dataclass
class Faults:
    """Packets that are spoilt on their way.

    A spoilt packet of the host has wrong levels, or ends too early. The device's packets are not
    touched on the wires: the host only does not hear them.

    Parameters
    ----------
    rates : mapping
        How often, by the kind of packet: "token", "data" and "handshake" of the host, "response" of
        the device.
    generator : random.Random
    happened : int
        How many it were so far.
    """

    rates: Mapping[str, float] = field(default_factory=dict)
    generator: random.Random = field(default_factory=lambda: random.Random(1))
    happened: int = 0

    def strike(self, kind: str) -> bool:
        """Decides whether this packet is spoilt, and counts it if so."""
        struck = self.generator.random() < self.rates.get(kind, 0.0)
        self.happened += struck
        return struck

    def spoil(self, kind: str) -> Spoil | None:
        """Returns a function that spoils a packet of the host; None if it stays as it is."""
        if not self.strike(kind):
            return None
        if kind != "handshake" and self.generator.random() < 0.3:
            return cut(self.generator)
        return flip_bits(self.generator, self.generator.randrange(1, 4))


class UsbHost:
    """Speaks to one device. Times are in bits here; a subclass may have another unit.

    Parameters
    ----------
    dut : cocotb handle
        A ``UsbBus``, whose clocks run.
    rate, skew
        As of ``Wires``.

    Attributes
    ----------
    wires : Wires, or what is like it
    faults : Faults
    address : int
        Of the device.
    frame : int
        Number of the present frame.
    """

    response = 18
    """Bit times for which a host waits for the device (USB 2.0, 7.1.19)."""
    gap = 4
    """Bit times for which the host rests between two packets."""
    transaction = 720
    """Room that must be left in a frame, or the transaction waits for the next."""
    frame_length = FRAME_BITS

    def __init__(self, dut: Any, *, rate: float = 1.0, skew: int = 0) -> None:
        self.wires: Any = Wires(dut, rate=rate, skew=skew)
        self.faults = Faults()
        self.address = 0
        self.frame = 0
        self._frame_picoseconds = FRAME_BITS * 1_000_000 / 12 * rate
        self._next_frame = get_sim_time("ps")

    async def reset(self, bits: int = 400) -> None:
        """Both wires low; shorter than the 10 ms of USB, longer than the 25 us that luna asks."""
        await self.wires.drive([SE0] * bits)
        self.address = 0
        await self.wires.rest(20)

    async def idle(self, frames: int) -> None:
        """Lets frames pass in which the host only says that they begin."""
        for _ in range(frames):
            await self._await_frame()

    async def out(
        self, endpoint: int, toggle: int, payload: bytes, token: Pid = Pid.OUT
    ) -> Pid | None:
        """A transaction to the device: its handshake, or None if none was heard."""
        await self._send_token(token, endpoint)
        packet = Packet(TOGGLE[toggle], payload=payload)
        await self.wires.send(packet, self.faults.spoil("data"))
        answer = await self._hear()
        return None if answer is None else self._expect(answer, Pid.ACK, Pid.NAK, Pid.STALL).pid

    async def in_(self, endpoint: int) -> Packet | None:
        """A transaction from the device: data (which is acknowledged), NAK or STALL, or None."""
        await self._send_token(Pid.IN, endpoint)
        answer = await self._hear()
        if answer is None:
            return None
        self._expect(answer, *TOGGLE, Pid.NAK, Pid.STALL)
        if answer.pid in TOGGLE:
            await self.wires.rest(self.gap)
            await self.wires.send(Packet(Pid.ACK), self.faults.spoil("handshake"))
        return answer

    async def control(
        self,
        kind: int,
        request: int,
        value: int,
        index: int,
        data: bytes | int,
        between: Callable[[], Awaitable[object]] | None = None,
    ) -> bytes:
        """A control transfer.

        Parameters
        ----------
        kind, request, value, index : int
            bmRequestType and so on; bit 7 of ``kind`` is the direction of ``data``.
        data : bytes or int
            What is sent, or how many bytes are asked for.
        between : callable, optional
            What the host does on the bus between two stages.

        Raises
        ------
        HostError
            If a stage fails three times in a row, or the device refuses.
        """
        length = data if isinstance(data, int) else len(data)
        setup = bytes([kind, request])
        setup += b"".join(part.to_bytes(2, "little") for part in (value, index, length))
        await self._put(0, setup, token=Pid.SETUP)
        received = b""
        if between is not None:
            await between()
        if isinstance(data, int) and data:
            received = await self._get_all(data)
        elif not isinstance(data, int) and data:
            await self._put(1, data)
        if between is not None:
            await between()
        if kind & 0x80:
            await self._put(1, b"")
        elif await self._get(1):
            raise HostError("the status of a request is not empty")
        return received

    async def speak_to_others(self, generator: random.Random, endpoint: int) -> None:
        """A transaction with another device of the same hub: its answers go another way."""
        other = self.address ^ generator.randrange(1, 128)
        pid = generator.choice([Pid.IN, Pid.OUT])
        await self._await_room()
        await self.wires.send(Packet(pid, other, endpoint), self.faults.spoil("token"))
        await self.wires.rest(self.gap)
        if pid is Pid.OUT:
            payload = generator.randbytes(generator.randrange(65))
            packet = Packet(generator.choice(TOGGLE), payload=payload)
            await self.wires.send(packet, self.faults.spoil("data"))
            await self.wires.rest(40)
        else:
            await self.wires.rest(generator.choice([60, 600]))
            await self.wires.send(Packet(Pid.ACK), self.faults.spoil("handshake"))
            await self.wires.rest(self.gap)

    async def _put(self, toggle: int, payload: bytes, token: Pid = Pid.OUT) -> None:
        """A stage of a control transfer to the device."""
        failures = 0
        while failures < ATTEMPTS:
            handshake = await self.out(0, toggle, payload, token)
            if handshake is Pid.ACK:
                return
            if handshake is Pid.STALL:
                raise HostError("the device refuses the request")
            failures += handshake is None
        raise HostError(f"the device takes no {token.name} of {len(payload)} bytes")

    async def _get_all(self, count: int) -> bytes:
        """Packets of a control transfer, up to a short one or ``count`` bytes."""
        received, toggle = b"", 1
        while len(received) < count:
            part = await self._get(toggle)
            received += part
            toggle ^= 1
            if len(part) < 64:
                break
        return received

    async def _get(self, toggle: int) -> bytes:
        """A packet of a control transfer from the device."""
        failures = 0
        while failures < ATTEMPTS:
            packet = await self.in_(0)
            if packet is not None and packet.pid is TOGGLE[toggle]:
                return packet.payload
            if packet is not None and packet.pid is Pid.STALL:
                raise HostError("the device refuses the request")
            failures += packet is None
        raise HostError("the device gives no data")

    async def _send_token(self, pid: Pid, endpoint: int) -> None:
        await self._await_room()
        token = Packet(pid, self.address, endpoint)
        await self.wires.send(token, self.faults.spoil("token"))
        if pid is not Pid.IN:
            await self.wires.rest(self.gap)

    async def _hear(self) -> Packet | None:
        answer = await self.wires.hear(self.response)
        if isinstance(answer, LineError):
            raise HostError(f"the device sends nonsense: {answer}")
        await self.wires.rest(self.gap)
        if answer is not None and self.faults.strike("response"):
            return None
        return answer

    def _expect(self, answer: Packet, *pids: Pid) -> Packet:
        if answer.pid not in pids:
            raise HostError(f"the device answers {answer.pid.name}")
        return answer

    async def _await_room(self) -> None:
        left = (self._next_frame - get_sim_time("ps")) / self._frame_picoseconds * self.frame_length
        if left < self.transaction:
            await self._await_frame()

    async def _await_frame(self) -> None:
        """Until the next frame begins."""
        rest = (self._next_frame - get_sim_time("ps")) / self._frame_picoseconds * self.frame_length
        if rest > 0:
            await self.wires.rest(rest)
        else:
            self._next_frame = get_sim_time("ps")
        self._next_frame += self._frame_picoseconds
        self.frame = (self.frame + 1) % 2048
        await self.wires.send(Packet(Pid.SOF, self.frame & 0x7F, self.frame >> 7))
        await self.wires.rest(self.gap)
