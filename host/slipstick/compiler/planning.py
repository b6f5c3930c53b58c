"""Plans a network that is whole on the chip: what runs where, and where its tensors lie."""

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from slipstick_rtl.config import Configuration

from ..errors import CapacityError
from ..graph import Graph
from .ir.operations import Convolution, Map, Operation
from .lower.select import select
from .mapping.activation_layout import Buffer, assign_pitches, make_buffers
from .mapping.reduction import channel_tiles
from .memory.kept_variables import Pair, staying
from .memory.liveness import Arrangement, Arranger
from .memory.planner import PlanError
from .transform.fold_width import fold
from .transform.split_depthwise import halve

_MOST_TRAILING = 16
"""Tiles of rows beyond the fewest, at most, of a convolution that writes over its input."""


class Plan(NamedTuple):
    """Holds what runs where, and where its tensors lie."""

    operations: Sequence[Operation]
    buffers: dict[str, Buffer]
    arrangement: Arrangement


def make_plan(
    graph: Graph,
    configuration: Configuration,
    inspect: bool,
    on_host: frozenset[str],
    *,
    uncopied: frozenset[str] = frozenset(),
    returning: bool = False,
) -> Plan:
    """Plans what runs where; the device copies activations but, if memory is short, the largest.

    Parameters
    ----------
    graph : Graph
    configuration : Configuration
    inspect : bool
        As of ``compile_graph``.
    on_host : frozenset of str
        Nodes that the host runs.
    uncopied : frozenset of str
        Nodes whose copies the host makes.
    returning : bool
        As of ``Arranger``.

    Raises
    ------
    PlanError
        If memory is too short.
    """
    selected, views = select(graph, configuration, uncopied=uncopied, on_host=on_host)
    operations = fold(selected, configuration)
    pairs = () if inspect else staying(graph, operations)
    buffers = make_buffers(operations, views.known, views.written_by_device)
    if assign_pitches(operations, buffers, configuration, spares=True, together=pairs):
        try:
            spared = _arrange(graph, operations, buffers, configuration, inspect, pairs, returning)
            return Plan(operations, buffers, spared)
        except PlanError:
            buffers = make_buffers(operations, views.known, views.written_by_device)
            assign_pitches(operations, buffers, configuration, together=pairs)
    try:
        arrangement = _arrange(graph, operations, buffers, configuration, inspect, pairs, returning)
    except PlanError as error:
        more = _largest_copies(operations, len(uncopied))
        if not more:
            raise
        failure = error
    else:
        return Plan(operations, buffers, arrangement)
    try:
        return make_plan(
            graph, configuration, inspect, on_host, uncopied=uncopied | more, returning=returning
        )
    except PlanError:
        raise failure from None


def _largest_copies(operations: Sequence[Operation], before: int) -> frozenset[str]:
    """The next copies that the host makes: as many as it makes already, the largest ones."""
    copies = [made for made in operations if isinstance(made, Map) and made.gathers]
    copies.sort(key=lambda made: made.output.elements, reverse=True)
    return frozenset(made.node.name for made in copies[: max(before, 1)])


def make_halved_plans(
    graph: Graph, configuration: Configuration, on_host: frozenset[str]
) -> list[Plan]:
    """With layers whose halves are computed at once, if there are such and memory is not short:
    with maps fused into the convolutions before them, and without."""
    selected, views = select(graph, configuration, on_host=on_host)
    operations, shown = halve(fold(selected, configuration), views.known, configuration)
    pairs = staying(graph, operations)
    changed = {made.result for made in operations if isinstance(made, Convolution) and made.apart}
    if not changed or changed & set(graph.results):
        return []
    plans: list[Plan] = []
    for spares, fuse in itertools.product((True, False), repeat=2):
        buffers = make_buffers(operations, shown, views.written_by_device)
        assign_pitches(operations, buffers, configuration, spares=spares, together=pairs)
        try:
            for made in operations:
                if isinstance(made, Convolution):
                    channel_tiles(made, buffers[made.source].pitches, configuration)
            arranger = Arranger(
                graph.results,
                operations,
                buffers,
                fuse=fuse,
                inspect=False,
                prolongs=True,
                staying=pairs,
            )
            plans.append(Plan(operations, buffers, arranger.arrange(configuration)))
        except CapacityError:
            continue
    return plans[:2]


def _arrange(
    graph: Graph,
    operations: Sequence[Operation],
    buffers: Mapping[str, Buffer],
    configuration: Configuration,
    inspect: bool,
    pairs: Sequence[Pair],
    returning: bool,
) -> Arrangement:
    """With maps fused into the convolutions before them, or, if memory is short, without.

    If it is too short still, convolutions write over their own input where most is alive, in
    smaller and smaller tiles; and even what is inspected is overwritten once it is downloaded.
    """
    prolongs = configuration.traits.overlaps_streams and not inspect
    for fuse in (True, False):
        try:
            arranger = Arranger(
                graph.results,
                operations,
                buffers,
                fuse=fuse,
                inspect=inspect,
                prolongs=prolongs,
                staying=pairs,
                returning=returning,
            )
            return arranger.arrange(configuration)
        except PlanError as error:
            failure = error
    trailing: dict[str, int] = {}
    while True:
        arranger = Arranger(
            graph.results,
            operations,
            buffers,
            fuse=False,
            inspect=inspect,
            trailing=trailing,
            staying=pairs,
        )
        try:
            return arranger.arrange(configuration)
        except PlanError as error:
            candidate = arranger.trailing_candidate(error.moment)
        if candidate is None or trailing.get(candidate, 0) == _MOST_TRAILING:
            raise failure
        trailing[candidate] = trailing.get(candidate, -1) + 1
