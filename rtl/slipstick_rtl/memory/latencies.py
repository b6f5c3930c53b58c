"""Read latencies of the on-chip memories, in cycles from the enabled address to the data."""

from ..config import Configuration

BLOCK_COLUMNS = 4
"""Columns whose weights of one chain lie in one block RAM, 32 or 36 bits wide."""

ACCUMULATOR_UPDATE_LATENCY = 2
"""Block RAM and its output register."""

ACCUMULATOR_WAY = 1
"""From a read's arrival to the memories of the first columns: registers near each group of them."""

ACCUMULATOR_READ_LATENCY = ACCUMULATOR_WAY + ACCUMULATOR_UPDATE_LATENCY + 1
"""For the post-processor: odd columns are read a cycle later, all are given at once."""

ACTIVATION_READ_LATENCY = 4
"""Port arbitration, block RAM and its output register, and the choice of lanes."""

ACTIVATION_WRITE_LATENCY = 2
"""At most: cycles from a write at port B to the first read, at either port, that sees it."""

INSTRUCTION_READ_LATENCY = 3
"""Block RAM, its output register, and one on the way: a large memory is all over the chip."""

WEIGHT_READ_LATENCY = 7
"""Four on the way of the address, then as of instructions. Windows take that much longer from a
tile's swap to the array, and the weights' way must be as long: then captured weights are free just
when the next tile's come. An address is less to delay than a word."""


def weight_skew(configuration: Configuration, chain: int, column: int) -> int:
    """Cycles by which the weight memory gives a byte later than chain 0's, column 0's.

    The array wants each chain R / W cycles after the one above it and each column a cycle after its
    neighbour. Delaying read addresses costs less than delaying words; a block RAM has four columns.
    """
    return chain * configuration.tile_words + column // BLOCK_COLUMNS * BLOCK_COLUMNS
