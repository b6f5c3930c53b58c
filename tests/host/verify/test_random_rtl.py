"""Random networks on the compiled RTL equal the golden model, and take the cycles predicted."""

from contextlib import closing
from dataclasses import replace

import pytest
from compiler_checks import products_of
from random_networks import NetworkBuilder, random_network, some_outputs
from slipstick.compiler import compile_graph
from slipstick.devices import open_device
from slipstick.devices.base import Device
from slipstick.program import Program
from slipstick.program.steps import RunStep
from slipstick.runtime.executor import Execution
from slipstick.targets import find_target
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import INSTRUCTION_BITS, MATRIX_FIELDS, Opcode, unpack
from slipstick_rtl.link.protocol import Space

SMALL = find_target("1x4x4").configuration
"""The small core that the command line's tests build as well."""
FULL = replace(
    SMALL,
    rows=16,
    columns=8,
    lanes=8,
    multiplier="lut",
    packed_rows=5,
    weight_rows=4,
    ninth_bits=1,
    halved_tables=1,
    weight_bytes=1 << 14,
    accumulator_depth=128,
)
"""All that the largest board's core has, in small."""
TABLES = replace(SMALL, drain_tables=1, products=1)
TWO_PIXELS = replace(SMALL, pixels=2, rows=8)

SEEDS = range(40)


def _compile(
    seed: int, configuration: Configuration, *, functions: bool = False, products: bool = False
) -> tuple[Program, dict]:
    builder = random_network(seed, functions=functions, products=products)
    feed = {"input": builder.images()}
    program = compile_graph(builder.graph(*some_outputs(builder)), configuration)
    return program, feed


def _compare(seed: int, program: Program, feed: dict, model: Device, sim: Device) -> None:
    """The RTL's outputs are the golden model's."""
    expected, got = (Execution(program, device).infer(feed) for device in (model, sim))
    for name in program.outputs:
        differ = int((got[name] != expected[name]).sum())
        assert not differ, f"network {seed}, output {name}: {differ} elements differ"


def _is_one_run(program: Program) -> bool:
    return sum(isinstance(step, RunStep) for step in program.steps) == 1


@pytest.fixture(
    scope="module",
    params=[SMALL, pytest.param(FULL, marks=pytest.mark.thorough), TWO_PIXELS],
    ids=lambda item: item.shape,
)
def devices(request: pytest.FixtureRequest):
    with (
        closing(open_device("model", request.param)) as model,
        closing(open_device("sim", request.param)) as sim,
    ):
        yield model, sim


def test_random_networks(devices) -> None:
    """One core runs them all, one after the other: what one leaves behind must not matter."""
    model, sim = devices
    predicted, measured = [], []
    for seed in SEEDS:
        program, feed = _compile(seed, sim.configuration)
        _compare(seed, program, feed, model, sim)
        if _is_one_run(program):
            predicted.append(program.predicted_cycles)
            measured.append(sim.status().cycles)
    # tiny networks: a few cycles of start and end are a percent or more of some, and a table whose
    # words come between weights is guessed
    errors = [abs(a / b - 1) for a, b in zip(predicted, measured, strict=True)]
    assert len(errors) > len(SEEDS) // 2 and max(errors) < 0.13, errors
    assert sum(errors) / len(errors) < 0.03
    assert abs(sum(predicted) / sum(measured) - 1) < 0.03


def test_functions_behind_layers_and_products() -> None:
    """Results go through tables on their way out, between maps that have tables of their own."""
    predicted = measured = behind = multiplying = 0
    with closing(open_device("model", TABLES)) as model, closing(open_device("sim", TABLES)) as sim:
        for seed in SEEDS:
            program, feed = _compile(seed, TABLES, functions=True, products=bool(seed % 2))
            behind += sum("table of results" in layer.why for layer in program.layers)
            multiplying += products_of(program) > 0
            _compare(seed, program, feed, model, sim)
            if _is_one_run(program):
                predicted += program.predicted_cycles
                measured += sim.status().cycles
    assert multiplying > len(SEEDS) // 5
    assert behind > len(SEEDS) // 2
    # a table of its own for nearly each layer: how long it takes beside weights is guessed
    assert abs(predicted / measured - 1) < 0.05


def test_a_separable_network() -> None:
    """Kernels that slide, pairs of vectors, turns, and weights in ninth bits, all on the RTL."""
    builder = NetworkBuilder(8, 12, 12, 8)
    builder.same_conv2d(3, 8)
    _slide(builder, 1)
    _slide(builder, 2)
    # with these weights the last layer's have no room but in ninth bits
    builder.same_conv2d(1, 32)
    builder.same_conv2d(3, 40)
    builder.conv2d(64, (1, 1), stride=(6, 6), padding=(0, 0, 0, 0), sides=(1, 1))
    builder.fully_connected(8)
    program = compile_graph(builder.graph(), FULL)
    assert not program.is_streamed
    convolves = _convolves(program)
    for name in ("depthwise", "pairs", "repeats", "from_ninth", "parts", "whole_words"):
        assert any(fields[name] for fields in convolves), f"no instruction has {name}"
    with closing(open_device("model", FULL)) as model, closing(open_device("sim", FULL)) as sim:
        executions = [Execution(program, device) for device in (model, sim)]
        for _ in range(3):
            feed = {"input": builder.images()}
            expected, got = (execution.infer(feed) for execution in executions)
            for name in program.outputs:
                assert (got[name] == expected[name]).all(), name
        assert abs(program.predicted_cycles / sim.status().cycles - 1) < 0.03


def _slide(builder: NetworkBuilder, stride: int) -> None:
    _, height, width, channels = builder.shape()
    builder.conv2d(
        channels,
        (3, 3),
        channels,
        stride=(stride, stride),
        dilation=(1, 1),
        padding=(1, 1, 1, 1),
        sides=(-(-height // stride), -(-width // stride)),
    )


def _convolves(program: Program) -> list[dict[str, int]]:
    (image,) = [image for image in program.images if image.space == Space.INSTRUCTIONS]
    size = INSTRUCTION_BITS // 8
    words = [image.data[at : at + size] for at in range(0, len(image.data), size)]
    unpacked = [unpack(MATRIX_FIELDS, word) for word in words]
    return [fields for fields in unpacked if fields["opcode"] == Opcode.CONVOLVE]
