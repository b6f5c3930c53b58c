"""The memory planner: where each buffer lies, so that no two that live together overlap."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...errors import CapacityError

_ATTEMPTS = 300


class PlanError(CapacityError):
    """The activation memory is too small; at ``moment`` most bytes are alive."""

    def __init__(self, message: str, moment: int) -> None:
        super().__init__(message)
        self.moment = moment


@dataclass(frozen=True)
class Piece:
    """Bytes wanted at a distance from a block's beginning, from one moment to another."""

    offset: int
    bytes: int
    first: int
    last: int


@dataclass(frozen=True)
class Block:
    """Bytes wanted from moment ``first`` to moment ``last``, both included.

    With ``pieces`` they are all that is wanted, and may share bytes among themselves.
    """

    name: str
    bytes: int
    first: int
    last: int
    pieces: tuple[Piece, ...] = ()

    @property
    def parts(self) -> tuple[Piece, ...]:
        """Its pieces, if only one."""
        return self.pieces or (Piece(0, self.bytes, self.first, self.last),)

    def lives_with(self, other: "Block") -> bool:
        """Tells whether both are alive at some moment."""
        return self.first <= other.last and other.first <= self.last

    def alive(self, moment: int) -> int:
        """Bytes that it takes at a moment."""
        parts = [part for part in self.parts if part.first <= moment <= part.last]
        if not parts:
            return 0
        ends = max(part.offset + part.bytes for part in parts)
        return ends - min(part.offset for part in parts)


def _taken(block: Block, placed: Sequence[tuple[int, Block]]) -> list[tuple[int, int]]:
    """Addresses at which a block must not begin: between the first and the last of each pair."""
    taken = [
        (address + theirs.offset - mine.offset - mine.bytes,
         address + theirs.offset + theirs.bytes - mine.offset)
        for address, other in placed
        for mine in block.parts
        for theirs in other.parts
        if mine.first <= theirs.last and theirs.first <= mine.last
    ]  # fmt: skip
    return sorted(taken)


def _best_gap(block: Block, placed: Sequence[tuple[int, Block]], alignment: int) -> int:
    """The address of the smallest gap that holds a block, among those that live with it."""
    best, best_room, cursor = None, 0, 0
    for start, end in _taken(block, placed):
        room = start - cursor
        if room >= 0 and (best is None or room < best_room):
            best, best_room = cursor, room
        cursor = max(cursor, -(-end // alignment) * alignment)
    return cursor if best is None else best


def plan(
    blocks: Sequence[Block], capacity: int, alignment: int, moments: Sequence[str]
) -> dict[str, int]:
    """Addresses by name: the largest first, each in the smallest gap that holds it.

    Parameters
    ----------
    blocks : sequence of Block
    capacity : int
        Bytes of the activation memory.
    alignment : int
        Every address is a multiple of it.
    moments : sequence of str
        The layer at each moment, for the error's message.

    Raises
    ------
    PlanError
        If they do not fit.
    """
    attempts = (
        sorted(blocks, key=lambda block: (-block.bytes, block.first)),
        sorted(blocks, key=lambda block: (block.first, -block.bytes)),
    )
    best_end = None
    for order in attempts:
        placed: list[tuple[int, Block]] = []
        for block in order:
            placed.append((_best_gap(block, placed, alignment), block))
        end = max((address + block.bytes for address, block in placed), default=0)
        if end <= capacity:
            return {block.name: address for address, block in placed}
        best_end = end if best_end is None else min(best_end, end)
    live = [sum(block.alive(i) for block in blocks) for i in range(len(moments))]
    peak = live.index(max(live))
    raise PlanError(
        f"layer {moments[peak]!r}: the activation memory must hold {best_end} bytes"
        f" ({live[peak]} of them alive at this layer), but has {capacity}",
        peak,
    )


def plan_thoroughly(
    blocks: Sequence[Block], capacity: int, alignment: int, moments: Sequence[str]
) -> dict[str, int]:
    """As ``plan``; where that fails, in many other orders, from either end of the memory.

    For a few blocks that nearly fill the memory. The same blocks always get the same addresses.
    """
    try:
        return plan(blocks, capacity, alignment, moments)
    except PlanError as error:
        failure = error
    draw = random.Random(len(blocks))
    for _ in range(_ATTEMPTS):
        order = sorted(blocks, key=lambda block: -block.bytes * draw.uniform(0.5, 1))
        placed: list[tuple[int, Block]] = []
        for block in order:
            address = _end_gap(block, placed, alignment, capacity, highest=draw.random() < 1 / 2)
            if address is None:
                break
            placed.append((address, block))
        else:
            return {block.name: address for address, block in placed}
    raise failure


def _end_gap(
    block: Block,
    placed: Sequence[tuple[int, Block]],
    alignment: int,
    capacity: int,
    *,
    highest: bool,
) -> int | None:
    """The lowest or highest address at which a block meets none that lives with it."""
    last = (capacity - block.bytes) // alignment * alignment
    found, cursor = None, 0
    for start, end in (*_taken(block, placed), (last, last)):
        room = min(start, last) // alignment * alignment
        if cursor <= room:
            if not highest:
                return cursor
            found = room
        cursor = max(cursor, -(-end // alignment) * alignment)
    return found


def prolonged(
    blocks: Sequence[Block], capacity: int, alignment: int, moments: Sequence[str], longer: int
) -> list[Block]:
    """The blocks, each of which lives so many moments longer if there is room for that.

    What is written a moment later need not wait then until all is read that lay there before.
    """
    kept = list(blocks)
    for _ in range(longer):
        for number in sorted(range(len(kept)), key=lambda number: kept[number].first):
            last = kept[number].last
            if last + 1 >= len(moments):
                continue
            pieces = tuple(
                replace(piece, last=last + 1) if piece.last == last else piece
                for piece in kept[number].pieces
            )
            trial = kept.copy()
            trial[number] = replace(kept[number], last=last + 1, pieces=pieces)
            try:
                plan(trial, capacity, alignment, moments)
            except PlanError:
                continue
            kept = trial
    return kept
