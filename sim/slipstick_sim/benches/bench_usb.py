"""The USB serial port against a host on the wires: what goes in comes out, byte for byte."""

import random
from typing import Any

import cocotb
from cocotb.triggers import ClockCycles, Timer
from slipstick_rtl.phy.usb.descriptors import UsbIdentity
from slipstick_rtl.phy.usb.serial_port import UsbSerialPort

from ..golden.usb_line import FRAME_BITS, PACKETS_PER_FRAME, SE0, J, K, Packet, Pid
from .drivers.usb_bus import ABSENT_CYCLES, PIN_PICOSECONDS, UsbBus
from .drivers.usb_driver import (
    CLEAR_FEATURE,
    CONFIGURATION,
    GET_DESCRIPTOR,
    SET_ADDRESS,
    SET_CONFIGURATION,
    Found,
)
from .drivers.usb_host import Faults, HostError
from .drivers.usb_port import PortBench, random_bytes
from .registry import Bench

IDENTITY = UsbIdentity(serial_number="0123456789abcdef")
FASTEST, SLOWEST = 0.9975, 1.0025
"""Lengths of the host's bits that USB allows."""

WIRE_SKEW = 4_000  # picoseconds

FRAMES = 2
"""Frames that are filled to measure the throughput."""


def component() -> UsbBus:
    """The port at the device's end of a cable."""
    return UsbBus(UsbSerialPort(identity=IDENTITY, absent_cycles=ABSENT_CYCLES))


BENCH = Bench(name="bench_usb", component=component, test_module=__name__, timeout_seconds=600)


@cocotb.test()
@cocotb.parametrize(rate=[FASTEST, SLOWEST], clock_skew=[500, PIN_PICOSECONDS - 500])
async def is_found_by_a_host(dut: Any, rate: float, clock_skew: int) -> None:
    """Whatever the phase of the clocks, at the limits of the host's, and with uneven wires."""
    bench = PortBench(dut, rate=rate, skew=WIRE_SKEW if clock_skew == 500 else 0)
    await bench.start(skew=clock_skew)
    assert dut.configured.value == 0
    await bench.driver.enumerate()
    texts = (IDENTITY.manufacturer, IDENTITY.product, IDENTITY.serial_number)
    assert bench.driver.found == Found(0x1209, 0x0001, texts, 2, 2, 1)
    await bench.both(random_bytes(1, 200))
    assert await bench.host.in_(bench.driver.found.notifications) == Packet(Pid.NAK)
    # a host gives up after 16 bits; luna is slower than the 6.5 that USB wants of a device
    assert 2 <= min(bench.host.wires.response_bits)
    assert max(bench.host.wires.response_bits) < 15
    await bench.finish()


@cocotb.test()
async def refuses_what_it_does_not_know_and_lives_on(dut: Any) -> None:
    bench = PortBench(dut)
    await bench.connect()
    for kind, request, value, data in (
        (0x80, GET_DESCRIPTOR, 6 << 8, 10),  # the qualifier of devices that know high speed
        (0x80, GET_DESCRIPTOR, 3 << 8 | 9, 255),
        (0x01, 11, 0, 0),  # SET_INTERFACE: there is one setting
        (0x00, CLEAR_FEATURE, 1, 0),
        (0xC0, 0x33, 0, 16),
        (0x40, 0x33, 0, b"vendor"),
        (0xA1, 0x7F, 0, 4),
    ):
        try:
            await bench.host.control(kind, request, value, 0, data)
        except HostError as error:
            assert "refuses" in str(error), error
        else:
            raise AssertionError(f"request {kind:#x} {request:#x} is answered")
        await bench.driver.open()
    assert await bench.host.control(0x80, 8, 0, 0, 1) == bytes([1])  # GET_CONFIGURATION
    assert await bench.host.control(0x80, 0, 0, 0, 2) == bytes(2)  # GET_STATUS
    for length in (1, 18, 64, 75, 255):
        descriptor = await bench.host.control(0x80, GET_DESCRIPTOR, CONFIGURATION << 8, 0, length)
        assert len(descriptor) == min(length, descriptor[2] if length > 2 else length)
    await bench.both(random_bytes(2, 70))
    await bench.finish()


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.5, 0.99])
async def passes_bytes_in_order(dut: Any, stall: float) -> None:
    """Packets of all sizes; a core that is slower than the wire makes NAKs, and loses nothing."""
    bench = PortBench(dut, stall=stall)
    await bench.connect(core=40_000 if stall > 0.9 else 10_000)
    generator = random.Random(3)
    data = random_bytes(3, 500)
    consumed = bench.consume(len(data))
    produced = bench.producer.start(data)
    sent = 0
    while sent < len(data):
        size = generator.choice([0, 1, 17, 63, 64, 64, 64])
        await bench.driver.send_packet(data[sent : sent + size])
        sent += size
        await bench.driver.poll()
    assert await bench.driver.receive(len(data)) == data
    assert bytes(await consumed) == data
    await produced
    assert (bench.driver.naks > 0) == (stall > 0.9)
    await bench.finish()


