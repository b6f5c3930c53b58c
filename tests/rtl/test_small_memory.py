"""The small memory against a list of words."""

import random
from typing import Any

import pytest
from amaranth.sim import Simulator
from slipstick_rtl.primitives.small_memory import SmallMemory


@pytest.mark.parametrize(("width", "depth"), [(8, 16), (5, 32)])
def test_reads_at_once_what_was_written_before(width: int, depth: int) -> None:
    memory = SmallMemory(width=width, depth=depth)
    generator, words = random.Random(width), [0] * depth

    async def check(context: Any) -> None:
        for _ in range(300):
            enable, word = generator.getrandbits(1), generator.getrandbits(width)
            written, read = generator.randrange(depth), generator.randrange(depth)
            context.set(memory.write_enable, enable)
            context.set(memory.write_address, written)
            context.set(memory.i, word)
            context.set(memory.address, read)
            assert context.get(memory.o) == words[read]
            await context.tick()
            if enable:
                words[written] = word

    simulator = Simulator(memory)
    simulator.add_clock(1e-6)
    simulator.add_testbench(check)
    simulator.run()


@pytest.mark.parametrize("depth", [0, 24])
def test_other_depths_are_refused(depth: int) -> None:
    with pytest.raises(ValueError, match=f"depth must be a multiple of 16, not {depth}"):
        SmallMemory(width=4, depth=depth)
