"""Chooses small layers to offload (to parity bits, or the host) so that all other weights fit."""

from collections.abc import Sequence

from slipstick_rtl.config import Configuration

from ..ir.operations import Convolution, Map, Operation
from ..mapping.reduction import is_diagonal
from .cost_estimate import demand

LARGEST_SHARE = 64
"""The host computes at most one part in so many of a network."""

REASON = "without its weights all others fit the chip"


def layers_to_offload(
    operations: Sequence[Operation], configuration: Configuration
) -> frozenset[str]:
    """Returns the nodes with the least work without whose weights the others fit.

    Streaming would send all weights for every inference, if only a few are too many. None if the
    weights are not what is too large, or if they are by far. (Depthwise ones are never large.)
    """
    on_device = [made for made in operations if isinstance(made, Convolution | Map)]
    needed = demand(on_device, configuration).weight_bytes - configuration.weight_bytes
    layers = [made for made in on_device if isinstance(made, Convolution)]
    most = sum(made.macs for made in layers) // LARGEST_SHARE
    layers = [made for made in layers if not is_diagonal(made, configuration)]
    names = set()
    for layer in sorted(layers, key=lambda made: made.macs):
        most -= layer.macs
        if needed <= 0 or most < 0:
            break
        needed -= demand([layer], configuration).weight_bytes
        names.add(layer.node.name)
    return frozenset(names if needed <= 0 else ())
