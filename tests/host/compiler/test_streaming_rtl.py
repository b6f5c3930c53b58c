"""Networks cut into pieces on compiled RTL with tiny memories: transfers go on while it runs."""

import numpy as np
import pytest
from random_networks import NetworkBuilder, random_network, some_outputs
from slipstick.compiler import compile_graph
from slipstick.devices import open_device
from slipstick.kernels.dispatch import run_graph
from slipstick.program.steps import RunStep
from slipstick.runtime.executor import Execution
from slipstick_rtl.config import Configuration

PIPELINED = Configuration(
    rows=4,
    columns=8,
    lanes=4,
    activation_bytes=1 << 11,
    weight_bytes=1 << 11,
    instruction_words=1 << 9,
    accumulator_depth=32,
)
COMPACT = Configuration(
    engine="compact",
    rows=2,
    columns=8,
    lanes=1,
    activation_bytes=1 << 11,
    weight_bytes=1 << 11,
    parameter_words=128,
    instruction_words=1 << 9,
    accumulator_depth=32,
)
SEEDS = range(200, 240)


@pytest.mark.parametrize(
    "configuration",
    [PIPELINED, pytest.param(COMPACT, marks=pytest.mark.thorough)],
    ids=lambda item: item.engine,
)
def test_streamed_networks_on_the_rtl(configuration: Configuration) -> None:
    streamed = overlapped = 0
    predicted, measured = [], []
    sim = open_device("sim", configuration)
    for seed in SEEDS:
        builder = random_network(seed)
        graph = builder.graph(*some_outputs(builder))
        program = compile_graph(graph, configuration)
        if not program.is_streamed:
            continue
        streamed += 1
        overlapped += sum(step.overlapped for step in program.steps if isinstance(step, RunStep))
        images = np.concatenate([builder.images() for _ in range(2)])
        expected = run_graph(graph, [images])
        execution = Execution(program, sim)
        single = execution.infer({"input": images[:1]})
        predicted.append(program.predicted_cycles)
        measured.append(execution.last_cycles)
        together = execution.infer_batch({"input": images})
        for name in program.outputs:
            message = f"network {seed}, {name}"
            np.testing.assert_array_equal(single[name], expected[name][:1], message)
            np.testing.assert_array_equal(together[name], expected[name], message)
    sim.close()
    assert streamed > len(SEEDS) // 3 and overlapped > 5 * streamed
    # tiny runs: a few cycles of start and end are a percent or more of some
    assert abs(sum(predicted) / sum(measured) - 1) < 0.05


@pytest.mark.parametrize(
    "configuration",
    [PIPELINED, pytest.param(COMPACT, marks=pytest.mark.thorough)],
    ids=lambda item: item.engine,
)
def test_a_mean_in_parts_on_the_rtl(configuration: Configuration) -> None:
    """Sums stay in the accumulators from run to run."""
    builder = NetworkBuilder(1, 23, 18, 2)
    builder.same_conv2d(1, 20)
    builder.mean(keep_dimensions=True)
    builder.same_conv2d(1, 8)
    program = compile_graph(builder.graph(), configuration)
    assert {layer.where for layer in program.layers} == {"device"}
    images = np.concatenate([builder.images() for _ in range(2)])
    expected = run_graph(builder.graph(), [images])
    sim = open_device("sim", configuration)
    found = Execution(program, sim).infer_batch({"input": images})
    sim.close()
    for name in program.outputs:
        np.testing.assert_array_equal(found[name], expected[name])
