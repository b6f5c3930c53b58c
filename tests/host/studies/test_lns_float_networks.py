"""Float networks of the usual kinds in logarithms: near what they were, the same on the device."""

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from float_networks import NETWORKS
from program_runner import run_program
from slipstick import kernels
from slipstick.compiler import compile_graph
from slipstick.frontends.onnx import load_onnx_bytes
from slipstick.quantize import FloatNetwork
from slipstick.targets import find_target


@pytest.mark.parametrize("name", NETWORKS)
def test_network(name: str, tmp_path: Path) -> None:
    make, shape = NETWORKS[name]
    data, place = make(), tmp_path / "network.onnx"
    place.write_bytes(data)
    configuration = find_target("sim-lns8").configuration
    assert configuration.logarithmic is not None
    x = np.random.default_rng(13).normal(0, 1, (16, *shape)).astype(np.float32)
    quantised = FloatNetwork(place).quantize_logarithmic(x, configuration.logarithmic)
    graph = load_onnx_bytes(quantised)
    values = kernels.run_graph(graph, [x])
    session = onnxruntime.InferenceSession(data)
    wanted = np.concatenate([np.asarray(session.run(None, {"x": one[None]})[0]) for one in x])
    error = np.abs(values[graph.outputs[0]].reshape(wanted.shape) - wanted)
    assert error.mean() < 0.02 * np.abs(wanted).max()
    program = compile_graph(graph, configuration)
    assert any(layer.where == "device" and layer.macs for layer in program.layers)
    for tensor, value in run_program(program, {graph.inputs[0]: x[:1]}).items():
        np.testing.assert_array_equal(value, values[tensor][:1], tensor)
