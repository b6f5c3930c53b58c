"""Divides each large layer's output channels among boards, for networks that one cannot hold."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import UnsupportedError
from ...graph import Graph, Node
from ...passes import optimize
from ...program import Program
from ...program.steps import HostStep
from .. import compile_graph
from ..lower.select import require_tensors
from .board_model import BoardModel
from .cut import require_stateless
from .estimate import weights_of
from .shard import ALL_GATHER, divisible_layers, shard_graph
from .staged_program import Division, StagedProgram, staged_program

_FULL = 0.85
"""Share of a weight memory that weights alone may take: parameters lie there as well."""


@dataclass(frozen=True)
class SplitPlan:
    """A network whose layers are divided.

    Parameters
    ----------
    program : StagedProgram
    boards : tuple of BoardModel
    layers : tuple of str
        Those that are divided.
    weights : tuple of int
        Bytes of weights that each board holds.
    seconds : float
        Predicted, per image: boards compute at the same time, exchanges come between.
    core_seconds : float
        Of it, the slowest board's computation.
    """

    program: StagedProgram
    boards: tuple[BoardModel, ...]
    layers: tuple[str, ...]
    weights: tuple[int, ...]
    seconds: float
    core_seconds: float

    @property
    def moved_bytes(self) -> int:
        """Bytes per image that cross all boards' wires."""
        return sum(map(moved_bytes, self.program.stages))

    @property
    def exchanges(self) -> int:
        """Counts how often per image the boards' results are joined."""
        return count_exchanges(self.program.stages[0])


def plan_split(
    graph: Graph, boards: Sequence[BoardModel], *, options: Mapping[str, Any] | None = None
) -> SplitPlan:
    """Divides a network among boards that all work on the same image.

    All layers that can be divided are; or only the largest, as many as make the rest fit on each
    board: what is predicted to be faster.

    Parameters
    ----------
    graph : Graph
    boards : sequence of BoardModel
    options : mapping, optional
        Of ``compile_graph``.

    Raises
    ------
    UnsupportedError
        If the network keeps something from run to run, or no layer can be divided.
    ModelError
        If the graph contradicts itself.
    """
    require_stateless(graph)
    require_tensors(graph)
    original, graph = graph, optimize(graph)
    layers = divisible_layers(graph, len(boards))
    if not layers:
        raise UnsupportedError(
            f"{graph.name} has no layer of int8 codes with at least {len(boards)} output channels:"
            " it cannot be split"
        )
    ways = {frozenset(node.name for node in chosen): chosen for chosen in _ways(graph, boards)}
    plans = [_planned(original, graph, boards, chosen, options or {}) for chosen in ways.values()]
    return min(plans, key=lambda plan: plan.seconds)


def _ways(graph: Graph, boards: Sequence[BoardModel]) -> list[list[Node]]:
    """The sets of layers to divide that are tried."""
    layers = divisible_layers(graph, len(boards))
    return [layers, _largest(graph, layers, boards)]


def _largest(graph: Graph, layers: list[Node], boards: Sequence[BoardModel]) -> list[Node]:
    """As few of the largest layers as make the weights fit; all, if they do not."""
    shares = _shares(boards)
    room = min(
        _FULL * board.configuration.weight_bytes - _held(graph, {}, share / sum(shares))
        for board, share in zip(boards, shares, strict=True)
    )
    sizes = {node.name: weights_of(graph, node) for node in layers}
    chosen: set[str] = set()
    most = max(shares) / sum(shares)
    for node in sorted(layers, key=lambda node: sizes[node.name], reverse=True):
        if chosen and room + (1 - most) * sum(sizes[name] for name in chosen) >= 0:
            break
        chosen.add(node.name)
    return [node for node in layers if node.name in chosen]


def _held(graph: Graph, chosen: Mapping[str, int], share: float) -> float:
    """Bytes of weights on a board that has a share of some layers, and all others whole."""
    return sum(
        weights_of(graph, node) * (share if node.name in chosen else 1.0) for node in graph.nodes
    )


def _shares(boards: Sequence[BoardModel]) -> list[float]:
    """By multiply-accumulates per second."""
    hardware = [board.configuration for board in boards]
    return [float(each.macs_per_cycle * each.clock_hz) for each in hardware]


def _planned(
    original: Graph,
    graph: Graph,
    boards: Sequence[BoardModel],
    chosen: Sequence[Node],
    options: Mapping[str, Any],
) -> SplitPlan:
    names = [node.name for node in chosen]
    multiple = math.lcm(*(board.configuration.columns for board in boards))
    parts = shard_graph(graph, names, _shares(boards), multiple)
    programs = [
        compile_graph(part, board.configuration, **options)
        for part, board in zip(parts, boards, strict=True)
    ]
    core = max(
        program.predicted_cycles / board.configuration.clock_hz
        for program, board in zip(programs, boards, strict=True)
    )
    exchanged = max(
        _exchange_seconds(program, board) for program, board in zip(programs, boards, strict=True)
    )
    return SplitPlan(
        program=staged_program(original, Division.SPLIT, programs),
        boards=tuple(boards),
        layers=tuple(names),
        weights=tuple(sum(weights_of(part, node) for node in part.nodes) for part in parts),
        seconds=core + exchanged,
        core_seconds=core,
    )


def moved_bytes(program: Program) -> int:
    """Bytes per image that cross a board's wire."""
    traffic = program.transferred()
    return traffic.loaded + traffic.uploaded + traffic.downloaded


def count_exchanges(program: Program) -> int:
    """Counts how often per image a board's program waits for the others."""
    steps = (step for step in program.steps if isinstance(step, HostStep))
    return sum(step.operator == ALL_GATHER for step in steps)


def _exchange_seconds(program: Program, board: BoardModel) -> float:
    """Time per image on the wire: nothing is computed meanwhile."""
    traffic, count = program.transferred(), count_exchanges(program)
    up, down = traffic.loaded + traffic.uploaded, traffic.downloaded
    # each exchange waits for an answer, and so do the outputs
    waits = count * board.exchange_seconds(0, 0)
    return board.exchange_seconds(up, down) + waits
