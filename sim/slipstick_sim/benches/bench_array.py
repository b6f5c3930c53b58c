"""The systolic array against the matrix product, weights changing at full speed."""

from dataclasses import dataclass
from typing import Any

import cocotb
import numpy as np
from amaranth.lib import wiring
from cocotb.triggers import RisingEdge
from slipstick_rtl.array.systolic_array import CAPTURE_CYCLES, SystolicArray
from slipstick_rtl.config import Configuration
from slipstick_rtl.latencies import weight_skew

from ..golden.arithmetic import arithmetic_of, operand_range
from ..golden.array import tile_words
from ..netlist import ecp5_cells
from .drivers.on_chip import DEVICE, ECP5, OnChip
from .drivers.streams import start
from .registry import Bench, parameters

_TILES = 40


def make(**shape: Any) -> wiring.Component:
    """An array of this shape; on a chip if the shape names one."""
    device = shape.pop(DEVICE, None)
    array = SystolicArray(configuration=Configuration(lanes=4, **shape))
    return array if device is None else OnChip(array, device)


BENCH = Bench(
    name="bench_array",
    component=make,
    test_module=__name__,
    parameters=(
        {"pixels": 1, "rows": 8, "columns": 8},
        {"rows": 8, "columns": 4, "multiplier": "lut", "weight_rows": 2, "packed_rows": 3}
        | {DEVICE: ECP5},
        {"pixels": 2, "rows": 4, "columns": 4, "number_format": "lns1+3+2", DEVICE: ECP5},
        {"rows": 8, "columns": 8, "weight_rows": 2, "silicon": 1},
        # two rows share their sums
        {"rows": 16, "columns": 16, "weight_rows": 4, "silicon": 1},
        # ... of two chains, as no half works on vectors of its own
        {"pixels": 2, "rows": 8, "columns": 4, "weight_rows": 2, "silicon": 1},
    ),
    thorough=(
        # as many rows as there can be: a sum waits in two rings beside the lower half
        {"rows": 64, "columns": 4, "weight_rows": 8, DEVICE: ECP5},
        {"pixels": 2, "rows": 4, "columns": 4, "multiplier": "lut"},
        {"rows": 12, "columns": 8, "weight_rows": 2, "number_format": "lns1+2+2", DEVICE: ECP5},
        {"rows": 24, "columns": 8, "weight_rows": 4, "multiplier": "lut", "packed_rows": 5},
        {"rows": 16, "columns": 16, "weight_rows": 4, "silicon": 1, "number_format": "lns1+3+2"},
        {"rows": 16, "columns": 4, "multiplier": "lut", "weight_rows": 4, "packed_rows": 6},
        {"pixels": 2, "rows": 8, "columns": 4, "weight_rows": 2, "packed_rows": 8},
        {"rows": 8, "columns": 8, "multiplier": "lut", "weight_rows": 2, "packed_rows": 3}
        | {DEVICE: ECP5},
    ),
    verilog=ecp5_cells.verilog,
    optimisation="-O0",
)


@dataclass(frozen=True)
class _Tile:
    """Weights (R, C), vectors (count, P, R), and the probability of a cycle without a word."""

    weights: np.ndarray
    vectors: np.ndarray
    stall: float


def _tiles(generator: np.random.Generator, configuration: Configuration) -> list[_Tile]:
    """Corner values among them; half of them have one vector and no stall."""
    c, tiles = configuration, []
    smallest, largest = operand_range(c)
    for index in range(_TILES):
        quick = index % 20 < 10
        count = 1 if quick else int(generator.integers(1, 3 * c.tile_words))
        shapes = (c.rows, c.columns), (count, c.pixels, c.rows)
        weights, vectors = (
            generator.integers(smallest, largest, shape, np.int8, endpoint=True) for shape in shapes
        )
        if index % 5 == 0:
            weights[:], vectors[::2] = generator.choice([smallest, largest]), smallest
        if index % 5 == 1:
            corners = np.array([smallest, 1 - largest, -1, 0, 1, largest], np.int8)
            weights[:] = generator.choice(corners, weights.shape)
            vectors[:] = generator.choice(corners, vectors.shape)
        tiles.append(_Tile(weights, vectors, 0.0 if quick else float(generator.choice([0, 0.4]))))
    return tiles


