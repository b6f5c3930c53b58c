"""Matrix engine with its memories and accumulators against the golden CONVOLVE."""

from itertools import product
from typing import Any

import cocotb
import numpy as np
from amaranth.lib import wiring
from cocotb.triggers import ClockCycles, RisingEdge
from slipstick_rtl import isa
from slipstick_rtl.array.accumulators import read_layout
from slipstick_rtl.config import Configuration
from slipstick_rtl.latencies import ACCUMULATOR_READ_LATENCY
from slipstick_rtl.layouts import MATRIX_INSTRUCTION
from slipstick_rtl.link.layouts import ByteWrite
from slipstick_rtl.memory.port_arbiter import byte_write_layout

from ..golden.arithmetic import operand_range
from ..golden.convolve import convolve
from ..golden.weights import weight_units
from ..netlist import ecp5_cells
from .drivers.matrix_unit import MatrixUnit
from .drivers.on_chip import DEVICE, ECP5, OnChip
from .drivers.streams import Producer, pack, start
from .registry import Bench, parameters
from .stimulus.random_convolve import prepare_weights, random_convolve


def make(**shape: Any) -> wiring.Component:
    """The unit for a small configuration of this shape; on a chip if the shape names one."""
    unit = MatrixUnit(configuration=_configuration(shape))
    return OnChip(unit, shape[DEVICE]) if DEVICE in shape else unit


def _configuration(shape: dict[str, Any]) -> Configuration:
    fields = {name: value for name, value in shape.items() if name != DEVICE}
    return Configuration(
        activation_bytes=1 << 12, weight_bytes=1 << 12, accumulator_depth=64, **fields
    )


BENCH = Bench(
    name="bench_matrix",
    component=make,
    test_module=__name__,
    parameters=(
        {"pixels": 2, "rows": 8, "columns": 4, "lanes": 4},
        {"rows": 12, "columns": 4, "lanes": 4, "weight_rows": 2, "number_format": "lns1+2+2"},
        {"rows": 8, "columns": 4, "lanes": 4, "weight_rows": 2, "packed_rows": 3}
        | {"multiplier": "lut", "ninth_bits": 1, DEVICE: ECP5},
    ),
    thorough=(
        {"pixels": 1, "rows": 8, "columns": 8, "lanes": 4, "weight_rows": 2},
        {"rows": 16, "columns": 8, "lanes": 4, "weight_rows": 4, "packed_rows": 5, "ninth_bits": 1},
        {"rows": 16, "columns": 8, "lanes": 4, "weight_rows": 4, "packed_rows": 7}
        | {"multiplier": "lut", "ninth_bits": 1, DEVICE: ECP5},
        {"pixels": 1, "rows": 4, "columns": 8, "lanes": 4},
        {"rows": 8, "columns": 8, "lanes": 4, "packed_rows": 3, "multiplier": "lut"},
        {
            "rows": 16,
            "columns": 8,
            "lanes": 4,
            "weight_rows": 4,
            "packed_rows": 5,
            "multiplier": "lut",
        },
    ),
    verilog=ecp5_cells.verilog,
    optimisation="-O0",
)


async def _fill(
    dut: Any, configuration: Configuration, activations: Any, weights: Any, ninth: Any
) -> None:
    layout = byte_write_layout(configuration)
    writes = [
        pack(layout, {"address": address, "data": int(byte)})
        for address, byte in enumerate(activations.view(np.uint8).ravel())
    ]
    task = Producer(dut, "activations").start(writes)
    dut.weight_enable.value = 1
    units = weights.view(np.uint8).reshape(len(weights), -1)
    if configuration.ninth_bits:
        units = weight_units(units, ninth.reshape(units.shape))
    for address, unit in enumerate(units):
        for offset, byte in enumerate(unit):
            fields = {"space": 1, "address": address, "offset": offset, "data": int(byte)}
            dut.weight.value = pack(ByteWrite, fields)
            await RisingEdge(dut.clk)
    dut.weight_enable.value = 0
    await task


async def _disturb(dut: Any, probability: float) -> None:
    """Parameters are read in between: the weight loader has to wait for them."""
    generator = np.random.default_rng(3)
    while True:
        dut.parameter_reads__valid.value = int(generator.random() < probability)
        dut.parameters_urgent.value = int(generator.random() < 0.7)
        await RisingEdge(dut.clk)


