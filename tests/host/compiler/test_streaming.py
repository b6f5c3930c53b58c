"""Networks that do not fit: cut into stripes and boxes, they are equal to the last bit."""

import math

import numpy as np
import pytest
from compiler_checks import check_ways
from hypothesis import given, settings
from hypothesis import strategies as st
from random_configurations import configurations
from random_networks import NetworkBuilder, random_network, some_outputs
from slipstick.compiler import compile_graph
from slipstick.devices.link import LinkDevice
from slipstick.devices.link.transport import LoopbackTransport
from slipstick.devices.model import ModelDevice
from slipstick.kernels.dispatch import run_graph
from slipstick.program import Program
from slipstick.program.steps import DownloadStep, LoadStep, RunStep, UploadStep
from slipstick.runtime.executor import BATCH, Execution
from slipstick_rtl.config import Configuration
from slipstick_rtl.link.protocol import Space
from slipstick_sim.golden.core import GoldenCore
from slipstick_sim.golden.link import Endpoint

WAYS = (("matrix_first", False), ("post_first", True))


TINY = configurations(
    pixels=(1, 2),
    activation_bytes=st.sampled_from([1 << 10, 1 << 11, 1 << 12]),
    weight_bytes=st.sampled_from([1 << 12, 1 << 13]),
    instruction_words=st.sampled_from([1 << 8, 1 << 9, 1 << 10, 1 << 11]),
)
"""With hardly any memory."""


def check(
    builder: NetworkBuilder,
    configuration: Configuration,
    outputs: tuple[str, ...] = (),
    *,
    inspect: bool = False,
) -> Program:
    """Every tensor that comes down must be the kernels', whenever what overlaps is done."""
    return check_ways(builder, configuration, outputs, WAYS, inspect=inspect)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.integers(0, 1 << 30), TINY, st.booleans())
def test_random_networks_in_tiny_memories(seed, configuration, inspect):
    builder = random_network(seed)
    check(builder, configuration, some_outputs(builder), inspect=inspect)


COMPACT = Configuration(
    engine="compact",
    rows=2,
    columns=8,
    lanes=1,
    activation_bytes=1 << 10,
    weight_bytes=1 << 11,
    parameter_words=64,
    instruction_words=1 << 9,
    accumulator_depth=64,
)


@pytest.mark.parametrize("seed", range(15))
def test_random_networks_on_a_tiny_compact_engine(seed):
    builder = random_network(seed)
    check(builder, COMPACT, some_outputs(builder))


def _runs(program: Program) -> list[RunStep]:
    return [step for step in program.steps if isinstance(step, RunStep)]


def _large() -> NetworkBuilder:
    builder = NetworkBuilder(9, 16, 12, 6)
    shortcut = builder.same_conv2d(3, 24)
    builder.depthwise((3, 3), 1)
    builder.last = shortcut
    main = builder.same_conv2d(3, 24)
    builder.last = shortcut
    builder.add(main)
    builder.same_conv2d(1, 40)
    return builder


@pytest.mark.parametrize(
    "changes",
    [
        {"activation_bytes": 1 << 11},
        {"weight_bytes": 1 << 12},
        {"weight_bytes": 1 << 12, "weight_rows": 2, "ninth_bits": 1},
        {"instruction_words": 128},
    ],
    ids=lambda changes: "-".join(changes),
)
def test_each_memory_may_be_too_small(changes):
    program = check(_large(), Configuration(rows=8, columns=8, **changes))
    assert len(_runs(program)) > 1
    assert all(layer.where == "device" for layer in program.layers)


def test_only_the_ends_of_a_segment_travel():
    """Pictures are too large, but weights are small: stripes of all layers.

    Of the shortcut a stripe has more rows than of what it is added to.
    """
    builder = NetworkBuilder(3, 80, 16, 8)
    shortcut = builder.same_conv2d(3, 8)
    builder.same_conv2d(3, 8)
    builder.same_conv2d(3, 8)
    builder.add(shortcut)
    builder.same_conv2d(3, 8)
    program = check(builder, Configuration(rows=8, columns=8, activation_bytes=1 << 14))
    crossing = {
        step.tensor for step in program.steps if isinstance(step, UploadStep | DownloadStep)
    }
    assert crossing == {"input", builder.last}
    assert not program.loads and len(_runs(program)) > 1


