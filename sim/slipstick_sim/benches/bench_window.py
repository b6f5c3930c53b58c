"""Pixel counter, lane table and window reader over the activation memory, against the vectors."""

from typing import Any

import cocotb
import numpy as np
from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2
from cocotb.triggers import RisingEdge
from slipstick_rtl import isa
from slipstick_rtl.array.pixel_counter import PixelCounter
from slipstick_rtl.array.window_reader import WindowReader
from slipstick_rtl.config import Configuration
from slipstick_rtl.layouts import MATRIX_INSTRUCTION
from slipstick_rtl.memory.activation_memory import ActivationMemory
from slipstick_rtl.memory.port_arbiter import byte_write_layout
from slipstick_rtl.primitives.delay import delay

from ..golden.windows import window_vectors
from .drivers.streams import Producer, pack, start
from .registry import Bench, parameters
from .stimulus.random_convolve import random_convolve


class WindowUnit(wiring.Component):
    """The window reader with counter and memory; the bench plays the weight loader."""

    instruction: data.View
    prepared: Signal
    swap: Signal
    pairs: Signal
    valid: Signal
    o: data.View
    activations: stream.Interface
    instructions: stream.Interface

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = c = configuration
        bits = exact_log2(c.activation_bytes)
        self._pixels = PixelCounter(configuration=c, address_bits=bits)
        self._reader = WindowReader(configuration=c, address_bits=bits)
        super().__init__(
            {
                "activations": In(stream.Signature(byte_write_layout(c))),
                "instructions": In(stream.Signature(MATRIX_INSTRUCTION)),
                "instruction": In(MATRIX_INSTRUCTION),
                "prepared": Out(1),
                "swap": In(1),
                "pairs": In(1),
                "valid": Out(1),
                "o": Out(self._reader.o.shape()),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.memory = memory = ActivationMemory(configuration=self._configuration)
        m.submodules.pixels = pixels = self._pixels
        m.submodules.reader = reader = self._reader
        connect(m, memory.link_writes, flipped(self.activations))
        connect(m, reader.table.instructions, flipped(self.instructions))
        reading = Signal()
        with m.If(self.swap):
            m.d.sync += reading.eq(1)
        with m.Elif(pixels.last):
            m.d.sync += reading.eq(0)
        m.d.comb += [
            pixels.instruction.eq(self.instruction),
            pixels.start.eq(self.swap),
            pixels.pairs.eq(self.pairs),
            pixels.advance.eq(reading),
            self.prepared.eq(reader.table.prepared),
            reader.table.swap.eq(self.swap),
            reader.base.eq(pixels.base),
            reader.x.eq(pixels.x),
            reader.y.eq(pixels.y),
            reader.height.eq(self.instruction.height),
            reader.width.eq(self.instruction.width),
            reader.padding.eq(self.instruction.padding_value),
            memory.window_rows.eq(reader.bank_rows),
            reader.bank_bytes.eq(memory.window_data),
            self.o.eq(reader.o),
            self.valid.eq(delay(m, reading, reader.latency, "valid")),
        ]
        return m


def make(**shape: Any) -> WindowUnit:
    """The unit for a small configuration of this shape."""
    return WindowUnit(configuration=_configuration(shape))


def _configuration(shape: dict[str, Any]) -> Configuration:
    return Configuration(activation_bytes=1 << 11, accumulator_depth=64, lanes=4, **shape)


BENCH = Bench(
    name="bench_window",
    component=make,
    test_module=__name__,
    parameters=(
        {"pixels": 1, "rows": 8, "columns": 8, "weight_rows": 2},
        {"pixels": 2, "rows": 4, "columns": 4},
        {"rows": 12, "columns": 8, "weight_rows": 2},
        {"pixels": 1, "rows": 16, "columns": 8, "weight_rows": 2, "silicon": 1},
    ),
    thorough=(
        {"pixels": 1, "rows": 16, "columns": 4, "weight_rows": 4},
        {"pixels": 2, "rows": 24, "columns": 8, "weight_rows": 4},
    ),
)


async def _tile(dut: Any, cycles: int, count: int) -> list[int]:
    """Swaps a tile in that takes so many cycles to prepare, and takes its vectors."""
    for _ in range(cycles + 3):
        if dut.prepared.value == 1:
            break
        await RisingEdge(dut.clk)
    assert dut.prepared.value == 1, "a tile takes too long"
    dut.swap.value = 1
    await RisingEdge(dut.clk)
    dut.swap.value = 0
    vectors: list[int] = []
    for _ in range(count + 40):
        await RisingEdge(dut.clk)
        if dut.valid.value == 1:
            vectors.append(dut.o.value.to_unsigned())
    return vectors


@cocotb.test()
async def vectors(dut: Any) -> None:
    """Random windows: the vectors of every tile, in order, without a gap."""
    c = _configuration(parameters())
    generator = np.random.default_rng(1)
    activations = generator.integers(-128, 128, c.activation_bytes, np.int8)
    await start(dut)
    layout = byte_write_layout(c)
    await Producer(dut, "activations").send(
        pack(layout, {"address": address, "data": int(byte)})
        for address, byte in enumerate(activations.view(np.uint8))
    )
    for _ in range(40):
        fields = random_convolve(generator, c, np.zeros((1 << 14, 1, c.columns), np.int8))
        expected, defined = window_vectors(fields, activations, c)
        word = int.from_bytes(isa.pack(isa.MATRIX_FIELDS, fields), "little")
        word &= (1 << MATRIX_INSTRUCTION.size) - 1
        dut.instruction.value = word
        await Producer(dut, "instructions").send([word])
        cycles = c.tile_words if fields["whole_words"] else c.rows
        for number, (tile, lanes) in enumerate(zip(expected, defined, strict=True)):
            dut.pairs.value = int(number == 0 and fields["pairs"])
            count = tile.shape[0] * tile.shape[1]
            got = await _tile(dut, cycles, count)
            raw = b"".join(vector.to_bytes(c.pixels * c.rows, "little") for vector in got)
            actual = np.frombuffer(raw, np.int8).reshape(tile.shape)
            np.testing.assert_array_equal(actual[..., lanes], tile[..., lanes], str(fields))
