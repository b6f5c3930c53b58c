"""Read latencies of the on-chip memories, in cycles from the enabled address to the data."""

ACCUMULATOR_READ_LATENCY = 2
"""Block RAM and its output register."""

ACTIVATION_READ_LATENCY = 4
"""Port arbitration, block RAM and its output register, and the choice of lanes."""

ACTIVATION_WRITE_LATENCY = 2
"""At most: cycles from a write at port B to the first read, at either port, that sees it."""

INSTRUCTION_READ_LATENCY = 3
"""Block RAM, its output register, and one on the way: a large memory is all over the chip."""

WEIGHT_READ_LATENCY = 3
"""As of instructions."""
