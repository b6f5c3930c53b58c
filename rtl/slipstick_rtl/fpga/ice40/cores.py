"""The configuration of the core for an iCE40UP5K; boards set the clock."""

from ...config import Configuration

UP5K = Configuration(
    # 16 products in 8 DSP blocks; the three memories fill the 128 KiB of SPRAM: room for all of
    # ResNet-8, whose 77 KiB of weights and three tables of 2 KiB are resident
    engine="compact",
    rows=2,
    columns=8,
    lanes=1,
    activation_bytes=36 << 10,
    weight_bytes=84 << 10,
    accumulator_depth=256,
    parameter_words=512,
    instruction_words=1 << 11,
    # a block RAM holds as much, beside the table of regions
    payload_bytes=256,
)
