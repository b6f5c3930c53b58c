"""PostEngine with modelled memories against the golden DRAIN, MAP and TABLE."""

from collections.abc import Sequence
from typing import Any

import cocotb
import numpy as np
from amaranth.lib import wiring
from cocotb.triggers import ClockCycles, RisingEdge
from slipstick_rtl import isa
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import READING_FLAGS, Opcode
from slipstick_rtl.latencies import WEIGHT_READ_LATENCY
from slipstick_rtl.layouts import post_instruction
from slipstick_rtl.postprocess.distances import FIELDS_PERIOD, landing_distance
from slipstick_rtl.postprocess.parameters import largest_skew
from slipstick_rtl.postprocess.post_engine import PostEngine

from ..golden.parameters import Parameters, parameter_block
from ..golden.post import drain, load_table, map_taps, table_entries
from ..netlist import ecp5_cells
from .drivers.on_chip import DEVICE, ECP5, OnChip
from .drivers.post_memories import Contents, PostMemories
from .drivers.streams import Producer, start
from .registry import Bench, parameters
from .stimulus.random_post import (
    ROW_STEP_MODULUS,
    Fields,
    place_parameters,
    random_parameters,
    random_post,
    random_table,
)

_TABLE_OVERHEAD = 8
"""Cycles of a TABLE beyond one an entry and the way from the weight memory."""


def make(**shape: Any) -> wiring.Component:
    """The engine for a small configuration of this shape; on a chip if the shape names one."""
    engine = PostEngine(configuration=_configuration(shape))
    return OnChip(engine, shape[DEVICE]) if DEVICE in shape else engine


def _configuration(shape: dict[str, Any]) -> Configuration:
    fields = {name: value for name, value in shape.items() if name != DEVICE}
    return Configuration(
        activation_bytes=1 << 12, weight_bytes=1 << 13, accumulator_depth=64, **fields
    )


_HALVED = {"ninth_bits": 1, "halved_tables": 1, DEVICE: ECP5}
_ON_CHIP: tuple[dict[str, Any], ...] = (
    _HALVED,
    {**_HALVED, "number_format": "lns1+2+2"},
    {**_HALVED, "training": 1},
)
"""Engines with halved tables on an ECP5: they run with a small array and with a board's."""

BENCH = Bench(
    name="bench_post",
    component=make,
    test_module=__name__,
    parameters=(
        *({"rows": 8, "columns": 8, "lanes": 4, "weight_rows": 2} | kind for kind in _ON_CHIP[1:]),
        {"pixels": 2, "rows": 8, "columns": 8, "lanes": 8, "ninth_bits": 1, "training": 1}
        | {"drain_tables": 1, "products": 1, DEVICE: ECP5},
    ),
    thorough=(
        {"pixels": 1, "rows": 8, "columns": 8, "lanes": 4},
        {"pixels": 1, "rows": 4, "columns": 4, "lanes": 4, "halved_tables": 1, "products": 1},
        {"rows": 8, "columns": 8, "lanes": 4, "weight_rows": 2} | _HALVED,
        {"rows": 16, "columns": 8, "lanes": 4, "weight_rows": 4, "drain_tables": 1},
        {"pixels": 2, "rows": 8, "columns": 16, "lanes": 4, "weight_rows": 2},
        *({"rows": 16, "columns": 8, "lanes": 8, "weight_rows": 4} | kind for kind in _ON_CHIP),
        {"rows": 16, "columns": 8, "lanes": 8, "weight_rows": 4, "ninth_bits": 1}
        | {"halved_tables": 1},
        {"rows": 16, "columns": 16, "lanes": 8, "weight_rows": 4, "halved_tables": 1},
        {"rows": 8, "columns": 8, "lanes": 4, "ninth_bits": 1, "products": 1},
        {"pixels": 2, "rows": 8, "columns": 16, "lanes": 8, "ninth_bits": 1, "training": 1},
    ),
    verilog=ecp5_cells.verilog,
)


