"""The configuration of the core for an iCE40UP5K; boards set the clock."""

from ...config import Configuration

UP5K = Configuration(
    # 16 products in 8 DSP blocks; the three memories fill the 128 KiB of SPRAM: room for all of
    # ResNet-8, whose weights and tables are 80,960 bytes, and for its 137 instructions twice
    engine="compact",
    rows=2,
    columns=8,
    lanes=1,
    activation_bytes=36 << 10,
    weight_bytes=81_024,
    accumulator_depth=256,
    parameter_words=512,
    instruction_words=3296,
    payload_bytes=64,
)
