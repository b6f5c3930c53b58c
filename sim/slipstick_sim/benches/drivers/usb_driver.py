"""Acts as an operating system's driver of a serial port on USB: finds it, and moves bytes."""

from dataclasses import dataclass

from ...golden.usb_line import Pid
from .usb_host import TOGGLE, HostError, UsbHost

GET_DESCRIPTOR, SET_ADDRESS, SET_CONFIGURATION, CLEAR_FEATURE = 6, 5, 9, 1
SET_LINE_CODING, GET_LINE_CODING, SET_CONTROL_LINE_STATE = 0x20, 0x21, 0x22
DEVICE, CONFIGURATION, STRING, INTERFACE, ENDPOINT, FUNCTIONAL = 1, 2, 3, 4, 5, 0x24
CDC, CDC_DATA, ACM = 2, 10, 2
BULK, INTERRUPT = 2, 3
PACKET_BYTES = CONTROL_BYTES = 64
LINE_CODING = (115_200).to_bytes(4, "little") + bytes([0, 0, 8])


@dataclass(frozen=True)
class Found:
    """Describes the device as enumeration found it."""

    vendor: int
    product: int
    texts: tuple[str, ...]
    outward: int
    inward: int
    notifications: int


def split(configuration: bytes) -> list[bytes]:
    """The descriptors within a configuration's."""
    parts = []
    while configuration:
        if not 2 <= configuration[0] <= len(configuration):
            raise HostError(f"a descriptor of {configuration[0]} bytes")
        parts.append(configuration[: configuration[0]])
        configuration = configuration[configuration[0] :]
    return parts


def find_endpoints(configuration: bytes) -> tuple[int, int, int]:
    """Endpoints out, in and for notifications, as a driver of class CDC-ACM looks for them."""
    head, *parts = split(configuration)
    if int.from_bytes(head[2:4], "little") != len(configuration) or head[4] != 2:
        raise HostError("the configuration must have its length, and two interfaces")
    interface = union = b""
    found: dict[tuple[int, int, int], int] = {}
    for part in parts:
        if part[1] == INTERFACE:
            interface = part
        elif part[1:3] == bytes([FUNCTIONAL, 6]):
            union = part[3:5]
        elif part[1] == ENDPOINT and interface:
            found[interface[5], part[3] & 3, part[2] & 0x80] = part[2] & 15
            size = int.from_bytes(part[4:6], "little")
            if part[3] & 3 == BULK and size != PACKET_BYTES:
                raise HostError(f"packets of {size} bytes")
    if union != bytes([0, 1]):
        raise HostError(f"the union functional descriptor names {union.hex()}")
    try:
        return (
            found[CDC_DATA, BULK, 0],
            found[CDC_DATA, BULK, 0x80],
            found[CDC, INTERRUPT, 0x80],
        )
    except KeyError as error:
        raise HostError(f"there is no endpoint {error}") from error


