"""How many instructions the runs of a program complete: what the device's counters must say."""

from slipstick_rtl.isa import WORDS_PER_INSTRUCTION, Opcode, opcode_of
from slipstick_rtl.link.protocol import Space

from .program import Program, RunStep

COUNTER_MASK = 0xFFFF
"""The device's completion counters have 16 bits."""

_INSTRUCTION_BYTES = 4 * WORDS_PER_INSTRUCTION


def instruction_counts(program: Program) -> dict[tuple[int, int], tuple[int, int]]:
    """Instructions of the matrix and the post stream up to HALT, by the words where they start.

    Returns
    -------
    dict of (matrix, post) by (matrix_pc, post_pc)
        For each of the program's runs.
    """
    memory = bytearray(4 * program.hardware.instruction_words)
    for image in program.images:
        if image.space == Space.INSTRUCTIONS:
            memory[4 * image.address : 4 * image.address + len(image.data)] = image.data
    return {
        (step.matrix_pc, step.post_pc): (
            _count(memory, step.matrix_pc),
            _count(memory, step.post_pc),
        )
        for step in program.steps
        if isinstance(step, RunStep)
    }


def _count(memory: bytearray, pc: int) -> int:
    starts = range(4 * pc, len(memory) - _INSTRUCTION_BYTES + 1, _INSTRUCTION_BYTES)
    for number, start in enumerate(starts):
        if opcode_of(bytes(memory[start : start + _INSTRUCTION_BYTES])) == Opcode.HALT:
            return number
    return len(starts)