async def _read(dut: Any, configuration: Configuration, bank: int, count: int) -> np.ndarray:
    """``count`` words of a bank as (count, P, C)."""
    layout = read_layout(configuration.accumulator_depth)
    words = []
    for address in range(count):
        dut.read.value = pack(layout, {"enable": 1, "bank": bank, "address": address})
        await ClockCycles(dut.clk, ACCUMULATOR_READ_LATENCY + 2)
        words.append(dut.read_data.value.to_unsigned())
    c = configuration
    size = c.pixels * c.columns * 4
    raw = b"".join(word.to_bytes(size, "little") for word in words)
    return np.frombuffer(raw, np.int32).reshape(count, c.pixels, c.columns)


class _Run:
    """The unit with full memories, and what the golden model says of its accumulators."""

    def __init__(self, dut: Any, configuration: Configuration) -> None:
        c = configuration
        self._dut, self._configuration = dut, configuration
        self.generator = np.random.default_rng(1)
        shape = c.weight_words, c.weight_rows, c.columns
        smallest, largest = operand_range(c)
        self._activations, self.weights = (
            self.generator.integers(smallest, largest, size, np.int8, endpoint=True)
            for size in ((1, c.activation_bytes), shape)
        )
        self._ninth = self.generator.integers(0, 2, shape, np.uint8)
        self._activations[0, :64] = smallest
        self.weights[:16] = smallest
        prepare_weights(self.weights, c)
        self._expected = np.zeros((2, 1, 64, c.pixels, c.columns), np.int32)
        self._producer = Producer(dut, "instructions", seed=2, stall=0.3)
        self._done = self._waits = 0

    async def begin(self) -> None:
        await start(self._dut)
        c = self._configuration
        await _fill(self._dut, c, self._activations, self.weights, self._ninth)
        # what a test before has left
        for bank, expected in enumerate(self._expected):
            expected[0] = await _read(self._dut, self._configuration, bank, len(expected[0]))

    async def execute(self, instructions: list[dict[str, int]], patience: int) -> None:
        """Permits them so many cycles late; then they and the banks must be the golden model's."""
        dut = self._dut
        used = [0, 0]
        for instruction in instructions:
            bank = instruction["bank"]
            instruction["wait"] = self._waits
            expected = self._expected[bank]
            c = self._configuration
            convolve(instruction, self.weights, self._activations, expected, c, self._ninth)
            used[bank] = max(used[bank], instruction["rows"] * instruction["groups"])
        task = self._producer.start(map(_packed, instructions))
        await ClockCycles(dut.clk, patience)
        assert dut.done.value.to_unsigned() == self._done, "an instruction did not wait"
        dut.post_done.value = self._waits
        self._waits += 1
        self._done += len(instructions)
        for _ in range(20000):
            if dut.done.value.to_unsigned() == self._done:
                break
            await RisingEdge(dut.clk)
        await task
        for bank, count in enumerate(used):
            got = await _read(dut, self._configuration, bank, count)
            expected = self._expected[bank][0, :count]
            np.testing.assert_array_equal(got, expected, str(instructions))
        await ClockCycles(dut.clk, 3)
        assert dut.busy.value == 0


@cocotb.test()
async def random_instructions(dut: Any) -> None:
    """Pairs of CONVOLVEs, with late permissions, some on one bank; what they add to is what the
    rounds before have left there."""
    c = _configuration(parameters())
    run = _Run(dut, c)
    await run.begin()
    disturbance = cocotb.start_soon(_disturb(dut, 0.2))
    for _ in range(24):
        pair = [random_convolve(run.generator, c, run.weights) for _ in range(2)]
        banks = run.generator.permutation([0, 0, 1, 1])[:2]
        for instruction, bank in zip(pair, banks, strict=True):
            instruction["bank"] = int(bank)
        await run.execute(pair, int(run.generator.integers(1, 60)))
    disturbance.cancel()
    dut.parameter_reads__valid.value = 0


