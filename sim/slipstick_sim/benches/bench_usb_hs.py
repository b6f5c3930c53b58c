"""The high-speed port behind a ULPI chip, against a host: what goes in comes out, byte for byte."""

import random
from collections.abc import Awaitable, Callable
from typing import Any

import cocotb
from cocotb.triggers import Timer
from cocotb.utils import get_sim_time
from slipstick_rtl.phy.usb.descriptors import UsbIdentity
from slipstick_rtl.phy.usb.high_speed_port import UsbHighSpeedPort

from ..golden.usb_line import Packet, Pid
from .drivers.ulpi_chip import FUNCTION_CONTROL, UlpiBus
from .drivers.ulpi_host import ByteFaults
from .drivers.ulpi_port import HighSpeedBench
from .drivers.usb_driver import CLEAR_FEATURE, CONFIGURATION, GET_DESCRIPTOR, Found
from .drivers.usb_host import HostError
from .drivers.usb_port import random_bytes
from .registry import Bench

IDENTITY = UsbIdentity(serial_number="0123456789abcdef")
PACKET = 512
PACKETS_PER_MICROFRAME = 13
"""Most bulk transactions of 512 bytes in a microframe (USB 2.0, table 5-10)."""

MICROFRAMES = 3
"""Microframes that are filled to measure the throughput."""


def component() -> UlpiBus:
    """The port at its chip's pins; it waits for the chip for a shorter time than on a board."""
    return UlpiBus(UsbHighSpeedPort(identity=IDENTITY, reset_cycles=40, startup_cycles=100))


BENCH = Bench(name="bench_usb_hs", component=component, test_module=__name__, timeout_seconds=600)


@cocotb.test()
async def is_found_at_high_speed(dut: Any) -> None:
    bench = HighSpeedBench(dut)
    await bench.start()
    assert dut.configured.value == 0
    await bench.driver.enumerate()
    assert dut.high_speed.value == 1
    texts = ("Slipstick", "CNN accelerator", IDENTITY.serial_number)
    assert bench.driver.found == Found(0x1209, 0x0001, texts, 1, 1, 0)
    await bench.both(random_bytes(1, 2000))
    # a host gives up after 736 bits; USB wants an answer within 192 (7.1.18.2)
    dut._log.info(f"answers after {max(bench.host.wires.response_bits):.0f} bits at most")
    assert max(bench.host.wires.response_bits) < 192
    await bench.finish()


@cocotb.test()
async def answers_a_host_of_full_speed(dut: Any) -> None:
    """It remains at full speed, and says so; its packets would be too long for that host."""
    bench = HighSpeedBench(dut)
    await bench.start()
    bench.host.chirps = False
    await bench.host.reset()
    await Timer(20, unit="us")
    assert dut.high_speed.value == 0
    assert bench.chip.registers[FUNCTION_CONTROL] & 0x1F == 0x05
    bench.host.chirps = True
    await bench.driver.enumerate()
    await bench.both(random_bytes(2, 600))
    await bench.finish()


