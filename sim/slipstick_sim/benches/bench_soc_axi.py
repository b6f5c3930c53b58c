"""The exported AXI interface, driven by cocotbext-axi, against the golden core."""

import logging
import random
from typing import Any

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge
from cocotb.utils import get_sim_time
from cocotbext.axi import (
    AxiLiteBus,
    AxiLiteMaster,
    AxiResp,
    AxiStreamBus,
    AxiStreamFrame,
    AxiStreamSink,
    AxiStreamSource,
)
from slipstick_rtl.link.protocol import REQUEST_START, RESPONSE_START, Command, Status, encode

from .drivers.soc_host import Host, begin, bench_of, pauses, run_random_program, watch_channel
from .drivers.soc_registers import (
    BusError,
    RegisterPort,
    check_full_queues,
    check_registers,
    check_run_interrupt,
    check_strobes,
)
from .drivers.streams import CLOCK_PERIOD_NS

BENCH = bench_of("axi", __name__)
_ERRORS = {AxiResp.SLVERR: "refused", AxiResp.DECERR: "unmapped"}


class AxiLitePort:
    """The registers, by AXI4-Lite whose five channels rest with a probability."""

    def __init__(self, dut: Any, stall: float) -> None:
        bus = AxiLiteBus.from_prefix(dut, "s_axil")
        self.master: Any = AxiLiteMaster(bus, dut.aclk, dut.aresetn, reset_active_level=False)
        write, read = self.master.write_if, self.master.read_if
        channels = write.aw_channel, write.w_channel, write.b_channel
        for seed, channel in enumerate((*channels, read.ar_channel, read.r_channel)):
            if stall:
                channel.set_pause_generator(pauses(seed, stall))

    async def read(self, offset: int) -> int:
        answer = await self.master.read(offset, 4)
        if answer.resp != AxiResp.OKAY:
            assert not any(answer.data)
            raise BusError(_ERRORS[answer.resp])
        return int.from_bytes(answer.data, "little")

    async def write(self, offset: int, value: int, strobes: int = 15) -> None:
        write = self.master.write_if
        # as this model makes strobes from addresses and lengths only, the channels are used here
        address = write.aw_channel._transaction_obj()
        address.awaddr = offset
        word = write.w_channel._transaction_obj()
        word.wdata, word.wstrb = value, strobes
        await write.aw_channel.send(address)
        await write.w_channel.send(word)
        response = AxiResp(int((await write.b_channel.recv()).bresp))
        if response != AxiResp.OKAY:
            raise BusError(_ERRORS[response])


class AxiStreamPort:
    """Both streams, each resting with a probability; a packet is a frame."""

    def __init__(self, dut: Any, stall: float) -> None:
        ends = dut.aclk, dut.aresetn, False
        self._source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis"), *ends)
        self._sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), *ends)
        for end in (self._source, self._sink):
            end.log.setLevel(logging.WARNING)  # they tell of every frame
        self._source.set_pause_generator(pauses(11, stall))
        self._sink.set_pause_generator(pauses(12, stall))

    async def send(self, frame: bytes, keep: list[int] | None = None) -> None:
        await self._source.send(AxiStreamFrame(frame, tkeep=keep))

    async def receive(self) -> bytes:
        packet = await self._sink.recv()
        return bytes(packet.tdata)

    @property
    def silent(self) -> bool:
        """Tells whether everything that has come was received."""
        return self._sink.empty()


class Setup:
    """The device out of reset, both ways to it, and watches over its outputs."""

    def __init__(self, dut: Any, stall: float) -> None:
        self.dut = dut
        self.bus = AxiLitePort(dut, stall)
        self.registers = RegisterPort(self.bus, dut.irq, dut.aclk)
        self.stream = AxiStreamPort(dut, stall)
        self.counts = {name: {"transfers": 0, "stalls": 0} for name in ("b", "r", "m_axis")}

    async def start(self) -> "Setup":
        dut = self.dut
        await begin(dut.aclk, dut.aresetn, active_low=True)
        for name, prefix, payload in (
            ("b", "s_axil_b", ["resp"]),
            ("r", "s_axil_r", ["resp", "data"]),
            ("m_axis", "m_axis_t", ["data", "keep", "last"]),
        ):
            valid, ready, *rest = (
                getattr(dut, prefix + signal) for signal in ("valid", "ready", *payload)
            )
            cocotb.start_soon(watch_channel(dut.aclk, valid, ready, rest, self.counts[name]))
        return self


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.5])
async def has_the_registers_of_the_map(dut: Any, stall: float) -> None:
    setup = await Setup(dut, stall).start()
    await check_registers(setup.registers)
    await check_strobes(setup.registers)


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.5])
async def runs_programs_by_registers_alone(dut: Any, stall: float) -> None:
    setup = await Setup(dut, stall).start()
    host = Host(setup.registers)
    await run_random_program(host, seed=2)
    cocotb.log.info(f"{host.frames} frames, {setup.counts}")


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.5])
async def runs_programs_by_streams(dut: Any, stall: float) -> None:
    setup = await Setup(dut, stall).start()
    await setup.registers.write("control", 1)
    host = Host(setup.stream)
    reading = cocotb.start_soon(_read_for_ever(setup.registers))
    await run_random_program(host, seed=3)
    assert not reading.done()
    cocotb.log.info(f"{host.frames} frames, {setup.counts}")