@cocotb.test()
async def depthwise_among_others(dut: Any) -> None:
    """Depthwise instructions right before and behind tiles of every kind, and one another."""
    c = _configuration(parameters())
    if not c.takes_depthwise:
        return
    run = _Run(dut, c)
    await run.begin()
    kinds = ("none", *(("pairs",) if c.takes_pairs else ()), "diagonal", "depthwise")
    for first, second in product(kinds, kinds[:3]):
        wanted = [first, "depthwise", second, "depthwise"]
        instructions: list[dict[str, int]] = []
        while len(instructions) < len(wanted):
            drawn = random_convolve(run.generator, c, run.weights)
            kind = next((kind for kind in kinds[1:] if drawn[kind]), "none")
            if kind == wanted[len(instructions)]:
                instructions.append(drawn | {"bank": len(instructions) % 2})
        await run.execute(instructions, 80)


@cocotb.test()
async def depthwise_without_gaps(dut: Any) -> None:
    """Two cycles a stream column of a row, or of two rows; or the time to prepare a tile."""
    c = _configuration(parameters())
    if not c.takes_depthwise:
        return
    fields = {
        "opcode": 1,
        "depthwise": 1,
        "reduction_tiles": 1,
        "channels": c.columns,
        "kernel_x": 1,
        "tap_step_y": c.columns,
        "row_step": c.columns,
        "whole_words": 1,
    }
    await start(dut)
    dut.post_done.value = 0
    kinds = [(1, 1, 1, ""), (2, 1, 2, ""), (5, 3, 1, ""), (3, 4, 2, ""), (1, 2, 15, "")]
    kinds += [(rows, n, 2, "kept_rows") for rows, n in ((4, 3), (5, 1), (1, 7))]
    kinds += [(rows, n, 1, "joined") for rows, n in ((4, 3), (5, 1), (2, 7))]
    for rows, groups, skip, kind in kinds:
        instruction = fields | {"rows": rows, "groups": groups, "skip": skip}
        instruction |= {kind: 1} if kind else {}
        count = 4
        task = Producer(dut, "instructions").start([_packed(instruction)] * count)
        blocks = -(-rows // 2) if skip == 1 or kind else rows
        vectors = 2 * blocks * ((groups - 1) * skip + 3)
        vectors -= 2 * (blocks - 1) if kind == "joined" else 0
        period = max(vectors, c.tile_words)
        seen: list[int] = []
        for cycle in range(80 + count * period):
            await RisingEdge(dut.clk)
            if dut.streaming.value == 1:
                seen.append(cycle)
        await task
        expected = [
            seen[0] + tile * period + vector for tile in range(count) for vector in range(vectors)
        ]
        assert seen == expected, f"{rows} rows, {groups} groups, skip {skip}"


@cocotb.test()
async def tiles_without_gaps(dut: Any) -> None:
    """A tile every max(vectors, R / W) cycles, whole words or fewer, across instructions."""
    c = _configuration(parameters())
    channels, tiles = 2 * c.rows, 3
    fields = {
        "opcode": 1,
        "reduction_tiles": tiles,
        "channels": channels,
        "kernel_x": 1 + tiles * c.rows // channels,
        "tap_step_x": channels,
        "height": 100,
        "width": 100,
        "groups": 1,
    }
    await start(dut)
    dut.post_done.value = 0
    for whole_words in (1, 0):
        for vectors in (1, c.tile_words - 1, c.tile_words, c.tile_words + 1, c.rows + 3):
            instruction = fields | {"rows": vectors, "whole_words": whole_words}
            count = 5
            task = Producer(dut, "instructions").start([_packed(instruction)] * count)
            seen: list[int] = []
            for cycle in range(80 + count * tiles * (c.rows + vectors)):
                await RisingEdge(dut.clk)
                if dut.streaming.value == 1:
                    seen.append(cycle)
            await task
            # a tile begins in every other cycle only
            even = vectors + (vectors % 2 if c.pixels == 1 else 0)
            period = max(even, c.tile_words if whole_words else c.rows)
            expected = [
                seen[0] + tile * period + vector
                for tile in range(count * tiles)
                for vector in range(vectors)
            ]
            assert seen == expected, f"{vectors} vectors a tile, whole_words {whole_words}"


def _packed(fields: dict[str, int]) -> int:
    word = int.from_bytes(isa.pack(isa.MATRIX_FIELDS, fields), "little")
    return word & (1 << MATRIX_INSTRUCTION.size) - 1
