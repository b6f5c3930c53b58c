"""Training steps of a small network on LnsUnit, operation by operation, against the golden step."""

from collections import Counter
from typing import Any

import cocotb
import numpy as np
from slipstick_rtl.numbers.lns.formats import Lns
from slipstick_rtl.numbers.lns.unit.arithmetic import Operation
from slipstick_rtl.numbers.lns.unit.conversions import from_float
from slipstick_rtl.numbers.lns.unit.lns_unit import LnsUnit

from ..golden.lns_training import (
    GoldenAnswers,
    InnerProducts,
    Network,
    Rules,
    Steps,
    drive,
    expand,
    training_step,
)
from .drivers.lns_driver import UnitDriver
from .drivers.streams import start
from .registry import Bench, parameters

INPUTS, HIDDEN, CLASSES = 9, 6, 4
BATCH, BATCHES = 4, 3
RATE = 0.05


def component(*, format: str) -> LnsUnit:
    """The unit that computes."""
    return LnsUnit(lns=Lns.parse(format))


BENCH = Bench(
    name="bench_lns_training",
    component=component,
    test_module=__name__,
    parameters=({"format": "lns1+6+6"},),
)


async def drive_unit(steps: Steps, driver: UnitDriver, counts: Counter[Operation]) -> Any:
    """Runs a generator of requests, each answered by the unit; counts its operations."""
    result: Any = None
    while True:
        try:
            request = steps.send(result)
        except StopIteration as end:
            return end.value
        if isinstance(request, InnerProducts):
            result = await drive_unit(expand(request), driver, counts)
            continue
        shape = np.broadcast_shapes(*(np.shape(x) for x in (request.a, request.b, request.c)))
        counts[request.operation] += int(np.prod(shape))
        result = await driver.ask(request.operation, request.a, request.b, request.c)


def network(lns: Lns, generator: np.random.Generator) -> Network:
    """With random weights."""
    return Network.of(
        lns,
        generator.normal(size=(INPUTS, HIDDEN)) * 0.5,
        generator.normal(size=(HIDDEN, CLASSES)) * 0.5,
    )


@cocotb.test()
@cocotb.parametrize(
    (
        ("compensated", "complemented", "stall"),
        [(False, False, 0.3), (True, False, 0.0), (True, True, 0.0)],
    )
)
async def steps_are_the_golden_ones(
    dut: Any, compensated: bool, complemented: bool, stall: float
) -> None:
    lns = Lns.parse(parameters()["format"])
    rules = Rules(lns, RATE, BATCH, compensated, complemented)
    driver, golden = UnitDriver(dut, lns, stall=stall), GoldenAnswers(lns)
    await start(dut)
    on_unit, by_model = (network(lns, np.random.default_rng(1)) for _ in range(2))
    first = on_unit.arrays()
    counts: Counter[Operation] = Counter()
    generator = np.random.default_rng(2)
    for _ in range(BATCHES):
        pixels = np.maximum(generator.normal(size=(BATCH, INPUTS)), 0)
        images, labels = from_float(lns, pixels), generator.integers(0, CLASSES, BATCH)
        await drive_unit(training_step(rules, on_unit, images, labels), driver, counts)
        drive(training_step(rules, by_model, images, labels), golden)
        for name, expected in by_model.arrays().items():
            np.testing.assert_array_equal(on_unit.arrays()[name], expected, err_msg=name)
    assert (on_unit.weights_1 != first["weights_1"]).any()
    used = {Operation.MULTIPLY, Operation.ADD, Operation.DIVIDE}
    used |= {Operation.COMPENSATED_ADD} if rules.compensated else set()
    used |= set() if rules.complemented else {Operation.SUBTRACT}
    assert set(counts) == used
