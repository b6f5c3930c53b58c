"""A small core with DRAM: the fewer kinds of hardware tests have, the less is compiled."""

from slipstick_rtl.config import Configuration

SMALL = Configuration(
    rows=8,
    columns=8,
    lanes=8,
    activation_bytes=1 << 11,
    weight_bytes=1 << 11,
    instruction_words=1 << 9,
    accumulator_depth=64,
    dram="MT48LC16M16",
)
