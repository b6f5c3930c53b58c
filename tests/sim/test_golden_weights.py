"""How weights lie in their memory: the order of a tile's rows, and ninth bits over the link."""

import numpy as np
import pytest
from slipstick_sim.golden.array import tile_rows, tile_words
from slipstick_sim.golden.weights import weight_units, weight_words


@pytest.mark.parametrize("chains", [1, 2, 4])
def test_a_word_holds_a_row_of_each_chain(chains: int) -> None:
    rows, columns = 16, 4
    weights = np.random.default_rng(1).integers(-128, 128, (3, rows, columns), np.int8)
    words = tile_words(weights, chains)
    length = rows // chains
    assert words.shape == (3, length, chains, columns)
    for q, s in np.ndindex(length, chains):
        np.testing.assert_array_equal(words[:, q, s], weights[:, s * length + q])
    np.testing.assert_array_equal(tile_rows(words), weights)


def test_nine_bytes_are_eight_cells_of_nine_bits() -> None:
    generator = np.random.default_rng(2)
    words = generator.integers(0, 256, (5, 16)).astype(np.uint8)
    ninth = generator.integers(0, 2, words.shape).astype(np.uint8)
    units = weight_units(words, ninth)
    assert units.shape == (5, 18)
    for unit, word, bits in zip(units, words, ninth, strict=True):
        for group in range(2):
            number = int.from_bytes(unit[9 * group : 9 * group + 9].tobytes(), "little")
            for k in range(8):
                cell = number >> 9 * k & 0x1FF
                assert cell == int(word[8 * group + k]) | int(bits[8 * group + k]) << 8
    got = weight_words(units)
    np.testing.assert_array_equal(got[0], words)
    np.testing.assert_array_equal(got[1], ninth)
