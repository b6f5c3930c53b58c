"""The delay ring: registers or memory, a word comes out as often as it goes in, so much later."""

import random
from typing import Any

import pytest
from amaranth.hdl import signed
from amaranth.sim import Simulator
from slipstick_rtl.primitives.delay_memory import LONGEST_RING, DelayRing


@pytest.mark.parametrize("cycles", [2, 5, LONGEST_RING])
def test_words_come_out_so_many_cycles_later(cycles: int) -> None:
    ring = DelayRing(shape=signed(7), cycles=cycles)
    draw = random.Random(cycles)
    words = [draw.randrange(-64, 64) for _ in range(60)]
    seen: list[int] = []

    async def drive(context: Any) -> None:
        for word in words:
            context.set(ring.i, word)
            _, _, out = await context.tick().sample(ring.o)
            seen.append(out)

    simulator = Simulator(ring)
    simulator.add_clock(1e-6)
    simulator.add_testbench(drive)
    simulator.run()
    assert seen[cycles:] == words[:-cycles]


@pytest.mark.parametrize("cycles", [1, LONGEST_RING + 1])
def test_other_lengths_are_refused(cycles: int) -> None:
    with pytest.raises(ValueError, match=rf"within 2\.\.{LONGEST_RING}, not {cycles}"):
        DelayRing(shape=4, cycles=cycles)
