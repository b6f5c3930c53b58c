"""Estimates what a configuration takes of an ECP5, and counts the blocks that follow exactly.

DSP blocks and block RAMs follow from the configuration (``multipliers``, ``block_rams``). Look-up
tables and flip-flops are estimated by nine numbers each, ``LUTS`` and ``FLIP_FLOPS``:

========  ==========================================================================================
fixed     link, sequencer, control and a UART on the board
plain     a processing element with a DSP block of its own
packed    a processing element that shares its DSP block with another
lut       a processing element whose multiplier is made of look-up tables
gather    a byte that the window reader brings the array in a cycle: R x P of them
sum       an accumulator: C x P of them
lane      a lane of the post-processor
sdram     the DMA and the controller of SDR SDRAM, if there is one
ddr3      the same of DDR3
========  ==========================================================================================

``python -m slipstick.fpga.area`` holds them against the committed reports of place and route and
fits them anew, to be copied here when the gateware has changed or a board has been built. The fit
is held near what single units were seen to take (:mod:`.area_fit`): there are fewer arrays than
parts.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slipstick_rtl.config import Configuration
from slipstick_rtl.dram.chips import Ddr3Chip, SdrChip
from slipstick_rtl.fpga.parts import Part
from slipstick_rtl.fpga.yosys_script import LINK, WIRE
from slipstick_rtl.latencies import BLOCK_COLUMNS
from slipstick_rtl.phy.wire import Wire

from ..errors import TargetError

LUTS: Mapping[str, float] = {
    "fixed": 4658.8,
    "plain": 24.0,
    "packed": 17.8,
    "lut": 141.4,
    "gather": 270.8,
    "sum": 112.4,
    "lane": 731.1,
    "sdram": 3221.9,
    "ddr3": 5400.0,
}
"""Look-up tables with 4 inputs, those of carry chains included, by what takes them."""
FLIP_FLOPS: Mapping[str, float] = {
    "fixed": 5599.8,
    "plain": 56.0,
    "packed": 60.6,
    "lut": 102.5,
    "gather": 292.6,
    "sum": 126.6,
    "lane": 919.5,
    "sdram": 1857.7,
    "ddr3": 3200.0,
}

LANE_MULTIPLIERS = 3
"""Multipliers of 18 x 18 bits in each lane of int8's post-processor."""

_BLOCK_SHAPES = ((512, 36), (1024, 18), (2048, 9), (4096, 4), (8192, 2), (16384, 1))
"""Words and bits of a block RAM."""
_ACCUMULATOR_BITS = 32
_TABLE_WORDS, _TABLE_BITS = 512, 32
_INSTRUCTION_BITS = 32
_UART_BLOCKS = 1
_UART = "uart"
_REGION_BLOCKS = 1
"""The table of regions."""


@dataclass(frozen=True)
class Area:
    """Counts what a design takes, by the names that reports of builds have."""

    lut: int
    ff: int
    dsp: int
    bram: int


def estimate(configuration: Configuration) -> Area:
    """The area of a pipelined engine with a UART on an ECP5.

    Raises
    ------
    TargetError
        If the engine or the number format is another: nothing is known of it.
    """
    if not configuration.format.uses_dsp_blocks:
        raise TargetError(
            f'area is estimated with number_format "int8" only, not "{configuration.number_format}"'
        )
    if configuration.traits.shares_memory:
        raise TargetError(
            f'area is estimated with engine "pipelined" only, not "{configuration.engine}"'
        )
    return Area(
        lut=add_parts(configuration, LUTS),
        ff=add_parts(configuration, FLIP_FLOPS),
        dsp=multipliers(configuration),
        bram=sum(block_rams(configuration).values()),
    )


def add_parts(configuration: Configuration, numbers: Mapping[str, float]) -> int:
    """Sums the numbers of all parts of a configuration."""
    counts = count_parts(configuration)
    return round(sum(number * counts[name] for name, number in numbers.items()))


