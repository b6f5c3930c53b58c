"""Configurations of the core for the sizes of the ECP5; boards set the clock."""

from dataclasses import replace

from ...config import Configuration

SMALL = Configuration(
    # the post-processor takes 3 DSP blocks a lane, 12 of 28; of the array's rows those of the upper
    # half can work on vectors of their own if the lower half is not all in DSP blocks
    rows=8,
    columns=8,
    lanes=4,
    multiplier="lut",
    packed_rows=3,
    activation_bytes=1 << 14,
    weight_bytes=1 << 15,
    weight_rows=2,
    accumulator_depth=256,
    instruction_words=1 << 10,
    payload_bytes=512,
    drain_tables=1,
)
"""For a 25F."""

SMALL_WITH_DRAM = replace(SMALL, drain_tables=0)
"""For a 25F with DRAM: with a DMA beside it, ``SMALL`` takes 84 % of the chip and finds no place. A
function of one code costs a MAP, as on larger chips."""

SMALL_WITH_ROOM = replace(
    # all its products are in DSP blocks, 16 of them beside the post-processor's 12
    SMALL,
    columns=4,
    packed_rows=8,
    drain_tables=0,
)
"""For a 25F, with a third of the look-up tables left for Ethernet."""

TINY = replace(
    SMALL,
    rows=4,
    columns=4,
    packed_rows=4,
    activation_bytes=1 << 13,
    weight_bytes=1 << 14,
    weight_rows=1,
    drain_tables=0,
)
"""For a 12F."""

MEDIUM = Configuration(
    # 24 of 72 DSP blocks in the post-processor, 28 in the array: nine rows without take the taps of
    # depthwise kernels
    rows=16,
    columns=8,
    lanes=8,
    multiplier="lut",
    packed_rows=7,
    activation_bytes=1 << 15,
    weight_bytes=1 << 17,
    weight_rows=2,
    halved_tables=1,
    instruction_words=1 << 11,
)
"""For a 45F."""

MEDIUM_WITH_PRODUCTS = replace(
    # eight more DSP blocks: networks that need DRAM often multiply maps by vectors
    MEDIUM,
    products=1,
)
"""For a 45F with DRAM."""

LARGE = Configuration(
    # 24 of 156 DSP blocks in the post-processor, 128 in the array
    rows=32,
    columns=16,
    lanes=8,
    multiplier="lut",
    packed_rows=16,
    activation_bytes=1 << 16,
    weight_bytes=1 << 18,
    weight_rows=4,
    ninth_bits=1,
    instruction_words=1 << 11,
)
"""For an 85F."""

SIXTEEN_LANES = replace(
    # 48 DSP blocks in the post-processor, so 104 in the array
    LARGE,
    lanes=16,
    packed_rows=13,
    weight_rows=2,
    halved_tables=1,
)
"""For an 85F, and networks of convolutions: sums leave the array in half the time. Words of two
rows of weights are what lets it be routed. Fully connected layers take twice the time for it."""

LARGE_WITH_ROOM = replace(LARGE, weight_rows=2, halved_tables=1)
"""For an 85F, with four block RAMs left for a fast wire, and words of two rows of weights, which
let it be routed. ResNet-8 takes 6 % more cycles, and fully connected layers twice as many."""

LARGE_LNS = replace(
    # no DSP block, and elements of 54 look-up tables
    LARGE,
    number_format="lns1+3+2",
    multiplier="plain",
    packed_rows=0,
)
"""For an 85F, with logarithms of 6 bits."""

LARGE_LNS5 = replace(
    # a tile holds three pixels of 16 channels, or whole parts of 32 or 64
    LARGE_LNS,
    rows=48,
    lanes=16,
    number_format="lns1+2+2",
    weight_bytes=1 << 17,
    weight_rows=2,
)
"""For an 85F, with logarithms of 5 bits: 768 elements. Sums leave the array in half the time.
Activations lie in 64 banks, which take block RAMs from the weights."""
