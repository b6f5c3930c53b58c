"""A driver that does everything through the registers, and the checks that both buses share."""

from typing import Any, Protocol

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge
from slipstick_rtl.config import Configuration
from slipstick_rtl.link.protocol import REQUEST_START, Command, Space, Status, encode
from slipstick_rtl.soc.register_map import register_map
from slipstick_rtl.soc.registers import Access, Register

from .soc_host import Host, configuration_of
from .registry import parameters

FRAME_OVERHEAD = 9


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
    """Frames through the data registers, as docs/soc.md and slipstick.h have it.

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
        """A request, in words, the last one filled with zeros."""
        words = [
            int.from_bytes(frame[first : first + 4], "little") for first in range(0, len(frame), 4)
        ]
        while await self.read("queues", "request_room") < len(words):
            pass
        for word in words:
            await self.write("request_data", word)

    async def receive(self, count: int) -> bytes:
        """A response, when an interrupt tells that it is there."""
        await self.write("interrupt_enable", 0b10)
        for _ in range(20_000):
            if self._irq.value == 1:
                break
            await RisingEdge(self._clock)
        assert await self.read("interrupt_pending", "response_waiting") == 1
        data = b""
        while len(data) < count:
            data += (await self.read("response_data")).to_bytes(4, "little")
        assert not any(data[count:]), "what fills the last word must be 0"
        return data[:count]


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
    """Why an access was refused."""
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
    answer = await port.receive(21)
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
    """Requests that no one answers, for responses that no one reads, fill all queues in the end;
    then request_data refuses, and nothing of what went before is lost."""
    frame = encode(REQUEST_START, Command.READ, 1, bytes([Space.ACTIVATIONS, 0, 0, 0, 128, 0]))
    words = [int.from_bytes(frame[at : at + 4].ljust(4, b"\0"), "little") for at in range(0, 15, 4)]
    sent = 0
    error = "no error"
    while error == "no error" and sent < 4000:
        error = await error_of(port.write("request_data", words[sent % 4]))
        if error != "no error" and await port.read("queues", "request_room"):
            error = "no error"  # there was none a moment ago
            continue
        sent += error == "no error"
        if error == "refused":
            # the device has stopped only if there is no room later, either
            await ClockCycles(port._clock, 1200)
            error = "no error" if await port.read("queues", "request_room") else error
    assert error == "refused" and await port.read("queues", "request_room") == 0
    depth = (await port.bus.read(port.registers["capacity"].offset)) >> 16
    assert await port.read("queues", "response_words") == depth
    first = None
    for _ in range(sent // 4):
        answer = await port.receive(137)
        first = first or answer
        assert answer == first and answer[1] == Status.OK
    for index in range(sent % 4, 4 if sent % 4 else 0):
        await port.write("request_data", words[index])
    if sent % 4:
        assert await port.receive(137) == first
    assert await port.read("queues", "response_words") == 0
    assert await error_of(port.read("response_data")) == "refused"