@cocotb.test()
async def refuses_what_it_does_not_know_and_lives_on(dut: Any) -> None:
    bench = HighSpeedBench(dut)
    await bench.connect()
    for kind, request, value, data in (
        (0x80, GET_DESCRIPTOR, 7 << 8, 10),  # there is no configuration at full speed
        (0x80, GET_DESCRIPTOR, 3 << 8 | 9, 255),
        (0x01, 11, 0, 0),  # SET_INTERFACE: there is one setting
        (0x00, CLEAR_FEATURE, 1, 0),
        (0xC0, 0x33, 0, 16),
        (0x40, 0x33, 0, b"vendor"),
    ):
        try:
            await bench.host.control(kind, request, value, 0, data)
        except HostError as error:
            assert "refuses" in str(error), error
        else:
            raise AssertionError(f"request {kind:#x} {request:#x} is answered")
    assert await bench.host.control(0x80, 8, 0, 0, 1) == bytes([1])  # GET_CONFIGURATION
    qualifier = await bench.host.control(0x80, GET_DESCRIPTOR, 6 << 8, 0, 10)
    assert qualifier[:2] == bytes([10, 6]) and qualifier[8] == 0
    await bench.finish()


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.3])
async def passes_bytes_in_order(dut: Any, stall: float) -> None:
    """Packets of all sizes; the chip and both streams stall at random."""
    bench = HighSpeedBench(dut, stall=stall)
    await bench.connect()
    generator = random.Random(3)
    data = random_bytes(3, 6000)
    consumed = bench.consume(len(data))
    produced = bench.producer.start(data)
    sent = 0
    while sent < len(data):
        size = generator.choice([0, 1, 2, 63, 64, 511, 512, 512])
        await bench.driver.send_packet(data[sent : sent + size])
        sent += size
        await bench.driver.poll()
    assert await bench.driver.receive(len(data)) == data
    assert bytes(await consumed) == data
    await produced
    await bench.finish()


@cocotb.test()
@cocotb.parametrize(first=[0, 1, 511])
async def keeps_all_bytes_if_no_one_takes_them(dut: Any, first: int) -> None:
    """Room ends in a packet, also at its last byte; PING says when there is some again."""
    bench = HighSpeedBench(dut)
    await bench.connect()
    data = random_bytes(4, 6 * PACKET + first)
    if first:
        await bench.driver.send_packet(data[:first])
    parts = [data[at : at + PACKET] for at in range(first, len(data), PACKET)]
    taken = 0
    for _ in range(10):
        taken += await bench.driver.try_send(parts[taken])
    assert 0 < taken < 3 and bench.driver.naks > 0 and bench.driver.pings > 0
    consumed = bench.consume(len(data))
    await bench.driver.send(b"".join(parts[taken:]))
    assert bytes(await consumed) == data
    produced = bench.producer.start(data)
    await bench.host.idle(2)
    assert not produced.done()
    assert await bench.driver.receive(len(data)) == data
    assert bench.driver.broken_promises == 0
    await bench.finish()


