"""Divides the rows of the array into chains of weights, and says where rows change their kind."""

from dataclasses import dataclass

from ..config import Configuration
from ..numbers.number_format import NumberFormat, number_format
from .packed_pair import PAIR_LATENCY, UNPACK_CYCLES
from .processing_element import element_latency


@dataclass(frozen=True)
class Segment:
    """Rows of one chain and of one kind: they capture their weights from the same registers.

    Parameters
    ----------
    chain : int
    first, end : int
        Rows.
    packed : bool
        They are rows of pairs.
    late : int
        Cycles by which the weights come in later than the first chain's could.
    late_in_chain : int
        The same, but for what the memory delays: chain by chain.
    """

    chain: int
    first: int
    end: int
    packed: bool
    late: int
    late_in_chain: int


def row_delay(configuration: Configuration, row: int) -> int:
    """Cycles by which a row's activations are later than the array's."""
    c = configuration
    element_format = number_format(c)
    chain, index = divmod(row, c.tile_words)
    place = c.chain_start(chain) + index
    if not 0 < c.packed_rows <= row:
        return place + element_format.encode_cycles
    latency = element_latency(element_format)
    return place + UNPACK_CYCLES + PAIR_LATENCY - latency


def array_latency(configuration: Configuration) -> int:
    """Cycles from the activations to column 0's sums: the last row's delay, then one element."""
    c = configuration
    latency = element_latency(number_format(c))
    if c.packed_rows == c.rows:
        latency = PAIR_LATENCY + UNPACK_CYCLES
    return row_delay(c, c.rows - 1) + latency


def segments(configuration: Configuration, element_format: NumberFormat) -> list[Segment]:
    """The segments of an array, from the top to the bottom."""
    c, found = configuration, []
    for chain in range(c.weight_rows):
        start, stop = chain * c.tile_words, (chain + 1) * c.tile_words
        border = min(max(c.packed_rows, start), stop)
        for first, end in ((start, border), (border, stop)):
            if first == end:
                continue
            packed = first < c.packed_rows
            above = c.chain_start(chain)
            late = row_delay(c, first) - (above + first - start)
            late += 0 if packed else element_format.swap_cycles
            found.append(
                Segment(
                    chain=chain,
                    first=first,
                    end=end,
                    packed=packed,
                    late=late + above,
                    late_in_chain=late,
                )
            )
    return found
