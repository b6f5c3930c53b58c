"""Rewrites of the graph that keep every result bit for bit, each a function graph -> graph."""

from ..graph import Graph
from .clean import drop_dead_nodes, drop_identities
from .fold_padding import fold_padding
from .fuse_activation import fuse_activation
from .lower_prelu import lower_prelu
from .lower_tiles import lower_tiles
from .lower_transposed import lower_transposed
from .order_shortcuts import order_shortcuts
from .tabulate_functions import tabulate_functions
from .tabulate_islands import tabulate_islands
from .widen_weights import widen_weights

PASSES = (
    tabulate_islands,
    lower_tiles,
    drop_identities,
    fold_padding,
    fuse_activation,
    tabulate_functions,
    lower_transposed,
    lower_prelu,
    widen_weights,
    drop_dead_nodes,
    order_shortcuts,
)


def optimize(graph: Graph) -> Graph:
    """All passes, in order."""
    for rewrite in PASSES:
        graph = rewrite(graph)
    return graph
