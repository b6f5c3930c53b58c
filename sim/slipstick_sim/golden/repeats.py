"""The turns of a repeated instruction, each as an instruction of its own."""

from slipstick_rtl.isa import Opcode

Instruction = dict[str, int]


def turns(instruction: Instruction) -> int:
    """Counts how often an instruction is executed."""
    repeated = instruction["opcode"] in (Opcode.CONVOLVE, Opcode.DRAIN)
    return instruction["repeats"] + 1 if repeated else 1


def turn(instruction: Instruction, number: int) -> Instruction:
    """The fields with which an instruction is executed for the n-th time, from 0 up."""
    if not number:
        return instruction
    banks = 2 << instruction["parts"]
    fields = {**instruction, "bank": (instruction["bank"] + number) % banks}
    if instruction["opcode"] == Opcode.CONVOLVE:
        steps = {"weight_address": "weight_step", "origin": "origin_step"}
        fields["wait"] += number if instruction.get("waits_each") else max(number + 1 - banks, 0)
    else:
        steps = {"destination": "destination_step", "parameter_address": "parameter_step"}
        fields["wait"] += number
    for name, step in steps.items():
        fields[name] += number * instruction[step]
    return fields
