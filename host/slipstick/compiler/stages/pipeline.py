"""Cuts a network into stages, one per board, so that the slowest stage is as fast as can be."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slipstick_rtl.config import Configuration

from ...errors import UnsupportedError
from ...graph import Graph
from ...passes import optimize
from ...program import Program
from .. import compile_graph
from ..lower.select import require_tensors
from .board_model import BoardModel
from .cut import Crossings, cut_graph, part_of, require_stateless
from .estimate import Estimate, weights_of
from .staged_program import Division, StagedProgram, staged_program

ROUNDS = 8
"""Sets of cuts that are compiled, at most: each corrects the estimates of the next."""
_WORTHWHILE = 0.99
"""Share of the best cuts' time so far that others may seem to take, at most, to be compiled."""


@dataclass(frozen=True)
class Stage:
    """A stage of a pipeline.

    Parameters
    ----------
    board : BoardModel
    graph : Graph
        Its part of the network.
    program : Program
    seconds : float
        Predicted, per image of a long batch.
    received, sent : int
        Bytes per image that come from the host and go back to it: codes that cross the cuts, and
        the network's own inputs and outputs.
    weights : int
        Bytes of its layers' weights.
    """

    board: BoardModel
    graph: Graph
    program: Program
    seconds: float
    received: int
    sent: int
    weights: int


@dataclass(frozen=True)
class PipelinePlan:
    """A network that is cut.

    Parameters
    ----------
    program : StagedProgram
    stages : tuple of Stage
    wholes : tuple of Program
        The whole network for each board, to compare with.
    """

    program: StagedProgram
    stages: tuple[Stage, ...]
    wholes: tuple[Program, ...]

    @property
    def seconds(self) -> float:
        """Predicted time per image of a long batch: the slowest stage's."""
        return max(stage.seconds for stage in self.stages)


def whole_programs(
    graph: Graph, boards: Sequence[BoardModel], options: Mapping[str, Any] | None = None
) -> list[Program]:
    """The whole network for each board; boards of equal hardware share a program."""
    graph, made = _ready(graph), dict[str, Program]()
    for board in boards:
        hardware = board.configuration
        if hardware.fingerprint not in made:
            made[hardware.fingerprint] = compile_graph(graph, hardware, **(options or {}))
    return [made[board.configuration.fingerprint] for board in boards]


def plan_pipeline(
    graph: Graph,
    boards: Sequence[BoardModel],
    wholes: Sequence[Program] | None = None,
    *,
    options: Mapping[str, Any] | None = None,
    rounds: int = ROUNDS,
) -> PipelinePlan:
    """Cuts a network for boards in a given order.

    Parameters
    ----------
    graph : Graph
    boards : sequence of BoardModel
        One per stage; unlike boards may be mixed.
    wholes : sequence of Program, optional
        As ``whole_programs`` returns them for these boards.
    options : mapping, optional
        Of ``compile_graph``, for all stages.
    rounds : int
        Sets of cuts that are compiled, at most.

    Raises
    ------
    UnsupportedError
        If the network keeps something from run to run, or has fewer layers that run on the devices
        than there are boards.
    ModelError
        If the graph contradicts itself.
    """
    require_stateless(graph)
    original, graph = graph, _ready(graph)
    if len(boards) > len(graph.nodes):
        raise _too_few(graph, len(boards), len(graph.nodes))
    wholes = whole_programs(graph, boards, options) if wholes is None else wholes

    def compiled(first: int, end: int, board: BoardModel) -> Program:
        part = part_of(graph, first, end)
        return compile_graph(part, board.configuration, **(options or {}))

    search = _Search(graph, boards, wholes, compiled)
    edges = search.best(rounds)
    stages = tuple(
        _stage(graph, board, part_of(graph, first, end), *search.exact(number, first, end))
        for number, (board, (first, end)) in enumerate(
            zip(boards, itertools.pairwise(edges), strict=True)
        )
    )
    programs = [stage.program for stage in stages]
    joined = staged_program(original, Division.PIPELINE, programs)
    return PipelinePlan(joined, stages, tuple(wholes))


def estimated_seconds(
    graph: Graph, boards: Sequence[BoardModel], wholes: Sequence[Program]
) -> float:
    """Estimates the time per image of the best pipeline of boards in a given order, without
    compiling its stages; infinite if there is none."""
    require_stateless(graph)
    search = _Search(_ready(graph), boards, wholes, _no_part)
    return search.estimated()


def _no_part(first: int, end: int, board: BoardModel) -> Program:
    raise AssertionError("estimates need no programs")


def compile_stages(
    graph: Graph, ends: Sequence[int], boards: Sequence[Configuration], **options: Any
) -> StagedProgram:
    """Compiles a network that is cut at given places; no passes move its nodes before.

    Parameters
    ----------
    graph : Graph
    ends : sequence of int
        As for ``cut_graph``.
    boards : sequence of Configuration
        One per stage.
    **options
        Of ``compile_graph``.
    """
    require_stateless(graph)
    parts = zip(cut_graph(graph, ends), boards, strict=True)
    stages = [compile_graph(part, board, **options) for part, board in parts]
    return staged_program(graph, Division.PIPELINE, stages)


