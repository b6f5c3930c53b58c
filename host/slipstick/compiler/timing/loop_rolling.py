"""Runs of instructions that differ by constant steps only, as one instruction with turns.

Turn t of the hardware's CONVOLVE waits for max(t + 1 - B, 0) instructions more than the first, turn
t of a DRAIN for t more, and both take the B banks in turns: what the tiles of a layer's channels
need, as each of them makes and drains its own accumulators. A CONVOLVE may wait as a DRAIN does,
too: where each tile reads what a tile of the layer before it wrote.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from slipstick_rtl.isa import MATRIX_FIELDS, POST_FIELDS, Field, Opcode

Values = Mapping[str, int]
"""All fields of an instruction, its wait and bank among them."""

_STEPS: Mapping[int, tuple[Mapping[str, Field], Mapping[str, str]]] = {
    Opcode.CONVOLVE: (MATRIX_FIELDS, {"weight_address": "weight_step", "origin": "origin_step"}),
    Opcode.DRAIN: (
        POST_FIELDS,
        {"destination": "destination_step", "parameter_address": "parameter_step"},
    ),
}
"""Fields of the opcodes that repeat; the addresses that move on, and the fields of their steps."""

Constants = tuple[tuple[str, int], ...]
"""The fields of an instruction that are the same in each of its turns, in the order of names."""

_MOST_REPEATS = (1 << MATRIX_FIELDS["repeats"].width) - 1


def constants(values: Values) -> Constants:
    """Chooses the fields that are the same in each turn of an instruction; none if it has none."""
    if values["opcode"] not in _STEPS:
        return ()
    changing = {"wait", "bank", *_STEPS[values["opcode"]][1]}
    return tuple(sorted((name, value) for name, value in values.items() if name not in changing))


@dataclass(frozen=True, slots=True)
class Repeated:
    """An instruction, and how often it is executed.

    Parameters
    ----------
    first : Values
        Of its first turn.
    repeats : int
        Further turns.
    steps : tuple of int
        By which the addresses move on, in the order of the opcode's.
    waits_each : bool
        It is a CONVOLVE of which each turn waits for one instruction more.
    same : Constants
        Of the first turn, and so of each.
    """

    first: Values
    repeats: int = 0
    steps: tuple[int, ...] = ()
    waits_each: bool = False
    same: Constants = ()

    def with_turn(self, values: Values, wait: int, bank: int, same: Constants) -> "Repeated | None":
        """It and one more turn that is the instruction given; None if it is no such turn.

        Parameters
        ----------
        values : Values
            Wait and bank may be missing.
        wait, bank : int
        same : Constants
        """
        first, number = self.first, self.repeats + 1
        opcode = first["opcode"]
        if values["opcode"] != opcode or opcode not in _STEPS or number > _MOST_REPEATS:
            return None
        banks = 2 << first["parts"]
        # the second turn tells how they wait; with two banks or more there can be no doubt
        convolves, waits_each = opcode == Opcode.CONVOLVE, self.waits_each
        if convolves and number == 1:
            waits_each = wait == first["wait"] + 1
        later = max(number + 1 - banks, 0) if convolves and not waits_each else number
        turn = first["wait"] + later, (first["bank"] + number) % banks
        if (wait, bank) != turn:
            return None
        fields, moving = _STEPS[opcode]
        steps = self.steps or tuple(values[name] - first[name] for name in moving)
        for (name, step_name), step in zip(moving.items(), steps, strict=True):
            fits = 0 <= step < 1 << fields[step_name].width
            if not fits or values[name] != first[name] + number * step:
                return None
        if same != self.same:
            return None
        return Repeated(first, number, steps, waits_each, same)

    def values(self) -> dict[str, int]:
        """All fields of the instruction."""
        if not self.repeats:
            return dict(self.first)
        names = _STEPS[self.first["opcode"]][1].values()
        values = {
            **self.first,
            "repeats": self.repeats,
            **dict(zip(names, self.steps, strict=True)),
        }
        return {**values, "waits_each": 1} if self.waits_each else values


def merge(instructions: Iterable[Values]) -> list[Repeated]:
    """A stream with every run of turns as one instruction."""
    merged: list[Repeated] = []
    for values in instructions:
        same, longer = constants(values), None
        if merged:
            longer = merged[-1].with_turn(values, values["wait"], values["bank"], same)
        if longer is None:
            merged.append(Repeated(values, same=same))
        else:
            merged[-1] = longer
    return merged
