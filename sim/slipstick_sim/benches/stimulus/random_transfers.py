"""Random instructions of the DMA, and lists of them that are defined."""

import zlib
from typing import Any

import numpy as np
from slipstick_rtl.dma.layouts import chunk_bytes
from slipstick_rtl.dma.transfer import (
    GROUP_CELLS,
    MASTER_WORDS,
    SUM_BYTES,
    TURNED_WORDS,
    WORD_BYTES,
    Operation,
    Target,
    Transfer,
)

from ...golden import training
from ..drivers.dma_surroundings import LIST, DmaSurroundings
from .random_update import random_master, random_sum

LARGEST_SHIFT = 40
"""Largest shift of UPDATEs here: from 32 on nothing is learned."""


def random_box(s: DmaSurroundings, operation: Operation) -> Transfer:
    """Returns a box of the activation memory; runs may touch, leave gaps or be bytes apart."""
    draw, c = s.draw, s.configuration
    size = chunk_bytes(c) if operation is Operation.STORE else 1
    run_bytes = draw.choice((1, 3, 7, 8, 9, 16, 24, 41, 100))
    runs, rows = draw.choice(((1, 1), (1, 4), (5, 1), (3, 3)))
    run_pitch = -(-run_bytes // size) * size + size * draw.randrange(3)
    row_pitch = run_pitch * runs + size * draw.randrange(4)
    span = row_pitch * rows
    words = -(-run_bytes // WORD_BYTES)
    dram_run_pitch = words + draw.randrange(2)
    dram_row_pitch = dram_run_pitch * runs + draw.randrange(3)
    return Transfer(
        operation=operation,
        chip=draw.randrange((c.activation_bytes - span) // size) * size,
        dram=draw.randrange(LIST - dram_row_pitch * rows),
        run_bytes=run_bytes,
        runs=runs,
        rows=rows,
        chip_run_pitch=run_pitch,
        chip_row_pitch=row_pitch,
        dram_run_pitch=dram_run_pitch,
        dram_row_pitch=dram_row_pitch,
    )


def random_turned(s: DmaSurroundings) -> Transfer:
    """Returns a LOAD of blocks that are turned; runs may lie upon each other."""
    draw, c = s.draw, s.configuration
    rows, runs = draw.choice((1, 2, 5)), draw.randrange(1, TURNED_WORDS + 1)
    run_bytes = draw.choice((1, 3, 8, draw.randrange(1, TURNED_WORDS + 1)))
    run_pitch, row_pitch = draw.choice((0, run_bytes, 17)), draw.randrange(100)
    dram_run_pitch, dram_row_pitch = draw.choice((0, 1, 3)), draw.randrange(40)
    span = run_pitch * runs + row_pitch * rows + run_bytes
    words = dram_run_pitch * TURNED_WORDS + dram_row_pitch * rows
    return Transfer(
        operation=Operation.LOAD,
        target=Target.TURNED,
        chip=draw.randrange(c.activation_bytes - span),
        dram=draw.randrange(LIST - words - 1),
        run_bytes=run_bytes,
        runs=runs,
        rows=rows,
        chip_run_pitch=run_pitch,
        chip_row_pitch=row_pitch,
        dram_run_pitch=dram_run_pitch,
        dram_row_pitch=dram_row_pitch,
    )


def random_weights(s: DmaSurroundings) -> Transfer:
    """Returns a LOAD of weights: cells, ninth bits, or both."""
    groups = len(s.chip.cells)
    count = s.draw.randrange(1, 40)
    kinds = [Target.WEIGHTS, Target.CELLS]
    size = count * WORD_BYTES
    if s.configuration.ninth_bits:
        kinds.append(Target.NINTHS)
    target = s.draw.choice(kinds)
    if target is Target.NINTHS:
        size = count
    elif target is Target.WEIGHTS and s.configuration.ninth_bits:
        size += -(-count // GROUP_CELLS) * WORD_BYTES
    return Transfer(
        operation=Operation.LOAD,
        target=target,
        chip=s.draw.randrange(groups - count),
        dram=s.draw.randrange(LIST - size // WORD_BYTES - 1),
        run_bytes=size,
    )


def random_update(s: DmaSurroundings) -> Transfer:
    """Returns an UPDATE whose planes follow each other, or whose rows do."""
    draw, c = s.draw, s.configuration
    size = chunk_bytes(c)
    rows = draw.randrange(1, 21)
    gap = size * draw.randrange(3)
    # planes behind planes, or rows behind rows
    run_pitch, row_pitch = WORD_BYTES * rows + gap, WORD_BYTES
    if draw.random() < 0.5:
        run_pitch = WORD_BYTES + gap
        row_pitch = SUM_BYTES * run_pitch + size * draw.randrange(3)
    span = SUM_BYTES * run_pitch + row_pitch * rows
    return update_of(
        chip=draw.randrange((c.activation_bytes - span) // size) * size,
        dram=draw.randrange(LIST - MASTER_WORDS * rows),
        rows=rows,
        chip_run_pitch=run_pitch,
        chip_row_pitch=row_pitch,
        shift=draw.randrange(LARGEST_SHIFT + 1),
    )


def update_of(**fields: Any) -> Transfer:
    """Returns an UPDATE of these fields: four planes of a word per row."""
    return Transfer(operation=Operation.UPDATE, run_bytes=WORD_BYTES, runs=SUM_BYTES, **fields)


def _random_updates(s: DmaSurroundings, count: int) -> list[Transfer]:
    """UPDATEs with their sums and masters; they may lie upon each other, the last one above all."""
    updates = [random_update(s) for _ in range(count)]
    for update in updates:
        prepare_update(s, update)
    return updates


def prepare_update(s: DmaSurroundings, update: Transfer) -> None:
    """Writes sums and masters of an UPDATE: corners, random ones, and steps near corners."""
    count = GROUP_CELLS * update.rows
    sums = np.array([random_sum(s.draw, update.shift) for _ in range(count)], np.int32)
    masters = np.array([random_master(s.draw) for _ in range(count)], np.int32)
    planes = sums.astype("<i4").view(np.uint8).reshape(update.rows, GROUP_CELLS, SUM_BYTES)
    for row in range(update.rows):
        for k in range(SUM_BYTES):
            at = update.chip + row * update.chip_row_pitch + k * update.chip_run_pitch
            s.chip.write_activations(at, planes[row, :, k])
    words = s.dram.reshape(-1, WORD_BYTES)
    packed = training.pack_masters(masters).reshape(-1, WORD_BYTES)
    words[update.dram : update.dram + len(packed)] = packed


def random_instructions(s: DmaSurroundings) -> Transfer:
    """Returns a LOAD of instructions."""
    count = s.draw.randrange(1, 30)
    return Transfer(
        operation=Operation.LOAD,
        target=Target.INSTRUCTIONS,
        chip=s.draw.randrange(s.configuration.instruction_words - count),
        dram=s.draw.randrange(LIST - 16),
        run_bytes=4 * count,
    )


def _words_of(transfer: Transfer) -> list[int]:
    """The words of DRAM that are moved, in their order."""
    if transfer.operation is Operation.UPDATE:
        return list(range(transfer.dram, transfer.dram + transfer.words))
    return [
        transfer.dram + row * transfer.dram_row_pitch + run * transfer.dram_run_pitch + word
        for row in range(transfer.rows)
        for run in range(transfer.dram_runs)
        for word in range(transfer.run_words)
    ]


def with_crc(s: DmaSurroundings, transfer: Transfer) -> Transfer:
    """Returns a LOAD with the CRC of what it reads."""
    words = s.dram.reshape(-1, WORD_BYTES)[_words_of(transfer)].tobytes()
    return Transfer(**{**vars(transfer), "checked": True, "crc": zlib.crc32(words)})


def random_list(s: DmaSurroundings, count: int) -> list[Transfer]:
    """Returns a list that is defined: UPDATEs may read what other instructions have left."""
    while True:
        transfers, golden = _draw_list(s, count), s.golden()
        try:
            for transfer in transfers:
                golden.execute(transfer.pack())
        except ArithmeticError:
            continue
        return transfers


def _draw_list(s: DmaSurroundings, count: int) -> list[Transfer]:
    """Ends with an END; no run begins while another one goes on.

    LOADs of what no STORE or UPDATE before them has touched may have a CRC.
    """
    transfers, running, stored = list[Transfer](), False, set[int]()
    updates = _random_updates(s, count // 4) if s.configuration.training else []

    def load(transfer: Transfer) -> Transfer:
        known = stored.isdisjoint(_words_of(transfer))
        return with_crc(s, transfer) if known and s.draw.random() < 0.7 else transfer

    for _ in range(count):
        kind = s.draw.randrange(10 if updates else 8)
        if kind < 3:
            turns = s.configuration.training and s.draw.random() < 0.4
            transfers.append(load(random_turned(s) if turns else random_box(s, Operation.LOAD)))
        elif kind < 5:
            transfers.append(random_box(s, Operation.STORE))
            stored.update(_words_of(transfers[-1]))
        elif kind == 5:
            transfers.append(load(random_weights(s)))
        elif kind == 6:
            transfers.append(load(random_instructions(s)))
        elif kind > 7:
            transfers.append(updates.pop())
            stored.update(_words_of(transfers[-1]))
        else:
            if running:
                transfers.append(Transfer(operation=Operation.WAIT))
            pcs = s.draw.randrange(1 << 16), s.draw.randrange(1 << 16)
            transfers.append(Transfer(operation=Operation.RUN, pcs=pcs))
            running = True
    transfers.append(Transfer(operation=Operation.WAIT))
    transfers.append(Transfer(operation=Operation.END))
    return transfers
