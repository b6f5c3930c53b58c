"""The queue of parameters: blocks in order, each read once however many slices take it."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from amaranth.sim import Simulator
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import Opcode
from slipstick_rtl.latencies import WEIGHT_READ_LATENCY, weight_skew
from slipstick_rtl.postprocess.parameter_queue import ParameterQueue

QUEUE_LATENCY = 2
"""From ``take`` to ``word``."""

CYCLES = 4000
"""More than any of the cases takes."""

INSTRUCTIONS = (
    *((Opcode.DRAIN, 100, 2), (Opcode.DRAIN, 300, 2), (Opcode.MAP, 500, 2), (Opcode.TABLE, 900, 1)),
    *((Opcode.DRAIN, 700, 1), (Opcode.DRAIN, 100, 2), (Opcode.MAP, 40, 1), (Opcode.DRAIN, 60, 2)),
)
"""Opcode, address of the block, slices. A MAP takes its block once, a TABLE has none."""


@pytest.mark.parametrize(
    ("fields", "bits"),
    [
        ({"weight_rows": 8, "rows": 32}, 5),
        ({"weight_rows": 4}, 6),
        ({"weight_rows": 2}, 7),
        ({"weight_rows": 1}, 8),
    ],
)
def test_two_blocks_have_room(fields: Any, bits: int) -> None:
    configuration = Configuration(ninth_bits=1, **fields)
    assert configuration.parameter_queue_words == (1 << bits) - 1
    assert 2 * configuration.parameter_block_words <= configuration.parameter_queue_words


@pytest.mark.parametrize(("weight_rows", "haste"), [(4, 1.0), (4, 0.3), (2, 1.0), (1, 0.8)])
def test_blocks_are_read_once_and_taken_by_each_slice(weight_rows: int, haste: float) -> None:
    """``haste`` is the share of cycles in which the memory takes a read, and the loader a word."""
    c = Configuration(rows=16, columns=8, lanes=4, weight_rows=weight_rows, ninth_bits=1)
    generator = np.random.default_rng(5)
    contents = generator.integers(0, 2, (1024, c.weight_rows, c.columns))
    dut = ParameterQueue(configuration=c)
    words = c.parameter_block_words
    taken = list(_takes(words))
    read: list[int] = []
    got: list[np.ndarray] = []

    async def instructions(context: Any) -> None:
        for opcode, address, slices in INSTRUCTIONS:
            context.set(dut.instructions.payload.opcode, opcode)
            context.set(dut.instructions.payload.parameter_address, address)
            context.set(dut.instructions.payload.slices, slices)
            context.set(dut.instructions.valid, 1)
            await context.tick().until(dut.instructions.ready)
        context.set(dut.instructions.valid, 0)

    async def memory(context: Any) -> None:
        """Elements of a word come by chains and groups of columns, cycles apart."""
        history: list[int | None] = []
        while True:
            context.set(dut.reads.ready, int(generator.random() < haste))
            _, _, valid, ready, address = await context.tick().sample(
                dut.reads.valid, dut.reads.ready, dut.reads.payload
            )
            history.append(address if valid and ready else None)
            if valid and ready:
                read.append(address)
            for chain in range(c.weight_rows):
                for column in range(c.columns):
                    late = WEIGHT_READ_LATENCY + weight_skew(c, chain, column)
                    then = history[-late] if late <= len(history) else None
                    # noise where nothing was read
                    bit = generator.integers(2) if then is None else contents[then, chain, column]
                    context.set(dut.elements[chain][column], int(bit))

    async def loader(context: Any) -> None:
        coming: list[bool] = []
        position = 0
        while len(got) < len(taken) and len(coming) < CYCLES:
            if coming[-QUEUE_LATENCY : -QUEUE_LATENCY + 1] == [True]:
                rows = range(c.weight_rows), range(c.columns)
                got.append(
                    np.array([[context.get(dut.word[i][j]) for j in rows[1]] for i in rows[0]])
                )
            take = position < len(taken) and bool(
                context.get(dut.ready) and generator.random() < haste
            )
            if take:
                _, again, ends = taken[position]
                context.set(dut.again, again)
                context.set(dut.ends, ends)
                position += 1
            context.set(dut.take, take)
            coming.append(take)
            await context.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(instructions, background=True)
    simulator.add_testbench(memory, background=True)
    simulator.add_testbench(loader)
    simulator.run()
    assert len(got) == len(taken)
    for (address, _, _), word in zip(taken, got, strict=True):
        assert np.array_equal(word, contents[address]), address
    blocks = [address for opcode, address, _ in INSTRUCTIONS if opcode != Opcode.TABLE]
    assert read == [address + word for address in blocks for word in range(words)]


def _takes(words: int) -> Iterator[tuple[int, bool, bool]]:
    """Address, again and ends of each word that the loader takes."""
    for opcode, address, slices in INSTRUCTIONS:
        if opcode == Opcode.TABLE:
            continue
        passes = slices if opcode == Opcode.DRAIN else 1
        for turn in range(passes):
            for word in range(words):
                yield address + word, turn < passes - 1, word == words - 1
