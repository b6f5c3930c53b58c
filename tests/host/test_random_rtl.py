"""Random networks on the compiled RTL equal the golden model, and take the cycles predicted."""

import pytest
from random_networks import random_network, some_outputs
from slipstick.compiler import compile_graph
from slipstick.devices import open_device
from slipstick.execution import Execution
from slipstick.program import Program
from slipstick.steps import RunStep
from slipstick.targets import find_target

TARGET = "1x4x4"
"""The small core that the command line's tests build as well."""

SEEDS = range(40)


def _compile(seed: int) -> tuple[Program, dict]:
    builder = random_network(seed)
    feed = {"input": builder.images()}
    program = compile_graph(
        builder.graph(*some_outputs(builder)), find_target(TARGET).configuration
    )
    return program, feed


@pytest.fixture(scope="module")
def devices():
    configuration = find_target(TARGET).configuration
    model = open_device("model", configuration)
    sim = open_device("sim", configuration)
    yield model, sim
    sim.close()
    model.close()


def test_random_networks(devices) -> None:
    """One core runs them all, one after the other: what one leaves behind must not matter."""
    model, sim = devices
    predicted, measured = [], []
    for seed in SEEDS:
        program, feed = _compile(seed)
        expected = Execution(program, model).infer(feed)
        execution = Execution(program, sim)
        got = execution.infer(feed)
        for name in program.outputs:
            differ = int((got[name] != expected[name]).sum())
            assert not differ, f"network {seed}, output {name}: {differ} elements differ"
        runs = [step for step in program.steps if isinstance(step, RunStep)]
        if len(runs) == 1:
            predicted.append(program.predicted_cycles)
            measured.append(sim.status().cycles)
    # tiny networks: a few cycles of start and end are a percent or more of some
    errors = [abs(a / b - 1) for a, b in zip(predicted, measured, strict=True)]
    assert len(errors) > len(SEEDS) // 2 and max(errors) < 0.12, errors
    assert abs(sum(predicted) / sum(measured) - 1) < 0.03
