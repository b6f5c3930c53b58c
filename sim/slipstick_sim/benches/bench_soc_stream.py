"""The exported byte streams, driven by cocotbext-axi, against the golden core."""

import logging
from typing import Any

import cocotb
from cocotbext.axi import AxiStreamBus, AxiStreamSink, AxiStreamSource

from .drivers.soc_host import Host, begin, bench_of, pauses, run_random_program, watch_channel

BENCH = bench_of("stream", __name__)


class StreamPort:
    """Both byte streams, each resting with a probability."""

    def __init__(self, dut: Any, stall: float) -> None:
        ends = dut.clk, dut.rst
        self._source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis"), *ends)
        self._sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), *ends)
        for end in (self._source, self._sink):
            end.log.setLevel(logging.WARNING)  # they tell of every frame
        self._source.set_pause_generator(pauses(1, stall))
        self._sink.set_pause_generator(pauses(2, stall))

    async def send(self, frame: bytes) -> None:
        await self._source.send(frame)

    async def receive(self) -> bytes:
        return bytes(await self._sink.read(1))


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.4])
async def runs_programs(dut: Any, stall: float) -> None:
    port = StreamPort(dut, stall)
    await begin(dut.clk, dut.rst)
    counts = {"transfers": 0, "stalls": 0}
    channel = dut.m_axis_tvalid, dut.m_axis_tready, [dut.m_axis_tdata]
    cocotb.start_soon(watch_channel(dut.clk, *channel, counts))
    host = Host(port)
    await run_random_program(host, seed=1)
    assert bool(counts["stalls"]) == bool(stall)
    cocotb.log.info(f"{host.frames} frames, {counts}")
