"""What a configuration takes of an ECP5: an estimate, and the blocks that follow exactly.

DSP blocks and block RAMs follow from the configuration (``multipliers``, ``block_rams``). Look-up
tables and flip-flops are estimated by six numbers each, ``LUTS`` and ``FLIP_FLOPS``:

========  ==========================================================================================
fixed     link, sequencer, control and a UART on the board
plain     a processing element with a DSP block of its own
lut       a processing element whose multiplier is made of look-up tables
gather    a byte that the window reader brings the array in a cycle: R x P of them
sum       an accumulator: C x P of them
lane      a lane of the post-processor
========  ==========================================================================================

``python -m slipstick.area`` holds them against the committed reports of place and route and fits
them anew, to be copied here when the gateware has changed. The reports are of few arrays, so the
fit is held near what single units were seen to take (:mod:`.area_fit`). Errors on the eight reports
of ECP5 boards, from 1x4x4 to 1x16x16: LUTs within 0.4 %, flip-flops within 0.1 %; fitted without
the array in question, within 1.2 % and 4.0 %. DSP blocks and block RAMs are equal. Nothing larger
has been held against a report: there it extrapolates. So it does for P > 1, whose pixels share more
than is counted: of 2x8x8 and 4x4x4 synthesis made 4 and 5 % fewer LUTs and 16 and 21 % fewer
flip-flops, and for P = 4 two DSP blocks more.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from slipstick_rtl.config import Configuration

from .errors import TargetError

LUTS: Mapping[str, float] = {
    "fixed": 3711.7,
    "plain": 24.2,
    "lut": 112.6,
    "gather": 186.5,
    "sum": 95.9,
    "lane": 664.7,
}
"""Look-up tables with 4 inputs, those of carry chains included, by what takes them."""
FLIP_FLOPS: Mapping[str, float] = {
    "fixed": 3868.9,
    "plain": 59.1,
    "lut": 106.0,
    "gather": 222.1,
    "sum": 113.6,
    "lane": 694.8,
}

LANE_MULTIPLIERS = 4
"""Of 18 x 18 bits, in each lane of the post-processor."""

_BLOCK_SHAPES = ((512, 36), (1024, 18), (2048, 9), (4096, 4), (8192, 2), (16384, 1))
"""Words and bits of a block RAM."""
_ACCUMULATOR_BITS = 32
_TABLE_WORDS, _TABLE_BITS = 512, 32
_INSTRUCTION_BITS = 32
_WEIGHT_COLUMNS = 4
"""Columns that share a block of the weight memory."""
_UART_BLOCKS = 1


@dataclass(frozen=True)
class Area:
    """What a design takes, by the names that reports of builds have."""

    lut: int
    ff: int
    dsp: int
    bram: int


def estimate(configuration: Configuration) -> Area:
    """The area of a pipelined engine with a UART on an ECP5.

    Raises
    ------
    TargetError
        If the engine is another: nothing is known of it.
    """
    if configuration.is_compact:
        raise TargetError('area is estimated with engine "pipelined" only, not "compact"')
    return Area(
        lut=add_parts(configuration, LUTS),
        ff=add_parts(configuration, FLIP_FLOPS),
        dsp=multipliers(configuration),
        bram=block_rams(configuration),
    )


def add_parts(configuration: Configuration, numbers: Mapping[str, float]) -> int:
    """What all parts take together."""
    counts = count_parts(configuration)
    return round(sum(number * counts[name] for name, number in numbers.items()))


def count_parts(configuration: Configuration) -> dict[str, int]:
    """How many there are of each thing that ``LUTS`` and ``FLIP_FLOPS`` have a number for."""
    c = configuration
    return {
        "fixed": 1,
        "plain": c.element_multipliers,
        "lut": c.macs_per_cycle - c.element_multipliers,
        "gather": c.rows * c.pixels,
        "sum": c.columns * c.pixels,
        "lane": c.lanes,
    }


def multipliers(configuration: Configuration) -> int:
    """DSP blocks, exactly."""
    return configuration.element_multipliers + LANE_MULTIPLIERS * configuration.lanes


def block_rams(configuration: Configuration) -> int:
    """Block RAMs, exactly."""
    c = configuration
    return (
        math.ceil(c.columns / _WEIGHT_COLUMNS) * _blocks(c.weight_words, 8 * _WEIGHT_COLUMNS)
        # a copy for each of the P bytes that are read in a cycle
        + c.pixels * c.rows * _blocks(c.activation_bytes // c.rows, 8)
        + 2 * c.columns * _blocks(c.accumulator_depth, _ACCUMULATOR_BITS * c.pixels)
        + c.lanes * _blocks(_TABLE_WORDS, _TABLE_BITS)
        + _parameter_blocks(c)
        + _blocks(c.instruction_words, _INSTRUCTION_BITS)
        + _blocks(2 * c.payload_bytes, 8)
        + _UART_BLOCKS
    )


def _parameter_blocks(c: Configuration) -> int:
    """Of a parameter memory of its own: bias, multiplier and shift, each for all lanes."""
    if not c.parameter_words:
        return 0
    return sum(_blocks(c.parameter_words, bits * c.lanes) for bits in (32, 32, 8))


def _blocks(words: int, bits: int) -> int:
    """The fewest block RAMs that hold a memory."""
    return min(math.ceil(words / deep) * math.ceil(bits / wide) for deep, wide in _BLOCK_SHAPES)


if __name__ == "__main__":
    import sys

    from .area_fit import main

    sys.exit(main())
