"""The bit-serial CRC against zlib's."""

import zlib
from typing import Any

from amaranth.sim import Simulator
from hypothesis import given, settings
from hypothesis import strategies as st
from slipstick_rtl.link.compact.serial_crc import SerialCrc

BYTE_CYCLES = 8
"""Cycles that a byte keeps it busy."""


async def checksum(ctx: Any, crc: SerialCrc, message: bytes, pauses: list[int]) -> int:
    """The checksum of ``message``, whose bytes come after so many idle cycles each."""
    ctx.set(crc.start, 1)
    await ctx.tick()
    ctx.set(crc.start, 0)
    for place, byte in enumerate(message):
        await ctx.tick().repeat(1 + pauses[place % len(pauses)])
        ctx.set(crc.data, byte)
        ctx.set(crc.valid, 1)
        await ctx.tick()
        ctx.set(crc.valid, 0)
        assert ctx.get(crc.busy)
        await ctx.tick().repeat(BYTE_CYCLES)
        assert not ctx.get(crc.busy)
    return ctx.get(crc.crc)


@settings(max_examples=20, deadline=None)
@given(
    messages=st.lists(st.binary(max_size=12), min_size=1, max_size=3),
    pauses=st.lists(st.integers(0, 3), min_size=1, max_size=4),
)
def test_it_is_zlib_s_checksum(messages: list[bytes], pauses: list[int]) -> None:
    crc = SerialCrc()

    async def bench(ctx: Any) -> None:
        for message in messages:
            expected = zlib.crc32(message)
            assert await checksum(ctx, crc, message, pauses) == expected
            sealed = message + expected.to_bytes(4, "little")
            await checksum(ctx, crc, sealed, pauses)
            assert ctx.get(crc.match_detected)
            flipped = bytes([sealed[0] ^ 1]) + sealed[1:]
            await checksum(ctx, crc, flipped, pauses)
            assert not ctx.get(crc.match_detected)

    simulator = Simulator(crc)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
