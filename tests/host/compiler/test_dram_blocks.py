"""Constants as blocks of DRAM: whatever is zero, the LOADs bring the image to its place."""

from typing import Any

import numpy as np
import pytest
from slipstick.compiler.codegen.dram_blocks import constant_loads
from slipstick.program.steps import Image
from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import GROUP_CELLS, WORD_BYTES, DmaStatus, Target
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