@cocotb.test()
async def keeps_all_bytes_if_no_one_takes_them(dut: Any) -> None:
    bench = PortBench(dut)
    await bench.connect()
    data = random_bytes(4, 6 * 64)
    taken = 0
    for _ in range(12):
        taken += await bench.driver.try_send(data[64 * taken : 64 * taken + 64])
    assert 0 < taken < 6
    consumed = bench.consume(len(data))
    await bench.driver.send(data[64 * taken :])
    assert bytes(await consumed) == data
    produced = bench.producer.start(data)
    await bench.host.idle(2)
    assert not produced.done()
    assert await bench.driver.receive(len(data)) == data
    assert set(bench.driver.packets) == {64}
    await bench.finish()


@cocotb.test()
@cocotb.parametrize(count=[1, 63, 64, 65, 128, 200])
async def ends_a_transfer_when_its_bytes_end(dut: Any, count: int) -> None:
    """At once, and with an empty packet after a full one: no request of a host waits for more."""
    bench = PortBench(dut)
    await bench.connect()
    data = random_bytes(5, count)
    bench.producer.start(data)
    await Timer(25, unit="us")
    frame = bench.host.frame
    assert await bench.driver.receive_transfer(attempts=count // 64 + 1) == data
    assert bench.driver.packets == [64] * (count // 64) + [count % 64]
    assert bench.host.frame - frame <= 1
    await bench.finish()


@cocotb.test()
@cocotb.parametrize(
    faults=[
        {"token": 0.3},
        {"data": 0.3},
        {"handshake": 0.3},
        {"response": 0.3},
        {"token": 0.1, "data": 0.1, "handshake": 0.1, "response": 0.1},
    ]
)
async def neither_loses_nor_repeats_a_byte(dut: Any, faults: dict[str, float]) -> None:
    """Packets of either side are spoilt: the other side's retries put it right."""
    bench = PortBench(dut)
    await bench.connect()
    bench.host.faults = Faults(rates=faults, generator=random.Random(str(faults)))
    data = random_bytes(6, 700)
    await bench.both(data)
    if faults.get("handshake", 0.0) > 0.2:
        assert bench.driver.repeats > 0
    assert bench.host.faults.happened >= 3
    bench.host.faults = Faults()
    await bench.finish()


@cocotb.test()
async def is_found_on_a_bad_cable(dut: Any) -> None:
    """As hosts do: an enumeration that fails is begun again, and none leaves the device stuck."""
    bench = PortBench(dut)
    await bench.start()
    failed = 0
    for seed in range(10):
        rates = {"token": 0.15, "data": 0.15, "handshake": 0.15, "response": 0.15}
        bench.host.faults = Faults(rates=rates, generator=random.Random(seed))
        try:
            await bench.driver.enumerate(address=seed + 1)
        except HostError:
            failed += 1
    assert 0 < failed < 10
    bench.host.faults = Faults()
    await bench.driver.enumerate()
    await bench.both(random_bytes(7, 150))
    await bench.finish()


@cocotb.test()
async def drops_nothing_at_a_bus_reset(dut: Any) -> None:
    """Bytes of both directions are on their way; after an odd number of packets, and at any bit."""
    bench = PortBench(dut)
    await bench.connect()
    data = random_bytes(8, 1000)
    consumed = bench.consume(len(data))
    produced = bench.producer.start(data)
    for turn in range(5):
        part = data[200 * turn : 200 * turn + 200]
        await bench.driver.send(part[:136])
        await bench.driver.poll()
        if turn % 2:  # in the midst of a packet
            token = Packet(Pid.OUT, bench.host.address, bench.driver.found.outward)
            await bench.host.wires.send(token)
            await bench.host.wires.drive([K, J, K, J, K, J, K, K, K, J])
        await bench.driver.enumerate(address=turn + 6)
        await bench.driver.send(part[136:])
        await bench.driver.poll()
    assert await bench.driver.receive(len(data)) == data
    assert bytes(await consumed) == data
    await produced
    await bench.finish()


@cocotb.test()
@cocotb.parametrize(packets=[1, 2])
async def begins_with_data0_when_it_is_configured(dut: Any, packets: int) -> None:
    bench = PortBench(dut)
    await bench.connect()
    data = random_bytes(9, 64 * packets - 3)
    await bench.both(data)
    await bench.driver.configure()
    await bench.both(data)
    await bench.driver.clear_halt()
    await bench.both(data)
    await bench.finish()


@cocotb.test()
async def ignores_what_is_said_to_others(dut: Any) -> None:
    """ACKs, tokens and data of other devices, spoilt ones too, between this one's transactions."""
    bench = PortBench(dut)
    await bench.connect()
    generator = random.Random(10)
    data = random_bytes(10, 700)
    consumed = bench.consume(len(data))
    produced = bench.producer.start(data)
    bench.host.faults = Faults(rates={"token": 0.2, "response": 0.2}, generator=generator)
    sent = 0
    for _ in range(300):
        part = data[sent : sent + 50]
        if part and generator.random() < 0.5:
            sent += len(part) * await bench.driver.try_send(part)
        else:
            await bench.driver.poll()
        if sent == bench.driver.arrived == len(data):
            break
        for _ in range(generator.randrange(3)):
            await bench.host.speak_to_others(generator, bench.driver.found.inward)
    assert await bench.driver.receive(len(data), attempts=1) == data
    assert bytes(await consumed) == data
    await produced
    bench.host.faults = Faults()
    await bench.finish()


@cocotb.test()
async def answers_requests_while_data_pass(dut: Any) -> None:
    """A host speaks to other endpoints between the stages of a request."""
    bench = PortBench(dut)
    await bench.connect()
    data = random_bytes(11, 1300)
    consumed = bench.consume(len(data))
    produced = bench.producer.start(data)
    sent = 0

    async def move() -> None:
        nonlocal sent
        if part := data[sent : sent + 64]:
            sent += len(part) * await bench.driver.try_send(part)
        await bench.driver.poll()

    for _ in range(3):
        kind = CONFIGURATION << 8
        await bench.host.control(0x80, GET_DESCRIPTOR, kind, 0, 75, between=move)
        await bench.host.control(0x02, CLEAR_FEATURE, 0, 0x81, 0, between=move)
        await bench.host.control(0x21, 0x22, 1, 0, 0, between=move)
        await bench.host.control(0x21, 0x20, 0, 0, bytes(7), between=move)
    await bench.driver.send(data[sent:])
    assert await bench.driver.receive(len(data)) == data
    assert bytes(await consumed) == data
    await produced
    await bench.finish()


@cocotb.test()
async def forgets_requests_that_the_host_gave_up(dut: Any) -> None:
    bench = PortBench(dut)
    await bench.connect()
    for request in (GET_DESCRIPTOR, SET_ADDRESS, SET_CONFIGURATION, CLEAR_FEATURE, 0, 8):
        inward = request in (GET_DESCRIPTOR, 0, 8)
        value = CONFIGURATION << 8 if request == GET_DESCRIPTOR else 0
        setup = bytes([0x80 if inward else 0x00, request, *value.to_bytes(2, "little"), 0, 0])
        setup += bytes([75 if inward else 0, 0])
        assert await bench.host.out(0, 0, setup, Pid.SETUP) is Pid.ACK
        if request == GET_DESCRIPTOR:
            assert await bench.host.in_(0) is not None
        await bench.driver.open()
        assert await bench.host.out(0, 0, setup, Pid.SETUP) is Pid.ACK
        await bench.driver.enumerate()
        await bench.both(random_bytes(12, 20))
    await bench.finish()


@cocotb.test()
async def waits_while_the_host_is_silent(dut: Any) -> None:
    """For frames without a poll, and in suspend; a resume goes on where it was."""
    bench = PortBench(dut)
    await bench.connect(core=200_000)
    data = random_bytes(13, 300)
    produced = bench.producer.start(data)
    await bench.host.idle(5)
    assert await bench.driver.receive(100) == data[:100]
    await bench.host.wires.rest(16 * FRAME_BITS)
    assert dut.suspended.value == 1
    await bench.host.wires.drive([K] * 1000 + [SE0, SE0, J])
    await ClockCycles(dut.clk, 20)
    assert dut.suspended.value == 0
    assert await bench.driver.receive(200) == data[100:]
    await produced
    await bench.send(data)
    await bench.finish()


@cocotb.test()
async def fills_the_frames(dut: Any) -> None:
    """Packets of 64 bytes back to back, either way: as many as the bus has room for."""
    bench = PortBench(dut)
    await bench.connect()
    data = random.Random(14).randbytes(64 * (FRAMES * PACKETS_PER_FRAME + 4))
    parts = [data[at : at + 64] for at in range(0, len(data), 64)]
    consumed = bench.consume(len(data))
    produced = bench.producer.start(data)
    for transact in (bench.driver.try_send, lambda part: bench.driver.poll()):
        await bench.host.idle(1)
        begin, count = bench.host.frame, 0
        while bench.host.frame < begin + FRAMES:
            assert await transact(parts[count])
            count += 1
        await transact(parts[count])  # the first one of the next frame
        dut._log.info(f"{count / FRAMES} packets a frame")
        assert count >= FRAMES * PACKETS_PER_FRAME - 1
        for part in parts[count + 1 :]:
            await transact(part)
    assert bytes(await consumed) == await bench.driver.receive(len(data)) == data
    await produced
    await bench.finish()
