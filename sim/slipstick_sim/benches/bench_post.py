"""PostEngine with modelled memories against the golden DRAIN, MAP and TABLE."""

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles, RisingEdge
from slipstick_rtl import isa
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import Opcode
from slipstick_rtl.layouts import POST_INSTRUCTION
from slipstick_rtl.memory.latencies import ACTIVATION_WRITE_LATENCY
from slipstick_rtl.postprocess.control import PostControl
from slipstick_rtl.postprocess.parameters import PARAMETER_WRITE
from slipstick_rtl.postprocess.post_engine import PostEngine

from ..golden.post import TABLE_ENTRIES, Parameters, drain, load_table, map_taps
from .post_memories import PostMemories
from .random_post import Fields, random_parameters, random_post
from .registry import Bench, parameters
from .streams import Producer, pack, start

_OVERHEAD = 1 + PostControl.latency + ACTIVATION_WRITE_LATENCY
"""Cycles of a DRAIN beyond one a slice: the start, and the way through the pipeline."""


def make(**shape: Any) -> PostEngine:
    """The engine for a small configuration of this shape."""
    return PostEngine(configuration=_configuration(shape))


def _configuration(shape: dict[str, Any]) -> Configuration:
    return Configuration(
        activation_bytes=1 << 12,
        weight_bytes=1 << 12,
        accumulator_depth=64,
        parameter_words=16,
        **shape,
    )


BENCH = Bench(
    name="bench_post",
    component=make,
    test_module=__name__,
    parameters=(
        {"pixels": 1, "rows": 8, "columns": 8, "lanes": 4},
        {"pixels": 2, "rows": 8, "columns": 16, "lanes": 4},
        {"pixels": 1, "rows": 4, "columns": 4, "lanes": 4},
    ),
)


