"""A USB cable for benches: the device's pins at one end, a host's driver at the other."""

import random
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

import cocotb
from amaranth.hdl import Cat, ClockDomain, ClockSignal, Module, Mux, ResetSignal, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cocotb.clock import Clock
from cocotb.queue import Queue
from cocotb.triggers import ClockCycles, First, Timer, ValueChange
from cocotb.utils import get_sim_time
from slipstick_rtl.phy.core_behind_phy import CoreBehindPhy
from slipstick_rtl.phy.usb.serial_port import UsbSerialPort

from ...golden.usb_line import BIT_PICOSECONDS, J, LineError, Packet, bytes_of, levels_of

PIN_PICOSECONDS = 20_836
"""A cycle of the 48 MHz clock: a quarter of a bit, in steps of the simulator, and even."""

ABSENT_CYCLES = 30
"""Cycles of ``usb`` without pull-up after a reset: fewer than a host needs to see a device go."""

DRIVES = 0b100
EDGE_TOLERANCE = 0.05
"""Distance, in bits, that the device's edges may have from where they belong."""

Spoil = Callable[[list[int]], list[int]]


class UsbBus(wiring.Component):
    """A device with a cable and its clocks: what drives the wires, and what they then are.

    Parameters
    ----------
    device : UsbSerialPort or CoreBehindPhy

    Members
    -------
    i, o : In(stream), Out(stream)
        The port's streams; nothing if the device is an accelerator.
    pin_clk, packet_clk, usb_rst : In
        Of the domains ``usb_io`` and ``usb``.
    host : In(3)
        Levels of D+ and D-, and whether the host drives them.
    device : Out(3)
        The same of the device.
    pullup, configured, suspended, running : Out
    """

    i: stream.Interface
    o: stream.Interface
    pin_clk: Signal
    packet_clk: Signal
    usb_rst: Signal
    host: Signal
    device: Signal
    pullup: Signal
    configured: Signal
    suspended: Signal
    running: Signal

    def __init__(self, device: UsbSerialPort | CoreBehindPhy) -> None:
        self._device = device
        super().__init__(
            {
                "i": In(stream.Signature(8)),
                "o": Out(stream.Signature(8)),
                "pin_clk": In(1),
                "packet_clk": In(1),
                "usb_rst": In(1),
                "host": In(3),
                "device": Out(3),
                "pullup": Out(1),
                "configured": Out(1),
                "suspended": Out(1),
                "running": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains.usb_io = ClockDomain("usb_io")
        m.domains.usb = ClockDomain("usb")
        device: Any = self._device
        m.submodules.device = device
        if isinstance(self._device, UsbSerialPort):
            connect(m, flipped(self.i), device.i)
            connect(m, device.o, flipped(self.o))
        else:
            m.d.comb += self.running.eq(device.running)
        drives = device.d_p.oe
        rest = Cat(device.pullup, 0)
        wires = Mux(drives, self.device[:2], Mux(self.host[2], self.host[:2], rest))
        m.d.comb += [
            ClockSignal("usb_io").eq(self.pin_clk),
            ClockSignal("usb").eq(self.packet_clk),
            ResetSignal("usb_io").eq(self.usb_rst),
            ResetSignal("usb").eq(self.usb_rst),
            self.device.eq(Cat(device.d_p.o, device.d_n.o, drives)),
            Cat(device.d_p.i, device.d_n.i).eq(wires),
            self.pullup.eq(device.pullup),
            self.configured.eq(device.configured),
            self.suspended.eq(device.suspended),
        ]
        return m


async def start(dut: Any, *, skew: int = 500, core: int = 40_000) -> None:
    """Starts all clocks, resets everything, and waits until the device connects.

    Parameters
    ----------
    skew : int
        How long after an edge of the 48 MHz clock the one of 12 MHz comes, in picoseconds.
    core : int
        A cycle of ``clk``, in picoseconds.
    """
    dut.host.value = J
    dut.rst.value = 1
    dut.usb_rst.value = 1
    Clock(dut.clk, core, unit="ps").start()
    Clock(dut.pin_clk, PIN_PICOSECONDS, unit="ps").start()
    await Timer(skew, unit="ps")
    Clock(dut.packet_clk, 4 * PIN_PICOSECONDS, unit="ps").start()
    await ClockCycles(dut.packet_clk, 4)
    assert dut.pullup.value == 0
    dut.usb_rst.value = 0
    dut.rst.value = 0
    await ClockCycles(dut.packet_clk, ABSENT_CYCLES)
    assert dut.pullup.value == 0
    await ClockCycles(dut.packet_clk, 4)
    assert dut.pullup.value == 1


class Wires:
    """The host's end of the cable: sends packets as levels, and reads the device's.

    Parameters
    ----------
    dut : cocotb handle
        A ``UsbBus``.
    rate : float
        Length of the host's bits beside the device's; USB allows 0.9975 to 1.0025.
    skew : int
        Picoseconds by which D- follows D+: for so long both are low, or high, at an edge.

    Attributes
    ----------
    response_bits : list of float
        Of every packet of the device: bits from the end of the host's to its beginning.
    """

    def __init__(self, dut: Any, *, rate: float = 1.0, skew: int = 0) -> None:
        self._dut = dut
        self._skew = skew
        self._bit = BIT_PICOSECONDS * rate
        self._heard: Queue[Packet | LineError] = Queue()
        self._sent_until = 0.0
        self._listening = False
        self.response_bits: list[float] = []
        cocotb.start_soon(self._listen())

    async def send(self, packet: Packet, spoil: Spoil | None = None) -> None:
        """Drives a packet; ``spoil`` makes other levels of the right ones."""
        levels = levels_of(packet.encode())
        await self.drive(levels if spoil is None else spoil(levels))

    async def drive(self, levels: Sequence[int]) -> None:
        """Drives levels, each for a bit, and releases the wires."""
        begin, place, before = get_sim_time("ps"), 0, J
        for level, run in groupby(levels):
            if self._skew:
                self._dut.host.value = DRIVES | before & 2 | level & 1
                await Timer(self._skew, unit="ps")
            self._dut.host.value = DRIVES | level
            before = level
            place += len(list(run))
            await Timer(round(begin + place * self._bit - get_sim_time("ps")), unit="ps")
        self._dut.host.value = J
        self._sent_until = get_sim_time("ps") - self._bit  # its last bit is rest already

    async def rest(self, bits: float) -> None:
        """Lets some bits pass."""
        await Timer(round(bits * self._bit), unit="ps")

    async def hear(self, timeout_bits: float) -> Packet | LineError | None:
        """The device's next packet; None if it does not begin within the time."""
        self._listening = True
        deadline = Timer(round(timeout_bits * self._bit), unit="ps")
        await First(deadline, ValueChange(self._dut.device))
        driven = int(self._dut.device.value) & DRIVES
        packet = await self._heard.get() if driven else None
        self._listening = False
        return packet

    async def _listen(self) -> None:
        while True:
            await ValueChange(self._dut.device)
            if not (value := int(self._dut.device.value)) & DRIVES:
                continue
            assert self._listening, "the device sends though no one asked it to"
            assert not int(self._dut.host.value) & DRIVES, "both ends drive the wires"
            begin = get_sim_time("ps")
            self.response_bits.append((begin - self._sent_until) / self._bit)
            levels: list[int] = []
            while value & DRIVES:
                level = value & 3
                await ValueChange(self._dut.device)
                value = int(self._dut.device.value)
                bits = (get_sim_time("ps") - begin) / (4 * PIN_PICOSECONDS)
                assert abs(bits - round(bits)) < EDGE_TOLERANCE, f"an edge at bit {bits:.2f}"
                levels += [level] * (round(bits) - len(levels))
            try:
                self._heard.put_nowait(Packet.decode(bytes_of(levels)))
            except LineError as error:
                self._heard.put_nowait(error)


def flip_bits(generator: random.Random, count: int = 1) -> Spoil:
    """Noise: some levels of a packet are the opposite, or both wires low."""

    def spoil(levels: list[int]) -> list[int]:
        spoilt = list(levels)
        for place in generator.sample(range(len(levels) - 3), count):
            spoilt[place] = generator.choice(
                [level for level in (0, 1, 2) if level != levels[place]]
            )
        return spoilt

    return spoil


def cut(generator: random.Random) -> Spoil:
    """A packet that ends too early."""
    return lambda levels: [*levels[: generator.randrange(9, len(levels) - 3)], *levels[-3:]]
