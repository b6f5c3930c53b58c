"""The weight memory: what the link writes is what each reader gets, each byte in its cycle."""

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge
from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.layouts import WEIGHT_GROUP
from slipstick_rtl.dma.transfer import GROUP_CELLS
from slipstick_rtl.latencies import WEIGHT_READ_LATENCY, weight_skew
from slipstick_rtl.link.layouts import ByteWrite
from slipstick_rtl.memory.weight_memory import WeightMemory

from ..golden.weights import weight_units, weight_words
from .drivers.streams import pack, start
from .registry import Bench, parameters

_CHIP = "MT48LC16M16"
_READERS = ("parameter_reads", "loader_reads", "table_reads")
"""In the order of their rank, but that parameters come behind the loader if not urgent."""


def _configuration(shape: dict[str, Any]) -> Configuration:
    fields: dict[str, Any] = {"lanes": 4, "weight_bytes": 1 << 11, **shape}
    return Configuration(**fields)


def make(**shape: Any) -> WeightMemory:
    """A small memory of this shape."""
    return WeightMemory(configuration=_configuration(shape))


BENCH = Bench(
    name="bench_weights",
    component=make,
    test_module=__name__,
    parameters=(
        {"rows": 8, "columns": 4},
        {"rows": 8, "columns": 16, "weight_rows": 2},
        {"rows": 4, "columns": 8, "ninth_bits": 1, "weight_bytes": 1 << 15},
        {"rows": 16, "columns": 8, "weight_rows": 4, "ninth_bits": 1, "dram": _CHIP},
        {"rows": 4, "columns": 4, "dram": _CHIP},
    ),
    thorough=(
        {"rows": 16, "columns": 8, "weight_rows": 4, "ninth_bits": 1},
        {"rows": 8, "columns": 16, "weight_rows": 2, "dram": _CHIP},
        {"rows": 4, "columns": 8, "ninth_bits": 1, "weight_bytes": 1 << 15, "dram": _CHIP},
    ),
)


async def _write(dut: Any, units: np.ndarray, order: np.ndarray) -> None:
    """Units in any order, the bytes of each with pauses; one is begun and given up before."""
    pauses = np.random.default_rng(3)
    for address in [int(order[0]), *map(int, order)]:
        for offset, byte in enumerate(units[address]):
            fields = {"space": 1, "address": address, "offset": offset, "data": int(byte)}
            dut.write.value, dut.write_enable.value = pack(ByteWrite, fields), 1
            await RisingEdge(dut.clk)
            dut.write_enable.value = 0
            if pauses.random() < 0.05:
                await RisingEdge(dut.clk)
        if pauses.random() < 0.1:
            # half a unit, which is sent again
            fields = {"space": 1, "address": address, "offset": 0, "data": int(units[address][0])}
            dut.write.value, dut.write_enable.value = pack(ByteWrite, fields), 1
            await RisingEdge(dut.clk)
            dut.write_enable.value = 0


async def _write_by_dma(dut: Any, data: np.ndarray, ninth: np.ndarray) -> None:
    """All cells in groups of eight, from the first word to the last, with pauses."""
    pauses = np.random.default_rng(4)
    cells, bits = data.reshape(-1, GROUP_CELLS), ninth.reshape(-1, GROUP_CELLS)
    for address in range(len(cells)):
        fields = {
            "address": address,
            "cells": int.from_bytes(cells[address].tobytes(), "little"),
            "ninth": int(np.packbits(bits[address], bitorder="little")[0]),
        }
        dut.dma_writes__payload.value = pack(WEIGHT_GROUP, fields)
        dut.dma_writes__valid.value = 1
        await RisingEdge(dut.clk)
        while dut.dma_writes__ready.value != 1:
            await RisingEdge(dut.clk)
        dut.dma_writes__valid.value = 0
        while pauses.random() < 0.2:
            await RisingEdge(dut.clk)


def _cell(value: int, index: int, bits: int) -> int:
    return value >> index * bits & (1 << bits) - 1


@cocotb.test()
async def words(dut: Any) -> None:
    """Random reads by all readers, of which one a cycle is served."""
    c = _configuration(parameters())
    generator = np.random.default_rng(1)
    size = c.weight_word_bytes
    data = generator.integers(0, 256, (c.weight_words, size)).astype(np.uint8)
    ninth = generator.integers(0, 2, data.shape).astype(np.uint8)
    if not c.ninth_bits:
        ninth[:] = 0
    await start(dut)
    units = weight_units(data, ninth) if c.ninth_bits else data
    assert units.shape[1] == c.weight_unit_bytes
    order = generator.permutation(c.weight_words)
    if c.dram:
        await _write_by_dma(dut, data, ninth)
        # and some of them again, by the link
        changed = order[: c.weight_words // 3]
        units[changed] = generator.integers(0, 256, units[changed].shape).astype(np.uint8)
        await _write(dut, units, changed)
        if c.ninth_bits:
            data[changed], ninth[changed] = weight_words(units[changed])
        else:
            data[changed] = units[changed]
    else:
        await _write(dut, units, order)
    served: dict[int, int] = {}
    got: list[tuple[int, int]] = []
    latest = WEIGHT_READ_LATENCY + weight_skew(c, c.weight_rows - 1, c.columns - 1)
    cycles = 1000
    for cycle in range(cycles + latest + 1):
        asked = generator.random(3) < 0.4 if cycle < cycles else np.zeros(3, bool)
        addresses = generator.integers(0, c.weight_words, 3)
        for name, valid, address in zip(_READERS, asked, addresses, strict=True):
            getattr(dut, f"{name}__valid").value = int(valid)
            getattr(dut, f"{name}__payload").value = int(address)
        urgent = int(generator.integers(0, 2))
        dut.parameters_urgent.value = urgent
        await RisingEdge(dut.clk)
        ranks = [rank for rank in ((0, 1, 2) if urgent else (1, 0, 2)) if asked[rank]]
        first = ranks[0] if ranks else None
        for rank, name in enumerate(_READERS):
            ready = getattr(dut, f"{name}__ready").value == 1
            assert (ready and asked[rank]) == (rank == first), f"{name} in cycle {cycle}"
        assert int(dut.parameter_taken.value) == (first == 0)
        assert int(dut.table_taken.value) == (first == 2)
        if first is not None:
            served[cycle] = int(addresses[first])
        got.append((dut.data.value.to_unsigned(), dut.ninth.value.to_unsigned()))
    for cycle, address in served.items():
        for index in range(size):
            s, j = divmod(index, c.columns)
            word, bits = got[cycle + WEIGHT_READ_LATENCY + weight_skew(c, s, j)]
            assert _cell(word, index, 8) == data[address, index], f"word {address} byte {index}"
            assert _cell(bits, index, 1) == ninth[address, index], f"word {address} bit {index}"
