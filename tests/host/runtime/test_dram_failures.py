"""Programs in DRAM when something goes wrong: power, the host, a network that is too large."""

import dataclasses
import random
from typing import Any

import numpy as np
import pytest
from random_networks import NetworkBuilder
from slipstick.compiler import compile_graph
from slipstick.compiler.codegen.dram_list import why_not_from_dram
from slipstick.devices.link import LinkDevice, LinkError
from slipstick.devices.link.transport import LoopbackTransport
from slipstick.devices.model import ModelDevice
from slipstick.kernels.dispatch import run_graph
from slipstick.program import Program
from slipstick.runtime.executor import Execution
from slipstick_rtl.dram import chips
from slipstick_sim.golden.core import GoldenCore
from slipstick_sim.golden.link import Endpoint
from small_dram_core import SMALL


def larger_than_the_chip() -> NetworkBuilder:
    builder = NetworkBuilder(3, 8, 8, 16)
    for _ in range(4):
        builder.same_conv2d(3, 16)
    return builder


@pytest.fixture(scope="module")
def network() -> tuple[Program, np.ndarray, dict[str, np.ndarray]]:
    """A program that runs from DRAM, its images, and what it must answer."""
    builder = larger_than_the_chip()
    graph = builder.graph(builder.last)
    images = builder.images()
    return compile_graph(graph, SMALL), images, run_graph(graph, [images])


def check(device: LinkDevice, network: tuple[Program, np.ndarray, dict[str, np.ndarray]]) -> None:
    program, images, expected = network
    execution = Execution(program, device)
    assert execution.lists
    found = execution.infer_batch({"input": images})
    for name in program.outputs:
        np.testing.assert_array_equal(found[name], expected[name])


class Breaking(LoopbackTransport):
    """A host that ends after so many bytes, in the middle of a frame or not."""

    def __init__(self, endpoint: Endpoint, left: int) -> None:
        super().__init__(endpoint)
        self.left = left

    def send(self, data: bytes) -> None:
        super().send(data[: self.left])
        self.left -= len(data)
        if self.left < 0:
            raise KeyboardInterrupt


def test_a_board_without_power_for_a_while_is_not_taken_for_loaded(network) -> None:
    device = ModelDevice(SMALL)
    program, images, _ = network
    execution = Execution(program, device)
    execution.infer_batch({"input": images})
    transport: Any = device._transport
    transport._endpoint = Endpoint(SMALL, GoldenCore(SMALL))
    with pytest.raises(LinkError, match="SESSION_LOST.* load the program again"):
        execution.infer_batch({"input": images})
    fresh = LinkDevice(device._transport, configuration=SMALL)
    check(fresh, network)


def test_a_host_that_dies_while_it_loads_leaves_a_board_that_works(network) -> None:
    program, images, _ = network
    endpoint = Endpoint(SMALL, GoldenCore(SMALL))
    counting = Breaking(endpoint, 1 << 40)
    check(LinkDevice(counting, configuration=SMALL), network)
    total = (1 << 40) - counting.left
    draw = random.Random(4)
    for _ in range(40):
        dying = Breaking(endpoint, draw.randrange(total))
        with pytest.raises(KeyboardInterrupt):
            execution = Execution(program, LinkDevice(dying, configuration=SMALL))
            execution.infer_batch({"input": images})
        check(LinkDevice(LoopbackTransport(endpoint), configuration=SMALL), network)


def test_what_does_not_fit_the_dram_is_sent_by_the_host(network, monkeypatch) -> None:
    chip = dataclasses.replace(chips.MT48LC16M16, rows=2, columns=512)
    monkeypatch.setitem(chips.CHIPS, chip.name, chip)
    program, images, expected = network
    assert f"must fit {chip.bytes} bytes of DRAM, not" in why_not_from_dram(program)
    execution = Execution(program, ModelDevice(SMALL))
    assert not execution.lists
    found = execution.infer_batch({"input": images})
    for name in program.outputs:
        np.testing.assert_array_equal(found[name], expected[name])


def test_every_layer_comes_back_where_it_is_asked_for() -> None:
    """What is stored in DRAM would otherwise be overwritten, or stay there unseen."""
    builder = larger_than_the_chip()
    graph = builder.graph(builder.last)
    images = builder.images()[:1]
    expected = run_graph(graph, [images])
    program = compile_graph(graph, SMALL, inspect=True)
    layers = {layer.output for layer in program.layers}
    assert layers > set(program.outputs)
    execution = Execution(program, ModelDevice(SMALL), every=True)
    assert execution.lists
    found = execution.infer({"input": images})
    assert layers <= found.keys()
    for name in layers:
        np.testing.assert_array_equal(found[name], expected[name])
    assert not layers <= Execution(program, ModelDevice(SMALL)).infer({"input": images}).keys()