@dataclass
class _Schedule:
    """Holds the inputs of every port in every cycle, as early as the array's rules allow."""

    words: dict[int, np.ndarray]
    last: set[int]
    swaps: list[int]
    vectors: dict[int, np.ndarray]

    @classmethod
    def of(cls, tiles: list[_Tile], configuration: Configuration) -> "_Schedule":
        gaps = np.random.default_rng(2)
        length = configuration.tile_words
        schedule = cls({}, set(), [], {})
        # cycles of the next word, the last swap, and the first cycle that is free for a vector
        cycle, swap, free = 4, -100, 0
        for tile in tiles:
            for q, word in enumerate(tile_words(tile.weights, configuration.weight_rows)):
                while gaps.random() < tile.stall:
                    cycle += 1
                if q:
                    cycle = max(cycle, swap + q + 1 - CAPTURE_CYCLES)
                if q == length - 1:
                    schedule.last.add(cycle)
                schedule.words[cycle] = word
                cycle += 1
            swap = max(cycle - length + CAPTURE_CYCLES, free - 1)
            if tile.stall:
                swap += int(gaps.integers(0, 3))
            schedule.swaps.append(swap)
            free = swap + 1 + len(tile.vectors)
            schedule.vectors |= {swap + 1 + k: vector for k, vector in enumerate(tile.vectors)}
        return schedule


def _bits(values: np.ndarray) -> int:
    return int.from_bytes(values.astype(np.int8).tobytes(), "little")


def _port(schedule: _Schedule, configuration: Configuration, cycle: int) -> np.ndarray:
    """The weights' port: each byte as late as the memory gives it."""
    c = configuration
    port = np.full((c.weight_rows, c.columns), 85, np.int8)
    for s, j in np.ndindex(c.weight_rows, c.columns):
        word = schedule.words.get(cycle - weight_skew(c, s, j))
        if word is not None:
            port[s, j] = word[s, j]
    return port


@cocotb.test()
async def products(dut: Any) -> None:
    """Every sum of every column, ``latency + column`` cycles after its vector."""
    shape = {name: value for name, value in parameters().items() if name != DEVICE}
    c = Configuration(lanes=4, **shape)
    latency = SystolicArray(configuration=c).latency
    tiles = _tiles(np.random.default_rng(1), c)
    expected = np.concatenate(
        [arithmetic_of(c).tile_sums(tile.vectors, tile.weights) for tile in tiles]
    )
    schedule = _Schedule.of(tiles, c)
    # one vector a tile, without stalls: the weights alone set the pace
    assert set(np.diff(schedule.swaps[2:10])) == {c.tile_words}
    await start(dut)
    seen: dict[int, int] = {}
    for cycle in range(max(schedule.vectors) + latency + c.columns + 2):
        dut.swap.value = int(cycle in schedule.swaps)
        dut.shift.value, dut.last.value = int(cycle in schedule.words), int(cycle in schedule.last)
        dut.weights.value = _bits(_port(schedule, c, cycle))
        vector = schedule.vectors.get(cycle)
        dut.activations.value = _bits(np.full((c.pixels, c.rows), 99) if vector is None else vector)
        await RisingEdge(dut.clk)
        seen[cycle] = dut.partial_sums.value.to_unsigned()
    width = (dut.partial_sums.value.range.left + 1) // (c.pixels * c.columns)
    for vector, cycle in zip(expected, sorted(schedule.vectors), strict=True):
        for p, j in np.ndindex(c.pixels, c.columns):
            bits = seen[cycle + latency + j] >> (p * c.columns + j) * width
            got = (bits & (1 << width) - 1) - (bits >> width - 1 & 1) * (1 << width)
            assert got == vector[p, j], f"pixel {p}, column {j}, cycle {cycle}"
