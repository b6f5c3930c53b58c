"""Sizes of the memories that the link reaches. Needs neither Amaranth nor NumPy."""

from ..config import WRITE_ARGUMENTS, Configuration
from ..dma.transfer import TRANSFER_BYTES
from .protocol import Space

_INNER_BITS = 2


def spaces_of(configuration: Configuration) -> tuple[Space, ...]:
    """Spaces that the hardware's WRITEs may name."""
    absent = Space.PARAMETERS if configuration.dram else Space.TRANSFERS
    return tuple(space for space in Space if space is not absent)


def inner_number(space: Space) -> int:
    """The number of a space within the gateware, of two bits."""
    return space & (1 << _INNER_BITS) - 1


def unit_bytes(configuration: Configuration, space: Space) -> int:
    """Bytes of one unit of the space: what its addresses count, and what a WRITE cannot split."""
    return {
        Space.INSTRUCTIONS: 4,
        Space.WEIGHTS: configuration.weight_unit_bytes,
        Space.PARAMETERS: configuration.parameter_bytes,
        Space.ACTIVATIONS: 1,
        Space.TRANSFERS: TRANSFER_BYTES,
    }[space]


def unit_count(configuration: Configuration, space: Space) -> int:
    """Units that the space's memory holds."""
    return {
        Space.INSTRUCTIONS: configuration.instruction_words,
        Space.WEIGHTS: configuration.weight_words,
        Space.PARAMETERS: configuration.parameter_words,
        Space.ACTIVATIONS: configuration.activation_bytes,
        # any address: instructions do not stay where they are written
        Space.TRANSFERS: 1 << 24 if configuration.dram else 0,
    }[space]


def units_per_frame(configuration: Configuration, space: Space) -> int:
    """Units that the longest WRITE of the space carries, one at least."""
    return (configuration.payload_bytes - WRITE_ARGUMENTS) // unit_bytes(configuration, space)
