"""Constants as blocks of DRAM: whatever is zero, the LOADs bring the image to its place."""

import dataclasses
import zlib
from typing import Any

import numpy as np
import pytest
from slipstick.compiler.codegen.dram_blocks import constant_loads, joined
from slipstick.program.steps import Image
from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import (
    GROUP_CELLS,
    WORD_BYTES,
    DmaStatus,
    Operation,
    Target,
    Transfer,
)
from slipstick_rtl.link.protocol import Space
from slipstick_sim.golden.dma import GoldenDma
from slipstick_sim.golden.weights import weight_units

CONFIGURATION = Configuration(
    rows=16, columns=8, lanes=8, weight_rows=2, ninth_bits=1, dram="MT48LC16M16"
)
GROUPS = CONFIGURATION.weight_bytes // GROUP_CELLS
WORD_GROUPS = CONFIGURATION.weight_word_bytes // GROUP_CELLS
PLACE = 40
"""The word of DRAM that the blocks begin with."""


class Chip:
    """A weight memory in groups, full of what was there before."""

    def __init__(self) -> None:
        self.cells = np.full((GROUPS, GROUP_CELLS), 0xA5, np.uint8)
        self.ninth = np.full(GROUPS, 0x5A, np.uint8)

    def write_groups(self, first: int, cells: np.ndarray, ninth: np.ndarray) -> None:
        self.cells[first : first + len(cells)] = cells
        self.ninth[first : first + len(cells)] = ninth


def image_of(cells: np.ndarray, ninth: np.ndarray, address: int) -> Image:
    bits = np.unpackbits(ninth[:, None], axis=1, bitorder="little")
    units = weight_units(cells.reshape(-1, GROUP_CELLS), bits.reshape(-1, GROUP_CELLS))
    return Image(int(Space.WEIGHTS), address, units.tobytes())


def random_contents(generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Cells and ninth bits in spans, some of which are zero."""
    count = int(generator.integers(1, 2000)) * WORD_GROUPS
    cells = generator.integers(0, 256, (count, GROUP_CELLS), np.uint8)
    ninth = generator.integers(0, 256, count, np.uint8)
    for _ in range(generator.integers(0, 6)):
        low, high = np.sort(generator.integers(0, count + 1, 2))
        (cells if generator.random() < 0.5 else ninth)[low:high] = 0
    return cells, ninth


@pytest.mark.parametrize("seed", range(40))
def test_loads_bring_an_image_to_its_place(seed: int) -> None:
    generator = np.random.default_rng(seed)
    cells, ninth = random_contents(generator)
    address = int(generator.integers(0, (GROUPS - len(cells)) // WORD_GROUPS))
    block, loads = constant_loads(image_of(cells, ninth, address), CONFIGURATION, PLACE)
    dram = np.zeros(PLACE * WORD_BYTES + len(block), np.uint8)
    dram[PLACE * WORD_BYTES :] = np.frombuffer(block, np.uint8)
    chip: Any = Chip()
    expected = Chip()
    expected.write_groups(address * WORD_GROUPS, cells, ninth)
    dma = GoldenDma(dram, chip, ninth_bits=True)
    for load in loads:
        assert dma.execute(load.pack()) is DmaStatus.OK
    assert np.array_equal(chip.cells, expected.cells)
    assert np.array_equal(chip.ninth, expected.ninth)
    assert sum(load.words for load in loads) * WORD_BYTES == len(block)


def test_what_is_zero_is_not_moved() -> None:
    """Parameters alone are an eighth, weights alone eight ninths."""
    count = 800 * WORD_GROUPS
    full = np.full((count, GROUP_CELLS), 1, np.uint8)
    ninth = np.full(count, 1, np.uint8)
    cases = {
        Target.WEIGHTS: (full, ninth, count * 9),
        Target.CELLS: (full, ninth * 0, count * 8),
        Target.NINTHS: (full * 0, ninth, count),
    }
    for target, (cells, ninths, size) in cases.items():
        block, loads = constant_loads(image_of(cells, ninths, 0), CONFIGURATION, 0)
        assert {load.target for load in loads} == {target}
        assert len(block) == size


@pytest.mark.parametrize("seed", range(20))
def test_loads_of_pieces_are_joined(seed: int) -> None:
    """Pieces side by side come with fewer LOADs, and the chip has the same contents."""
    generator = np.random.default_rng(seed)
    cells, ninth = random_contents(generator)
    step = int(generator.integers(1, 12)) * GROUP_CELLS * WORD_GROUPS
    blocks, loads = b"", list[Transfer]()
    for first in range(0, len(cells), step):
        image = image_of(
            cells[first : first + step], ninth[first : first + step], first // WORD_GROUPS
        )
        data, some = constant_loads(image, CONFIGURATION, len(blocks) // WORD_BYTES)
        blocks, loads = blocks + data, loads + some
    # a run ends before what is behind it begins
    loads.insert(len(loads) // 2, Transfer(operation=Operation.RUN))
    fewer = list(joined(loads, blocks, CONFIGURATION))
    assert sum(load.operation is Operation.RUN for load in fewer) == 1
    if len(loads) > 8:
        assert len(fewer) < len(loads)
    chip: Any = Chip()
    expected = Chip()
    expected.write_groups(0, cells, ninth)
    dma = GoldenDma(np.frombuffer(blocks, np.uint8).copy(), chip, ninth_bits=True)
    for load in fewer:
        if load.operation is Operation.LOAD:
            assert dma.execute(load.pack()) is DmaStatus.OK
    assert np.array_equal(chip.cells, expected.cells)
    assert np.array_equal(chip.ninth, expected.ninth)


def test_loads_of_different_kinds_are_not_joined() -> None:
    """Neither those of other memories, nor those with a gap in DRAM or on the chip."""
    load = Transfer(operation=Operation.LOAD, target=Target.CELLS, checked=True, run_bytes=64)
    behind = dataclasses.replace(load, chip=8, dram=8)
    data = bytes(128)
    assert len(list(joined([load, behind], data, CONFIGURATION))) == 1
    for other in (
        dataclasses.replace(behind, chip=9),
        dataclasses.replace(behind, dram=7),
        dataclasses.replace(behind, target=Target.NINTHS),
        dataclasses.replace(behind, checked=False),
        dataclasses.replace(behind, run_bytes=1 << 16),
    ):
        assert list(joined([load, other], data, CONFIGURATION)) == [load, other]


def test_loads_of_activations_are_joined_by_bytes() -> None:
    """A LOAD's place in the activation memory counts bytes, not words of DRAM."""
    data = bytes(range(128))
    load = Transfer(
        operation=Operation.LOAD,
        target=Target.ACTIVATIONS,
        checked=True,
        run_bytes=64,
        crc=zlib.crc32(data[:64]),
    )
    behind = dataclasses.replace(load, chip=64, dram=8, crc=zlib.crc32(data[64:]))
    (joint,) = joined([load, behind], data, CONFIGURATION)
    assert (joint.chip, joint.dram, joint.run_bytes) == (0, 0, 128)
    assert joint.crc == zlib.crc32(data)
    over_the_first = dataclasses.replace(behind, chip=8)
    assert len(list(joined([load, over_the_first], data, CONFIGURATION))) == 2
