"""The systolic array against the matrix product, weights changing at full speed."""

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge
from cocotb.utils import get_sim_time
from slipstick_rtl.array.systolic_array import SystolicArray, array_latency
from slipstick_rtl.config import Configuration

from ..golden.array import tile_sums
from .registry import Bench, parameters
from .streams import CLOCK_PERIOD_NS, start


def make(**shape: Any) -> SystolicArray:
    """An array of this shape."""
    return SystolicArray(configuration=Configuration(**shape))


BENCH = Bench(
    name="bench_array",
    component=make,
    test_module=__name__,
    parameters=(
        {"pixels": 1, "rows": 8, "columns": 4, "lanes": 4},
        {"pixels": 2, "rows": 4, "columns": 8, "lanes": 4, "multiplier": "lut", "dsp_columns": 3},
    ),
)


def _tiles(generator: np.random.Generator, configuration: Configuration) -> list[tuple]:
    """(weights, vectors) of many tiles; corner values among them; short tiles and long ones."""
    c, tiles = configuration, []
    for index in range(30):
        count = int(generator.integers(c.rows + 1, 3 * c.rows))
        weights = generator.integers(-128, 128, (c.rows, c.columns), np.int8)
        vectors = generator.integers(-128, 128, (count, c.pixels, c.rows), np.int8)
        if index % 5 == 0:
            weights[:], vectors[::2] = generator.choice([-128, 127]), -128
        tiles.append((weights, vectors))
    return tiles


def _bits(values: np.ndarray) -> int:
    return int.from_bytes(values.astype(np.int8).tobytes(), "little")


class _Stimulus:
    """Drives tiles: vectors nearly without a pause, the next tile's weights with each swap."""

    def __init__(self, dut: Any, tiles: list[tuple]) -> None:
        self._dut, self._tiles = dut, tiles
        self.entered: list[int] = []

    async def load(self, weights: np.ndarray) -> None:
        """One tile of weights, a row a cycle."""
        for row, word in enumerate(weights):
            self._dut.capture.value = int(row == 0)
            self._dut.weights.value = _bits(word)
            await RisingEdge(self._dut.clk)
        self._dut.capture.value = 0

    async def run(self) -> None:
        """All tiles; notes the cycle in which each vector entered."""
        gaps = np.random.default_rng(2)
        await self.load(self._tiles[0][0])
        pause = 1
        for index, (_, vectors) in enumerate(self._tiles):
            # the swap is a cycle ahead of its vectors: with the last one before, or in the pause
            for cycle in range(pause):
                self._dut.swap.value = int(cycle == pause - 1)
                await RisingEdge(self._dut.clk)
            if index + 1 < len(self._tiles):
                cocotb.start_soon(self.load(self._tiles[index + 1][0]))
            pause = int(gaps.integers(0, 3))
            for position, vector in enumerate(vectors):
                last = position == len(vectors) - 1
                self._dut.swap.value = int(last and pause == 0 and index + 1 < len(self._tiles))
                self._dut.activations.value = _bits(vector)
                await RisingEdge(self._dut.clk)
                self.entered.append(_cycle())
            self._dut.swap.value = 0


def _cycle() -> int:
    return int(get_sim_time("ns")) // CLOCK_PERIOD_NS


@cocotb.test()
async def products(dut: Any) -> None:
    """Every sum of every column, ``latency + column`` cycles after its vector."""
    c = Configuration(**parameters())
    latency = array_latency(c)
    tiles = _tiles(np.random.default_rng(1), c)
    expected = np.concatenate([tile_sums(vectors, weights) for weights, vectors in tiles])
    await start(dut)
    stimulus = _Stimulus(dut, tiles)
    driving = cocotb.start_soon(stimulus.run())
    seen: dict[int, int] = {}
    after = 0
    while after < latency + c.columns + 4:
        await RisingEdge(dut.clk)
        seen[_cycle()] = dut.partial_sums.value.to_unsigned()
        after += driving.done()
    width = dut.partial_sums.value.range.left + 1
    width //= c.pixels * c.columns
    for vector, cycle in zip(expected, stimulus.entered, strict=True):
        for p, j in np.ndindex(c.pixels, c.columns):
            bits = seen[cycle + latency + j] >> (p * c.columns + j) * width
            got = (bits & (1 << width) - 1) - (bits >> width - 1 & 1) * (1 << width)
            assert got == vector[p, j], f"pixel {p}, column {j}, cycle {cycle}"
