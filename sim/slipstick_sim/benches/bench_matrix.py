"""Matrix engine with its memories and accumulators against the golden CONVOLVE."""

from typing import Any

import cocotb
import numpy as np
from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cocotb.triggers import ClockCycles, RisingEdge
from slipstick_rtl import isa
from slipstick_rtl.array.accumulators import Accumulators, read_layout
from slipstick_rtl.array.matrix_engine import MatrixEngine
from slipstick_rtl.config import Configuration
from slipstick_rtl.layouts import MATRIX_INSTRUCTION
from slipstick_rtl.link.layouts import ByteWrite
from slipstick_rtl.memory.activation_memory import ActivationMemory
from slipstick_rtl.memory.latencies import ACCUMULATOR_READ_LATENCY
from slipstick_rtl.memory.port_arbiter import byte_write_layout
from slipstick_rtl.memory.weight_memory import WeightMemory

from ..golden.convolve import convolve
from ..golden.weights import weight_units
from .random_convolve import prepare_pairs, random_convolve
from .registry import Bench, parameters
from .streams import Producer, pack, start


class MatrixUnit(wiring.Component):
    """Everything that a CONVOLVE touches, with ports to fill and read the memories."""

    weight: data.View
    weight_enable: Signal
    post_done: Signal
    done: Signal
    busy: Signal
    streaming: Signal
    read: data.View
    read_data: Signal
    instructions: stream.Interface
    activations: stream.Interface
    parameter_reads: stream.Interface

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = c = configuration
        super().__init__(
            {
                "instructions": In(stream.Signature(MATRIX_INSTRUCTION)),
                "activations": In(stream.Signature(byte_write_layout(c))),
                "parameter_reads": In(stream.Signature(24)),
                "weight": In(ByteWrite),
                "weight_enable": In(1),
                "post_done": In(16),
                "done": Out(16),
                "busy": Out(1),
                "streaming": Out(1),
                "read": In(read_layout(c.accumulator_depth)),
                "read_data": Out(c.pixels * c.columns * 32),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        c = self._configuration
        m.submodules.engine = engine = MatrixEngine(configuration=c)
        m.submodules.accumulators = accumulators = Accumulators(configuration=c)
        m.submodules.activations = activations = ActivationMemory(configuration=c)
        m.submodules.weights = weights = WeightMemory(configuration=c)
        connect(m, engine.instructions, flipped(self.instructions))
        connect(m, activations.link_writes, flipped(self.activations))
        connect(m, engine.weight_reads, weights.loader_reads)
        connect(m, weights.parameter_reads, flipped(self.parameter_reads))
        phase = Signal()
        m.d.sync += phase.eq(~phase)
        m.d.comb += [
            engine.phase.eq(phase),
            engine.post_done.eq(self.post_done),
            self.done.eq(engine.done),
            self.busy.eq(engine.busy),
            weights.write.eq(self.weight),
            weights.write_enable.eq(self.weight_enable),
            self.streaming.eq(engine.streaming),
            engine.weight_data.eq(weights.data),
            engine.weight_ninth.eq(weights.ninth),
            activations.window_rows.eq(engine.bank_rows),
            engine.bank_bytes.eq(activations.window_data),
            accumulators.control.eq(engine.control),
            accumulators.partial_sums.eq(engine.partial_sums),
            accumulators.even_sums.eq(engine.even_sums),
            accumulators.read.eq(self.read),
            self.read_data.eq(accumulators.read_data),
        ]
        return m


def make(**shape: Any) -> MatrixUnit:
    """The unit for a small configuration of this shape."""
    return MatrixUnit(configuration=_configuration(shape))


def _configuration(shape: dict[str, Any]) -> Configuration:
    return Configuration(
        activation_bytes=1 << 12, weight_bytes=1 << 12, accumulator_depth=64, **shape
    )


BENCH = Bench(
    name="bench_matrix",
    component=make,
    test_module=__name__,
    parameters=(
        {"pixels": 1, "rows": 8, "columns": 8, "lanes": 4, "weight_rows": 2},
        {"pixels": 2, "rows": 8, "columns": 4, "lanes": 4},
        {"pixels": 1, "rows": 4, "columns": 8, "lanes": 4},
        {"rows": 16, "columns": 8, "lanes": 4, "weight_rows": 4, "packed_rows": 5, "ninth_bits": 1},
        {"rows": 8, "columns": 8, "lanes": 4, "packed_rows": 3, "multiplier": "lut"},
    ),
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


@cocotb.test()
async def random_instructions(dut: Any) -> None:
    """Pairs of CONVOLVEs, back to back, with late permissions, equal the golden model.

    Some are on one bank; and what they add to is a bank that the rounds before have left.
    """
    configuration = _configuration(parameters())
    generator = np.random.default_rng(1)
    activations = generator.integers(-128, 128, (1, configuration.activation_bytes), np.int8)
    shape = configuration.weight_words, configuration.weight_rows, configuration.columns
    weights = generator.integers(-128, 128, shape, np.int8)
    ninth = generator.integers(0, 2, shape, np.uint8)
    activations[0, :64] = -128
    weights[:16] = -128
    prepare_pairs(weights, configuration)
    await start(dut)
    await _fill(dut, configuration, activations, weights, ninth)
    producer = Producer(dut, "instructions", seed=2, stall=0.3)
    disturbance = cocotb.start_soon(_disturb(dut, 0.2))
    done = 0
    expected = np.zeros((2, 1, 64, configuration.pixels, configuration.columns), np.int32)
    for round_index in range(24):
        pair = [random_convolve(generator, configuration, weights) for _ in range(2)]
        for instruction, bank in zip(pair, generator.permutation([0, 0, 1, 1])[:2], strict=True):
            instruction["bank"] = int(bank)
            instruction["wait"] = round_index
            convolve(instruction, weights, activations, expected[bank], configuration, ninth)
        task = producer.start(map(_packed, pair))
        await ClockCycles(dut.clk, int(generator.integers(1, 60)))
        assert dut.done.value.to_unsigned() == done, "an instruction did not wait"
        dut.post_done.value = round_index
        done += 2
        for _ in range(20000):
            if dut.done.value.to_unsigned() == done:
                break
            await RisingEdge(dut.clk)
        await task
        for instruction in pair:
            count, bank = instruction["rows"] * instruction["groups"], instruction["bank"]
            got = await _read(dut, configuration, bank, count)
            np.testing.assert_array_equal(got, expected[bank][0, :count], str(instruction))
        await ClockCycles(dut.clk, 3)
        assert dut.busy.value == 0
    disturbance.cancel()
    dut.parameter_reads__valid.value = 0


@cocotb.test()
async def tiles_without_gaps(dut: Any) -> None:
    """A tile every max(vectors, R / W) cycles, whole words or not so many, across instructions."""
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
