"""Places the tensors of a list for the DMA in DRAM."""

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ...program import Program
from ...program.steps import DownloadStep, Step, UploadStep
from ..memory.planner import Block, Piece, PlanError, plan
from .dram_tensors import Layouts

Places = Mapping[tuple[str, int], int]
"""The first word of each tensor of each image."""


def place_tensors(
    program: Program,
    steps: Sequence[Step],
    layouts: Layouts,
    inputs: Collection[str],
    outputs: Collection[str],
    room: int,
) -> tuple[dict[tuple[str, int], int], int]:
    """Places for the tensors of all images, from word 0 on, and how many words they are: no more
    than there is ``room``, if that is possible.

    What is not needed at the same time may lie at the same place. The images of a tensor that the
    host writes or reads lie one behind the other.

    Parameters
    ----------
    program : Program
    steps : sequence of Step
        Those of the device.
    layouts : Layouts
    inputs, outputs : collection of str
        What the host writes before the list, and reads after it.
    room : int
        In words.
    """
    spans = dict[tuple[str, int], tuple[int, int]]()
    for at, step in enumerate(steps):
        if isinstance(step, UploadStep | DownloadStep):
            key = step.tensor, step.image
            spans[key] = spans.get(key, (at, at))[0], at
    blocks, offsets = list[Block](), dict[tuple[str, int], tuple[str, int]]()
    for name, shapes in layouts.items():
        words = next(iter(shapes.values())).words
        images = range(program.batch)
        apart = name not in inputs and name not in outputs
        for members in [[image] for image in images] if apart else [images]:
            pieces = list[Piece]()
            for number, image in enumerate(members):
                first, last = spans[name, image]
                first = 0 if name in inputs else first
                last = len(steps) if name in outputs else last
                pieces.append(Piece(number * words, words, first, last))
            blocks.append(_block(f"{name}\0{members[0]}", pieces))
            for piece, image in zip(pieces, members, strict=True):
                offsets[name, image] = blocks[-1].name, piece.offset
    found = _planned(blocks, room)
    end = max((found[block.name] + block.bytes for block in blocks), default=0)
    return {key: found[title] + offset for key, (title, offset) in offsets.items()}, end


def _block(name: str, pieces: Sequence[Piece]) -> Block:
    """Pieces one behind the other, each of which has its own time."""
    first, last = min(piece.first for piece in pieces), max(piece.last for piece in pieces)
    return Block(name, sum(piece.bytes for piece in pieces), first, last, tuple(pieces))


def _planned(blocks: Sequence[Block], room: int) -> dict[str, int]:
    """Addresses by name, in the room or, if they have none there, in more."""
    parts = [part for block in blocks for part in block.parts]
    moments = sorted({moment for part in parts for moment in (part.first, part.last)})
    ranks = {moment: rank for rank, moment in enumerate(moments)}
    ranked = [
        _block(
            block.name,
            [replace(part, first=ranks[part.first], last=ranks[part.last]) for part in block.parts],
        )
        for block in blocks
    ]
    try:
        return plan(ranked, room, 1, [f"step {moment}" for moment in moments])
    except PlanError:
        return plan(ranked, sys.maxsize, 1, ())
