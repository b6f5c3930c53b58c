"""A driver that does everything through the registers, and the checks that both buses share."""

from collections import deque
from typing import Any, Protocol

from cocotb.triggers import ClockCycles, RisingEdge
from slipstick_rtl.link.protocol import (
    CRC_BYTES,
    HEADER_BYTES,
    REQUEST_START,
    Command,
    Space,
    Status,
    encode,
)
from slipstick_rtl.soc.register_map import register_map
from slipstick_rtl.soc.registers import Access

from ..registry import parameters
from .soc_host import Host, configuration_of


class BusError(Exception):
    """An access that the bus answered with an error; ``args[0]`` says which."""


class Bus(Protocol):
    """32-bit accesses to a window of addresses."""

    async def read(self, offset: int) -> int:
        """A word; BusError."""
        ...

    async def write(self, offset: int, value: int, strobes: int = 15) -> None:
        """The bytes of a word whose strobes are set; BusError."""
        ...


class RegisterPort:
    """Frames through the data registers, as docs/how-to/soc.md and slipstick.h have it.

    Parameters
    ----------
    bus : Bus
    irq, clock : cocotb handles
        Responses are waited for by interrupt.
    """

    def __init__(self, bus: Bus, irq: Any, clock: Any) -> None:
        self.bus = bus
        self.registers = register_map(configuration_of(parameters()))
        self._irq, self._clock = irq, clock

    async def read(self, register: str, field: str = "value") -> int:
        """A field."""
        described = self.registers[register]
        (found,) = (entry for entry in described.fields if entry.name == field)
        return (await self.bus.read(described.offset) & found.mask) >> found.low

    async def write(self, register: str, value: int, strobes: int = 15) -> None:
        """A register."""
        await self.bus.write(self.registers[register].offset, value, strobes)

    async def send(self, frame: bytes) -> None:
        """A request, or several, in words, the last one filled with zeros."""
        words = deque(int.from_bytes(word, "little") for word in batched(frame))
        while words:
            for _ in range(min(len(words), await self.read("queues", "request_room"))):
                await self.write("request_data", words.popleft())

    async def receive(self) -> bytes:
        """A response, when an interrupt tells that it is there."""
        await self.write("interrupt_enable", 0b10)
        while self._irq.value == 0:
            await RisingEdge(self._clock)
        assert await self.read("interrupt_pending", "response_waiting") == 1
        data = await self._word() + await self._word()
        size = HEADER_BYTES + int.from_bytes(data[3:5], "little") + CRC_BYTES
        while len(data) < size:
            data += await self._word()
        assert not any(data[size:]), "what fills the last word must be 0"
        return data[:size]

    async def wait(self, cycles: int) -> None:
        """Lets time pass."""
        await ClockCycles(self._clock, cycles)

    async def _word(self) -> bytes:
        return (await self.read("response_data")).to_bytes(4, "little")


async def check_registers(port: RegisterPort) -> None:
    """Reset values, and every access that must be refused, all over the window."""
    for register in (*port.registers, *port.registers):
        access = register.fields[0].access
        if register.readable and access is not Access.TAKE:
            assert await port.bus.read(register.offset) == register.reset, register.name
        else:
            assert await error_of(port.bus.read(register.offset)) == "refused", register.name
        if not register.writable:
            value = 0xFFFF_FFFF
            assert await error_of(port.bus.write(register.offset, value)) == "refused"
    known = {register.offset for register in port.registers}
    for offset in [*range(0, 0x80, 4), 0x100, 0x134, 0x800, 0xFFC]:
        if offset not in known:
            assert await error_of(port.bus.read(offset)) == "unmapped", hex(offset)
            assert await error_of(port.bus.write(offset, 1)) == "unmapped", hex(offset)


async def error_of(access: Any) -> str:
    """Returns the reason for which an access was refused."""
    try:
        await access
    except BusError as error:
        return error.args[0]
    return "no error"