def count_parts(configuration: Configuration) -> dict[str, int]:
    """Counts each kind of part that ``LUTS`` and ``FLIP_FLOPS`` have a number for."""
    c = configuration
    packed = c.pixels * c.columns * c.packed_rows
    plain = c.element_multipliers - packed // 2
    return {
        "fixed": 1,
        "plain": plain,
        "packed": packed,
        "lut": c.macs_per_cycle - plain - packed,
        "gather": c.rows * c.pixels,
        "sum": c.columns * c.pixels,
        "lane": c.lanes,
        "sdram": int(isinstance(c.dram_chip, SdrChip)),
        "ddr3": int(isinstance(c.dram_chip, Ddr3Chip)),
    }


def multipliers(configuration: Configuration) -> int:
    """DSP blocks, exactly."""
    return configuration.element_multipliers + post_multipliers(configuration)


def post_multipliers(configuration: Configuration) -> int:
    """Those of the post-processor of a pipelined engine; logarithms need none."""
    c = configuration
    return (LANE_MULTIPLIERS + c.products) * c.lanes if c.format.uses_dsp_blocks else 0


def block_rams(configuration: Configuration) -> dict[str, int]:
    """Block RAMs that the memories take, exactly, by the memories' names.

    Activations lie in banks of a byte; a word of weights in blocks of four columns, as blocks of
    other columns are read at other times; the link has its payload, and a board's UART a queue.
    """
    c = configuration
    weight_blocks = c.weight_rows * math.ceil(c.columns / BLOCK_COLUMNS)
    weight_bits = BLOCK_COLUMNS * (8 + c.ninth_bits)
    return {
        "weights": weight_blocks * _blocks(c.weight_words, weight_bits),
        # a copy for each of the P bytes that are read in a cycle
        "activations": c.pixels * c.banks * _blocks(c.activation_bytes // c.banks, 8),
        "accumulators": 2 * c.columns * _blocks(c.accumulator_depth, _ACCUMULATOR_BITS * c.pixels),
        "tables": c.tables * _blocks(_TABLE_WORDS, _TABLE_BITS),
        "instructions": _blocks(c.instruction_words, _INSTRUCTION_BITS),
        LINK: _blocks(2 * c.payload_bytes, 8) + _REGION_BLOCKS + _UART_BLOCKS,
    }


def build_memories(
    configuration: Configuration,
    part: Part,
    wire: Wire | None,
    options: Mapping[str, Any] | None = None,
) -> dict[str, int]:
    """Block RAMs of a build, by the memories' names, of a pipelined engine and a board's wire.

    Where a chip has too few, memories of the link are made of look-up tables, then those of the
    wire that may be: their names are missing, or have fewer (``in_luts``).

    Parameters
    ----------
    configuration : Configuration
    part : Part
    wire : Wire, optional
        None: a UART may be.
    options : mapping, optional
        The board's, for the wire.
    """
    blocks = block_rams(configuration)
    if wire is not None and wire.name != _UART:
        blocks[LINK] -= _UART_BLOCKS
        blocks[WIRE] = wire.block_rams(options or {})
    if sum(blocks.values()) > part.block_rams:
        del blocks[LINK]
    if wire is not None and WIRE in blocks and sum(blocks.values()) > part.block_rams:
        blocks[WIRE] -= wire.block_rams_or_luts
    return blocks


def in_luts(
    configuration: Configuration,
    part: Part,
    wire: Wire | None,
    options: Mapping[str, Any] | None = None,
) -> tuple[str, ...]:
    """Lists the memories in look-up tables, as ``slipstick_rtl.fpga.yosys_script`` names them.

    Parameters are those of ``build_memories``.
    """
    if configuration.traits.shares_memory:
        return ()
    blocks = build_memories(configuration, part, wire, options)
    moved = () if LINK in blocks else (LINK,)
    full = wire is None or blocks.get(WIRE, 0) == wire.block_rams(options or {})
    return moved if full else (*moved, WIRE)


def _blocks(words: int, bits: int) -> int:
    """The fewest block RAMs that hold a memory."""
    return min(math.ceil(words / deep) * math.ceil(bits / wide) for deep, wide in _BLOCK_SHAPES)


if __name__ == "__main__":
    import sys

    from .area_fit import main

    sys.exit(main())
