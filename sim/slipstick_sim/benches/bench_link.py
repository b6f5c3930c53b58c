"""The link against the golden endpoint: the same bytes in, the same bytes out, the same effects."""

from typing import Any

import cocotb
from slipstick_rtl.config import Configuration
from slipstick_rtl.engines import COMPACT
from slipstick_rtl.link.compact.link import CompactLink
from slipstick_rtl.link.link import Link
from slipstick_rtl.link.links import make_link
from slipstick_rtl.link.protocol import (
    AFTER,
    CONTINUES,
    CRC_BYTES,
    HEADER_BYTES,
    SILENT,
    WAITING,
    Command,
    Region,
    Space,
)
from slipstick_rtl.link.spaces import spaces_of, unit_bytes, units_per_frame

from .drivers.link_bench import TIMEOUT_CYCLES, LinkBench
from .registry import Bench, parameters
from .stimulus.random_requests import RequestSource

RUN_CYCLES = 20
"""Cycles of a run in a stream of images."""
REQUEST_CYCLES = 40
"""Cycles that a request may take besides its bytes."""

COMPACT_BYTE_CYCLES = 13
"""More than one that a byte of a frame takes on a compact link: its CRC, and its way to memory."""


def _configuration(shape: dict[str, Any]) -> Configuration:
    return Configuration(
        activation_bytes=1 << 10,
        weight_bytes=1 << 10,
        parameter_words=16 if shape.get("engine") == "compact" else 0,
        instruction_words=256,
        **shape,
    )


def _bench(dut: Any, **options: Any) -> LinkBench:
    return LinkBench(dut, _configuration(parameters()), **options)


def make(**shape: Any) -> Link | CompactLink:
    """The link of a configuration with small memories."""
    configuration = _configuration(shape)
    return make_link(configuration, TIMEOUT_CYCLES)


BENCH = Bench(
    name="bench_link",
    component=make,
    test_module=__name__,
    parameters=(
        {"rows": 2, "columns": 8, "lanes": 1, "payload_bytes": 64, "engine": "compact"},
        {"rows": 16, "columns": 16, "lanes": 8, "payload_bytes": 256, "dram": "MT48LC16M16"},
    ),
    thorough=(
        {"rows": 4, "columns": 8, "lanes": 4, "payload_bytes": 64},
        {"rows": 16, "columns": 16, "lanes": 8, "payload_bytes": 256},
        {"rows": 16, "columns": 8, "lanes": 8, "weight_rows": 4, "ninth_bits": 1}
        | {"payload_bytes": 256},
    ),
)


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.2, 0.6], fault=[0.0, 0.4])
async def answers_like_the_golden_endpoint(dut: Any, stall: float, fault: float) -> None:
    """Random requests back to back, sound and spoilt; truncated ones end by the timeout."""
    bench = _bench(dut, stall=stall, latency=9)
    await bench.start()
    source = RequestSource(bench.configuration, seed=int(100 * stall + 10 * fault))
    for _ in range(16):
        await bench.exchange(*(lambda number: source.draw(fault, number) for _ in range(12)))
        await bench.settle()
        bench.finish_run()


@cocotb.test()
async def forgets_a_truncated_frame(dut: Any) -> None:
    """Cut anywhere, a frame does nothing, and the one after the timeout is answered."""
    bench = _bench(dut, stall=0.0)
    await bench.start()
    frame = bench.frame(0, Command.WRITE, bytes([Space.INSTRUCTIONS, 0, 0, 0]) + b"abcdefgh")
    for length in range(len(frame)):
        await bench.exchange(frame[:length])
        await bench.settle()
    await bench.exchange(frame)
    await bench.settle()


@cocotb.test()
@cocotb.parametrize(space=spaces_of(Configuration()))
async def takes_a_byte_a_cycle(dut: Any, space: Space) -> None:
    """Maximal WRITEs back to back are executed while they come."""
    bench = _bench(dut, stall=0.0)
    await bench.start()
    units = units_per_frame(bench.configuration, space)
    unit = unit_bytes(bench.configuration, space)
    content = bytes(range(256)) * bench.configuration.payload_bytes
    content = content[: units * unit]
    payload = bytes([space, 1, 0, 0]) + content
    count = 12
    frames = [bench.frame(number, Command.WRITE, payload) for number in range(count)]
    cycles = await bench.exchange(*frames)
    size = len(frames[0])
    # units of other sizes than powers of two are counted one by one, in two cycles each
    overhead = 4 + (2 * units + 1 if unit & (unit - 1) else 0)
    if bench.configuration.engine == COMPACT.name:
        overhead += COMPACT_BYTE_CYCLES * (size + HEADER_BYTES + CRC_BYTES)
    # one frame more: the last is executed when all have come
    assert cycles <= (count + 1) * (size + overhead) + 40
    await bench.settle()


