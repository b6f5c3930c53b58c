"""Networks of logarithms on the compiled RTL equal the golden model, and take what is predicted."""

from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from lns_networks import every_layer
from slipstick import kernels
from slipstick.compiler import compile_graph
from slipstick.devices import open_device
from slipstick.frontends.onnx import load_onnx_bytes
from slipstick.runtime.executor import Execution
from slipstick.targets import find_target

SMALL = replace(find_target("1x4x4").configuration, number_format="lns1+3+4")


@pytest.fixture(scope="module")
def device():
    with closing(open_device("sim", SMALL)) as sim:
        yield sim


@pytest.mark.parametrize("inspect", [True, False])
def test_every_layer(device, inspect: bool) -> None:
    graph = load_onnx_bytes(every_layer("lns1+3+4", 5))
    program = compile_graph(graph, SMALL, inspect=inspect)
    execution, rng = Execution(program, device), np.random.default_rng(5)
    for _ in range(2):
        x = rng.normal(0, 0.4, (1, 3, 11, 9)).astype(np.float32)
        values, expected = execution.infer({"input": x}), kernels.run_graph(graph, [x])
        for name, value in values.items():
            np.testing.assert_array_equal(value, expected[name], name)
    if not inspect:
        measured = execution.last_cycles or 0
        assert abs(measured - program.predicted_cycles) < 0.1 * measured
