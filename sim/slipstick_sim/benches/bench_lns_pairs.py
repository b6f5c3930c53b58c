"""LnsUnit against ``LnsArithmetic`` for every pair of words of narrow formats.

Compensated additions, which have three operands, are bench_lns_unit's part.

By default one format a width; with ``SLIPSTICK_LNS_FORMATS=all`` in the environment every format of
5 to 10 bits.
"""

import os
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge, with_timeout
from slipstick_rtl.numbers.lns.formats import Lns
from slipstick_rtl.numbers.lns.unit.arithmetic import LnsArithmetic, Operation

from .drivers.streams import CLOCK_PERIOD_NS, Producer, pack, start
from .registry import Bench, parameters
from .stimulus.lns_sweep import LnsSweep, group_size, sweep_layout

FORMATS_VARIABLE = "SLIPSTICK_LNS_FORMATS"
DEFAULT_FORMATS = ("lns1+2+2", "lns1+3+2", "lns1+3+3", "lns1+3+4", "lns1+4+5")
WIDTHS = range(5, 11)
"""Bits of formats that are run through."""


def component(*, format: str) -> LnsSweep:
    """The unit under test."""
    return LnsSweep(lns=Lns.parse(format))


def _formats() -> tuple[str, ...]:
    if os.environ.get(FORMATS_VARIABLE) != "all":
        return DEFAULT_FORMATS
    return tuple(Lns(i, bits - 1 - i).name for bits in WIDTHS for i in range(1, bits))


BENCH = Bench(
    name="bench_lns_pairs",
    component=component,
    test_module=__name__,
    parameters=tuple({"format": name} for name in _formats()),
)


async def receive_groups(dut: Any, lns: Lns, count: int) -> np.ndarray:
    """So many result words, int64."""
    size = group_size(lns)
    period = (100 + size) * CLOCK_PERIOD_NS
    groups = []
    for _ in range(count // size):
        await with_timeout(RisingEdge(dut.complete), period, "ns")
        groups.append(dut.o.value.to_unsigned().to_bytes(size * lns.bits // 8, "little"))
    bits = np.unpackbits(np.frombuffer(b"".join(groups), np.uint8), bitorder="little")
    weights = 1 << np.arange(lns.bits)
    return bits.reshape(count, lns.bits) @ weights


@cocotb.test()
@cocotb.parametrize(operation=[each for each in Operation if each != Operation.COMPENSATED_ADD])
async def every_pair(dut: Any, operation: Operation) -> None:
    lns = Lns.parse(parameters()["format"])
    words = np.arange(1 << lns.bits)
    codes = lns.to_code(*lns.from_word(words))
    asked = words[:1] if operation is Operation.SQUARE_ROOT else words
    producer = Producer(dut, "i")
    await start(dut)
    layout = sweep_layout(lns)
    producer.start(pack(layout, {"operation": operation, "a": int(a)}) for a in asked)
    results = (await receive_groups(dut, lns, asked.size * words.size)).reshape(asked.size, -1)
    if operation is Operation.SQUARE_ROOT:
        expected = LnsArithmetic(lns).square_root(codes[None, :])
    else:
        expected, _ = LnsArithmetic(lns).execute(operation, codes[:, None], codes[None, :])
    wrong = np.argwhere(lns.to_code(*lns.from_word(results)) != expected)
    assert not len(wrong), f"{len(wrong)} pairs, the first of words {wrong[0].tolist()}"