@cocotb.test()
@cocotb.parametrize(count=[1, 511, 512, 513, 1024])
async def ends_a_transfer_when_its_bytes_end(dut: Any, count: int) -> None:
    """With an empty packet after a full one: no request of a host waits for more."""
    bench = HighSpeedBench(dut)
    await bench.connect()
    data = random_bytes(5, count)
    bench.producer.start(data)
    await Timer(20, unit="us")
    assert await bench.driver.receive_transfer(attempts=count // PACKET + 1) == data
    assert bench.driver.packets == [PACKET] * (count // PACKET) + [count % PACKET]
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
    bench = HighSpeedBench(dut)
    await bench.connect()
    bench.host.faults = ByteFaults(rates=faults, generator=random.Random(str(faults)))
    await bench.both(random_bytes(6, 20 * PACKET + 100))
    if faults.get("handshake", 0.0) > 0.2:
        assert bench.driver.repeats > 0
    assert bench.host.faults.happened >= 3
    bench.host.faults = ByteFaults()
    await bench.finish()


@cocotb.test()
async def drops_nothing_at_a_bus_reset(dut: Any) -> None:
    """Bytes of both directions are on their way, after one packet or two; also within a packet."""
    bench = HighSpeedBench(dut)
    await bench.connect()
    data = random_bytes(8, 2 * 1500)
    consumed = bench.consume(len(data))
    produced = bench.producer.start(data)
    for turn in range(2):
        part = data[1500 * turn : 1500 * turn + 1500]
        await bench.driver.send(part[: PACKET * (turn + 1)])
        await bench.driver.poll()
        if turn:
            await bench.host.wires.send(Packet(Pid.OUT, bench.host.address, 1))
            await bench.host.wires.send(
                Packet(Pid.DATA0, payload=part[PACKET * 2 :]), lambda packet: packet[:100]
            )
        await bench.driver.enumerate(address=turn + 6)
        await bench.driver.send(part[PACKET * (turn + 1) :])
        await bench.driver.poll()
    assert await bench.driver.receive(len(data)) == data
    assert bytes(await consumed) == data
    await produced
    await bench.finish()


@cocotb.test()
@cocotb.parametrize(packets=[1, 2])
async def begins_with_data0_when_it_is_configured(dut: Any, packets: int) -> None:
    bench = HighSpeedBench(dut)
    await bench.connect()
    data = random_bytes(9, PACKET * packets - 3)
    await bench.both(data)
    await bench.driver.configure()
    await bench.both(data)
    await bench.driver.clear_halt()
    await bench.both(data)
    await bench.finish()


@cocotb.test()
async def ignores_what_is_said_to_others(dut: Any) -> None:
    """ACKs, tokens and data of other devices, spoilt ones too, between this one's transactions."""
    bench = HighSpeedBench(dut)
    await bench.connect()
    generator = random.Random(10)
    data = random_bytes(10, 8 * PACKET + 9)
    consumed = bench.consume(len(data))
    produced = bench.producer.start(data)
    bench.host.faults = ByteFaults(rates={"token": 0.2, "response": 0.2}, generator=generator)
    sent = 0
    for _ in range(300):
        part = data[sent : sent + 300]
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
    bench.host.faults = ByteFaults()
    await bench.finish()


@cocotb.test()
async def answers_requests_while_data_pass(dut: Any) -> None:
    bench = HighSpeedBench(dut)
    await bench.connect()
    data = random_bytes(11, 8 * PACKET)
    consumed = bench.consume(len(data))
    produced = bench.producer.start(data)
    sent = 0

    async def move() -> None:
        nonlocal sent
        if part := data[sent : sent + PACKET]:
            sent += len(part) * await bench.driver.try_send(part)
        await bench.driver.poll()

    for _ in range(2):
        await bench.host.control(0x80, GET_DESCRIPTOR, CONFIGURATION << 8, 0, 32, between=move)
        await bench.host.control(0x02, CLEAR_FEATURE, 0, 0x85, 0, between=move)
    await bench.driver.send(data[sent:])
    assert await bench.driver.receive(len(data)) == data
    assert bytes(await consumed) == data
    await produced
    await bench.finish()


@cocotb.test()
async def fills_the_microframes(dut: Any) -> None:
    """Packets of 512 bytes back to back, either way: as many as USB has room for."""
    bench = HighSpeedBench(dut)
    await bench.connect()
    data = random.Random(14).randbytes(PACKET * (MICROFRAMES * PACKETS_PER_MICROFRAME + 4))
    parts = [data[at : at + PACKET] for at in range(0, len(data), PACKET)]
    consumed = bench.consume(len(data))
    produced = bench.producer.start(data)
    ways: dict[str, Callable[[bytes], Awaitable[object]]] = {
        "out": bench.driver.try_send,
        "in": lambda part: bench.driver.poll(),
    }
    for name, transact in ways.items():
        await bench.host.idle(1)
        begin, count, since, rate = bench.host.frame, 0, get_sim_time("us"), 0.0
        while bench.host.frame < begin + MICROFRAMES:
            assert await transact(parts[count])
            count += 1
            rate = PACKET * count / (get_sim_time("us") - since)
        await transact(parts[count])  # the first one of the next microframe
        dut._log.info(f"{name}: {count / MICROFRAMES} packets per microframe, {rate:.1f} MB/s")
        assert count >= MICROFRAMES * PACKETS_PER_MICROFRAME - 1
        for part in parts[count + 1 :]:
            await transact(part)
    assert bytes(await consumed) == await bench.driver.receive(len(data)) == data
    await produced
    await bench.finish()