def _ready(graph: Graph) -> Graph:
    require_tensors(graph)
    return optimize(graph)


def _too_few(graph: Graph, boards: int, layers: int) -> UnsupportedError:
    return UnsupportedError(
        f"{graph.name} has {layers} layers that a device can run, which is too few for a pipeline"
        f" of {boards} boards"
    )


def _stage(graph: Graph, board: BoardModel, part: Graph, program: Program, seconds: float) -> Stage:
    received, sent = Crossings(part)(0, len(part.nodes))
    weights = sum(weights_of(graph, node) for node in part.nodes)
    return Stage(board, part, program, seconds, received, sent, weights)


class _Search:
    """Finds cuts: the best by what is known is compiled, until that changes nothing any more."""

    def __init__(
        self,
        graph: Graph,
        boards: Sequence[BoardModel],
        wholes: Sequence[Program],
        compile_part: Callable[[int, int, BoardModel], Program],
    ) -> None:
        self._graph, self._boards, self._compile = graph, boards, compile_part
        crossings = Crossings(graph)
        self._estimates = [
            Estimate(graph, board, whole, crossings)
            for board, whole in zip(boards, wholes, strict=True)
        ]
        self._programs: dict[tuple[str, int, int], Program] = {}
        self._known: list[dict[tuple[int, int], float]] = []
        """Seconds of stages that are compiled, per board; equal boards share them."""
        for board in boards:
            equal = next(
                (k for k, each in zip(self._known, boards, strict=False) if each == board), {}
            )
            self._known.append(equal)
        self._layers = max(
            sum(not math.isinf(estimate(at, at + 1)) for at in range(len(graph.nodes)))
            for estimate in self._estimates
        )

    def best(self, rounds: int) -> list[int]:
        """The edges of the stages: 0, the cuts, and the number of nodes."""
        found, least = list[int](), math.inf
        for _ in range(rounds):
            edges = self._cheapest()
            if edges is None:
                break
            parts = list(enumerate(itertools.pairwise(edges)))
            hoped = max(self._seconds(number, *span) for number, span in parts)
            if hoped > _WORTHWHILE * least:
                break
            slowest = max(self.exact(number, *span)[1] for number, span in parts)
            if slowest < least:
                found, least = edges, slowest
        if not found:
            raise _too_few(self._graph, len(self._boards), self._layers)
        return found

    def estimated(self) -> float:
        """Seconds of the slowest stage of the best cuts, by what is known."""
        edges = self._cheapest()
        if edges is None:
            return math.inf
        parts = enumerate(itertools.pairwise(edges))
        return max(self._seconds(number, *span) for number, span in parts)

    def exact(self, number: int, first: int, end: int) -> tuple[Program, float]:
        """The program of a stage, and its seconds; infinite if nothing of it runs on the device."""
        board = self._boards[number]
        key = board.configuration.fingerprint, first, end
        if key not in self._programs:
            self._programs[key] = self._compile(first, end, board)
        program = self._programs[key]
        seconds = board.seconds(program) if program.predicted_cycles else math.inf
        self._known[number][first, end] = seconds
        return program, seconds

    def _seconds(self, number: int, first: int, end: int) -> float:
        """Returns a stage's known seconds; else its estimate, corrected by the nearest known one.

        Those that fit the chip are corrected apart from those that do not.
        """
        known, estimate = self._known[number], self._estimates[number]
        if (first, end) in known:
            return known[first, end]
        seconds, resident = estimate(first, end), estimate.is_resident(first, end)
        factor, nearest = 1.0, math.inf
        for span, exact in known.items():
            distance = abs(span[0] - first) + abs(span[1] - end)
            alike = estimate.is_resident(*span) == resident
            if alike and distance < nearest and 0 < estimate(*span) < math.inf > exact:
                factor, nearest = exact / estimate(*span), distance
        return seconds * factor

    def _cheapest(self) -> list[int] | None:
        """The edges whose slowest stage is fastest, and among those whose sum is least; None if
        there are none."""
        count = len(self._graph.nodes)
        best = {0: (0.0, 0.0, [0])}
        for number in range(len(self._boards)):
            last = number == len(self._boards) - 1
            ends = [count] if last else range(number + 1, count - len(self._boards) + number + 2)
            made: dict[int, tuple[float, float, list[int]]] = {}
            for end in ends:
                ways = (
                    (max(slowest, seconds), total + seconds, edges)
                    for start, (slowest, total, edges) in best.items()
                    if start < end
                    for seconds in [self._seconds(number, start, end)]
                )
                way = min(ways, key=lambda way: way[:2], default=None)
                if way is not None and way[0] < math.inf:
                    made[end] = *way[:2], [*way[2], end]
            best = made
        return best[count][2] if count in best else None