class PostTest:
    """The engine under test and its golden twin, with the same random contents of all memories."""

    def __init__(self, dut: Any, seed: int) -> None:
        self.dut, self.configuration = dut, _configuration(parameters())
        c = self.configuration
        self.generator = generator = np.random.default_rng(seed)
        bank = (2, c.accumulator_depth, c.pixels, c.columns)
        self._accumulators = generator.integers(-(2**31), 2**31, bank)
        self._accumulators >>= generator.integers(12, 24, bank)
        self._accumulators = self._accumulators.astype(np.int32)
        self._weights = generator.integers(-(2**31), 2**31, (c.weight_bytes // 4,))
        self._weights = (self._weights >> generator.integers(14, 24, self._weights.shape)).astype(
            np.int32
        )
        self._weights = self._weights.view(np.int8).reshape(-1, c.columns)
        self._parameters: Parameters = random_parameters(generator, c)
        self._table = np.zeros(TABLE_ENTRIES, np.int32)
        self._expected = generator.integers(-128, 128, (1, c.activation_bytes), np.int8)
        self._activations = self._expected[0].copy()
        self.memories = PostMemories(
            dut, c, self._accumulators, self._activations, self._weights, seed=seed
        )

    async def start(self) -> None:
        """Resets the engine, fills its parameter memory and loads the table."""
        self.dut.clear.value = 0
        self.dut.matrix_done.value = 0
        self.memories.start()
        self.instructions = Producer(self.dut, "instructions", seed=1, stall=0.3)
        await start(self.dut)
        kinds = ("<i4", "<u4", "u1")
        fields = [
            array.astype(kind)[..., None].view(np.uint8)
            for array, kind in zip(self._parameters, kinds, strict=True)
        ]
        words = np.concatenate(fields, axis=2).reshape(self.configuration.parameter_words, -1)
        for (address, offset), byte in np.ndenumerate(words):
            fields = {"enable": 1, "address": address, "offset": offset, "data": int(byte)}
            self.dut.parameter_write.value = pack(PARAMETER_WRITE, fields)
            await RisingEdge(self.dut.clk)
        self.dut.parameter_write.value = self._garbage_write()
        table = dict.fromkeys(isa.POST_FIELDS, 0) | {"opcode": int(Opcode.TABLE)}
        table["table_words"] = TABLE_ENTRIES * 4 // self.configuration.columns
        self.send([table])
        await self.completion(table)

    def _garbage_write(self) -> int:
        return pack(PARAMETER_WRITE, {"enable": 0, "address": 1, "offset": 2, "data": 255})

    def send(self, instructions: list[Fields]) -> None:
        """Offers the instructions in the background."""
        mask = (1 << POST_INSTRUCTION.size) - 1
        packed = [isa.pack(isa.POST_FIELDS, fields) for fields in instructions]
        self.instructions.start(int.from_bytes(word, "little") & mask for word in packed)

    async def completion(self, instruction: Fields) -> int:
        """Waits for the pulse ``completed``, compares the memory; cycles since ``started``."""
        cycles = 0
        for _ in range(10_000):
            await RisingEdge(self.dut.clk)
            cycles += 1
            if self.dut.started.value == 1:
                self._check_permission(instruction)
                cycles = 0
            if self.dut.completed.value == 1:
                break
        else:
            raise AssertionError(f"never completed: {instruction}")
        self._execute(instruction)
        np.testing.assert_array_equal(self._activations, self._expected[0], str(instruction))
        return cycles

    def _check_permission(self, instruction: Fields) -> None:
        matrix_done = self.dut.matrix_done.value.to_unsigned()
        assert (matrix_done - instruction["wait"]) % 2**16 < 2**15, "started too early"

    def _execute(self, instruction: Fields) -> None:
        c, opcode = self.configuration, instruction["opcode"]
        if opcode == Opcode.DRAIN:
            bank = self._accumulators[instruction["bank"]][None]
            drain(instruction, bank, self._parameters, self._expected, c)
        elif opcode == Opcode.MAP:
            map_taps(instruction, self._table, self._parameters, self._expected, c)
        else:
            load_table(instruction, self._weights, self._table, c)


@cocotb.test()
@cocotb.parametrize(seed=[1, 2])
async def random_instructions(dut: Any, seed: int) -> None:
    """Instructions back to back, with late permissions across the counter's wrap."""
    test = PostTest(dut, seed)
    generator, first_done = test.generator, 2**16 - 20
    await test.start()
    instructions = [random_post(generator, test.configuration) for _ in range(60)]
    waits = np.cumsum(generator.integers(0, 2, len(instructions))) + first_done
    for instruction, wait in zip(instructions, waits, strict=True):
        instruction["wait"] = int(wait % 2**16)
    dut.matrix_done.value = first_done
    test.send(instructions)

    async def permit() -> None:
        for done in range(first_done, int(waits[-1]) + 1):
            await ClockCycles(dut.clk, int(generator.integers(1, 200)))
            dut.matrix_done.value = done % 2**16

    permissions = cocotb.start_soon(permit())
    for number, instruction in enumerate(instructions):
        await test.completion(instruction)
        # the counter follows the pulse; the table's instruction is counted, this one not yet
        assert dut.post_done.value.to_unsigned() == number + 1
    await permissions
    await ClockCycles(dut.clk, 2 * _OVERHEAD)
    assert dut.busy.value == 0
    dut.clear.value = 1
    await ClockCycles(dut.clk, 2)
    assert dut.post_done.value.to_unsigned() == 0


@cocotb.test()
async def throughput(dut: Any) -> None:
    """DRAIN writes a slice a cycle; MAP reads a tap a cycle but for the cycles of its writes."""
    test = PostTest(dut, 3)
    await test.start()
    checked = 0
    while checked < 20:
        instruction = random_post(test.generator, test.configuration)
        if instruction["opcode"] == Opcode.TABLE:
            continue
        before = test.memories.reads + test.memories.writes
        test.send([instruction])
        cycles = await test.completion(instruction)
        accesses = test.memories.reads + test.memories.writes - before
        results = instruction["rows"] * instruction["columns"] * instruction["slices"]
        taps = instruction["taps_y"] * instruction["taps_x"]
        assert accesses == results * (1 + taps)
        if instruction["opcode"] == Opcode.DRAIN:
            assert cycles == results + _OVERHEAD, instruction
        else:
            assert cycles <= results * (1 + taps) + _OVERHEAD, instruction
        checked += 1


@cocotb.test()
async def waits_for_the_other_stream(dut: Any) -> None:
    """An instruction whose time has not come does nothing."""
    test = PostTest(dut, 4)
    await test.start()
    instruction = random_post(test.generator, test.configuration)
    instruction["wait"] = 5
    test.send([instruction])
    dut.matrix_done.value = 4
    await ClockCycles(dut.clk, 100)
    assert dut.post_done.value.to_unsigned() == 1
    assert dut.busy.value == 0
    dut.matrix_done.value = 5
    await test.completion(instruction)
