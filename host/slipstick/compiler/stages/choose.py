"""Chooses how several boards run a network: one alone, as a pipeline, or with divided layers."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import CapacityError, UnsupportedError
from ...graph import Graph
from ...program import Program
from .board_model import BoardModel
from .pipeline import PipelinePlan, estimated_seconds, plan_pipeline, whole_programs
from .split import SplitPlan, plan_split
from .staged_program import Division

_MOST_ORDERED = 5
"""Boards whose orders are all tried in a pipeline; more of them stay as they are given."""


@dataclass(frozen=True)
class Single:
    """The board that is fastest alone.

    Parameters
    ----------
    board : BoardModel
    program : Program
    seconds : float
        Predicted, per image of a long batch.
    """

    board: BoardModel
    program: Program
    seconds: float


@dataclass(frozen=True)
class Choice:
    """The ways to run a network on some boards.

    Parameters
    ----------
    single : Single
    pipeline : PipelinePlan or None
    split : SplitPlan or None
    refused : mapping of str by Division
        Why a way is None.
    """

    single: Single
    pipeline: PipelinePlan | None
    split: SplitPlan | None
    refused: Mapping[Division, str]

    @property
    def division(self) -> Division | None:
        """The fastest way; None: one board alone."""
        ways: list[tuple[float, Division | None]] = [(self.single.seconds, None)]
        if self.pipeline is not None:
            ways.append((self.pipeline.seconds, Division.PIPELINE))
        if self.split is not None:
            ways.append((self.split.seconds, Division.SPLIT))
        return min(ways, key=lambda way: way[0])[1]

    @property
    def seconds(self) -> float:
        """Predicted time per image of the fastest way."""
        plans = (self.single, self.pipeline, self.split)
        return min(plan.seconds for plan in plans if plan is not None)


def fastest_single(boards: Sequence[BoardModel], wholes: Sequence[Program]) -> Single:
    """The board that is fastest alone, with its program of the whole network."""
    found = zip(boards, wholes, strict=True)
    singles = (Single(board, whole, board.seconds(whole)) for board, whole in found)
    return min(singles, key=lambda single: single.seconds)


def choose(
    graph: Graph, boards: Sequence[BoardModel], *, options: Mapping[str, Any] | None = None
) -> Choice:
    """Plans all ways to run a network on some boards.

    Parameters
    ----------
    graph : Graph
    boards : sequence of BoardModel
        In any order.
    options : mapping, optional
        Of ``compile_graph``.

    Raises
    ------
    ModelError, UnsupportedError
        If it cannot run on one board either.
    """
    wholes = whole_programs(graph, boards, options)
    single, refused = fastest_single(boards, wholes), dict[Division, str]()
    pipeline = split = None
    try:
        order = _best_order(graph, boards, wholes)
        pipeline = plan_pipeline(
            graph, [boards[at] for at in order], [wholes[at] for at in order], options=options
        )
    except (UnsupportedError, CapacityError) as error:
        refused[Division.PIPELINE] = str(error)
    try:
        split = plan_split(graph, boards, options=options)
    except (UnsupportedError, CapacityError) as error:
        refused[Division.SPLIT] = str(error)
    return Choice(single, pipeline, split, refused)


def _best_order(
    graph: Graph, boards: Sequence[BoardModel], wholes: Sequence[Program]
) -> tuple[int, ...]:
    """The order of the stages' boards that seems fastest; equal boards count once."""
    given = tuple(range(len(boards)))
    if len(boards) > _MOST_ORDERED:
        return given
    orders = {
        tuple(boards[at].name for at in order): order for order in itertools.permutations(given)
    }
    if len(orders) == 1:
        return given
    return min(
        orders.values(),
        key=lambda order: estimated_seconds(
            graph, [boards[at] for at in order], [wholes[at] for at in order]
        ),
    )