async def check_strobes(port: RegisterPort) -> None:
    """Only bytes whose strobes are set change anything."""
    for strobes, expected in ((0, 0), (0b1110, 0), (0b0001, 3), (0b1110, 3), (0b1111, 0)):
        value = 0xFFFF_FFFF if strobes != 15 else 0
        await port.write("interrupt_enable", value, strobes)
        assert await port.bus.read(port.registers["interrupt_enable"].offset) == expected
    # a frame byte by byte, each in another lane; a write without a strobe gives nothing
    frame = encode(REQUEST_START, Command.IDENTIFY, 77)
    for index, byte in enumerate(frame):
        await port.write("request_data", byte << 8 * (index % 4), 1 << index % 4)
        await port.write("request_data", 0xA5A5A5A5, 0)
    answer = await port.receive()
    assert (answer[1], answer[2]) == (Status.OK, 77)
    assert await port.read("state", "response_status") == Status.OK
    assert await port.read("state", "response_sequence") == 77


async def check_run_interrupt(host: Host, port: RegisterPort, irq: Any, clock: Any) -> int:
    """A run of two HALTs tells its end; returns the cycles from irq back to silence."""
    await host.write(Space.INSTRUCTIONS, bytes(96))
    await port.write("interrupt_pending", 1)
    assert await port.read("interrupt_pending", "run_finished") == 0
    assert await port.read("state", "running") == 0
    status = await host.run(0, 12)
    assert await port.read("interrupt_pending", "run_finished") == 1
    assert await port.read("cycles") == status.cycles
    await port.write("interrupt_enable", 0)
    await ClockCycles(clock, 3)
    assert irq.value == 0
    await port.write("interrupt_enable", 1)
    await ClockCycles(clock, 3)
    assert irq.value == 1
    await port.write("interrupt_pending", 0b10)  # the other bit is not to be cleared
    await port.write("interrupt_pending", 1, 0b1110)  # nor this one, without its strobe
    assert irq.value == 1 and await port.read("interrupt_pending", "run_finished") == 1
    await port.write("interrupt_pending", 1)
    await ClockCycles(clock, 3)
    assert irq.value == 0 and await port.read("interrupt_pending", "run_finished") == 0
    return status.cycles


async def check_full_queues(port: RegisterPort) -> None:
    """Requests whose responses no one reads fill all queues in the end; then ``request_data``
    refuses, and nothing of what went before is lost. A READ that comes again is answered again."""
    arguments = bytes([Space.ACTIVATIONS, 0, 0, 0, 128, 0])
    words = [
        int.from_bytes(word, "little")
        for word in batched(encode(REQUEST_START, Command.READ, 0, arguments) + b"\0")
    ]
    depth = await port.read("capacity", "queue_words")
    assert await port.read("queues", "request_room") == depth
    sent, still = 0, 0
    while still < 2:  # looks that find no room, with time for the device between them
        room = await port.read("queues", "request_room")
        still = 0 if room else still + 1
        for _ in range(room):
            await port.write("request_data", words[sent % len(words)])
            sent += 1
        await port.wait(2000)
    assert await port.read("queues", "response_words") == depth
    for _ in range(3):
        assert await error_of(port.write("request_data", words[sent % len(words)])) == "refused"
    first = await port.receive()
    assert len(first) == 137 and first[1] == Status.OK
    for _ in range(sent // len(words) - 1):
        assert await port.receive() == first
    rest = -sent % len(words)
    for word in words[len(words) - rest :]:
        await port.write("request_data", word)
    assert rest == 0 or await port.receive() == first
    assert await port.read("queues", "response_words") == 0
    assert await port.read("queues", "request_room") == depth
    assert await error_of(port.read("response_data")) == "refused"


def batched(data: bytes) -> list[bytes]:
    """Words of four bytes."""
    return [data[first : first + 4] for first in range(0, len(data), 4)]
