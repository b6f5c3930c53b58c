"""A ULPI chip for benches: its pins at the device's end, packets and line states at the other."""

import random
from collections import deque
from collections.abc import Callable
from typing import Any

import cocotb
from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cocotb.queue import Queue
from cocotb.triggers import Event, First, RisingEdge, ValueChange
from cocotb.utils import get_sim_time
from slipstick_rtl.phy.usb.high_speed_port import UsbHighSpeedPort
from slipstick_rtl.phy.usb.ulpi_transceiver import ULPI_DATA

FUNCTION_CONTROL, OTG_CONTROL = 0x04, 0x0A
RESET_VALUES = {FUNCTION_CONTROL: 0x41, OTG_CONTROL: 0x06}
"""Registers of the chip (ULPI 1.1, table 10)."""

SPEED_BITS, TERMINATION, OPERATION_BITS = 0x03, 0x04, 0x18
"""Masks of fields in the function control register."""

SYNC_CYCLES, END_CYCLES = 4, 1
"""Around the bytes of a packet of high speed: 32 bits before, 8 after."""

_TRANSMIT, _WRITE = 0x40, 0x80
_VBUS_VALID, _ACTIVE = 0x0C, 0x10


class UlpiBus(wiring.Component):
    """A port with its ULPI pins, and the chip's clock.

    Parameters
    ----------
    port : UsbHighSpeedPort

    Members
    -------
    i, o : In(stream), Out(stream)
    data, dir, nxt, stp
        As of the port.
    chip_clk : In
    chip_rst : Out
    configured, high_speed, suspended : Out
    """

    i: stream.Interface
    o: stream.Interface
    data: wiring.PureInterface
    dir: Signal
    nxt: Signal
    stp: Signal
    chip_clk: Signal
    chip_rst: Signal
    configured: Signal
    high_speed: Signal
    suspended: Signal

    def __init__(self, port: UsbHighSpeedPort) -> None:
        self._port = port
        super().__init__(
            {
                "i": In(stream.Signature(8)),
                "o": Out(stream.Signature(8)),
                "data": Out(ULPI_DATA),
                "dir": In(1),
                "nxt": In(1),
                "stp": Out(1),
                "chip_clk": In(1),
                "chip_rst": Out(1),
                "configured": Out(1),
                "high_speed": Out(1),
                "suspended": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.port = port = self._port
        connect(m, flipped(self.i), port.i)
        connect(m, port.o, flipped(self.o))
        connect(m, port.data, flipped(self.data))
        m.d.comb += [
            port.clk.eq(self.chip_clk),
            port.dir.eq(self.dir),
            port.nxt.eq(self.nxt),
            self.stp.eq(port.stp),
            self.chip_rst.eq(port.rst),
            self.configured.eq(port.configured),
            self.high_speed.eq(port.high_speed),
            self.suspended.eq(port.suspended),
        ]
        return m


class UlpiChip:
    """Takes packets from the device and gives it those of the host, by the rules of ULPI 1.1.

    Parameters
    ----------
    dut : cocotb handle
        A ``UlpiBus``.
    generator : random.Random
        Chooses among what a chip may do.
    stall : float
        How often a byte of either direction comes a cycle later, as after a stuffed bit.

    Attributes
    ----------
    registers : dict of int
    sent : Queue of bytes
        Packets of the device.
    chirps : list of int
        Nanoseconds of each chirp of the device.
    begun, written : Event
        The device began a packet; it wrote a register.
    """

    def __init__(self, dut: Any, *, generator: random.Random, stall: float = 0.0) -> None:
        self._dut, self._clock = dut, dut.chip_clk
        self._random, self._stall = generator, stall
        self._jobs: deque[tuple[Callable[..., Any], tuple[Any, ...], Event]] = deque()
        self._wake, self.written = Event(), Event()
        self._line = 0
        self.registers = dict(RESET_VALUES)
        self.sent: Queue[bytes] = Queue()
        self.begun = Event()
        self.chirps: list[int] = []
        dut.dir.value, dut.nxt.value, dut.data__i.value = 1, 0, 0
        cocotb.start_soon(self._run())

    async def deliver(self, data: bytes) -> None:
        """Gives the device a packet; returns at its end on the wire."""
        await self._do(self._receive, data)

    async def show(self, line: int) -> None:
        """Tells the device another state of the line: 0 for SE0, 1 for J, 2 for K."""
        await self._do(self._tell, line)

    async def written_value(self, register: int, wanted: Callable[[int], bool]) -> None:
        """Waits until the device has written a value that is wanted."""
        while not wanted(self.registers[register]):
            self.written.clear()
            await self.written.wait()

    async def rest(self, cycles: int) -> None:
        """Lets some cycles pass."""
        for _ in range(round(cycles)):
            await RisingEdge(self._clock)

    async def _do(self, job: Callable[..., Any], *arguments: Any) -> None:
        done = Event()
        self._jobs.append((job, arguments, done))
        self._wake.set()
        await done.wait()

    async def _run(self) -> None:
        dut = self._dut
        while dut.chip_rst.value != 0:
            await RisingEdge(self._clock)
        dut.dir.value = 0
        await RisingEdge(self._clock)
        while True:
            await RisingEdge(self._clock)
            if self._jobs:
                job, arguments, done = self._jobs.popleft()
                await job(*arguments)
                done.set()
            elif command := int(dut.data__o.value):
                assert dut.data__oe.value == 1, "the device drives nothing"
                await self._obey(command)
            else:
                self._wake.clear()
                await First(ValueChange(dut.data__o), self._wake.wait())

    async def _obey(self, command: int) -> None:
        dut = self._dut
        for _ in range(self._random.randrange(3)):
            await RisingEdge(self._clock)
        dut.nxt.value = 1
        await RisingEdge(self._clock)
        command = int(dut.data__o.value)
        if command & 0xC0 == _WRITE:
            await RisingEdge(self._clock)
            value = int(dut.data__o.value)
            dut.nxt.value = 0
            await RisingEdge(self._clock)
            assert dut.stp.value == 1, "a write to a register does not stop"
            self.registers[command & 0x3F] = value
            self.written.set()
            return
        assert command & 0xF0 == _TRANSMIT, f"command {command:#x}"
        dut.nxt.value = 0
        self.begun.set()
        await (self._transmit(command & 15) if command & 15 else self._chirp())

    async def _chirp(self) -> None:
        """The device holds the line in K, with bytes of zeros; the chip need not take them."""
        begin = get_sim_time("ns")
        assert self.registers[FUNCTION_CONTROL] & OPERATION_BITS == 0x10
        await RisingEdge(self._dut.stp)
        self.chirps.append(round(get_sim_time("ns") - begin))
        await RisingEdge(self._clock)

    async def _transmit(self, pid: int) -> None:
        dut, data, cycles = self._dut, bytearray([pid | (~pid & 15) << 4]), 0
        takes = False
        while True:
            await RisingEdge(self._clock)
            cycles += 1
            if dut.stp.value == 1:
                break
            if takes:
                data.append(int(dut.data__o.value))
            takes = cycles >= SYNC_CYCLES and self._random.random() >= self._stall
            dut.nxt.value = int(takes)
        dut.nxt.value = 0
        await self.rest(SYNC_CYCLES + len(data) + END_CYCLES - cycles)
        self.sent.put_nowait(bytes(data))

    async def _receive(self, data: bytes) -> None:
        dut = self._dut
        active = 1 | _VBUS_VALID | _ACTIVE
        by_pins = self._random.random() < 0.5
        # the first cycle turns the bus round; a packet shows by NXT in it, or by a status byte
        dut.dir.value, dut.nxt.value, dut.data__i.value = 1, int(by_pins), 0
        await RisingEdge(self._clock)
        dut.nxt.value, dut.data__i.value = 0, active
        await self.rest(SYNC_CYCLES - 1)
        for byte in data:
            if self._stall and self._random.random() < self._stall:
                dut.nxt.value, dut.data__i.value = 0, active
                await RisingEdge(self._clock)
            dut.nxt.value, dut.data__i.value = 1, byte
            await RisingEdge(self._clock)
        dut.nxt.value, dut.data__i.value = 0, _VBUS_VALID
        if self._random.random() < 0.5:
            await RisingEdge(self._clock)
            await self._release()
        else:
            # DIR alone says that the packet ends, and a status later that the line is at rest
            await self._release()
            await self._tell(0)

    async def _tell(self, line: int) -> None:
        dut, self._line = self._dut, line
        dut.dir.value, dut.data__i.value = 1, 0
        await RisingEdge(self._clock)
        dut.data__i.value = line | _VBUS_VALID
        await RisingEdge(self._clock)
        await self._release()

    async def _release(self) -> None:
        self._dut.dir.value, self._dut.data__i.value = 0, 0
        # the device must not be heard in the cycle that turns the bus round
        await RisingEdge(self._clock)
