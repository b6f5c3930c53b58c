"""Configurations of the core for Gowin devices; boards set the clock."""

from dataclasses import replace

from ..ice40.cores import UP5K

GW2A = replace(
    # all 46 block RAMs: 32 hold the three memories, 8 the accumulators, 5 the parameters, and one
    # the UART's queue; room for the key-word network DS-CNN
    UP5K,
    rows=4,
    # an image of DS-CNN in one frame
    payload_bytes=512,
    activation_bytes=16 << 10,
    weight_bytes=36 << 10,
    parameter_words=1024,
    instruction_words=3 << 10,
)
"""For a GW2A-18."""

GW1N = replace(
    # 24 of 26 block RAMs: 12 hold the three memories, 8 the accumulators, 3 the parameters
    UP5K,
    activation_bytes=4 << 10,
    weight_bytes=13_824,
    parameter_words=256,
    instruction_words=1664,
)
"""For a GW1N-9."""
