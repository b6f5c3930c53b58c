"""Predicts how many cycles a run of a program takes."""

from collections.abc import Mapping
from functools import lru_cache

from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import (
    MATRIX_FIELDS,
    POST_FIELDS,
    WORDS_PER_INSTRUCTION,
    Field,
    Opcode,
    TrainingFlag,
    unpack,
)

from ...compiler.timing.cycle_model import CycleModel

_INSTRUCTION_BYTES = 4 * WORDS_PER_INSTRUCTION
_BEGIN_CYCLES = 20
"""Between the DMA's RUN and its WAIT, beside the streams' own."""


@lru_cache(maxsize=1024)
def run_cycles(matrix: bytes, post: bytes, configuration: Configuration) -> int:
    """Cycles of a run.

    Parameters
    ----------
    matrix, post : bytes
        The streams' instructions without their HALT; none is repeated.
    configuration : Configuration
    """
    clock = CycleModel(configuration).clock()
    streams = _unpacked(matrix, MATRIX_FIELDS), _unpacked(post, POST_FIELDS)
    for fields in streams[1]:
        if fields["opcode"] == Opcode.DRAIN and fields["table_words"] & TrainingFlag.MASKED:
            # a mask is read before each result is written
            fields["columns"] *= 2
    done: tuple[list[int], list[int]] = ([], [])
    while any(len(ended) < len(stream) for ended, stream in zip(done, streams, strict=True)):
        for number in (0, 1):
            mine, others = done[number], done[1 - number]
            if len(mine) == len(streams[number]):
                continue
            fields = streams[number][len(mine)]
            if fields["wait"] <= len(others):
                ready = others[fields["wait"] - 1] if fields["wait"] else 0
                mine.append(clock.issue(fields, ready)[1])
                break
        else:
            # waits for more than there is: the gateware would hang, the golden model says so
            break
    return clock.end + _BEGIN_CYCLES


@lru_cache(maxsize=1024)
def busy_cycles(post: bytes) -> int:
    """Cycles in which a run's post stream reads or writes the activation memory, at least.

    Parameters
    ----------
    post : bytes
        Instructions without their HALT.
    """
    total = 0
    for fields in _unpacked(post, POST_FIELDS):
        results = fields["rows"] * fields["columns"] * fields["slices"]
        if fields["opcode"] == Opcode.DRAIN:
            total += results * (1 + bool(fields["table_words"] & TrainingFlag.MASKED))
        elif fields["opcode"] == Opcode.MAP:
            total += results * (1 + fields["taps_y"] * fields["taps_x"])
    return total


def _unpacked(stream: bytes, fields: Mapping[str, Field]) -> list[dict[str, int]]:
    return [
        unpack(fields, stream[first : first + _INSTRUCTION_BYTES])
        for first in range(0, len(stream), _INSTRUCTION_BYTES)
    ]
