"""The repeater: every turn of every instruction, in order, whatever the stalls."""

import random
from collections.abc import Mapping
from typing import Any

import pytest
from amaranth.sim import Simulator
from slipstick_rtl.config import Configuration
from slipstick_rtl.layouts import MATRIX_INSTRUCTION, post_instruction
from slipstick_rtl.sequencer.repeater import Repeater
from slipstick_rtl.sequencer.sequencer import MATRIX_STEPS, POST_STEPS


def _turns(
    instruction: Mapping[str, int], steps: Mapping[str, str], fills: bool
) -> list[dict[str, int]]:
    banks = 2 << instruction["parts"]
    return [
        {
            "bank": (instruction["bank"] + turn) % banks,
            "wait": instruction["wait"]
            + (max(turn + 1 - banks, 0) if fills and not instruction["waits_each"] else turn),
            **{name: instruction[name] + turn * instruction[step] for name, step in steps.items()},
        }
        for turn in range(instruction["repeats"] + 1)
    ]


@pytest.mark.parametrize(
    ("layout", "steps", "fills"),
    [
        (MATRIX_INSTRUCTION, MATRIX_STEPS, True),
        (post_instruction(Configuration()), POST_STEPS, False),
    ],
)
def test_every_turn_comes_once_and_in_order(layout, steps, fills) -> None:
    draw = random.Random(5)
    fields = {"bank": 8, "parts": 3, "wait": 1000, "repeats": 12, **dict.fromkeys(steps, 5000)}
    fields |= dict.fromkeys(steps.values(), 200)
    if fills:
        fields["waits_each"] = 2
    instructions = [{name: draw.randrange(n) for name, n in fields.items()} for _ in range(40)]
    for instruction in instructions:
        instruction["bank"] %= 2 << instruction["parts"]
    expected = [turn for item in instructions for turn in _turns(item, steps, fills)]
    repeater = Repeater(layout=layout, steps=steps, fills=fills)
    seen: list[dict[str, int]] = []

    async def give(context: Any) -> None:
        for instruction in instructions:
            await context.tick().repeat(draw.choice((1, 1, 3)))
            context.set(repeater.i.payload, instruction)
            context.set(repeater.i.valid, 1)
            await context.tick().until(repeater.i.ready)
            context.set(repeater.i.valid, 0)

    async def take(context: Any) -> None:
        names = ("bank", "wait", *steps)
        while len(seen) < len(expected):
            context.set(repeater.o.ready, draw.random() < 0.7)
            _, _, valid, ready, *values = await context.tick().sample(
                repeater.o.valid, repeater.o.ready, *(repeater.o.payload[name] for name in names)
            )
            if valid and ready:
                seen.append(dict(zip(names, values, strict=True)))
        context.set(repeater.o.ready, 1)
        await context.tick().repeat(4)
        assert not context.get(repeater.busy)

    simulator = Simulator(repeater)
    simulator.add_clock(1e-6)
    simulator.add_testbench(give)
    simulator.add_testbench(take)
    simulator.run_until(1e-2)
    assert seen == expected
