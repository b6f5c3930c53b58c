"""Networks of logarithmic codes: the compiled program computes what the kernels define."""

import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lns_networks import FORMATS, LnsWriter, every_layer
from program_runner import run_program
from slipstick import kernels
from slipstick.cli import app
from slipstick.compiler import compile_graph
from slipstick.frontends.onnx import load_onnx_bytes
from slipstick.graph import Graph
from slipstick.kernels.dispatch import run_graph
from slipstick.program import Program
from slipstick.program import slip_file as program_file
from slipstick_rtl.config import Configuration

SMALL = {"rows": 8, "columns": 8, "lanes": 4}


def configuration(name: str, **changes: Any) -> Configuration:
    return dataclasses.replace(Configuration(**{**SMALL, **changes}), number_format=name)


def check(graph: Graph, hardware: Configuration, image: np.ndarray, *, inspect: bool) -> Program:
    expected = run_graph(graph, [image])
    program = compile_graph(graph, hardware, inspect=inspect)
    program = program_file.decode(program_file.encode(program))
    values = run_program(program, {"input": image})
    assert set(graph.outputs) <= set(values)
    for name, value in values.items():
        np.testing.assert_array_equal(value, expected[name], name)
    return program


def image(seed: int = 0, shape: tuple[int, ...] = (1, 3, 11, 9)) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 0.4, shape).astype(np.float32)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("inspect", [True, False])
def test_every_layer(name: str, inspect: bool) -> None:
    graph = load_onnx_bytes(every_layer(name))
    assert graph.semantics == name
    program = check(graph, configuration(name), image(), inspect=inspect)
    where = {(layer.operator, layer.where) for layer in program.layers}
    on_device = {operator for operator, place in where if place == "device"}
    layers = {"conv2d", "depthwise_conv2d", "fully_connected"}
    assert layers | {"add", "average_pool2d", "max_pool2d", "mean", "lookup"} <= on_device
    on_host = {operator for operator, place in where if place == "host"}
    assert on_host <= {"quantize", "transpose", "softmax", "reshape"}


@pytest.mark.parametrize(
    "changes",
    [
        {"pixels": 2},
        {"rows": 16, "columns": 16, "lanes": 16},
        {"rows": 16, "columns": 8, "lanes": 8},
        {"rows": 32, "columns": 16, "lanes": 8, "weight_rows": 2},
    ],
)
def test_shapes_of_arrays(changes: dict[str, Any]) -> None:
    graph = load_onnx_bytes(every_layer("lns1+3+3", 1))
    check(graph, configuration("lns1+3+3", **changes), image(1), inspect=False)


def test_networks_that_are_cut() -> None:
    net = LnsWriter("lns1+3+4", 2)
    x = net.coded(net.input("input", (1, 16, 20, 20)), 1.0)
    for _ in range(3):
        x = net.conv(x, 16, 16, 3, pads=[1] * 4)
    x = net.coded(net.add("GlobalAveragePool", [x]), 0.5)
    graph = load_onnx_bytes(net.to_bytes([x]))
    hardware = configuration("lns1+3+4", activation_bytes=4096, weight_bytes=4096)
    program = check(graph, hardware, image(2, (1, 16, 20, 20)), inspect=False)
    assert program.loads


def test_layer_kernels_follow_the_definition() -> None:
    net = LnsWriter("lns1+3+4", 3)
    x = net.coded(net.input("input", (1, 3, 5, 4)), 1.0)
    graph = load_onnx_bytes(net.to_bytes([net.conv(x, 2, 3, 3, strides=[2, 1], pads=[1] * 4)]))
    values = run_graph(graph, [image(3, (2, 3, 5, 4))])
    (node,) = (node for node in graph.nodes if node.operator == "conv2d")
    (source, weights, bias), arithmetic = node.inputs, net.arithmetic
    codes, kernel = values[source].astype(int), graph.tensors[weights].data
    biases, scales = graph.tensors[bias].data, graph.tensors[weights].quantization
    assert kernel is not None and biases is not None and scales is not None
    scale_in, scale_out = (
        tensor.quantization.scale[0]
        for tensor in (graph.tensors[source], graph.tensors[node.outputs[0]])
        if tensor.quantization is not None
    )
    result = values[node.outputs[0]]
    for n, y, column, o in itertools.product(*map(range, result.shape)):
        total = int(biases[o])
        for ky, kx, c in itertools.product(range(3), range(3), range(3)):
            row, place = 2 * y + ky - 1, column + kx - 1
            if 0 <= row < 5 and 0 <= place < 4:
                total += int(arithmetic.multiply(codes[n, row, place, c], kernel[o, ky, kx, c]))
        ratio = scale_in * scales.scale[o] * arithmetic.unit / scale_out
        wanted = arithmetic.requantize(total, 0, arithmetic.offset(float(ratio)))
        assert result[n, y, column, o] == wanted


@pytest.mark.parametrize("name", FORMATS)
def test_layers_follow_real_numbers(name: str) -> None:
    graph = load_onnx_bytes(every_layer(name, 4))
    values = run_graph(graph, [image(4, (4, 3, 11, 9))])
    checked = 0
    for node in graph.nodes:
        tensors = [graph.tensors[name] if name else None for name in node.inputs]
        operands = [
            None if tensor is None else values.get(tensor.name, tensor.data) for tensor in tensors
        ]
        codes = kernels.exact(node, graph, operands)
        if codes is None:
            continue
        checked += 1
        away = np.abs(codes.astype(int) - values[node.outputs[0]])
        # near zero a sum is a difference of large products, whose own errors count most
        assert np.mean(away > 1) < 0.1 and np.mean(away) < 0.5, node.name
    assert checked >= 10


def test_verify(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "logs.onnx"
    place.write_bytes(every_layer("lns1+3+4", 6))
    command = ["verify", str(place), "--target", "sim-lns8", "--no-rtl", "--limit", "3"]
    with pytest.raises(SystemExit) as ended:
        app([*command, "--json"])
    assert not ended.value.code
    result = json.loads(capsys.readouterr().out)
    assert (result["semantics"], result["total_mismatches"], result["count"]) == ("lns1+3+4", 0, 3)
    near = {
        entry["operator"]: entry["reference_vs_runtime"]
        for entry in result["layers"]
        if entry["reference_vs_runtime"] is not None
    }
    assert near.keys() >= {"conv2d", "depthwise_conv2d", "fully_connected", "add", "mean"}
    assert 0 < near["conv2d"]["mismatches"] < near["conv2d"]["elements"] / 2
    assert near["add"]["largest"] <= 3
    with pytest.raises(SystemExit):
        app(command)
    assert "rule ≠ exact" in capsys.readouterr().out