@cocotb.test()
async def gives_a_byte_a_cycle(dut: Any) -> None:
    """Maximal READs back to back."""
    bench = _bench(dut, stall=0.0)
    await bench.start()
    size = bench.configuration.payload_bytes
    payload = bytes([Space.ACTIVATIONS, 1, 0, 0]) + size.to_bytes(2, "little")
    count = 12
    frames = [bench.frame(number, Command.READ, payload) for number in range(count)]
    cycles = await bench.exchange(*frames)
    answer = size + HEADER_BYTES + CRC_BYTES
    if bench.configuration.engine == COMPACT.name:
        answer += COMPACT_BYTE_CYCLES * (answer + len(frames[0]))
    assert cycles <= count * (answer + 14) + 40
    await bench.settle()


@cocotb.test()
@cocotb.parametrize(after=[False, True])
async def streams_images_at_full_speed(dut: Any, after: bool) -> None:
    """A batch: images come in rows with gaps, in two frames each, and results go, unasked.

    Each request may take ``REQUEST_CYCLES`` more than its bytes.
    """
    bench = _bench(dut, stall=0.0)
    await bench.start()
    most = bench.configuration.payload_bytes
    image = 2 * most - 10
    rows = -(-image // 6)
    inputs = [Region(address=place, run_bytes=6, runs=rows, gap=1) for place in (0, most)]
    result = Region(address=2 * most, run_bytes=3, runs=10, gap=2, count=30)
    regions = [*inputs, result]
    requests = [
        (Command.DEFINE | SILENT, bytes([number]) + region.pack())
        for number, region in enumerate(regions)
    ]
    for turn in range(8):
        content = bytes((turn + place) % 256 for place in range(image))
        first, rest = content[: most - 1], content[most - 1 :]
        requests += [
            (Command.PUT | SILENT, bytes([turn % 2]) + first),
            (Command.PUT | SILENT, bytes([turn % 2 | CONTINUES]) + rest),
            (Command.RUN_GET | WAITING, bytes([2 | AFTER * after, turn, 0, 0, 0])),
        ]
    frames = [bench.frame(number, *request) for number, request in enumerate(requests)]
    bench.run_cycles = RUN_CYCLES
    bench.golden.bad_instruction = bench.actual.bad_instruction = False
    bench.finish_run()
    cycles = await bench.exchange(*frames)
    sizes = sum(map(len, frames)) + 8 * (30 + HEADER_BYTES + CRC_BYTES) * (1 + after)
    if bench.configuration.engine == COMPACT.name:
        sizes += COMPACT_BYTE_CYCLES * sizes
    dut._log.info(f"{(cycles - sizes) / len(frames):.1f} cycles a request besides {sizes} bytes")
    assert cycles <= sizes + len(frames) * REQUEST_CYCLES + 8 * RUN_CYCLES * (1 + after)
    bench.finish_run()
    await bench.settle()
    assert len(bench.actual.strobes) == 8


@cocotb.test()
async def a_host_that_waits_for_ever_hears_busy(dut: Any) -> None:
    """A run that does not end: WAITING requests are refused, RUN_GET(AFTER) has begun."""
    bench = _bench(dut, stall=0.0)
    await bench.start()
    bench.endless = True
    frames = [
        bench.frame(0, Command.RUN_GET, bytes([AFTER, 1, 0, 2, 0])),
        bench.frame(0, Command.RUN_GET, bytes([AFTER, 1, 0, 2, 0])),
        bench.frame(1, Command.GET | WAITING | SILENT, b"\0"),
        bench.frame(9, Command.STATUS | WAITING),
        bench.frame(2, Command.GET),
        bench.frame(1, Command.RESET | SILENT),
        bench.frame(1, Command.GET | WAITING, b"\0"),
    ]
    await bench.exchange(*frames)
    await bench.settle()
    assert bench.actual.strobes == [(1, 2, True), "reset"]