async def _read_for_ever(port: RegisterPort) -> None:
    """Other accesses do not disturb what the streams carry."""
    while True:
        assert await port.read("identification") == int.from_bytes(b"SLIP", "little")
        await port.write("interrupt_enable", 3)
        await port.read("queues", "response_words")


@cocotb.test()
async def takes_what_a_packet_keeps(dut: Any) -> None:
    """Null bytes are none, empty transfers too; several frames may share a packet."""
    setup = await Setup(dut, 0.3).start()
    await setup.registers.write("control", 1)
    generator = random.Random(4)
    frames = b"".join(encode(REQUEST_START, Command.IDENTIFY, number) for number in range(20))
    data, keep = bytearray(), []
    for byte in frames:
        while generator.random() < 0.4:
            data.append(0xA5)
            keep.append(0)
        data.append(byte)
        keep.append(1)
    await setup.stream.send(bytes(data), keep)
    for number in range(20):
        answer = await setup.stream.receive()
        assert len(answer) == 21 and (answer[1], answer[2]) == (Status.OK, number)


@cocotb.test()
async def answers_a_cut_packet_at_once(dut: Any) -> None:
    """A frame that its packet cuts is BAD_CRC within cycles, not when the link loses patience."""
    setup = await Setup(dut, 0.0).start()
    await setup.registers.write("control", 1)
    frame = encode(REQUEST_START, Command.WRITE, 0, bytes([3, 0, 0, 0]) + bytes(range(1, 60)))
    for length in range(6, len(frame)):
        begun = get_sim_time("ns")
        await setup.stream.send(frame[:length])
        answer = await setup.stream.receive()
        cycles = (get_sim_time("ns") - begun) / CLOCK_PERIOD_NS
        assert answer == encode(RESPONSE_START, Status.BAD_CRC, 0) and cycles < 150
    await setup.stream.send(b"\0" * 30)
    await setup.stream.send(frame)
    assert await setup.stream.receive() == encode(RESPONSE_START, Status.OK, 0)
    await ClockCycles(dut.aclk, 50)
    assert setup.stream.silent


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.5])
async def interrupts_when_a_run_ends(dut: Any, stall: float) -> None:
    setup = await Setup(dut, stall).start()
    host = Host(setup.registers)
    await check_run_interrupt(host, setup.registers, dut.irq, dut.aclk)


@cocotb.test()
async def refuses_words_while_the_queue_is_full(dut: Any) -> None:
    setup = await Setup(dut, 0.0).start()
    await check_full_queues(setup.registers)


@cocotb.test()
async def takes_addresses_and_data_in_either_order(dut: Any) -> None:
    """Each channel is held back for longer than the other takes, one after the other."""
    setup = await Setup(dut, 0.0).start()
    write = setup.bus.master.write_if
    for late in (write.aw_channel, write.w_channel) * 2:
        late.pause = True
        writing = cocotb.start_soon(setup.registers.write("interrupt_enable", 2))
        await ClockCycles(dut.aclk, 20)
        assert not writing.done() and dut.s_axil_bvalid.value == 0
        assert await setup.registers.read("interrupt_enable", "response_waiting") == 0
        late.pause = False
        await writing
        assert await setup.registers.read("interrupt_enable", "response_waiting") == 1
        await setup.registers.write("interrupt_enable", 0)


@cocotb.test()
async def outputs_rest_in_reset(dut: Any) -> None:
    setup = Setup(dut, 0.0)
    await begin(dut.aclk, dut.aresetn, active_low=True)
    dut.aresetn.value = 0
    await ClockCycles(dut.aclk, 2)
    for _ in range(10):
        await RisingEdge(dut.aclk)
        for name in ("s_axil_bvalid", "s_axil_rvalid", "m_axis_tvalid", "irq"):
            assert getattr(dut, name).value == 0
    dut.aresetn.value = 1
    await check_registers(setup.registers)