def test_weights_pass_once_where_inputs_are_smaller():
    """Some channels at a time, as many as the weight memory holds: not one tile of the array."""
    builder = NetworkBuilder(1, 12, 12, 64)
    builder.same_conv2d(3, 64)
    hardware = Configuration(rows=8, columns=8, activation_bytes=1 << 13, weight_bytes=1 << 15)
    program = check(builder, hardware)
    assert program.transferred().loaded < 1.5 * 64 * 64 * 9
    parts = [step.part for step in program.steps if isinstance(step, DownloadStep)]
    assert max(part.placement.channels for part in parts if part is not None) > hardware.columns


@pytest.mark.parametrize("flat", [True, False])
def test_reductions_are_cut(flat):
    """A fully connected layer whose weights for one tile of outputs exceed the memory."""
    builder = NetworkBuilder(4, 16, 16, 16)
    builder.same_conv2d(3, 16)
    if flat:
        builder.reshape((1, 16 * 16 * 16))
    builder.fully_connected(20)
    configuration = Configuration(rows=8, columns=8, weight_bytes=1 << 13, activation_bytes=1 << 12)
    program = check(builder, configuration)
    layer = [layer.operator for layer in program.layers].index("fully_connected")
    own = [step for step in _runs(program) if any(at == layer for at, _ in step.owners[0])]
    drains = [step for step in own if step.owners[1]]
    assert program.layers[layer].where == "device"
    assert len(own) > 3 * len(drains) == 3 * math.ceil(20 / 8)


@pytest.mark.parametrize("engine", ["pipelined", "compact"])
def test_parts_of_a_reduction_meet_in_the_accumulators(engine):
    """Boxes of unlike height: the highest, too, must be one tile of the accumulators."""
    builder = NetworkBuilder(2, 24, 25, 36)
    builder.same_conv2d(3, 18)
    configuration = Configuration(
        engine=engine,
        rows=8,
        columns=16,
        lanes=1 if engine == "compact" else 8,
        activation_bytes=1 << 13,
        weight_bytes=1 << 11,
        accumulator_depth=64,
        parameter_words=64 if engine == "compact" else 0,
    )
    program = check(builder, configuration)
    assert {step.instructions[0] for step in _runs(program)} == {1}


def test_columns_are_cut():
    """One row of the picture is more than the memory."""
    builder = NetworkBuilder(5, 3, 300, 4)
    builder.same_conv2d(3, 8)
    builder.pool("max_pool2d", (2, 2))
    program = check(builder, Configuration(rows=4, columns=8, lanes=4, activation_bytes=1 << 10))
    assert all(layer.where == "device" for layer in program.layers)


def test_transfers_overlap_with_runs():
    builder = NetworkBuilder(6, 24, 24, 8)
    for _ in range(3):
        builder.same_conv2d(3, 32)
    program = check(
        builder, Configuration(rows=8, columns=8, activation_bytes=1 << 14, weight_bytes=1 << 13)
    )
    overlapped = sum(step.overlapped for step in _runs(program))
    kinds = {type(step) for step in program.steps}
    assert {LoadStep, UploadStep, DownloadStep} <= kinds
    assert overlapped > len(_runs(program))


class Single(LinkDevice):
    """The golden model as a board is: one image at a time. Counts the bytes of weights."""

    def __init__(self, configuration: Configuration) -> None:
        endpoint = Endpoint(configuration, GoldenCore(configuration))
        super().__init__(LoopbackTransport(endpoint), configuration=configuration)
        self.loaded = 0

    def write(self, space: Space, address: int, data: bytes) -> None:
        if space is Space.WEIGHTS:
            self.loaded += len(data)
        super().write(space, address, data)


@pytest.mark.parametrize("kind", [ModelDevice, Single])
@pytest.mark.parametrize("count", [1, 5, 18])
def test_sessions_load_what_is_not_there(kind, count):
    """Weights that do not stay are loaded for each image; a batch shares them."""
    builder = NetworkBuilder(8, 12, 12, 8)
    for _ in range(3):
        builder.same_conv2d(3, 16)
    configuration = Configuration(rows=8, columns=8, weight_bytes=1 << 12)
    graph = builder.graph()
    images = np.concatenate([builder.images() for _ in range(count)])
    program = compile_graph(graph, configuration)
    assert program.loads
    device = kind(configuration)
    execution = Execution(program, device)
    expected = run_graph(graph, [images])[builder.last]
    for _ in range(2):
        values = execution.infer_batch({"input": images})
        np.testing.assert_array_equal(values[builder.last], expected)
    if isinstance(device, Single):
        batches = 2 * math.ceil(count / BATCH)
        weights = [image for image in program.loads if image.space == Space.WEIGHTS]
        assert device.loaded <= batches * sum(len(image.data) for image in weights)
    device.close()
