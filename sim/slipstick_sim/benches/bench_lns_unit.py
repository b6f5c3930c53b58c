"""LnsUnit against ``LnsArithmetic``: corners, distances, random operations, stalls, and cycles."""

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge
from slipstick_rtl.numbers.lns.formats import Lns
from slipstick_rtl.numbers.lns.unit.arithmetic import Operation
from slipstick_rtl.numbers.lns.unit.conversions import from_float, to_float
from slipstick_rtl.numbers.lns.unit.lns_unit import LnsUnit

from .drivers.lns_driver import UnitDriver, expected
from .drivers.streams import Consumer, Producer, start
from .registry import Bench, parameters

FOUNDING = Lns(6, 6)


def component(*, format: str, compensated: bool = True) -> LnsUnit:
    """The unit under test."""
    return LnsUnit(lns=Lns.parse(format), compensated=compensated)


BENCH = Bench(
    name="bench_lns_unit",
    component=component,
    test_module=__name__,
    parameters=(
        {"format": "lns1+3+4"},
        {"format": FOUNDING.name},
        {"format": "lns1+1+14", "compensated": False},
    ),
    thorough=({"format": "lns1+5+10"},),
)


def begin(dut: Any, stall: float = 0.0) -> tuple[Lns, UnitDriver]:
    """The format under test, and what asks the unit."""
    lns = Lns.parse(parameters()["format"])
    return lns, UnitDriver(dut, lns, stall=stall)


def operations() -> list[Operation]:
    """Those that the unit has."""
    has_all = parameters().get("compensated", True)
    return [member for member in Operation if has_all or member != Operation.COMPENSATED_ADD]


def corners(lns: Lns) -> np.ndarray:
    """Zero, the ends, one and their neighbours, of both signs."""
    top, one = lns.largest_code, -lns.zero
    steps = [1 << lns.fraction_bits, one >> 1]
    found = {1, 2, top, top - 1, one, one - 1, one + 1, *(one + step for step in steps)}
    inside = [code for code in found if 0 < code <= top]
    return np.array([0, *inside, *(-code for code in inside)])


async def check(driver: UnitDriver, lns: Lns, operation: Any, *operands: Any) -> None:
    """Asks, and compares every result with the golden model's."""
    arrays = [array.ravel() for array in np.broadcast_arrays(np.asarray(operation), *operands)]
    got = await driver.ask(*arrays)
    for found, wanted in zip(got, expected(lns, *arrays), strict=True):
        wrong = np.flatnonzero(found != wanted)
        assert wrong.size == 0, (
            f"{wrong.size} wrong; {Operation(arrays[0][wrong[0]]).name} of"
            f" {[int(array[wrong[0]]) for array in arrays[1:]]}: {found[wrong[0]]} instead of"
            f" {wanted[wrong[0]]}"
        )


@cocotb.test()
async def corners_in_pairs(dut: Any) -> None:
    lns, driver = begin(dut)
    await start(dut)
    codes = corners(lns)
    a, b = codes[:, None], codes[None, :]
    for operation in operations():
        c = np.random.default_rng(int(operation)).choice(codes, (codes.size, codes.size))
        await check(driver, lns, operation, a, b, c)


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.2, 0.7])
async def random_operations(dut: Any, stall: float) -> None:
    lns, driver = begin(dut, stall)
    await start(dut)
    generator = np.random.default_rng(round(10 * stall))
    top, count = lns.largest_code, 3000
    a, far, c = generator.integers(-top, top + 1, (3, count))
    # half of the pairs are near one another, where sums and differences change most
    near = np.clip(np.abs(a) + generator.integers(-70, 70, count), 0, top)
    b = np.where(generator.random(count) < 0.5, far, near * generator.choice([-1, 1], count))
    await check(driver, lns, generator.choice(list(map(int, operations())), count), a, b, c)


@cocotb.test()
async def distances(dut: Any) -> None:
    lns, driver = begin(dut)
    await start(dut)
    top = lns.largest_code
    others = np.unique(np.geomspace(1, top, 2500).astype(np.int64))
    for sign in (1, -1):
        await check(driver, lns, Operation.ADD, top, sign * (top - others), 0)


@cocotb.test()
async def founding_pair(dut: Any) -> None:
    lns, driver = begin(dut)
    await start(dut)
    if lns != FOUNDING:
        return
    a, b, ten = (from_float(lns, value) for value in (98, 2, 10))
    total, _ = await driver.ask(Operation.ADD, [a], [b])
    product, _ = await driver.ask(Operation.MULTIPLY, [ten], [ten])
    assert round(float(to_float(lns, total)[0]), 3) == 99.776
    assert round(float(to_float(lns, product)[0]), 3) == 100.863


@cocotb.test()
async def a_result_a_cycle_after_the_latency(dut: Any) -> None:
    lns, driver = begin(dut)
    unit = component(**parameters())
    codes = np.arange(400) % lns.largest_code
    requests = driver.pack(np.full(codes.shape, int(Operation.ADD)), codes, codes, codes)
    producer, consumer = Producer(dut, "i"), Consumer(dut, "o")
    await start(dut)
    await RisingEdge(dut.clk)
    producer.start(requests)
    await RisingEdge(dut.clk)
    cycles = 0
    while dut.o__valid.value == 0:
        await RisingEdge(dut.clk)
        cycles += 1
    assert cycles == unit.latency
    await consumer.receive(300, timeout_cycles=301)
    await consumer.receive(100)
    await consumer.expect_silence(2 * unit.latency)