class PostTest:
    """The engine under test and its golden twin, with the same random contents of all memories."""

    def __init__(self, dut: Any, seed: int) -> None:
        self.dut, self.configuration = dut, _configuration(parameters())
        c = self.configuration
        self.generator = generator = np.random.default_rng(seed)
        bank = (2, c.accumulator_depth, c.pixels, c.columns)
        accumulators = generator.integers(-(2**31), 2**31, bank)
        accumulators >>= generator.integers(12, 24, bank)
        entries = generator.integers(-(2**31), 2**31, (c.weight_bytes // 4,))
        entries = (entries >> generator.integers(4, 24, entries.shape)).astype(np.int32)
        weights = entries.view(np.int8).reshape(-1, c.weight_rows, c.columns)
        ninth = generator.integers(0, 2, weights.shape, np.uint8)
        place_parameters(c, random_parameters(generator, c), weights, ninth)
        self._table = np.zeros(table_entries(c), np.int32)
        self._notes = np.zeros((1, c.lanes), np.int32) if c.training else None
        self._expected = generator.integers(-128, 128, (1, c.activation_bytes), np.int8)
        self._contents = Contents(
            accumulators.astype(np.int32), self._expected[0].copy(), weights, ninth
        )
        self.memories = PostMemories(dut, c, self._contents, seed=seed)

    async def start(self) -> None:
        """Resets the engine and loads the table."""
        self.dut.clear.value = 0
        self.dut.matrix_done.value = 0
        self.memories.start()
        self.instructions = Producer(self.dut, "instructions", seed=1, stall=0.3)
        await start(self.dut)
        table = random_table(self.generator, self.configuration)
        table["table_words"] = (
            table_entries(self.configuration) * 4 // self.configuration.weight_word_bytes
        )
        self.send([table])
        await self.completions([table])

    def send(self, instructions: Sequence[Fields]) -> None:
        """Offers the instructions in the background."""
        mask = (1 << post_instruction(self.configuration).size) - 1
        packed = [isa.pack(isa.POST_FIELDS, fields) for fields in instructions]
        self.instructions.start(int.from_bytes(word, "little") & mask for word in packed)

    async def completions(self, instructions: Sequence[Fields]) -> int:
        """Waits for all pulses ``completed``; cycles from the first ``started`` to the last one.

        When an instruction completes, what it writes must be there, but for what the next one may
        have written since; at the end everything is compared.
        """
        begun = cycles = done = started = 0
        expected = [self._execute(fields) for fields in instructions]
        for _ in range(100_000):
            await RisingEdge(self.dut.clk)
            cycles += 1
            if self.dut.started.value == 1:
                begun = cycles if not started else begun
                self._check_permission(instructions[started])
                started += 1
            if self.dut.completed.value == 1:
                follower = expected[done + 1][1] if done + 1 < len(expected) else None
                self._check(*expected[done], follower, instructions[done])
                done += 1
            if done == len(instructions):
                break
        assert started == done == len(instructions), f"{done} of {len(instructions)} completed"
        np.testing.assert_array_equal(self._contents.activations, self._expected[0])
        return cycles - begun

    def _check(
        self, memory: np.ndarray, own: np.ndarray, follower: np.ndarray | None, fields: Fields
    ) -> None:
        mine = own if follower is None else own & ~follower
        wrong = np.flatnonzero((self._contents.activations != memory) & mine)
        assert not len(wrong), f"bytes {wrong[:8]} of {len(wrong)} after {fields}"

    def _check_permission(self, instruction: Fields) -> None:
        matrix_done = self.dut.matrix_done.value.to_unsigned()
        assert (matrix_done - instruction["wait"]) % 2**16 < 2**15, "started too early"

    def _execute(self, instruction: Fields) -> tuple[np.ndarray, np.ndarray]:
        """The memory after the instruction, and which bytes it writes."""
        c, opcode, memory = self.configuration, instruction["opcode"], self._expected
        contents = self._contents
        if opcode == Opcode.TABLE:
            load_table(instruction, contents.weights, self._table, c)
            return memory[0].copy(), np.zeros(c.activation_bytes, bool)
        channels: Parameters = parameter_block(
            contents.weights, contents.ninth, instruction["parameter_address"], c
        )
        if opcode == Opcode.DRAIN:
            bank = contents.accumulators[instruction["bank"]][None]
            drain(instruction, bank, channels, memory, c, self._notes, self._table)
        else:
            map_taps(instruction, self._table, channels, memory, c, self._notes)
        return memory[0].copy(), _written(instruction, c)

    def draw(self, opcode: Opcode) -> Fields:
        """A random instruction of this kind; a DRAIN that follows the one before and reads no
        bytes."""
        while True:
            instruction = self.draw_any(opcode)
            if opcode != Opcode.DRAIN or not instruction["table_words"] & READING_FLAGS:
                return instruction

    def draw_any(self, opcode: Opcode) -> Fields:
        """A random instruction of this kind."""
        while True:
            instruction = random_post(self.generator, self.configuration)
            if instruction["opcode"] == opcode:
                return instruction


def _written(instruction: Fields, configuration: Configuration) -> np.ndarray:
    mask = np.zeros(configuration.activation_bytes, bool)
    width = instruction["slices"] * configuration.lanes
    for row in range(instruction["rows"]):
        for column in range(instruction["columns"]):
            first = instruction["destination"] + row * instruction["destination_row_step"]
            first += column * instruction["destination_column_step"]
            first %= ROW_STEP_MODULUS
            mask[first : first + width] = True
    return mask


def _results(instruction: Fields) -> int:
    return instruction["rows"] * instruction["columns"]


@cocotb.test()
@cocotb.parametrize(seed=[1, 2])
async def random_instructions(dut: Any, seed: int) -> None:
    """Instructions back to back, with late permissions across the counter's wrap."""
    test = PostTest(dut, seed)
    generator, first_done = test.generator, 2**16 - 20
    await test.start()
    kinds = generator.choice([Opcode.DRAIN, Opcode.DRAIN, Opcode.MAP, Opcode.MAP, Opcode.TABLE], 50)
    instructions = [test.draw_any(Opcode(kind)) for kind in kinds]
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
    await test.completions(instructions)
    await permissions
    await ClockCycles(dut.clk, 2)
    assert dut.post_done.value.to_unsigned() == len(instructions) + 1
    assert dut.busy.value == 0
    dut.clear.value = 1
    await ClockCycles(dut.clk, 2)
    assert dut.post_done.value.to_unsigned() == 0


@cocotb.test()
async def throughput(dut: Any) -> None:
    """DRAIN writes a slice a cycle; MAP reads a tap a cycle but for the cycles of its writes, and
    those after taps that are looked up in halved tables."""
    test = PostTest(dut, 3)
    c, engine = test.configuration, PostEngine(configuration=test.configuration)
    await test.start()
    test.memories.stall = 0
    latency = landing_distance(c)
    for _ in range(20):
        instruction = test.draw(Opcode(test.generator.choice([Opcode.DRAIN, Opcode.MAP])))
        before = len(test.memories.reads) + len(test.memories.writes)
        test.send([instruction])
        cycles = await test.completions([instruction])
        accesses = len(test.memories.reads) + len(test.memories.writes) - before
        pixels, slices = _results(instruction), instruction["slices"]
        if instruction["opcode"] == Opcode.DRAIN:
            assert accesses == pixels * slices
            period = max(pixels, engine.parameter_period)
            late = cycles - ((slices - 1) * period + pixels + latency)
            # with one pixel a slice may wait a cycle for its accumulators' turn
            assert 0 <= late <= (slices if c.pixels == 1 else 0), instruction
        else:
            taps_y, taps_x = instruction["taps_y"], instruction["taps_x"]
            taps = taps_y * taps_x
            lookups = taps_y * sum(instruction["use_table"] >> k % 2 & 1 for k in range(taps_x))
            pauses = lookups if c.halved_tables else 0
            assert accesses == pixels * slices * (1 + taps)
            # a slice follows the one before after 3 cycles at the earliest
            work = slices * max(pixels * (1 + taps + pauses), 3)
            assert cycles <= work + latency, instruction


@cocotb.test()
async def drains_follow_each_other(dut: Any) -> None:
    """Steps of a DRAIN follow those of the one before, or as soon as its parameters are there."""
    test = PostTest(dut, 5)
    c, engine = test.configuration, PostEngine(configuration=test.configuration)
    await test.start()
    test.memories.stall = 0
    test.instructions = Producer(dut, "instructions")
    period = max(engine.parameter_period, FIELDS_PERIOD)
    shapes = [(1, 1), (period, 1), (8, 7), (period, 1), (period, 1), (1, 3), (2, 2), (8, 7)]
    shapes = [shape if np.prod(shape) <= 32 else (8, 4) for shape in shapes]
    instructions = [test.draw(Opcode.MAP)]
    for rows, columns in shapes:
        instruction = test.draw(Opcode.DRAIN)
        steps = {"destination_row_step": columns * c.lanes, "destination_column_step": c.lanes}
        instructions.append(
            instruction | {"rows": rows, "columns": columns, "slices": 1, "destination": 0} | steps
        )
    map_writes = _results(instructions[0]) * instructions[0]["slices"]
    before = len(test.memories.writes)
    test.send(instructions)
    await test.completions(instructions)
    writes = test.memories.writes[before + map_writes :]
    first, firsts = 0, []
    for instruction in instructions[1:]:
        count = _results(instruction)
        cycles = writes[first : first + count]
        assert cycles[-1] - cycles[0] == count - 1, "a gap within a DRAIN"
        firsts.append(cycles[0])
        first += count
    # the MAP's writes may hold up the first one's first step
    expected = [max(_results(item), period) for item in instructions[1:-1]]
    assert -1 <= expected[0] - (firsts[1] - firsts[0]) <= 2
    # with one pixel each may wait a cycle for its accumulators' turn
    late = np.diff(firsts) - expected
    assert np.all(np.abs(late[1:]) <= (c.pixels == 1)), (firsts, expected)


@cocotb.test()
async def tables_load_an_entry_a_cycle(dut: Any) -> None:
    test = PostTest(dut, 6)
    c = test.configuration
    await test.start()
    test.memories.stall = 0
    table = random_table(test.generator, c)
    table["table_words"] = table_entries(c) * 4 // c.weight_word_bytes
    test.send([table])
    cycles = await test.completions([table])
    most = table_entries(c) + WEIGHT_READ_LATENCY + largest_skew(c) + _TABLE_OVERHEAD
    assert cycles <= most


@cocotb.test()
async def waits_for_the_other_stream(dut: Any) -> None:
    """An instruction whose time has not come does nothing but read its parameters."""
    test = PostTest(dut, 4)
    await test.start()
    instruction = test.draw(Opcode.DRAIN)
    instruction["wait"] = 5
    test.send([instruction])
    dut.matrix_done.value = 4
    await ClockCycles(dut.clk, 200)
    assert dut.post_done.value.to_unsigned() == 1
    assert not test.memories.writes
    dut.matrix_done.value = 5
    for _ in range(4):
        await RisingEdge(dut.clk)
        if dut.started.value == 1:
            break
    else:
        raise AssertionError("started late")
    await RisingEdge(dut.clk)
