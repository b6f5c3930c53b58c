"""A reduction over channels in two parts: the first while the last channels are still being made.

What makes all channels of an input has its results written tile after tile. A layer of one tap
that reads them need not wait for the last: it sums over the first channels before.
"""

import dataclasses

from slipstick_rtl.config import Configuration

from ..ir.operations import Convolution
from ..mapping.reduction import ChannelTile
from ..memory.constants import CELLS_OF_NINTH
from ..timing.timeline import Instruction


def is_one_tap(convolution: Convolution, tile: ChannelTile) -> bool:
    """Tells whether a tile's lanes are channels of one tap, R to each tile of the reduction."""
    reduction = tile.reduction
    return convolution.kernel == (1, 1) and not reduction.pairs and reduction.sliding is None


def split_reduction(
    convolve: Instruction, tiles: int, configuration: Configuration
) -> tuple[Instruction, Instruction]:
    """A CONVOLVE of one tap as one over the first tiles of its reduction, and one over the others.

    Parameters
    ----------
    convolve : Instruction
    tiles : int
        Of the first part, fewer than all.
    configuration : Configuration
    """
    fields, (read,) = convolve.fields, convolve.reads
    lanes, (low, high) = tiles * configuration.rows, read.channels
    words = tiles * configuration.tile_words * (CELLS_OF_NINTH if fields["from_ninth"] else 1)
    first = {**fields, "reduction_tiles": tiles, "channels": lanes}
    second = {
        **fields,
        "reduction_tiles": fields["reduction_tiles"] - tiles,
        "channels": fields["channels"] - lanes,
        "weight_address": fields["weight_address"] + words,
        "origin": fields["origin"] + lanes,
        "accumulate": 1,
    }
    spans = (low, low + lanes), (low + lanes, high)
    parts = (
        dataclasses.replace(
            convolve, fields=part, reads=(dataclasses.replace(read, channels=span),)
        )
        for part, span in zip((first, second), spans, strict=True)
    )
    return next(parts), next(parts)
