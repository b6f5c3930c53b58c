"""Lists the latencies of the gateware, in cycles.

A memory's latency counts from the enabled address to the data; each unit's says what it counts.
Blocks, benches and the compiler's cycle model take them from here.
"""

from .config import Configuration

BLOCK_COLUMNS = 4
"""Columns whose weights of one chain lie in one block RAM, 32 or 36 bits wide."""

ACCUMULATOR_UPDATE_LATENCY = 2
"""Block RAM and its output register."""

ACCUMULATOR_WAY = 1
"""Cycles from a read's arrival to the first columns' memories: registers near each group."""

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


# Of whole units, as the compiler counts them; the tests of its cycle model hold them.

TILE_OVERHEAD = 0
"""Cycles beyond its words from one reduction tile's start until the next tile can start."""

MATRIX_LATENCY = 13
"""Latency of window reader and accumulators; the array's rows and columns come on top."""

POST_LATENCY = 27
"""Cycles from a post instruction's last step until its results have landed; halved tables take
one more."""

RESULT_TABLE_LATENCY = 3
"""Addition to POST_LATENCY with ``drain_tables``: the table that results may go through, and the
register behind it; :func:`result_table_latency` has it for a configuration."""

PARAMETER_LATENCY = 6
"""At least that many cycles more than its words and the weight memory's skew lie between the starts
of two slices with their own parameters: these load while the slice before works."""

QUEUED_LATENCY = 7
"""Likewise where parameters are ninth bits: these are read ahead, and wait in a queue."""

QUEUE_TRIP = 10
"""Cycles from a word's read until its place in the queue is free, beyond the memory's skew."""

TABLE_LATENCY = 26
"""Cycles of a TABLE beyond its entries, one per cycle, and the weight memory's skew."""


def weight_skew(configuration: Configuration, chain: int, column: int) -> int:
    """Returns the cycles by which a byte of weights comes later than that of chain 0, column 0.

    The array wants each chain R / W cycles after the one above it, or with it where two rows share
    their sums, and each column a cycle after its neighbour. Delaying read addresses costs less than
    delaying words; a block RAM has four columns.
    """
    return configuration.chain_start(chain) + column // BLOCK_COLUMNS * BLOCK_COLUMNS


def result_table_latency(configuration: Configuration) -> int:
    """Cycles that results spend in the table and behind it, whether they are looked up or not."""
    return RESULT_TABLE_LATENCY if configuration.drain_tables else 0