class SerialDriver:
    """A serial port of a host.

    Parameters
    ----------
    host : UsbHost

    Attributes
    ----------
    found : Found
        After ``enumerate``.
    packets : list of int
        Sizes of the packets that came; without those that came twice.
    naks, repeats : int
        Of packets out; packets that came again because an ACK was lost.
    """

    found: Found
    packet_bytes = PACKET_BYTES
    """Bytes of the largest packet of the data endpoints."""
    resets_twice = True
    """True if enumeration has a reset after the first descriptor, as hosts have."""

    def __init__(self, host: UsbHost) -> None:
        self.host = host
        self.packets: list[int] = []
        self.naks = 0
        self.repeats = 0
        self._toggle_out = 0
        self._toggle_in = 0
        self._received = bytearray()

    @property
    def arrived(self) -> int:
        """Bytes that came and that ``receive`` has not given yet."""
        return len(self._received)

    async def enumerate(self, address: int = 5) -> None:
        """Resets the device, gives it an address, reads its descriptors and configures it.

        Raises
        ------
        HostError
            If that fails, or what the descriptors say makes no sense.
        """
        host = self.host
        await host.reset()
        device = await self._descriptor(DEVICE, 0, 64)
        if len(device) != 18 or device[7] != CONTROL_BYTES:
            raise HostError(f"a device descriptor {device.hex()}")
        if self.resets_twice:
            await host.reset()
        await host.control(0x00, SET_ADDRESS, address, 0, 0)
        host.address = address
        await host.wires.rest(24)
        device = await self._descriptor(DEVICE, 0, 18)
        head = await self._descriptor(CONFIGURATION, 0, 9)
        size = int.from_bytes(head[2:4], "little")
        configuration = await self._descriptor(CONFIGURATION, 0, size)
        await self._descriptor(STRING, 0, 255)
        texts = [await self._descriptor(STRING, index, 255) for index in device[14:17]]
        self.found = Found(
            int.from_bytes(device[8:10], "little"),
            int.from_bytes(device[10:12], "little"),
            tuple(text[2:].decode("utf-16-le") for text in texts),
            *self.find_endpoints(configuration),
        )
        await self.configure(configuration[5])

    def find_endpoints(self, configuration: bytes) -> tuple[int, int, int]:
        """Endpoints out, in and for notifications."""
        return find_endpoints(configuration)

    async def configure(self, value: int = 1) -> None:
        """SET_CONFIGURATION, and what opening the port asks for; data begin with DATA0."""
        await self.host.control(0x00, SET_CONFIGURATION, value, 0, 0)
        self._toggle_out = self._toggle_in = 0
        await self.open()

    async def open(self) -> None:
        """Requests of the class; the port must give back the line coding that it was given."""
        await self.host.control(0x21, SET_LINE_CODING, 0, 0, LINE_CODING)
        coding = await self.host.control(0xA1, GET_LINE_CODING, 0, 0, len(LINE_CODING))
        if coding != LINE_CODING:
            raise HostError(f"a line coding {coding.hex()}")
        await self.host.control(0x21, SET_CONTROL_LINE_STATE, 3, 0, 0)

    async def clear_halt(self) -> None:
        """Recovers from an error as a driver does: both endpoints begin with DATA0 again."""
        for endpoint in (self.found.outward, 0x80 | self.found.inward):
            await self.host.control(0x02, CLEAR_FEATURE, 0, endpoint, 0)
        self._toggle_out = self._toggle_in = 0

    async def send(self, data: bytes, *, attempts: int = 1000) -> None:
        """All bytes, in packets as large as can be; no empty packet, as Linux has it."""
        for first in range(0, len(data), self.packet_bytes):
            await self.send_packet(data[first : first + self.packet_bytes], attempts=attempts)

    async def send_packet(self, payload: bytes, *, attempts: int = 1000) -> None:
        """A packet, again and again until it is taken."""
        for _ in range(attempts):
            if await self.try_send(payload):
                return
        raise HostError(f"a packet is not taken in {attempts} attempts")

    async def try_send(self, payload: bytes) -> bool:
        """A packet once: whether it was taken."""
        handshake = await self.host.out(self.found.outward, self._toggle_out, payload)
        if handshake is Pid.STALL:
            raise HostError("the device halts its endpoint")
        self.naks += handshake is Pid.NAK
        self._toggle_out ^= handshake is Pid.ACK
        return handshake is Pid.ACK

    async def poll(self) -> bytes | None:
        """A transaction from the device: the payload, or None if there was nothing new."""
        packet = await self.host.in_(self.found.inward)
        if packet is None or packet.pid is Pid.NAK:
            return None
        if packet.pid is Pid.STALL:
            raise HostError("the device halts its endpoint")
        if packet.pid is not TOGGLE[self._toggle_in]:
            self.repeats += 1
            return None
        self._toggle_in ^= 1
        self.packets.append(len(packet.payload))
        self._received += packet.payload
        return packet.payload

    async def receive(self, count: int, *, attempts: int = 4000) -> bytes:
        """The next ``count`` bytes."""
        for _ in range(attempts):
            if len(self._received) >= count:
                break
            await self.poll()
        if len(self._received) < count:
            raise HostError(f"{len(self._received)} bytes instead of {count}")
        data = bytes(self._received[:count])
        del self._received[:count]
        return data

    async def receive_transfer(self, *, attempts: int = 200) -> bytes:
        """Packets until one that is not full: what a driver's request for bytes ends with."""
        transfer = b""
        for _ in range(attempts):
            payload = await self.poll()
            transfer += payload or b""
            if payload is not None and len(payload) < self.packet_bytes:
                self._received.clear()
                return transfer
        raise HostError(f"a transfer of {len(transfer)} bytes does not end")

    async def exchange(self, data: bytes, count: int, *, attempts: int = 8000) -> bytes:
        """Sends and receives by turns, as a host's two queues do."""
        parts = [data[at : at + self.packet_bytes] for at in range(0, len(data), self.packet_bytes)]
        for _ in range(attempts):
            if not parts and len(self._received) >= count:
                break
            if parts and await self.try_send(parts[0]):
                del parts[0]
            if len(self._received) < count:
                await self.poll()
        if parts:
            raise HostError(f"{len(parts)} packets are not taken")
        return await self.receive(count, attempts=1)

    async def _descriptor(self, kind: int, index: int, length: int) -> bytes:
        language = 0x0409 if kind == STRING and index else 0
        return await self.host.control(0x80, GET_DESCRIPTOR, kind << 8 | index, language, length)
