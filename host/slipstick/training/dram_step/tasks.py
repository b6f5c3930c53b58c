"""Writes tasks as lists for the DMA: constants, and the transfers and runs of each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import TRANSFER_WORDS, WORD_BYTES, Operation, Transfer
from slipstick_rtl.link.protocol import Space

from ...compiler.codegen.dram_blocks import constant_loads
from ...compiler.codegen.dram_tensors import DramTensor
from ...program.steps import Image, Placement
from .places import box

WAIT = Transfer(operation=Operation.WAIT)


@dataclass(frozen=True)
class Task:
    """A program, and what it does for each image of a batch.

    Parameters
    ----------
    code, constants : bytes
        From the first word of the instruction memory and of the weight memory on.
    transfers : tuple of Transfer
        What follows when they are loaded.
    """

    code: bytes
    constants: bytes
    transfers: tuple[Transfer, ...]


@dataclass(frozen=True)
class Lists:
    """What the host writes to DRAM.

    Parameters
    ----------
    contents : bytes
        Constants, and the lists behind them.
    entries : tuple of int
        The first word of each list.
    """

    contents: bytes
    entries: tuple[int, ...]


def write_lists(
    passes: Sequence[Sequence[Task]], first: int, configuration: Configuration
) -> Lists:
    """Writes a list per pass.

    Parameters
    ----------
    passes : sequence of sequences of Task
    first : int
        The word of DRAM that the contents begin with.
    configuration : Configuration
        With DRAM.
    """
    blocks, place, loads = list[bytes](), first, dict[tuple[int, int], list[Transfer]]()
    # each task has blocks of its own: were equal ones shared, others would move from step to step
    for number, tasks in enumerate(passes):
        for at, task in enumerate(tasks):
            loads[number, at] = []
            for space, data in _contents(task):
                block, more = constant_loads(Image(int(space), 0, data), configuration, place)
                blocks.append(block)
                place += len(block) // WORD_BYTES
                loads[number, at] += more
    entries = list[int]()
    for number, tasks in enumerate(passes):
        transfers = list[Transfer]()
        for at, task in enumerate(tasks):
            transfers += [*loads[number, at], *task.transfers]
        transfers.append(Transfer(operation=Operation.END))
        entries.append(place)
        blocks.append(b"".join(transfer.pack() for transfer in transfers))
        place += len(transfers) * TRANSFER_WORDS
    return Lists(b"".join(blocks), tuple(entries))


def _contents(task: Task) -> Iterator[tuple[Space, bytes]]:
    if task.code:
        yield Space.INSTRUCTIONS, task.code
        yield Space.WEIGHTS, task.constants


class Runnable(Protocol):
    """A program whose code and constants begin with the first words of their memories."""

    @property
    def code(self) -> bytes: ...

    @property
    def constants(self) -> bytes: ...

    @property
    def pcs(self) -> tuple[int, int]: ...


Move = tuple[Placement, DramTensor]
"""Where a tensor lies on the chip and in DRAM."""


def batch_task(
    program: Runnable,
    loads: Sequence[Move],
    stores: Sequence[Move],
    batch: int,
    before: Sequence[Transfer] = (),
) -> Task:
    """Runs a program for each image.

    Parameters
    ----------
    program : Runnable
    loads, stores : sequence of Move
        What it reads and writes.
    batch : int
        Images.
    before : sequence of Transfer
        What comes before the first image.
    """
    transfers = [*before]
    for image in range(batch):
        transfers += [box(Operation.LOAD, place, tensor, image) for place, tensor in loads]
        transfers += [Transfer(operation=Operation.RUN, pcs=program.pcs), WAIT]
        transfers += [box(Operation.STORE, place, tensor, image) for place, tensor in stores]
    return Task(program.code, program.constants, tuple(transfers))
